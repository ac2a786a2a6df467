// SPDX-License-Identifier: Apache-2.0
// Calls the host's own cross-device functions: allocates the tensors to which they write, and turns an error
// that they return into a message.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/value.hpp"

namespace dist {

// Whether the context has a host function that reduces.
bool host_reduces(const CrossReplica& context) noexcept;

// The tensors must fit together and fit the operator. *out is a new tensor with the operator's result dtype.
Status reduce_by_host(const CrossReplica& context, dist_reduce_op op, std::span<const dist_tensor> tensors,
                      ValueRef* out);
// Returns a mirrored value, with a copy for each replica.
Status broadcast_by_host(const CrossReplica& context, const dist_tensor& value, ValueRef* out);
// `to` has the concatenated shape.
Status gather_by_host(const CrossReplica& context, std::span<const dist_tensor> tensors, int32_t axis,
                      dist_tensor to) noexcept;

// A new tensor like `like` for the result of a reduction.
Status make_result(Memory& memory, dist_reduce_op op, const dist_tensor& like, ValueRef* out);

}  // namespace dist
