// SPDX-License-Identifier: Apache-2.0
// Writes a snapshot in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing
// open.
#pragma once

#include <span>

#include "core/trace/snapshot.hpp"
#include "core/trace/spans.hpp"
#include "core/trace/text.hpp"

namespace dist {

// One process, which is the worker, with a thread for each replica, called by its id among those of all workers: so traces
// of several workers can be put together. A slice for each run and each collective in it, one in that
// for the time until all had come, and an arrow from the last to come to the one that waited longest for it.
// Times are the steady clock's. `beside`: other processes' spans, which come behind.
void write_chrome_trace(const Snapshot& snapshot, std::span<const SpanTrace> beside, TextOut& out);

}  // namespace dist
