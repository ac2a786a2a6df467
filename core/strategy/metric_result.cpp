// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/metric_result.hpp"

#include "core/cross_replica/assign.hpp"

namespace dist {

Status metric_result(Strategy& strategy, const Metric& metric, double* out) {
  if (strategy.workers() == nullptr) {
    *out = metric.result();
    return kOk;
  }
  ValueRef sums;
  DIST_TRY(read(strategy.cross_replica(), metric.state(), &sums));
  *out = metric.result_of(sums->tensor());
  return kOk;
}

}  // namespace dist
