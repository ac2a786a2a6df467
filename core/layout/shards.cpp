// SPDX-License-Identifier: Apache-2.0
// Queries about the shards of a sharded value.
#include "core/layout/shards.hpp"

namespace dist {
namespace {

// Whether any shard differs from what an even split would produce.
bool is_uneven(const Value& sharded, const Partition& how) noexcept {
  if (how.kind != DIST_PARTITION_SPLIT) return false;
  for (std::size_t i = 0; i < how.shape.size(); ++i) {
    if (how.shape[i] % how.dimensions[i] != 0) return true;
  }
  for (int32_t d = 0; d < how.num_logical_devices; ++d) {
    int64_t begin[DIST_MAX_NDIM];
    int64_t size[DIST_MAX_NDIM];
    if (!how.shard(d, {nullptr, begin, size, nullptr}).ok()) return true;
    const dist_tensor shard = sharded.shard(d).tensor();
    for (std::size_t i = 0; i < how.shape.size(); ++i) {
      if (shard.shape[i] != size[i]) return true;
    }
  }
  return false;
}

}  // namespace

Status check_sharded(const Value& value, const char* call) noexcept {
  if (value.sharding() != nullptr) return kOk;
  char is[256];
  Value::describe(&value, is, sizeof is);
  return invalid_argument("`%s()`: `value` is %s, not a sharded tensor", call, is);
}

Partition partition_of(const Value& sharded) noexcept {
  const Sharding& sharding = *sharded.sharding();
  const auto ndim = static_cast<std::size_t>(sharding.ndim);
  Partition how;
  how.kind = sharding.kind;
  how.shape = {sharded.tensor().shape, ndim};
  if (how.kind == DIST_PARTITION_SPLIT && ndim != 0) how.dimensions = {sharding.dimensions, ndim};
  how.num_logical_devices = sharding.num_logical_devices;
  how.logical_device = sharding.logical_device;
  how.uneven = is_uneven(sharded, how);
  return how;
}

Status find_shard(const Value& sharded, int32_t logical_device, const char* call,
                  const Value** out) noexcept {
  const Sharding& sharding = *sharded.sharding();
  if (logical_device < 0 || logical_device >= sharding.num_logical_devices) {
    return invalid_argument("`%s()`: there is no logical device %d. A replica has %d.", call, logical_device,
                            sharding.num_logical_devices);
  }
  const Value& shard = sharded.shard(logical_device);
  if (shard.is_none()) {
    return fail(DIST_NOT_FOUND,
                "`%s()`: the tensor is assigned to logical device %d, so logical device %d has no part of it",
                call, sharding.logical_device, logical_device);
  }
  *out = &shard;
  return kOk;
}

}  // namespace dist
