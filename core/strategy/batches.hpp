// SPDX-License-Identifier: Apache-2.0
// Which threads may take batches of a dataset, and what ends their wait. `call` is the function's name in
// messages.
#pragma once

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"
#include "core/value/value.hpp"

namespace dist {

// OK where this thread may pass over the dataset. A batch for all replicas is taken outside their functions;
// a dataset for one replica is like any other object there.
Status check_may_pass(const Dataset& dataset, const char* call) noexcept;

// The iterator's next batch. The end of the run that this thread is in ends the wait.
Status next_batch(Iterator& iterator, const char* call, ValueRef* out);

// The same, but at the end of the pass OK and no batch.
Status next_batch_if_any(Iterator& iterator, const char* call, ValueRef* out);

}  // namespace dist
