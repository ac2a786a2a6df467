// SPDX-License-Identifier: Apache-2.0
// A replica's share of a loss, as tf.nn.compute_average_loss and scale_regularization_loss give it. Sums are
// exact; only the quotient is rounded.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

// How many replicas there are, where the caller is none: outside the replicas' functions.
inline constexpr int32_t kOutsideReplicas = 0;

// *out = sum of weights * loss, divided by global_batch_size, for which 0 means the loss's first dimension
// times num_replicas. `weights` may be NULL. With the size of the global batch nobody needs to know
// num_replicas: FAILED_PRECONDITION for kOutsideReplicas without it.
Status average_loss(int32_t num_replicas, const dist_tensor& loss, const dist_tensor* weights,
                    int64_t global_batch_size, const dist_tensor& out) noexcept;

// *out = sum of loss / num_replicas; FAILED_PRECONDITION for kOutsideReplicas.
Status scale_regularization_loss(int32_t num_replicas, const dist_tensor& loss,
                                 const dist_tensor& out) noexcept;

}  // namespace dist
