// SPDX-License-Identifier: Apache-2.0
// The result of a metric over all replicas of all workers. All workers request it together.
#pragma once

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/metric.hpp"

namespace dist {

// Must be called in a turn between runs, or in a merge function.
Status metric_result(Strategy& strategy, const Metric& metric, double* out);

}  // namespace dist
