// SPDX-License-Identifier: Apache-2.0
// What is known of a strategy's requests and items, as lines of a page that core/trace/metrics.hpp begins.
#pragma once

#include "core/serve/instances.hpp"
#include "core/trace/recorder.hpp"
#include "core/trace/text.hpp"

namespace dist {

// `strategy`: the label of every sample; NULL: none.
void write_metrics(const Instances& instances, const FlightRecorder& recorder, const char* strategy,
                   TextOut& out);

// Lines of dist_explain(): the group "Serving".
void explain(Instances& instances, TextOut& out);

}  // namespace dist
