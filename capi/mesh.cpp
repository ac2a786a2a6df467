// SPDX-License-Identifier: Apache-2.0
// mesh.h: replicas that consist of logical devices.
#include <algorithm>
#include <memory_resource>
#include <span>
#include <vector>

#include "capi/collective.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "capi/partition.hpp"
#include "capi/topology.hpp"
#include "core/collective/tiles.hpp"
#include "core/run/device_run.hpp"
#include "core/run/device_team.hpp"
#include "core/strategy/mesh.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

dist_status call_device(const ValuesFunction& self, Replica& device, Value* args, Value* kwargs,
                        Value** out_result) {
  const auto function = reinterpret_cast<dist_values_fn>(self.host_function);
  dist_value* result = nullptr;
  const dist_status status = function(wrap(&device), wrap(args), wrap(kwargs), &result, self.user_data);
  *out_result = capi::unwrap(result);
  return status;
}

// `describe` completes the partition.
template <class Describe>
dist_status divide_value(dist_replica* replica, dist_value* value, dist_value** out_value, const char* call,
                         Describe&& describe) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(replica, call, "replica"));
        DIST_TRY(require(value, call, "value"));
        DIST_TRY(require(out_value, call, "out_value"));
        Partition how;
        Replica& self = capi::unwrap(replica);
        DIST_TRY(begin_partition(self, call, &how));
        DIST_TRY(describe(how));
        ValueRef divided;
        DIST_TRY(divide(self.pool().memory(), *capi::unwrap(value), self.local(), how, &divided));
        *out_value = wrap(divided.take());
        return kOk;
      },
      call);
}

class Results {
 public:
  explicit Results(Memory& memory) : partitions_(&memory), pointers_(&memory) {}

  Status read(const dist_devices_options& options, int32_t num_devices) {
    DIST_TRY(check_list(options.results, options.num_results, "dist_run_on_devices", "options->results",
                        "options->num_results"));
    partitions_.resize(options.num_results);
    for (std::size_t i = 0; i < options.num_results; ++i) {
      pointers_.push_back(options.results[i] == nullptr ? nullptr : &partitions_[i]);
      if (options.results[i] == nullptr) continue;
      DIST_TRY(read_partition(options.results[i], "dist_run_on_devices", &partitions_[i]));
      DIST_TRY(complete_result(num_devices, &partitions_[i]));
    }
    return kOk;
  }
  std::span<const Partition* const> get() const noexcept { return pointers_; }

 private:
  std::pmr::vector<Partition> partitions_;
  std::pmr::vector<const Partition*> pointers_;
};

Status require_sharded(const dist_value* value, const char* call) noexcept {
  DIST_TRY(require(value, call, "value"));
  return check_sharded(*capi::unwrap(value), call);
}

// Finds the axis with this name in the device's replica.
Status find_axis(dist_replica* device, const char* name, const char* call, DeviceTeam** out_team,
                 std::size_t* out_axis) noexcept {
  DIST_TRY(require(device, call, "device"));
  DIST_TRY(require(name, call, "name"));
  DIST_TRY(find_own_team(capi::unwrap(device), call, out_team));
  return (*out_team)->mesh().find(name, call, out_axis);
}

}  // namespace

int32_t dist_strategy_num_logical_devices(const dist_strategy* strategy) {
  return strategy == nullptr ? 0 : capi::unwrap(strategy).mesh().num_devices;
}

const dist_device_assignment* dist_strategy_device_assignment(const dist_strategy* strategy) {
  return strategy == nullptr ? nullptr : wrap(capi::unwrap(strategy).assignment());
}

