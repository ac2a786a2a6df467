// SPDX-License-Identifier: Apache-2.0
// Compiles the exact kernels once for each SIMD target and selects one at run time.
#include "core/kernel/exact.hpp"
#include "core/kernel/highway_names.hpp"

#include <cstdint>
#include <cstring>

#include "core/kernel/exact_scalar.hpp"
#include "core/kernel/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/exact.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "core/kernel/exact-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

ExactKernel target_exact_kernel(dist_dtype dtype) { return scalar_exact_kernel(dtype); }

#else

ExactKernel target_exact_kernel(dist_dtype dtype) {
  switch (dtype) {
    case DIST_F16: return exact<F16Lanes, DIST_F16>;
    case DIST_BF16: return exact<Bf16Lanes, DIST_BF16>;
    case DIST_F32: return exact<F32Lanes, DIST_F32>;
    case DIST_F64: return exact<F64Lanes, DIST_F64>;
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

HWY_EXPORT(target_exact_kernel);

ExactKernel exact_kernel(dist_dtype dtype) noexcept {
  return HWY_DYNAMIC_DISPATCH(target_exact_kernel)(dtype);
}

ExactKernel exact_kernel_of(const char* target, dist_dtype dtype) noexcept {
  if (std::strcmp(target, kScalarTarget) == 0) return scalar_exact_kernel(dtype);
  const int index = table_index_of(target);
  return index < 0 ? nullptr : HWY_DISPATCH_TABLE(target_exact_kernel)[index](dtype);
}

}  // namespace dist
#endif  // HWY_ONCE
