// SPDX-License-Identifier: Apache-2.0
// Compiles the reduction kernels once for each SIMD target and selects one at run time.
#include "core/kernel/reduce.hpp"
#include "core/kernel/highway_names.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernel/reduce_scalar.hpp"
#include "core/kernel/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/reduce.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "core/kernel/loop-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

ReduceKernel target_kernel(dist_dtype dtype, dist_reduce_op op) { return scalar_reduce_kernel(dtype, op); }

#else

ReduceKernel f32_kernel(dist_reduce_op op) {
  switch (op) {
    case DIST_REDUCE_SUM: return reduce_fast<Plain<float, Sum> >;
    case DIST_REDUCE_MEAN: return reduce_fast<Plain<float, Mean> >;
    case DIST_REDUCE_MIN: return reduce<Plain<float, Minimum> >;
    case DIST_REDUCE_MAX: return reduce<Plain<float, Maximum> >;
    case DIST_REDUCE_PROD: return reduce_rare<Plain<float, Product> >;
    default: return nullptr;
  }
}

ReduceKernel f64_kernel(dist_reduce_op op) {
  switch (op) {
    case DIST_REDUCE_SUM: return reduce<Plain<double, Sum> >;
    case DIST_REDUCE_MEAN: return reduce<Plain<double, Mean> >;
    case DIST_REDUCE_MIN: return reduce<Plain<double, Minimum> >;
    case DIST_REDUCE_MAX: return reduce<Plain<double, Maximum> >;
    case DIST_REDUCE_PROD: return reduce_rare<Plain<double, Product> >;
    default: return nullptr;
  }
}

template <class Format>
ReduceKernel narrow_kernel(dist_reduce_op op) {
  switch (op) {
    case DIST_REDUCE_SUM: return reduce_fast<Narrow<Format, Sum> >;
    case DIST_REDUCE_MEAN: return reduce_fast<Narrow<Format, Mean> >;
    case DIST_REDUCE_MIN: return reduce<Narrow<Format, Minimum> >;
    case DIST_REDUCE_MAX: return reduce<Narrow<Format, Maximum> >;
    case DIST_REDUCE_PROD: return reduce_rare<Narrow<Format, Product> >;
    default: return nullptr;
  }
}

// Sums and products that wrap have the same bits for signed and unsigned integers.
template <class T>
ReduceKernel integer_kernel(dist_reduce_op op) {
  using U = hwy::MakeUnsigned<T>;
  using R = std::conditional_t<sizeof(T) >= 4, double, float>;
  switch (op) {
    case DIST_REDUCE_SUM: return reduce<Plain<U, Sum> >;
    case DIST_REDUCE_MEAN: return reduce_rare<IntegerMean<T, R> >;
    case DIST_REDUCE_MIN: return reduce<Plain<T, Minimum> >;
    case DIST_REDUCE_MAX: return reduce<Plain<T, Maximum> >;
    case DIST_REDUCE_PROD: return reduce_rare<Plain<U, Product> >;
    default: return nullptr;
  }
}

ReduceKernel complex_kernel(dist_reduce_op op) {
  switch (op) {
    case DIST_REDUCE_SUM: return reduce<Plain<float, Sum, 2> >;
    case DIST_REDUCE_MEAN: return reduce<Plain<float, Mean, 2> >;
    case DIST_REDUCE_PROD: return reduce_rare<Plain<float, ComplexProduct, 2> >;
    default: return nullptr;
  }
}

ReduceKernel bool_kernel(dist_reduce_op op) {
  switch (op) {
    case DIST_REDUCE_MIN: return reduce_rare<Bool<Minimum> >;
    case DIST_REDUCE_MAX: return reduce_rare<Bool<Maximum> >;
    default: return nullptr;
  }
}

// @every dtype
ReduceKernel target_kernel(dist_dtype dtype, dist_reduce_op op) {
  switch (dtype) {
    case DIST_F16: return narrow_kernel<F16>(op);
    case DIST_BF16: return narrow_kernel<Bf16>(op);
    case DIST_F32: return f32_kernel(op);
    case DIST_F64: return f64_kernel(op);
    case DIST_I8: return integer_kernel<int8_t>(op);
    case DIST_U8: return integer_kernel<uint8_t>(op);
    case DIST_I16: return integer_kernel<int16_t>(op);
    case DIST_U16: return integer_kernel<uint16_t>(op);
    case DIST_I32: return integer_kernel<int32_t>(op);
    case DIST_U32: return integer_kernel<uint32_t>(op);
    case DIST_I64: return integer_kernel<int64_t>(op);
    case DIST_U64: return integer_kernel<uint64_t>(op);
    case DIST_COMPLEX64: return complex_kernel(op);
    case DIST_BOOL: return bool_kernel(op);
    default: return nullptr;
  }
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dist {

HWY_EXPORT(target_kernel);

ReduceKernel reduce_kernel(dist_dtype dtype, dist_reduce_op op) noexcept {
  return HWY_DYNAMIC_DISPATCH(target_kernel)(dtype, op);
}

ReduceKernel reduce_kernel_of(const char* target, dist_dtype dtype, dist_reduce_op op) noexcept {
  if (std::strcmp(target, kScalarTarget) == 0) return scalar_reduce_kernel(dtype, op);
  const int index = table_index_of(target);
  return index < 0 ? nullptr : HWY_DISPATCH_TABLE(target_kernel)[index](dtype, op);
}

}  // namespace dist
#endif  // HWY_ONCE
