// SPDX-License-Identifier: Apache-2.0
// Writes the statistics about requests and items as part of the metrics page that core/trace/metrics.hpp
// begins.
#pragma once

#include "core/base/text_out.hpp"
#include "core/serve/instances.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

// `strategy`: label of every sample; NULL: none.
void write_metrics(Instances& instances, const FlightRecorder& recorder, const char* strategy, TextOut& out);

// Writes the group "Serving" of dist_strategy_explain().
void explain(Instances& instances, TextOut& out);

}  // namespace dist
