// SPDX-License-Identifier: Apache-2.0
// A replica's share of a loss, like tf.nn.compute_average_loss and tf.nn.scale_regularization_loss. Sums are
// exact; only the quotient is rounded.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

// Passed as num_replicas by callers outside of replica functions.
inline constexpr int32_t kOutsideReplicas = 0;

// *out = sum of weights * loss, divided by global_batch_size. If global_batch_size is 0, the divisor is the
// first dimension of the loss times num_replicas. In that case kOutsideReplicas fails with
// FAILED_PRECONDITION. `weights` may be NULL.
Status average_loss(int32_t num_replicas, const dist_tensor& loss, const dist_tensor* weights,
                    int64_t global_batch_size, const dist_tensor& out) noexcept;

// *out = sum of loss / num_replicas. FAILED_PRECONDITION for kOutsideReplicas.
Status scale_regularization_loss(int32_t num_replicas, const dist_tensor& loss,
                                 const dist_tensor& out) noexcept;

}  // namespace dist
