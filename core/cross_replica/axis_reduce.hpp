// SPDX-License-Identifier: Apache-2.0
// Reduces over axes and replicas: the elements of each replica are summed along the axes, then the sums of
// the replicas. MEAN divides by the number of all elements along the axes, so batches of different sizes are
// weighted by their examples.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"

namespace dist {

// The dimensions that are reduced, as bits. INVALID_ARGUMENT for an axis that `ndim` dimensions have not, or
// twice. `where` begins messages.
Status check_axes(std::span<const int32_t> axes, int32_t ndim, const char* where,
                  uint32_t* out_mask) noexcept;

// Sizes may differ along the axes of `mask` only; tensors without an element there contribute nothing.
Status reduce_axes(const CrossReplica& context, dist_reduce_op op, std::span<const dist_tensor> sources,
                   uint32_t mask, ValueRef* out);

}  // namespace dist