void dist_split_options_init(dist_split_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_split_to_logical_devices(dist_replica* replica, dist_value* value,
                                          const int64_t* partition_dimensions, size_t n,
                                          const dist_split_options* options, dist_value** out_value) {
  constexpr const char* kCall = "dist_split_to_logical_devices";
  return divide_value(replica, value, out_value, kCall, [&](Partition& how) -> Status {
    dist_split_options given;
    DIST_TRY(read_options(options, &given, "dist_split_options"));
    DIST_TRY(require_flag(given.uneven, "dist_split_options.uneven"));
    DIST_TRY(check_list(partition_dimensions, n, kCall, "partition_dimensions"));
    how.kind = DIST_PARTITION_SPLIT;
    how.dimensions = {partition_dimensions, n};
    how.uneven = given.uneven == 1;
    return kOk;
  });
}

dist_status dist_assign_to_logical_device(dist_replica* replica, dist_value* value, int32_t logical_device,
                                          dist_value** out_value) {
  return divide_value(replica, value, out_value, "dist_assign_to_logical_device",
                      [&](Partition& how) -> Status {
                        how.kind = DIST_PARTITION_ASSIGN;
                        how.logical_device = logical_device;
                        return kOk;
                      });
}

dist_status dist_replicate_to_logical_devices(dist_replica* replica, dist_value* value,
                                              dist_value** out_value) {
  return divide_value(replica, value, out_value, "dist_replicate_to_logical_devices",
                      [&](Partition& how) -> Status {
                        how.kind = DIST_PARTITION_REPLICATE;
                        return kOk;
                      });
}

dist_status dist_value_partition(const dist_value* value, dist_partition* out_partition) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_partition, "dist_value_partition", "out_partition"));
    DIST_TRY(require_sharded(value, "dist_value_partition"));
    const Partition how = partition_of(*capi::unwrap(value));
    dist_partition all = DIST_PARTITION_INIT;
    all.kind = how.kind;
    all.shape = how.shape.data();
    all.ndim = how.shape.size();
    all.dimensions = how.dimensions.data();
    all.num_dimensions = how.dimensions.size();
    all.num_logical_devices = how.num_logical_devices;
    all.logical_device = how.logical_device;
    all.uneven = how.uneven ? 1 : 0;
    return write_struct(all, out_partition, "dist_partition");
  });
}

dist_status dist_value_shard(const dist_value* value, int32_t logical_device, int64_t* out_begin,
                             dist_tensor* out_tensor) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_tensor, "dist_value_shard", "out_tensor"));
    DIST_TRY(require_sharded(value, "dist_value_shard"));
    const Value& self = *capi::unwrap(value);
    const Value* shard = nullptr;
    DIST_TRY(find_shard(self, logical_device, "dist_value_shard", &shard));
    if (out_begin != nullptr) std::copy_n(self.shard_begin(logical_device), self.sharding()->ndim, out_begin);
    *out_tensor = shard->tensor();
    return kOk;
  });
}

void dist_devices_options_init(dist_devices_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_run_on_devices(dist_replica* replica, dist_values_fn fn, void* user_data, dist_value* args,
                                dist_value* kwargs, const dist_devices_options* options,
                                dist_value** out_result) {
  constexpr const char* kCall = "dist_run_on_devices";
  return guard([&]() -> Status {
    DIST_TRY(require(replica, kCall, "replica"));
    if (fn == nullptr) return invalid_argument("`%s()`: `fn` is `NULL`", kCall);
    Replica& self = capi::unwrap(replica);
    DeviceTeam* team = nullptr;
    DIST_TRY(find_team(self, kCall, &team));
    dist_devices_options given;
    DIST_TRY(read_options(options, &given, "dist_devices_options"));
    DIST_TRY(require_zero(given.reserved, "dist_devices_options.reserved"));
    DIST_TRY(require_timeout(given.timeout_ns, "dist_devices_options.timeout_ns"));
    Results results(self.pool().memory());
    DIST_TRY(results.read(given, team->num_devices()));
    const ValuesFunction function{call_device, reinterpret_cast<void (*)()>(fn), user_data};
    ValueRef result;
    DIST_TRY(run_on_devices(self, function, capi::unwrap(args), capi::unwrap(kwargs),
                            {given.timeout_ns, capi::unwrap(given.cancel), kCall}, {results.get(), nullptr},
                            &result));
    if (out_result != nullptr) *out_result = wrap(result.take());
    return kOk;
  });
}

int32_t dist_device_replica(const dist_replica* device) {
  return device != nullptr && capi::unwrap(device).is_device() ? number(capi::unwrap(device).name().replica)
                                                               : -1;
}

dist_status dist_device_coordinates(dist_replica* device, int32_t* out_coordinates) {
  constexpr const char* kCall = "dist_device_coordinates";
  return guard([&]() -> Status {
    DIST_TRY(require(device, kCall, "device"));
    DIST_TRY(require(out_coordinates, kCall, "out_coordinates"));
    const int32_t* at = nullptr;
    DIST_TRY(coordinates_of(capi::unwrap(device), kCall, &at));
    std::copy_n(at, kMeshNdim, out_coordinates);
    return kOk;
  });
}

dist_status dist_device_axis(dist_replica* device, const char* name, int32_t* out_index, int32_t* out_size) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_index, "dist_device_axis", "out_index"));
    DeviceTeam* team = nullptr;
    std::size_t axis = 0;
    DIST_TRY(find_axis(device, name, "dist_device_axis", &team, &axis));
    *out_index = team->mesh().index(axis, capi::unwrap(device).rank());
    if (out_size != nullptr) *out_size = team->mesh().sizes[axis];
    return kOk;
  });
}

