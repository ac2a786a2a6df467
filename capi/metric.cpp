// SPDX-License-Identifier: Apache-2.0
// metric.h: metrics and average losses.
#include "core/value/metric.hpp"
#include "core/strategy/metric_result.hpp"

#include "capi/guard.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/value/average_loss.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Metric* unwrap(dist_metric* handle) noexcept { return reinterpret_cast<Metric*>(handle); }
const Metric* unwrap(const dist_metric* handle) noexcept { return reinterpret_cast<const Metric*>(handle); }
dist_metric* wrap(Metric* metric) noexcept { return reinterpret_cast<dist_metric*>(metric); }

// The metric of a call from outside the replicas, and a turn for it.
Status from_outside(dist_strategy* strategy, dist_metric* metric, const char* call,
                    BetweenRuns* turn) noexcept {
  DIST_TRY(require(strategy, call, "strategy"));
  DIST_TRY(require(metric, call, "metric"));
  DIST_TRY(capi::unwrap(strategy).check_cross_replica(call));
  DIST_TRY(unwrap(metric)->check_owner(capi::unwrap(strategy).memory()));
  return turn->begin(capi::unwrap(strategy), call);
}

// The number of replicas for a loss. `replica` is NULL if dist_get_replica() found cross-replica context.
Status read_replicas(dist_replica* replica, const char* call, int32_t* out_num_replicas) noexcept {
  *out_num_replicas = kOutsideReplicas;
  if (replica == nullptr) return kOk;
  DIST_TRY(capi::unwrap(replica).check(call));
  *out_num_replicas = capi::unwrap(replica).replicas().global();
  return kOk;
}

}  // namespace

dist_status dist_metric_create(dist_strategy* strategy, dist_metric_kind kind, const char* name,
                               dist_metric** out_metric) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_metric_create", "strategy"));
    DIST_TRY(require(out_metric, "dist_metric_create", "out_metric"));
    Strategy& self = capi::unwrap(strategy);
    DIST_TRY(self.check_cross_replica("dist_metric_create"));
    Ref<Metric> metric;
    DIST_TRY(Metric::create(self.memory(), self.replicas().local(), kind, name, &metric));
    metric->handle().open(self.handles(), LiveHandles::kMetric, nullptr);
    *out_metric = wrap(metric.take());
    return kOk;
  });
}

dist_status dist_metric_update(dist_replica* replica, dist_metric* metric, const dist_tensor* values,
                               const dist_tensor* labels, const dist_tensor* weights) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_metric_update", "replica"));
    DIST_TRY(require(metric, "dist_metric_update", "metric"));
    DIST_TRY(require(values, "dist_metric_update", "values"));
    Replica& self = capi::unwrap(replica);
    DIST_TRY(self.check_whole("dist_metric_update"));
    DIST_TRY(unwrap(metric)->check_owner(self.pool().memory()));
    return unwrap(metric)->update(self.local(), *values, labels, weights);
  });
}

dist_status dist_metric_result(dist_strategy* strategy, dist_metric* metric, double* out_result) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_result, "dist_metric_result", "out_result"));
    BetweenRuns turn;
    DIST_TRY(from_outside(strategy, metric, "dist_metric_result", &turn));
    DIST_TRY(turn.begin_among_workers(capi::unwrap(strategy), "dist_metric_result"));
    return metric_result(capi::unwrap(strategy), *unwrap(metric), out_result);
  });
}

dist_status dist_metric_reset(dist_strategy* strategy, dist_metric* metric) {
  return guard([&]() -> Status {
    BetweenRuns turn;
    DIST_TRY(from_outside(strategy, metric, "dist_metric_reset", &turn));
    unwrap(metric)->reset();
    return kOk;
  });
}

dist_metric_kind dist_metric_kind_of(const dist_metric* metric) {
  return metric == nullptr ? dist_metric_kind{} : unwrap(metric)->kind();
}

const char* dist_metric_name(const dist_metric* metric) {
  return metric == nullptr ? "" : unwrap(metric)->name();
}

dist_variable* dist_metric_variable(const dist_metric* metric) {
  return metric == nullptr ? nullptr : capi::wrap(&unwrap(metric)->state());
}

void dist_metric_destroy(dist_metric* metric) {
  if (metric == nullptr) return;
  unwrap(metric)->handle().close();
  unwrap(metric)->release();
}

dist_status dist_average_loss(dist_replica* replica, const dist_tensor* per_example_loss,
                              const dist_tensor* sample_weight, int64_t global_batch_size,
                              const dist_tensor* out) {
  return guard([&]() -> Status {
    DIST_TRY(require(per_example_loss, "dist_average_loss", "per_example_loss"));
    DIST_TRY(require(out, "dist_average_loss", "out"));
    int32_t num_replicas;
    DIST_TRY(read_replicas(replica, "dist_average_loss", &num_replicas));
    return average_loss(num_replicas, *per_example_loss, sample_weight, global_batch_size, *out);
  });
}

dist_status dist_scale_regularization_loss(dist_replica* replica, const dist_tensor* loss,
                                           const dist_tensor* out) {
  return guard([&]() -> Status {
    DIST_TRY(require(loss, "dist_scale_regularization_loss", "loss"));
    DIST_TRY(require(out, "dist_scale_regularization_loss", "out"));
    int32_t num_replicas;
    DIST_TRY(read_replicas(replica, "dist_scale_regularization_loss", &num_replicas));
    return scale_regularization_loss(num_replicas, *loss, *out);
  });
}
