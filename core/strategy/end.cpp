// SPDX-License-Identifier: Apache-2.0
// Strategy: destruction, both when nothing uses it and when replicas are still running.
#include <mutex>

#include "core/base/host_call.hpp"
#include "core/serve/instances.hpp"
#include "core/strategy/scope.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

Status Strategy::check_companion(const char* call) noexcept {
  const std::scoped_lock lock(companion_.mutex);
  if (companion_.companion == nullptr) return kOk;
  return failed_precondition("`%s()`: the strategy still has a coordinator; `destroy` it first", call);
}

void Strategy::warn_of_handles() const noexcept {
  char objects[256];
  if (late_destroys_ || !handles_->describe(objects, sizeof objects)) return;
  group().host().log(DIST_LOG_WARNING,
                     "a strategy was destroyed before all of its objects: %s. Each keeps its memory until it "
                     "is destroyed. Set "
                     "late_destroys if this is intended.",
                     objects);
}

Status Strategy::destroy(Strategy* strategy) noexcept {
  // A forked child does not have the threads, and waiting for them would never end: leave everything
  // unchanged.
  if (strategy == nullptr || strategy->memory().forked()) return kOk;
  DIST_TRY(check_may_end(*strategy, "dist_strategy_destroy"));
  DIST_TRY(strategy->check_companion("dist_strategy_destroy"));
  std::unique_lock reforming(strategy->reforming_, std::try_to_lock);
  if (!reforming)
    return failed_precondition(
        "`dist_strategy_destroy()`: another thread is re-forming or shutting down the strategy, or waiting "
        "for "
        "worker 0. Wait for it first.");
  if (strategy->ended_) {
    strategy->warn_of_handles();
    reforming.unlock();
    strategy->release();
    return kOk;
  }
  DIST_TRY(strategy->pool().check_idle("dist_strategy_destroy",
                                       "wait for it first, or cancel it with `dist_strategy_cancel()`"_m));
  if (strategy->pool().has_groups()) {
    return failed_precondition(
        "`dist_strategy_destroy()`: the strategy still has groups; `destroy` them first");
  }
  if (strategy->group().held()) {
    return failed_precondition(
        "`dist_strategy_destroy()`: the strategy still has works; `destroy` them first");
  }
  if (Instances* const instances = strategy->known_instances(); instances != nullptr)
    DIST_TRY(instances->end_idle("dist_strategy_destroy"));
  strategy->warn_of_handles();
  // Threads that end inside a function get no replacement from now on, and a stuck function may hold the
  // strategy for a long time, so the threads are ended here.
  if (Instances* const instances = strategy->known_instances(); instances != nullptr) {
    strategy->pool().end_threads();
    instances->detach();
  }
  reforming.unlock();
  strategy->release();
  return kOk;
}

Status Strategy::shut_down(Strategy* strategy, int64_t timeout_ns) noexcept {
  if (strategy == nullptr || strategy->memory().forked()) return kOk;
  DIST_TRY(check_may_end(*strategy, "dist_strategy_shutdown"));
  DIST_TRY(strategy->check_companion("dist_strategy_shutdown"));
  if (Instances* const known = strategy->known_instances(); known != nullptr)
    DIST_TRY(known->check_teller("dist_strategy_shutdown"));
  if (strategy->ended_)
    return failed_precondition("`dist_strategy_shutdown()`: the strategy has already been shut down");
  const Host& host = strategy->group().host();
  const int64_t deadline_ns = timeout_ns < 0 ? 0 : deadline_after(host.now_ns(), timeout_ns);
  char inside[512] = "";
  // First ends a wait in progress, or one that is about to begin.
  strategy->ended_ = true;
  strategy->wait_cancelled_ = true;
  // Callers that wait for a run, some of which hold locks of the instances, do so no longer.
  strategy->pool().cancel("`dist_strategy_shutdown()`"_m);
  strategy->pool().close_queue("dist_strategy_shutdown");
  const std::scoped_lock reforming(strategy->reforming_);
  Instances* const instances = strategy->serving_.load();
  if (instances != nullptr) instances->shut_down("dist_strategy_shutdown", deadline_ns);
  strategy->pool().shut_down(deadline_ns, inside, "dist_strategy_shutdown");
  if (instances != nullptr && instances->has_stuck()) instances->stop_clock();
  strategy->membership().close();
  if (inside[0] == '\0') return kOk;
  return fail(
      DIST_DEADLINE_EXCEEDED,
      "`dist_strategy_shutdown()`: the strategy has shut down, but the functions of %s have not returned",
      inside);
}

}  // namespace dist
