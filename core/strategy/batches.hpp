// SPDX-License-Identifier: Apache-2.0
// Which threads may take batches of a dataset, and what ends their wait. `call` is the host's function, for
// messages.
#pragma once

#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"
#include "core/value/value.hpp"

namespace dist {

// Checks that this thread may iterate over the dataset. Batches for all replicas are taken outside of replica
// functions; a dataset for a single replica can be used inside like any other object.
Status check_may_pass(const Dataset& dataset, const char* call) noexcept;

// The iterator's next batch, or none at the end of the pass. If this thread is in a run, the end of the run also ends the
// wait.
Status next_batch(Iterator& iterator, const char* call, ValueRef* out);

// The same, but delivers a last batch that is filled up (Pass::filled_up()), which next_batch() omits.
Status next_batch_or_rest(Iterator& iterator, const char* call, ValueRef* out);

}  // namespace dist
