// SPDX-License-Identifier: Apache-2.0
// Writes a snapshot in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing
// open.
#pragma once

#include <span>

#include "core/base/text_out.hpp"
#include "core/trace/snapshot.hpp"
#include "core/trace/spans.hpp"

namespace dist {

// Writes one process for the worker, with a thread for each replica, named by its global number, so that
// traces of several workers can be combined. Each run and each collective is a slice; a collective contains a
// slice for the time until all members had arrived, and an arrow from the last member to the one that waited
// longest for it. Times are those of the steady clock. `beside`: spans of other processes, which are
// appended.
void write_chrome_trace(const Snapshot& snapshot, std::span<const SpanTrace> beside, TextOut& out);

}  // namespace dist
