// SPDX-License-Identifier: Apache-2.0
#include "core/layout/partitioner.hpp"

#include <algorithm>

namespace dist {
namespace {

constexpr int64_t ceil_of(int64_t a, int64_t b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }

long long shown(int64_t number) noexcept { return static_cast<long long>(number); }

// Checks the shape and finds the divided dimension.
Status divided_axis(const Partitioned& what, std::size_t* axis) noexcept {
  const auto ndim = static_cast<int64_t>(what.shape.size());
  if (ndim > DIST_MAX_NDIM) {
    return invalid_argument("the shape has %lld dimensions, but can have at most %d", shown(ndim),
                            DIST_MAX_NDIM);
  }
  for (const int64_t size : what.shape) {
    if (size < 0) return invalid_argument("a size of the shape is %lld, but must be at least 0", shown(size));
  }
  if (what.axis >= ndim || what.axis < -ndim) {
    return invalid_argument("`axis` is %d, but the shape has %lld dimensions", what.axis, shown(ndim));
  }
  *axis = static_cast<std::size_t>(what.axis < 0 ? what.axis + ndim : what.axis);
  return kOk;
}

// Writes the numbers of parts. Dimensions other than `axis` have one part.
void write(const Partitioned& what, std::size_t axis, int64_t parts, int64_t* out) noexcept {
  std::fill_n(out, what.shape.size(), int64_t{1});
  out[axis] = parts;
}

Status positive(int64_t number, const char* name) noexcept {
  return number >= 1 ? kOk : invalid_argument("`%s` is %lld, but must be at least 1", name, shown(number));
}

// The size of all elements in bytes.
Status bytes_of(const Partitioned& what, int64_t* out) noexcept {
  int64_t bytes = what.element_bytes;
  bool too_many = false;
  for (const int64_t size : what.shape) {
    // A dimension of 0 makes the size 0, whatever the other dimensions are.
    if (size == 0) return *out = 0, kOk;
    too_many = too_many || __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (too_many) return invalid_argument("the variable's number of bytes does not fit in 63 bits");
  *out = bytes;
  return kOk;
}

Status check_rows(int64_t num_rows, int64_t num_parts) noexcept {
  if (num_rows < 0) return invalid_argument("`num_rows` is %lld, but must be at least 0", shown(num_rows));
  return positive(num_parts, "num_parts");
}

}  // namespace

Status fixed_shards(const Partitioned& what, int32_t num_shards, int64_t* out) noexcept {
  std::size_t axis = 0;
  DIST_TRY(divided_axis(what, &axis));
  write(what, axis, std::min<int64_t>(num_shards, what.shape[axis]), out);
  return kOk;
}

Status min_size(const Partitioned& what, int64_t min_shard_bytes, int32_t max_shards, int64_t* out) noexcept {
  DIST_TRY(positive(what.element_bytes, "element_bytes"));
  DIST_TRY(positive(min_shard_bytes, "min_shard_bytes"));
  DIST_TRY(positive(max_shards, "max_shards"));
  std::size_t axis = 0;
  DIST_TRY(divided_axis(what, &axis));
  int64_t bytes = 0;
  DIST_TRY(bytes_of(what, &bytes));
  const int64_t wanted = ceil_of(bytes, min_shard_bytes);
  const int64_t most = std::min({what.shape[axis], int64_t{max_shards}, wanted});
  write(what, axis, std::max<int64_t>(1, most), out);
  return kOk;
}

Status max_size(const Partitioned& what, int64_t max_shard_bytes, int32_t max_shards, int64_t* out) noexcept {
  DIST_TRY(positive(what.element_bytes, "element_bytes"));
  DIST_TRY(positive(max_shard_bytes, "max_shard_bytes"));
  if (max_shards < 0) return invalid_argument("`max_shards` is %d, but must be at least 0", max_shards);
  std::size_t axis = 0;
  DIST_TRY(divided_axis(what, &axis));
  int64_t bytes = 0;
  DIST_TRY(bytes_of(what, &bytes));
  if (bytes == 0) return invalid_argument("the shape has no elements, so its parts have no size");
  const int64_t slice = bytes / what.shape[axis];
  const int64_t slices = std::max<int64_t>(1, max_shard_bytes / slice);
  const int64_t parts = ceil_of(what.shape[axis], slices);
  write(what, axis, max_shards == 0 ? parts : std::min<int64_t>(max_shards, parts), out);
  return kOk;
}

Status rows_of_part(int64_t num_rows, int64_t num_parts, int64_t part, int64_t* begin,
                    int64_t* size) noexcept {
  DIST_TRY(check_rows(num_rows, num_parts));
  if (part < 0 || part >= num_parts) {
    return invalid_argument("`part` is %lld, but there are %lld parts, counted from 0", shown(part),
                            shown(num_parts));
  }
  const int64_t rows = num_rows / num_parts;
  const int64_t larger = num_rows % num_parts;
  *begin = part * rows + std::min(part, larger);
  *size = rows + (part < larger ? 1 : 0);
  return kOk;
}

Status part_of_row(int64_t num_rows, int64_t num_parts, int64_t row, int64_t* part,
                   int64_t* offset) noexcept {
  DIST_TRY(check_rows(num_rows, num_parts));
  if (row < 0 || row >= num_rows) {
    return invalid_argument("`row` is %lld, but there are %lld rows, counted from 0", shown(row),
                            shown(num_rows));
  }
  const int64_t rows = num_rows / num_parts;
  const int64_t larger = num_rows % num_parts;
  const int64_t in_larger = larger * (rows + 1);  // rows in the larger parts
  if (row < in_larger) {
    *part = row / (rows + 1);
    *offset = row % (rows + 1);
  } else {
    *part = larger + (row - in_larger) / rows;
    *offset = (row - in_larger) % rows;
  }
  return kOk;
}

}  // namespace dist
