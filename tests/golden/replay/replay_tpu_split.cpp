// SPDX-License-Identifier: Apache-2.0
// Area "tpu_split": tensors that are split over, assigned to, or replicated on the logical devices of a
// replica. If the shape is known, the operation runs on a replica with logical devices and its shards are
// checked; the arithmetic on shapes must agree.
#include <algorithm>
#include <numeric>

#include "programs.hpp"

namespace golden {
namespace {

using Sizes = std::vector<int64_t>;

// Null is an unknown size.
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

// Returns the shape of the whole that the shards form.
Sizes whole(const std::vector<Shard>& shards) {
  Sizes shape = shards.front().size;
  for (const Shard& shard : shards) {
    for (std::size_t i = 0; i < shape.size(); ++i)
      shape[i] = shard.size[i] < 0 ? -1 : std::max(shape[i], shard.begin[i] + shard.size[i]);
  }
  return shape;
}

// Returns the elements of a logical device's shard, row-major. The shard must be where the arithmetic places
// it.
Json data_of(Replay& replay, const dist_value* divided, int32_t device, const Shard& expected) {
  Sizes begin(expected.begin.size());
  dist_tensor shard;
  check(dist_value_shard(divided, device, begin.data(), &shard));
  if (begin != expected.begin || !std::equal(expected.size.begin(), expected.size.end(), shard.shape))
    raise(DIST_INTERNAL, "a shard is not where dist_partition_shard() says");
  std::vector<Json> data;
  for (int64_t k = 0; k < expected.elements; ++k) {
    int64_t rest = k;
    int64_t place = 0;
    int64_t step = 1;
    for (int32_t i = shard.ndim; i-- > 0;) {
      place += rest % shard.shape[i] * (shard.strides != nullptr ? shard.strides[i] : step);
      rest /= shard.shape[i];
      step *= shard.shape[i];
    }
    data.push_back(replay.json(static_cast<const int64_t*>(shard.data)[place]));
  }
  return replay.array(std::move(data));
}

bool is_known(const Sizes& shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
}

using Topology = Handle<dist_topology, dist_topology_destroy>;
using Assignment = Handle<dist_device_assignment, dist_device_assignment_destroy>;

// A strategy with one replica that has this number of logical devices.
Strategy strategy_of(const dist_partition& partition) {
  const int32_t n = partition.num_logical_devices;
  const int32_t mesh[] = {1, n, 1, 1};
  std::vector<int32_t> coordinates(static_cast<std::size_t>(n) * 4);
  for (int32_t d = 0; d < n; ++d) coordinates[static_cast<std::size_t>(d) * 4 + 1] = d;
  Topology topology;
  check(dist_topology_create(mesh, 4, coordinates.data(), 1, n, nullptr, topology.out()));
  Assignment assignment;
  check(dist_device_assignment_build(topology.get(), mesh, nullptr, 4, 1, DIST_DEVICE_ORDER_MESH,
                                     assignment.out()));
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh_options = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh_options;
  options.kind = DIST_STRATEGY_MESH;
  mesh_options.device_assignment = assignment.get();
  mesh_options.use_spmd_partitioning = partition.spmd;
  Strategy strategy;
  check(dist_strategy_create(&options, strategy.out()));
  return strategy;
}

Value divide_inside(dist_replica* replica, const dist_partition& partition, const dist_tensor& tensor) {
  Value whole;
  Value divided;
  check(dist_value_create_tensor(dist_replica_strategy(replica), &tensor, whole.out()));
  switch (partition.kind) {
    case DIST_PARTITION_SPLIT:
      check(dist_split_to_logical_devices(replica, whole.get(), partition.dimensions,
                                          partition.num_dimensions, nullptr, divided.out()));
      break;
    case DIST_PARTITION_ASSIGN:
      check(dist_assign_to_logical_device(replica, whole.get(), partition.logical_device, divided.out()));
      break;
    default: check(dist_replicate_to_logical_devices(replica, whole.get(), divided.out()));
  }
  return divided;
}

// Divides a tensor of consecutive numbers inside a replica function.
Value divide(const dist_partition& partition, const Sizes& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  Sizes numbers(static_cast<std::size_t>(elements) + 1);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const dist_tensor tensor{numbers.data(), DIST_I64, static_cast<int32_t>(shape.size()), shape.data(),
                           nullptr};
  const Strategy strategy = strategy_of(partition);
  return run(strategy.get(), [&](dist_replica* replica, dist_value*, dist_value*) {
    return divide_inside(replica, partition, tensor);
  });
}

dist_partition partition_of(Replay& replay, dist_partition_kind kind, const Sizes& shape) {
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

// Returns the device of each tile, with the tiles in row-major order.
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
  if (std::any_of(parts.Begin(), parts.End(), is_float)) return;  // floats, which C's integers cannot express
  const Sizes shape = sizes_of(replay.input("shape"));
  const Sizes dimensions = sizes_of(parts);
  dist_partition partition = partition_of(replay, DIST_PARTITION_SPLIT, shape);
  partition.dimensions = dimensions.data();
  partition.num_dimensions = dimensions.size();
  Value divided;
  if (is_known(shape)) divided = divide(partition, shape);
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
    shard.add("data", data_of(replay, divided.get(), static_cast<int32_t>(d), shards[d]));
    all.push_back(shard.take());
  }
  replay.record("shards", replay.array(std::move(all)));
}

void assign(Replay& replay) {
  const Sizes shape = sizes_of(replay.input("shape"));
  dist_partition partition = partition_of(replay, DIST_PARTITION_ASSIGN, shape);
  partition.logical_device = replay.input("logical_device_id").GetInt();
  const Value divided = divide(partition, shape);
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
  const Value divided = divide(partition, shape);
  check(dist_partition_check(&partition));
  const std::vector<Shard> shards = shards_of(partition);
  const auto is_whole = [&](const Shard& shard) { return shard.size == shape; };
  if (!std::all_of(shards.begin(), shards.end(), is_whole))
    raise(DIST_INTERNAL, "a device has less than the tensor");
  replay.record("sharding_type", replay.json("REPLICATED"));
  replay.record("result_shape", array_of(replay, whole(shards)));
}

struct Program {
  std::string_view id;  // the beginning of the ids
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
