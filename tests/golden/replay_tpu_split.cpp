// SPDX-License-Identifier: Apache-2.0
// Area "tpu_split": tensors that are split over, assigned to, or replicated on the logical devices of a
// replica.
#include <algorithm>

#include "programs.hpp"

namespace golden {
namespace {

using Sizes = std::vector<int64_t>;

// Null is a size that is not known.
Sizes sizes_of(const Json& json) {
  Sizes sizes;
  for (const Json& one : json.GetArray()) sizes.push_back(one.IsNull() ? -1 : one.GetInt64());
  return sizes;
}
Json array_of(Replay& replay, const Sizes& sizes) {
  std::vector<Json> items;
  for (const int64_t size : sizes) items.push_back(size < 0 ? replay.null() : replay.json(size));
  return replay.array(std::move(items));
}

struct Shard {
  explicit Shard(std::size_t ndim) : tile(ndim), begin(ndim), size(ndim) {}
  Sizes tile;
  Sizes begin;
  Sizes size;
  int64_t elements = 0;
};

Shard shard_of(const dist_partition& partition, int32_t device) {
  Shard shard(partition.ndim);
  check(dist_partition_shard(&partition, device, shard.tile.data(), shard.begin.data(), shard.size.data(),
                             &shard.elements));
  return shard;
}

std::vector<Shard> shards_of(const dist_partition& partition) {
  std::vector<Shard> shards;
  for (int32_t d = 0; d < partition.num_logical_devices; ++d) shards.push_back(shard_of(partition, d));
  return shards;
}

// What the shards are together.
Sizes whole(const std::vector<Shard>& shards) {
  Sizes shape = shards.front().size;
  for (const Shard& shard : shards) {
    for (std::size_t i = 0; i < shape.size(); ++i)
      shape[i] = shard.size[i] < 0 ? -1 : std::max(shape[i], shard.begin[i] + shard.size[i]);
  }
  return shape;
}

// The shard's elements of a tensor that counts its own, row-major.
Json data_of(Replay& replay, const Sizes& shape, const Shard& shard) {
  std::vector<Json> data;
  for (int64_t k = 0; k < shard.elements; ++k) {
    int64_t rest = k;
    int64_t place = 0;
    int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      place += (shard.begin[i] + rest % shard.size[i]) * step;
      rest /= shard.size[i];
      step *= shape[i];
    }
    data.push_back(replay.json(place));
  }
  return replay.array(std::move(data));
}

dist_partition partition_of(Replay& replay, int32_t kind, const Sizes& shape) {
  dist_partition partition = DIST_PARTITION_INIT;
  partition.kind = kind;
  partition.shape = shape.data();
  partition.ndim = shape.size();
  const Json& strategy = replay.strategy_description();
  partition.num_logical_devices = member(strategy, "logical_devices_per_replica").GetInt();
  const Json* const spmd = find(strategy, "spmd");
  partition.spmd = spmd != nullptr && spmd->GetBool() ? 1 : 0;
  return partition;
}

void record_sharding(Replay& replay, const char* type, const Sizes& dimensions, const Sizes& devices) {
  replay.record("sharding_type", replay.json(type));
  replay.record("tile_assignment_dimensions", array_of(replay, dimensions));
  replay.record("tile_assignment_devices", array_of(replay, devices));
}

// The device of each tile, tiles row-major.
Sizes devices_by_tile(const std::vector<Shard>& shards, const Sizes& dimensions) {
  Sizes devices(shards.size(), -1);
  for (std::size_t d = 0; d < shards.size(); ++d) {
    int64_t tile = 0;
    for (std::size_t i = 0; i < dimensions.size(); ++i) tile = tile * dimensions[i] + shards[d].tile[i];
    devices.at(static_cast<std::size_t>(tile)) = static_cast<int64_t>(d);
  }
  return devices;
}

void split(Replay& replay) {
  const Json& parts = replay.input("partition_dimensions");
  const auto is_float = [](const Json& one) { return one.IsDouble(); };
  if (std::any_of(parts.Begin(), parts.End(), is_float)) return;  // what C's integers cannot say
  const Sizes shape = sizes_of(replay.input("shape"));
  const Sizes dimensions = sizes_of(parts);
  dist_partition partition = partition_of(replay, DIST_PARTITION_SPLIT, shape);
  partition.dimensions = dimensions.data();
  partition.num_dimensions = dimensions.size();
  check(dist_partition_check(&partition));
  const std::vector<Shard> shards = shards_of(partition);
  record_sharding(replay, "OTHER", dimensions, devices_by_tile(shards, dimensions));
  replay.record("result_shape", array_of(replay, whole(shards)));
  if (!replay.has("tensor")) return;
  std::vector<Json> all;
  for (std::size_t d = 0; d < shards.size(); ++d) {
    Members shard(replay);
    shard.add("logical_device", replay.json(static_cast<int64_t>(d)));
    shard.add("tile_index", array_of(replay, shards[d].tile));
    shard.add("begin", array_of(replay, shards[d].begin));
    shard.add("size", array_of(replay, shards[d].size));
    shard.add("data", data_of(replay, shape, shards[d]));
    all.push_back(shard.take());
  }
  replay.record("shards", replay.array(std::move(all)));
}

void assign(Replay& replay) {
  const Sizes shape = sizes_of(replay.input("shape"));
  dist_partition partition = partition_of(replay, DIST_PARTITION_ASSIGN, shape);
  partition.logical_device = replay.input("logical_device_id").GetInt();
  check(dist_partition_check(&partition));
  const std::vector<Shard> shards = shards_of(partition);
  Sizes owners;
  for (std::size_t d = 0; d < shards.size(); ++d) {
    if (shards[d].elements != 0) owners.push_back(static_cast<int64_t>(d));
  }
  record_sharding(replay, "MAXIMAL", {static_cast<int64_t>(owners.size())}, owners);
  replay.record("result_shape", array_of(replay, whole(shards)));
}

void replicate(Replay& replay) {
  const Sizes shape = sizes_of(replay.input("shape"));
  const dist_partition partition = partition_of(replay, DIST_PARTITION_REPLICATE, shape);
  check(dist_partition_check(&partition));
  const std::vector<Shard> shards = shards_of(partition);
  const auto is_whole = [&](const Shard& shard) { return shard.size == shape; };
  if (!std::all_of(shards.begin(), shards.end(), is_whole))
    raise(DIST_INTERNAL, "a device has less than the tensor");
  replay.record("sharding_type", replay.json("REPLICATED"));
  replay.record("result_shape", array_of(replay, whole(shards)));
}

struct Program {
  std::string_view id;  // begins with
  void (*play)(Replay& replay);
};
constexpr Program kPrograms[] = {
    {"split/", split},
    {"split_special/", split},
    {"assign/", assign},
    {"replicate", replicate},
};

}  // namespace

void replay_tpu_split(Replay& replay) {
  for (const Program& program : kPrograms) {
    if (replay.id().starts_with(program.id)) return program.play(replay);
  }
  replay.unknown("program");
}

}  // namespace golden
