// SPDX-License-Identifier: Apache-2.0
#include "core/value/variable.hpp"

#include <algorithm>
#include <cstring>

#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

constexpr std::size_t kCopyAlign = 64;
constexpr std::size_t kBlockBytes = 4096;

template <class Lane>
void flip(std::byte* data, std::size_t bytes, Lane sign) noexcept {
  for (std::size_t at = 0; at < bytes; at += sizeof(Lane)) {
    Lane lane;
    std::memcpy(&lane, data + at, sizeof lane);
    lane = static_cast<Lane>(lane ^ sign);
    std::memcpy(data + at, &lane, sizeof lane);
  }
}

template <class Lane>
void complement(std::byte* data, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += sizeof(Lane)) {
    Lane lane;
    std::memcpy(&lane, data + at, sizeof lane);
    lane = static_cast<Lane>(Lane{0} - lane);
    std::memcpy(data + at, &lane, sizeof lane);
  }
}

// a - b is a + (-b) to the bit, so that the kernels need no subtraction.
void negate(dist_dtype dtype, std::byte* data, std::size_t bytes) noexcept {
  if (dtype == DIST_COMPLEX64) return flip<uint32_t>(data, bytes, 0x80000000u);  // two f32 each
  if (dtype_is_floating(dtype)) {
    switch (dtype_size(dtype)) {
      case 2: return flip<uint16_t>(data, bytes, 0x8000u);
      case 4: return flip<uint32_t>(data, bytes, 0x80000000u);
      default: return flip<uint64_t>(data, bytes, uint64_t{1} << 63);
    }
  }
  switch (dtype_size(dtype)) {
    case 1: return complement<uint8_t>(data, bytes);
    case 2: return complement<uint16_t>(data, bytes);
    case 4: return complement<uint32_t>(data, bytes);
    default: return complement<uint64_t>(data, bytes);
  }
}

// copy[i] += value[i] or copy[i] -= value[i], both without gaps.
void accumulate(dist_dtype dtype, bool subtract, std::byte* copy, const std::byte* value,
                std::size_t bytes) noexcept {
  const FpEnvironment environment;
  const ReduceKernel kernel = reduce_kernel(dtype, DIST_REDUCE_SUM);
  alignas(kCopyAlign) std::byte negated[kBlockBytes];
  const std::size_t step = subtract ? kBlockBytes : std::max<std::size_t>(bytes, 1);
  for (std::size_t at = 0; at < bytes; at += step) {
    const std::size_t block = std::min(step, bytes - at);
    const std::byte* source = value + at;
    if (subtract) {
      std::memcpy(negated, source, block);
      negate(dtype, negated, block);
      source = negated;
    }
    const std::byte* const sources[] = {copy + at, source};
    std::byte* const destination[] = {copy + at};
    kernel({sources, destination, 2, 1, block / dtype_size(dtype), 1.0, false});
  }
}

// Calls rows(part of copy, part of value) for the longest parts that both have without gaps.
template <class Rows>
void for_each_row(const dist_tensor& copy, const dist_tensor& value, const Rows& rows) {
  if (copy.ndim == 0) return rows(copy, value);
  if (copy.ndim == 1 && (value.strides == nullptr || value.strides[0] == 1)) return rows(copy, value);
  const auto size = static_cast<int64_t>(dtype_size(copy.dtype));
  int64_t inner = 1;
  for (int32_t i = 1; i < copy.ndim; ++i) inner *= copy.shape[i];
  const int64_t stride = value.strides != nullptr ? value.strides[0] : inner;
  for (int64_t i = 0; i < copy.shape[0]; ++i) {
    for_each_row(
        dist_tensor{static_cast<std::byte*>(copy.data) + i * inner * size, copy.dtype, copy.ndim - 1,
                    copy.shape + 1, nullptr},
        dist_tensor{static_cast<std::byte*>(value.data) + i * stride * size, value.dtype, value.ndim - 1,
                    value.shape + 1, value.strides != nullptr ? value.strides + 1 : nullptr},
        rows);
  }
}

}  // namespace

