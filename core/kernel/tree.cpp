// SPDX-License-Identifier: Apache-2.0
// Compiles the TREE kernels once for each SIMD target and selects one at run time.
#include "core/kernel/tree.hpp"
#include "core/kernel/highway_names.hpp"

#include <cstdint>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/kernel/reduce_scalar.hpp"
#include "core/kernel/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/tree.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "core/kernel/loop-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

ReduceKernel target_tree_kernel(dist_dtype dtype, dist_reduce_op op) { return scalar_tree_kernel(dtype, op); }

#else

template <template <class Op> class ElementOf, class Multiply = Product>
ReduceKernel tree_of(dist_reduce_op op) {
  switch (op) {
    case DIST_REDUCE_SUM: return reduce_tree<ElementOf<Sum> >;
    case DIST_REDUCE_MEAN: return reduce_tree<ElementOf<Mean> >;
    case DIST_REDUCE_PROD: return reduce_rare<AsTree<ElementOf<Multiply> > >;
    default: return nullptr;
  }
}

template <class Op>
using Halves = Narrow<F16, Op>;
template <class Op>
using BrainFloats = Narrow<Bf16, Op>;
template <class Op>
using Floats = Plain<float, Op>;
template <class Op>
using Doubles = Plain<double, Op>;
template <class Op>
using ComplexFloats = Plain<float, Op, 2>;

ReduceKernel target_tree_kernel(dist_dtype dtype, dist_reduce_op op) {
  switch (dtype) {
    case DIST_F16: return tree_of<Halves>(op);
    case DIST_BF16: return tree_of<BrainFloats>(op);
    case DIST_F32: return tree_of<Floats>(op);
    case DIST_F64: return tree_of<Doubles>(op);
    case DIST_COMPLEX64: return tree_of<ComplexFloats, ComplexProduct>(op);
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

HWY_EXPORT(target_tree_kernel);

bool depends_on_order(dist_dtype dtype, dist_reduce_op op) noexcept {
  return dtype_is_floating(dtype) && op != DIST_REDUCE_MIN && op != DIST_REDUCE_MAX;
}

ReduceKernel tree_kernel(dist_dtype dtype, dist_reduce_op op, std::size_t num_src) noexcept {
  if (num_src < 4 || !depends_on_order(dtype, op)) return reduce_kernel(dtype, op);
  return HWY_DYNAMIC_DISPATCH(target_tree_kernel)(dtype, op);
}

ReduceKernel tree_kernel_of(const char* target, dist_dtype dtype, dist_reduce_op op) noexcept {
  if (!depends_on_order(dtype, op)) return nullptr;
  if (std::strcmp(target, kScalarTarget) == 0) return scalar_tree_kernel(dtype, op);
  const int index = table_index_of(target);
  return index < 0 ? nullptr : HWY_DISPATCH_TABLE(target_tree_kernel)[index](dtype, op);
}

}  // namespace dist
#endif  // HWY_ONCE
