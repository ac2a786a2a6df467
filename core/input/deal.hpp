// SPDX-License-Identifier: Apache-2.0
// What replicas were dealt, as one value.
#pragma once

#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// One component a replica as one value: nests of one structure become a nest with per-replica leaves; one
// replica's is given as it is.
Status join_components(Memory& memory, std::span<Value* const> components, ValueRef* out);

// What a replica gets that has no part in a step: as `model`, with no example. *out stays NULL where `model`
// holds what has no examples (a scalar, a text).
Status empty_like(Memory& memory, Value& model, ValueRef* out);

}  // namespace dist
