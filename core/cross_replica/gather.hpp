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

// Joins every leaf of `value`: the components of a per-replica or mirrored value one after another along
// `axis`, which counts from the end where it is negative. A leaf that is not distributed stays as it is. See
// dist_gather().
Status gather(const CrossReplica& context, Value& value, int32_t axis, ValueRef* out);

// Joins tensors of one dtype that differ in size along `axis` alone. The host's function does it where the
// context has one.
Status join(const CrossReplica& context, std::span<const dist_tensor> tensors, int32_t axis, const Path& path,
            ValueRef* out);

}  // namespace dist
