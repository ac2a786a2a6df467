// SPDX-License-Identifier: Apache-2.0
// Reduction over axes and replicas: each replica's elements along the axes are added up, then the replicas'
// sums. Batches of different sizes weigh by example, as MEAN divides by all elements along the axes.
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
