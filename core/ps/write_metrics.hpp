// SPDX-License-Identifier: Apache-2.0
// Writes a coordinator's counters and gauges as part of the metrics page that core/trace/metrics.hpp begins.
#pragma once

#include "core/base/text_out.hpp"
#include "core/ps/coordinator.hpp"

namespace dist {

// `strategy`: label of every sample; NULL: none.
void write_metrics(const CoordinatorNumbers& now, const char* strategy, TextOut& out);

}  // namespace dist