Variable::Variable(Memory& memory, const char* name, int32_t aggregation, const dist_tensor& initial,
                   const TensorSize& size)
    : Counted(memory),
      name_(name, &memory),
      aggregation_(aggregation),
      dtype_(initial.dtype),
      size_(size),
      shape_(initial.shape, initial.shape + initial.ndim, &memory),
      copies_(&memory) {
  size_.contiguous = true;
}

Variable::~Variable() {
  for (std::byte* copy : copies_) memory().free(copy, size_.bytes, kCopyAlign);
}

Status Variable::create(Memory& memory, int32_t num_replicas, const dist_tensor& initial, int32_t aggregation,
                        const char* name, Ref<Variable>* out) {
  if (name == nullptr) name = "Variable";
  TensorSize size;
  DIST_TRY(check_tensor(initial, "initial", &size));
  if (aggregation < DIST_AGGREGATION_NONE || aggregation > DIST_AGGREGATION_ONLY_FIRST_REPLICA) {
    return invalid_argument("variable \"%s\": aggregation %d is none of DIST_AGGREGATION_...", name,
                            aggregation);
  }
  if (aggregation == DIST_AGGREGATION_MEAN && !dtype_is_floating(initial.dtype)) {
    return invalid_argument(
        "variable \"%s\": MEAN of %s is no %s; use a floating-point dtype, or SUM or ONLY_FIRST_REPLICA",
        name, dtype_name(initial.dtype), dtype_name(initial.dtype));
  }
  Ref<Variable> variable = make_counted<Variable>(memory, name, aggregation, initial, size);
  variable->copies_.reserve(static_cast<std::size_t>(num_replicas));
  for (int32_t replica = 0; replica < num_replicas; ++replica) {
    variable->copies_.push_back(static_cast<std::byte*>(memory.allocate(size.bytes, kCopyAlign)));
    copy_elements(initial, variable->component(replica));
  }
  *out = std::move(variable);
  return kOk;
}

dist_tensor Variable::component(int32_t replica) const noexcept {
  return {copies_[static_cast<std::size_t>(replica)], dtype_, static_cast<int32_t>(shape_.size()),
          shape_.data(), nullptr};
}

Status Variable::check_assign(int32_t how, const dist_tensor& value, const char* what) const noexcept {
  if (how < DIST_ASSIGN || how > DIST_ASSIGN_SUB) {
    return invalid_argument("variable \"%s\": how is %d; use DIST_ASSIGN, DIST_ASSIGN_ADD or DIST_ASSIGN_SUB",
                            name(), how);
  }
  TensorSize size;
  DIST_TRY(check_tensor(value, what, &size));
  const dist_tensor copy = component(0);
  if (value.dtype != dtype_ || !same_shape(value, copy)) {
    char is[160];
    char wanted[160];
    describe(value, is, sizeof is);
    describe(copy, wanted, sizeof wanted);
    return invalid_argument("variable \"%s\" is %s, %s is %s; dtype and shape must be equal", name(), wanted,
                            what, is);
  }
  return how == DIST_ASSIGN ? kOk : check_op(DIST_REDUCE_SUM, dtype_);
}

void Variable::assign(int32_t how, int32_t replica, const dist_tensor& value) noexcept {
  if (size_.elements == 0) return;
  const dist_tensor copy = component(replica);
  if (how == DIST_ASSIGN) {
    if (value.data != copy.data) copy_elements(value, copy);
    return;
  }
  const bool subtract = how == DIST_ASSIGN_SUB;
  const auto rows = [&](const dist_tensor& to, const dist_tensor& from) {
    std::size_t bytes = dtype_size(dtype_);
    for (int32_t i = 0; i < to.ndim; ++i) bytes *= static_cast<std::size_t>(to.shape[i]);
    accumulate(dtype_, subtract, static_cast<std::byte*>(to.data), static_cast<const std::byte*>(from.data),
               bytes);
  };
  if (value.strides == nullptr) {
    rows(copy, value);
  } else {
    for_each_row(copy, value, rows);
  }
}

}  // namespace dist
