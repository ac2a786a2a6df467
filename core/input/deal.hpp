// SPDX-License-Identifier: Apache-2.0
// Joins the replicas' components of a batch to one value.
#pragma once

#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// Makes one value of one component for each replica: nests of one structure become a nest with per-replica
// leaves. The component of a single replica is the value.
Status join_components(Memory& memory, std::span<Value* const> components, ValueRef* out);

// Makes what a replica without examples gets in a step: a value like `model`, with no example. *out stays
// NULL where `model` has a part that has no examples (a scalar, a text).
Status empty_like(Memory& memory, Value& model, ValueRef* out);

}  // namespace dist
