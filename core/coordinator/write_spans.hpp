// SPDX-License-Identifier: Apache-2.0
// Closures in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <span>

#include "core/coordinator/closure_spans.hpp"
#include "core/trace/text.hpp"

namespace dist {

// A process, the coordinator's, with a row for each worker: a slice is a closure from when it was sent until its end, and says
// when it was scheduled. Those that no worker had at their end are on a row of their own.
void write_spans(std::span<const ClosureSpan> spans, int num_workers, TextOut& out);

}  // namespace dist
