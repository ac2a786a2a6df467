// SPDX-License-Identifier: Apache-2.0
// reduce_pass(): reduces a whole pass to one value.
#pragma once

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"
#include "core/value/value.hpp"

namespace dist {

// A host's function, which makes the new state of `state` and the next batch. Its result comes with a
// reference.
using ReducePassFn = dist_status (*)(dist_value* state, dist_value* batch, dist_value** out_state,
                                     void* user_data);

// The iterator's next batch; `call` is the function's name in messages.
using TakeBatch = Status (*)(Iterator& iterator, const char* call, ValueRef* out);

// *state is the initial one, and in the end the result.
Status reduce_pass(Dataset& dataset, TakeBatch take, ReducePassFn fn, void* user_data, ValueRef* state);

}  // namespace dist
