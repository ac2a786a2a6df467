// SPDX-License-Identifier: Apache-2.0
// What a metric came to on all replicas of all workers, which all ask for it then.
#pragma once

#include "core/base/status.hpp"
#include "core/metric/metric.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

// In a turn between runs, or inside a merge function.
Status metric_result(Strategy& strategy, const Metric& metric, double* out);

}  // namespace dist
