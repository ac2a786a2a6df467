// SPDX-License-Identifier: Apache-2.0
// Reduces a whole pass to one value.
#pragma once

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"
#include "core/value/value.hpp"

namespace dist {

// A host function that computes the new state from `state` and the next batch. The caller owns *out_state and
// must release it.
using ReducePassFn = dist_status (*)(dist_dataset* dataset, dist_value* state, dist_value* batch,
                                     dist_value** out_state, void* user_data);

// Takes the iterator's next batch; `call` is the host's function, for messages.
using TakeBatch = Status (*)(Iterator& iterator, const char* call, ValueRef* out);

// *state contains the initial state and receives the result.
Status reduce_pass(Dataset& dataset, TakeBatch take, ReducePassFn fn, void* user_data, ValueRef* state);

}  // namespace dist