dist_status dist_device_axis_group(dist_replica* device, const char* name, const dist_group** out_group) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_group, "dist_device_axis_group", "out_group"));
    DeviceTeam* team = nullptr;
    std::size_t axis = 0;
    DIST_TRY(find_axis(device, name, "dist_device_axis_group", &team, &axis));
    *out_group = wrap(&team->along(axis, capi::unwrap(device).rank()));
    return kOk;
  });
}

namespace {

constexpr int64_t kNoWidths[DIST_MAX_NDIM] = {};

Status read_halo(const dist_halo* given, const char* call, Halo* out) noexcept {
  DIST_TRY(require(given, call, "halo"));
  dist_halo known;
  DIST_TRY(read_options(given, &known, "dist_halo"));
  DIST_TRY(require(known.parts, call, "halo->parts"));
  if (known.ndim < 0 || known.ndim > DIST_MAX_NDIM)
    return invalid_argument("`%s()`: `halo->ndim` is %d, but must be 1 to %d", call, known.ndim,
                            DIST_MAX_NDIM);
  const auto ndim = static_cast<std::size_t>(known.ndim);
  out->parts = {known.parts, ndim};
  out->low = {known.low != nullptr ? known.low : kNoWidths, ndim};
  out->high = {known.high != nullptr ? known.high : kNoWidths, ndim};
  for (std::size_t i = 0; i < ndim; ++i)
    out->edges[i] = or_default(known.edges != nullptr ? known.edges[i] : dist_edge{}, DIST_EDGE_ZERO);
  return kOk;
}

Status read_both(const dist_partition* from, const dist_partition* to, const char* call, Partition* out_from,
                 Partition* out_to) noexcept {
  DIST_TRY(require(from, call, "from"));
  DIST_TRY(require(to, call, "to"));
  DIST_TRY(read_partition(from, call, out_from));
  return read_partition(to, call, out_to);
}

}  // namespace

void dist_halo_init(dist_halo* halo, uint32_t struct_size_bytes) { init_options(halo, struct_size_bytes); }

dist_status dist_halo_exchange(dist_replica* device, const dist_tensor* in, const dist_halo* halo,
                               const dist_tensor* out, const dist_collective_options* options) {
  constexpr const char* kCall = "dist_halo_exchange";
  return with_member(device, options, kCall,
                     [&](const Member& member, const dist_collective_options& given) -> Status {
                       DIST_TRY(require_blocking(given, Collective::kHaloExchange, {}, kCall));
                       DIST_TRY(require(in, kCall, "in"));
                       DIST_TRY(require(out, kCall, "out"));
                       Halo known;
                       DIST_TRY(read_halo(halo, kCall, &known));
                       return halo_exchange(member, *in, known, *out);
                     });
}

dist_status dist_reshard(dist_replica* device, const dist_partition* from, const dist_partition* to,
                         const dist_tensor* in, const dist_tensor* out,
                         const dist_collective_options* options) {
  constexpr const char* kCall = "dist_reshard";
  return with_member(device, options, kCall,
                     [&](const Member& member, const dist_collective_options& given) -> Status {
                       DIST_TRY(require_blocking(given, Collective::kReshard, {}, kCall));
                       Partition known_from;
                       Partition known_to;
                       DIST_TRY(read_both(from, to, kCall, &known_from, &known_to));
                       return reshard(member, known_from, known_to, in, out);
                     });
}

dist_status dist_reshard_bytes(const dist_partition* from, const dist_partition* to, dist_dtype dtype,
                               int32_t logical_device, size_t* out_bytes) {
  constexpr const char* kCall = "dist_reshard_bytes";
  return guard([&]() -> Status {
    DIST_TRY(require(out_bytes, kCall, "out_bytes"));
    Partition known_from;
    Partition known_to;
    DIST_TRY(read_both(from, to, kCall, &known_from, &known_to));
    return bytes_to_move(known_from, known_to, dtype, logical_device, out_bytes);
  });
}
