// SPDX-License-Identifier: Apache-2.0
#include "core/layout/partition.hpp"

#include <algorithm>

namespace dist {
namespace {

using Number = long long;  // as printf expects it

// The product, or -1 if it exceeds `most` or a number is below 1. No number of devices equals -1.
int64_t bounded_product(std::span<const int64_t> numbers, int64_t most) noexcept {
  int64_t product = 1;
  for (const int64_t number : numbers) {
    if (number < 1 || number > most / product) return -1;
    product *= number;
  }
  return product;
}

// Returns the number of elements of a tensor: kUnknownSize if a size is unknown and no other one is 0, or
// kTooMany if it overflows.
constexpr int64_t kTooMany = -2;
int64_t elements_of(std::span<const int64_t> sizes) noexcept {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t elements = 1;
  bool known = true;
  for (const int64_t size : sizes) {
    known = known && size != kUnknownSize;
    if (size == kUnknownSize) continue;
    if (size > INT64_MAX / elements) return kTooMany;
    elements *= size;
  }
  return known ? elements : kUnknownSize;
}

// Part `index` of `size`. The first size % parts parts have one element more than the others.
void part(int64_t size, int64_t parts, int64_t index, int64_t* out_begin, int64_t* out_size) noexcept {
  const int64_t share = size / parts;
  const int64_t rest = size % parts;
  *out_begin = share * index + std::min(index, rest);
  *out_size = share + (index < rest ? 1 : 0);
}

}  // namespace

Status Partition::check() const noexcept {
  if (num_logical_devices < 1)
    return invalid_argument("`num_logical_devices` is %d, but must be at least 1", num_logical_devices);
  if (shape.size() > DIST_MAX_NDIM)
    return invalid_argument("the tensor has %zu dimensions, but may have at most %d", shape.size(),
                            DIST_MAX_NDIM);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < kUnknownSize) {
      return invalid_argument("`shape[%zu]` is %lld, but must be at least 0, or -1 if it is unknown", i,
                              static_cast<Number>(shape[i]));
    }
  }
  if (elements_of(shape) == kTooMany)
    return invalid_argument("the tensor has more elements than 64 bits can count");
  switch (kind) {
    case DIST_PARTITION_SPLIT: return check_split();
    case DIST_PARTITION_ASSIGN: return check_assign();
    case DIST_PARTITION_REPLICATE: return kOk;
    default:
      return invalid_argument(
          "`kind` is `%d`; use `DIST_PARTITION_SPLIT`, `DIST_PARTITION_ASSIGN` or `DIST_PARTITION_REPLICATE`",
          kind);
  }
}

Status Partition::check_split() const noexcept {
  if (shape.size() != dimensions.size()) {
    return invalid_argument("there are %zu partition dimensions, but the tensor has %zu", dimensions.size(),
                            shape.size());
  }
  for (std::size_t i = 0; i < shape.size() && !uneven; ++i) {
    if (shape[i] == kUnknownSize || (dimensions[i] != 0 && shape[i] % dimensions[i] == 0)) continue;
    return invalid_argument(
        "dimension %zu of the tensor is %lld, which is not divisible by the partition's %lld. Use divisible "
        "sizes, or set uneven.",
        i, static_cast<Number>(shape[i]), static_cast<Number>(dimensions[i]));
  }
  if (bounded_product(dimensions, num_logical_devices) != num_logical_devices) {
    return invalid_argument(
        "the product of the partition dimensions must be the number of logical devices, %d",
        num_logical_devices);
  }
  if (shape.empty())
    return invalid_argument("a scalar cannot be split. Replicate it, or assign it to a logical device.");
  return kOk;
}

Status Partition::check_assign() const noexcept {
  if (spmd) {
    return invalid_argument(
        "all logical devices run one program (SPMD), so a tensor cannot be assigned to one of them");
  }
  if (logical_device >= 0 && logical_device < num_logical_devices) return kOk;
  return invalid_argument("there is no logical device %d. A replica has %d.", logical_device,
                          num_logical_devices);
}

Status Partition::shard(int32_t device, const Shard& out) const noexcept {
  if (device < 0 || device >= num_logical_devices) {
    return invalid_argument("there is no logical device %d. A replica has %d.", device, num_logical_devices);
  }
  const bool split = kind == DIST_PARTITION_SPLIT;
  const bool nothing = kind == DIST_PARTITION_ASSIGN && device != logical_device;
  int64_t rest = device;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const int64_t parts = split ? dimensions[i] : 1;
    const int64_t index = rest % parts;
    rest /= parts;
    if (out.tile != nullptr) out.tile[i] = index;
    if (nothing) {
      out.begin[i] = out.size[i] = 0;
    } else if (shape[i] == kUnknownSize) {
      out.begin[i] = index == 0 ? 0 : kUnknownSize;
      out.size[i] = kUnknownSize;
    } else {
      part(shape[i], parts, index, &out.begin[i], &out.size[i]);
    }
  }
  if (out.elements != nullptr) *out.elements = nothing ? 0 : elements_of({out.size, shape.size()});
  return kOk;
}

}  // namespace dist
