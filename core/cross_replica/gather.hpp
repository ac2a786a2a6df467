// SPDX-License-Identifier: Apache-2.0
// Concatenates the replicas' tensors along an axis, in the cross-replica context.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "core/value/path.hpp"
#include "core/value/value.hpp"

namespace dist {

// Concatenates the components of each per-replica or mirrored leaf of `value` along `axis`. A negative axis
// counts from the end. A leaf that is not distributed is returned unchanged. See dist_gather().
Status gather(const CrossReplica& context, Value& value, int32_t axis, ValueRef* out);

// Concatenates tensors of one dtype that differ in size only along `axis`. Uses the host's function if the
// context has one.
Status join(const CrossReplica& context, std::span<const dist_tensor> tensors, int32_t axis, const Path& path,
            ValueRef* out);

}  // namespace dist
