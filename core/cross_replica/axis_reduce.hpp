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

// Returns the dimensions to reduce as bits. Fails with INVALID_ARGUMENT if an axis is out of range for `ndim`
// or occurs twice. `where` is the beginning of messages.
Status check_axes(std::span<const int32_t> axes, int32_t ndim, const char* where,
                  uint32_t* out_mask) noexcept;

// Sizes may differ only along the axes of `mask`. Tensors without elements there contribute nothing.
Status reduce_axes(const CrossReplica& context, dist_reduce_op op, std::span<const dist_tensor> sources,
                   uint32_t mask, ValueRef* out);

}  // namespace dist
