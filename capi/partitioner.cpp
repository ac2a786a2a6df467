// SPDX-License-Identifier: Apache-2.0
// partitioner.h: partitioners.
#include "core/layout/partitioner.hpp"

#include "capi/guard.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// `divide` receives the variable to divide.
template <class Divide>
dist_status divide(const char* call, const int64_t* shape, size_t ndim, int32_t axis, size_t element_bytes,
                   const int64_t* out, Divide&& divide) noexcept {
  return guard(
      [&]() -> Status {
        DIST_TRY(check_list(shape, ndim, call, "shape", "ndim"));
        DIST_TRY(require(out, call, "out_partitions"));
        Partitioned what{{shape, ndim}, axis, 0};
        DIST_TRY(read_size(element_bytes, "element_bytes", &what.element_bytes));
        return divide(what);
      },
      call);
}

}  // namespace

dist_status dist_partitions_fixed_shards(const int64_t* shape, size_t ndim, int32_t axis, int32_t num_shards,
                                         int64_t* out_partitions) {
  return divide("dist_partitions_fixed_shards", shape, ndim, axis, 1, out_partitions,
                [&](const Partitioned& what) { return fixed_shards(what, num_shards, out_partitions); });
}

dist_status dist_partitions_min_size(const int64_t* shape, size_t ndim, int32_t axis, size_t element_bytes,
                                     size_t min_shard_bytes, int32_t max_shards, int64_t* out_partitions) {
  return divide("dist_partitions_min_size", shape, ndim, axis, element_bytes, out_partitions,
                [&](const Partitioned& what) -> Status {
                  int64_t bytes = 0;
                  DIST_TRY(read_size(min_shard_bytes, "min_shard_bytes", &bytes));
                  return min_size(what, bytes, max_shards, out_partitions);
                });
}

dist_status dist_partitions_max_size(const int64_t* shape, size_t ndim, int32_t axis, size_t element_bytes,
                                     size_t max_shard_bytes, int32_t max_shards, int64_t* out_partitions) {
  return divide("dist_partitions_max_size", shape, ndim, axis, element_bytes, out_partitions,
                [&](const Partitioned& what) -> Status {
                  int64_t bytes = 0;
                  DIST_TRY(read_size(max_shard_bytes, "max_shard_bytes", &bytes));
                  return max_size(what, bytes, max_shards, out_partitions);
                });
}

dist_status dist_partitions_part(int64_t num_rows, int64_t num_parts, int64_t part, int64_t* out_begin,
                                 int64_t* out_size) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_begin, "dist_partitions_part", "out_begin"));
    DIST_TRY(require(out_size, "dist_partitions_part", "out_size"));
    return rows_of_part(num_rows, num_parts, part, out_begin, out_size);
  });
}

dist_status dist_partitions_part_of(int64_t num_rows, int64_t num_parts, int64_t row, int64_t* out_part,
                                    int64_t* out_offset) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_part, "dist_partitions_part_of", "out_part"));
    DIST_TRY(require(out_offset, "dist_partitions_part_of", "out_offset"));
    return part_of_row(num_rows, num_parts, row, out_part, out_offset);
  });
}
