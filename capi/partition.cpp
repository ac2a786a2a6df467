// SPDX-License-Identifier: Apache-2.0
// topology.h: partitions.
#include "capi/partition.hpp"

using namespace dist;
using namespace dist::capi;

Status dist::capi::read_partition(const dist_partition* given, const char* call, Partition* out) noexcept {
  DIST_TRY(require(given, call, "partition"));
  dist_partition known;
  DIST_TRY(read_options(given, &known, "dist_partition"));
  DIST_TRY(check_list(known.shape, known.ndim, call, "partition->shape", "partition->ndim"));
  DIST_TRY(check_list(known.dimensions, known.num_dimensions, call, "partition->dimensions",
                      "partition->num_dimensions"));
  out->kind = known.kind;
  out->shape = {known.shape, known.ndim};
  out->dimensions = {known.dimensions, known.num_dimensions};
  out->num_logical_devices = known.num_logical_devices;
  out->logical_device = known.logical_device;
  out->uneven = known.uneven != 0;
  out->spmd = known.spmd != 0;
  return kOk;
}

void dist_partition_init(dist_partition* partition, uint32_t struct_size_bytes) {
  init_options(partition, struct_size_bytes);
}

dist_status dist_partition_check(const dist_partition* partition) {
  return guard([&]() -> Status {
    Partition known;
    DIST_TRY(read_partition(partition, "dist_partition_check", &known));
    return known.check();
  });
}

dist_status dist_partition_shard(const dist_partition* partition, int32_t logical_device, int64_t* out_tile,
                                 int64_t* out_begin, int64_t* out_size, int64_t* out_elements) {
  constexpr const char* kCall = "dist_partition_shard";
  return guard([&]() -> Status {
    Partition known;
    DIST_TRY(read_partition(partition, kCall, &known));
    DIST_TRY(known.check());
    if (!known.shape.empty()) {
      DIST_TRY(require(out_begin, kCall, "out_begin"));
      DIST_TRY(require(out_size, kCall, "out_size"));
    }
    return known.shard(logical_device, {out_tile, out_begin, out_size, out_elements});
  });
}
