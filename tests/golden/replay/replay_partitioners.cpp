// SPDX-License-Identifier: Apache-2.0
// Area "partitioners": the number of parts that a variable is divided into.
#include <vector>

#include "tests/golden/harness/elements.hpp"
#include "tests/golden/harness/replay.hpp"

namespace golden {
namespace {

// An argument of a partitioner, or its default in Python.
struct Arguments {
  const Json& json;

  int64_t integer(std::string_view key, int64_t otherwise) const {
    const Json* const given = find(json, key);
    return given == nullptr || given->IsNull() ? otherwise : given->GetInt64();
  }
};

struct Divided {
  std::vector<int64_t> shape;
  std::string dtype;
  int32_t axis = 0;
};

// Strings have no fixed size, so the partitioner specifies the size to assume.
int64_t element_bytes(const Divided& variable, const Arguments& arguments) {
  const int64_t bytes_per_text = arguments.integer("bytes_per_string", DIST_PARTITIONER_BYTES_PER_TEXT);
  if (variable.dtype == "string" || bytes_per_text < 1) return bytes_per_text;
  const auto dtype = dtype_of(variable.dtype);
  if (!dtype) throw Unknown{"a dtype called " + variable.dtype};
  return static_cast<int64_t>(elements_of(*dtype, {}, {0}).bytes.size());
}

Json partitions(Replay& replay, std::string_view kind, const Arguments& arguments, const Divided& variable) {
  std::vector<int64_t> out(variable.shape.size() + 1);
  const int64_t* const shape = variable.shape.data();
  const std::size_t ndim = variable.shape.size();
  if (kind == "fixed") {
    const auto num_shards = static_cast<int32_t>(member(arguments.json, "num_shards").GetInt());
    check(dist_partitions_fixed_shards(shape, ndim, variable.axis, num_shards, out.data()));
  } else if (kind == "min_size") {
    check(dist_partitions_min_size(
        shape, ndim, variable.axis, element_bytes(variable, arguments),
        arguments.integer("min_shard_bytes", DIST_PARTITIONER_MIN_SHARD_BYTES),
        static_cast<int32_t>(arguments.integer("max_shards", DIST_PARTITIONER_MAX_SHARDS)), out.data()));
  } else {
    check(dist_partitions_max_size(shape, ndim, variable.axis, element_bytes(variable, arguments),
                                   member(arguments.json, "max_shard_bytes").GetInt64(),
                                   static_cast<int32_t>(arguments.integer("max_shards", 0)), out.data()));
  }
  out.pop_back();
  std::vector<Json> items;
  for (const int64_t number : out) items.push_back(replay.json(number));
  return replay.array(std::move(items));
}

// Constructs a partitioner. C checks the arguments when the partitioner is called. A C compiler rejects a
// missing argument.
void construct(Replay& replay) {
  const std::string_view name = replay.text("class");
  const std::string_view kind = name == "FixedShardsPartitioner" ? "fixed"
                                : name == "MinSizePartitioner"   ? "min_size"
                                                                 : "max_size";
  const Arguments arguments{replay.input("kwargs")};
  const char* const required = kind == "fixed"      ? "num_shards"
                               : kind == "max_size" ? "max_shard_bytes"
                                                    : nullptr;
  if (required != nullptr && find(arguments.json, required) == nullptr) return;
  replay.record("partitions_10x4_float32", partitions(replay, kind, arguments, {{10, 4}, "float32"}));
  replay.record("ok", replay.json(true));
}

}  // namespace

void replay_partitioners(Replay& replay) {
  const std::string_view kind = std::string_view(replay.id()).substr(0, replay.id().find('/'));
  if (kind == "construct") return construct(replay);
  if (kind == "base_class") return;  // a Python class without a body
  if (kind != "fixed" && kind != "min_size" && kind != "max_size") replay.unknown("a partitioner");
  Divided variable;
  for (const Json& size : replay.input("shape").GetArray()) variable.shape.push_back(size.GetInt64());
  variable.dtype = replay.text("dtype");
  if (replay.has("axis")) variable.axis = replay.input("axis").GetInt();
  replay.record("partitions", partitions(replay, kind, {replay.inputs()}, variable));
}

}  // namespace golden
