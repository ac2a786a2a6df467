// SPDX-License-Identifier: Apache-2.0
// Combines the replicas' components of a batch into one value.
#pragma once

#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// Combines one component per replica. Nests of equal structure become a nest with per-replica leaves. With a
// single replica, its component is the result.
Status join_components(Memory& memory, std::span<Value* const> components, ValueRef* out);

// Creates the component of a replica without examples: like `model`, but empty. *out stays NULL if a part of
// `model` cannot be empty, such as a scalar or a text.
Status empty_like(Memory& memory, Value& model, ValueRef* out);

}  // namespace dist
