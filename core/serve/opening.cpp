// SPDX-License-Identifier: Apache-2.0
#include "core/serve/opening.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/serve/batcher.hpp"
#include "core/serve/error_room.hpp"

namespace dist {
namespace {

// How long functions that were told to end may take after a deadline.
constexpr int64_t kReturnGraceNs = 50'000'000;

Status changed_elsewhere(const char* call) noexcept {
  return failed_precondition("`%s()`: another thread is opening or closing the instances", call);
}

// Must be called under the mutex.
bool none_has_state(std::span<const Instance> instances) noexcept {
  return std::none_of(instances.begin(), instances.end(),
                      [](const Instance& at) { return at.ready || at.awaited; });
}

}  // namespace

Status check_wait(const ReplicaPool& pool, const char* call) noexcept {
  const Replica* const here = current().replica;
  if (here == nullptr || !here->pool().belongs_with(pool)) return kOk;
  return failed_precondition(
      "`%s()`: this `thread` is in the function of replica %d of the same strategy, so the call may wait for "
      "itself. Call it outside the replicas, or use completions, which do not block.",
      call, here->name().number());
}

// Waits until holds(), which is called under the mutex, returns true. Returns false if the deadline (0: none)
// expires.
template <class Holds>
bool Opening::wait_until(int64_t deadline_ns, Holds&& holds) noexcept {
  return serving_.lifecycle.wait_until(serving_.dispatcher.mutex(), serving_.host, serving_.policy,
                                       deadline_ns, holds);
}

void Opening::enter(Phase phase) noexcept {
  {
    const std::lock_guard lock(serving_.dispatcher.mutex());
    serving_.lifecycle.set(phase);
  }
  serving_.dispatcher.wake();
  serving_.lifecycle.changed();
}

Status Opening::check_threads(const char* call) const noexcept {
  if (serving_.pool.workers() != nullptr)
    return fail(DIST_UNIMPLEMENTED, "`%s()`: strategies with several workers do not support instances", call);
  if (serving_.pool.threads() != DIST_THREADS_CALLER) return kOk;
  return failed_precondition(
      "`%s()`: replica 0 of this strategy runs on the `thread` that calls `dist_run()`, so it has no thread "
      "between runs. Create the strategy with `dist_strategy_options.threads` = `DIST_THREADS_LIBRARY`, or "
      "with "
      "`DIST_THREADS_HOST` and call `dist_serve()`.",
      call);
}

Status Opening::check_watch() noexcept {
  if (serving_.pool.threads() == DIST_THREADS_HOST) {
    return fail(DIST_UNIMPLEMENTED,
                "`dist_instances_open()`: `stuck_ns` needs library threads, but the strategy has "
                "`DIST_THREADS_HOST`. Leave it unset.");
  }
  if (serving_.pool.devices_of(LocalReplica{0}) != nullptr) {
    return fail(DIST_UNIMPLEMENTED,
                "`dist_instances_open()`: `stuck_ns` is not supported for replicas with logical devices. "
                "Leave it unset.");
  }
  return helpers_.clock().need();
}

Status Opening::open(const InstancesOptions& options) {
  DIST_TRY(check_threads("dist_instances_open"));
  DIST_TRY(check_wait(serving_.pool, "dist_instances_open"));
  const BudgetStay stay(serving_.pool.insider());
  const std::unique_lock changing = serving_.lifecycle.try_lock_to_change();
  if (!changing) return changed_elsewhere("dist_instances_open");
  const Phase now = serving_.lifecycle.phase();
  if (now != Phase::kNever && now != Phase::kClosed)
    return failed_precondition(
        "`dist_instances_open()`: the instances are already open. Call `dist_instances_close()` first.");
  return open_with(options);
}

Status Opening::open_first(const char* call) {
  DIST_TRY(check_threads(call));
  DIST_TRY(check_wait(serving_.pool, call));
  const BudgetStay stay(serving_.pool.insider());
  const std::unique_lock changing = serving_.lifecycle.lock_to_change();
  return serving_.lifecycle.phase() == Phase::kNever ? open_with({}) : kOk;
}

Status Opening::open_with(const InstancesOptions& options) {
  const Phase before = serving_.lifecycle.phase();
  DIST_TRY(check_all_out());
  if (options.stuck_ns != 0) DIST_TRY(check_watch());
  {
    const std::lock_guard lock(serving_.dispatcher.mutex());
    serving_.dispatcher.queue().set_most(options.max_queued);  // the queue is empty
    serving_.dispatcher.watch().set(options.stuck_ns);
    serving_.options = options;
    replacements_.begin();
  }
  serving_.spin_ns.store(std::max<int64_t>(options.spin_ns, 0), std::memory_order_relaxed);
  helpers_.allow(options.helper_threads || serving_.pool.threads() != DIST_THREADS_HOST);
  for (Instance& at : serving_.dispatcher.instances()) {
    at.failure = DIST_OK;
    if (at.pool == nullptr) DIST_TRY(serving_.pool.instance(LocalReplica{at.rank}, &at.pool));
    need_error_room(serving_.pool.memory(), at.why);
  }
  enter(Phase::kOpening);
  Status opened = kOk;
  if (!std::exchange(let_, true)) {
    opened = serving_.pool.let_to(idle_, "dist_instances_open");
    let_ = opened.ok();
  }
  if (opened.ok() && serving_.pool.threads() != DIST_THREADS_HOST) opened = await_ready();
  if (opened.ok()) {
    enter(Phase::kOpen);
    return kOk;
  }
  const ErrorRecord why = last_error();
  enter(Phase::kEnding);
  end_states(0);
  enter(before == Phase::kNever && !let_ ? Phase::kNever : Phase::kClosed);
  return fail(why);
}

// Whether everything from the previous opening has ended, which may use other host functions. Must be called
// under the mutex.
bool Opening::all_out() const noexcept {
  return all_delivered() && none_has_state(serving_.dispatcher.instances());
}

// Must be called under the mutex.
bool Opening::all_delivered() const noexcept {
  return tally_.undelivered(serving_.dispatcher.instances()) == 0;
}

std::size_t Opening::undelivered() const noexcept {
  const std::lock_guard lock(serving_.dispatcher.mutex());
  return tally_.undelivered(serving_.dispatcher.instances());
}

Status Opening::check_all_out() noexcept {
  if (wait_until(deadline_after(serving_.host.now_ns(), kReturnGraceNs), [&] { return all_out(); }))
    return kOk;
  char inside[256];
  (void)serving_.dispatcher.list_inside(inside);
  return failed_precondition(
      "`dist_instances_open()`: functions have not returned since the instances were closed: %s. Call "
      "`dist_instances_close()` to wait for them.",
      inside);
}

// Waits until all instances have their states or one has failed. The failure of the lowest one is reported.
Status Opening::await_ready() noexcept {
  const auto all_have = [&] {
    return serving_.lifecycle.refuses_all() ||
           std::all_of(serving_.dispatcher.instances().begin(), serving_.dispatcher.instances().end(),
                       [](const Instance& at) { return at.ready || at.failure != DIST_OK; });
  };
  (void)wait_until(0, all_have);
  const std::lock_guard lock(serving_.dispatcher.mutex());
  for (const Instance& at : serving_.dispatcher.instances()) {
    if (at.failure == DIST_OK) continue;
    return at.why != nullptr ? fail(*at.why) : fail(at.failure, "an instance could not be prepared");
  }
  return serving_.lifecycle.refuses_all() ? serving_.pool.shutting_down() : kOk;
}

// In phase kEnding: each instance destroys its state, unless a host callback is still running there.
void Opening::end_states(int64_t deadline_ns) noexcept {
  (void)wait_until(deadline_ns, [&] { return none_has_state(serving_.dispatcher.instances()); });
  // States left behind by threads that ended inside a callback.
  for (Instance& at : serving_.dispatcher.instances()) {
    bool left = false;
    {
      const std::lock_guard lock(serving_.dispatcher.mutex());
      left = !at.attended && at.pool != nullptr && at.pool->pool().host_state() != nullptr;
    }
    if (left) serving_.options.destroy_state_of(at, "dist_instances_close");
  }
}

Status Opening::close(int64_t timeout_ns) noexcept {
  DIST_TRY(check_wait(serving_.pool, "dist_instances_close"));
  const BudgetStay stay(serving_.pool.insider());
  DIST_TRY(helpers_.teller().check("dist_instances_close"));
  const std::unique_lock changing = serving_.lifecycle.try_lock_to_change();
  if (!changing) return changed_elsewhere("dist_instances_close");
  const int64_t deadline_ns =
      timeout_ns < 0 ? 0 : deadline_after(serving_.host.now_ns(), std::max<int64_t>(timeout_ns, 1));
  if (serving_.lifecycle.phase() == Phase::kNever) return kOk;
  if (serving_.lifecycle.phase() == Phase::kClosed) {
    // Requests left by an earlier close().
    if (wait_until(deadline_ns, [&] { return all_out(); })) return kOk;
    char late[256];
    (void)serving_.dispatcher.list_inside(late);
    return fail(DIST_DEADLINE_EXCEEDED,
                "`dist_instances_close()`: these functions did not return within %s: %s",
                DurationText(timeout_ns).text, late);
  }
  enter(Phase::kClosing);
  const auto none_left = [&] { return all_delivered(); };
  Status closed = kOk;
  if (!wait_until(deadline_ns, none_left)) {
    const std::size_t cut = undelivered();
    serving_.withdrawals.cancel_all("`dist_instances_close()`"_m);
    const bool all_out = wait_until(deadline_after(serving_.host.now_ns(), kReturnGraceNs), none_left);
    char inside[256] = "";
    if (!all_out) (void)serving_.dispatcher.list_inside(inside);
    closed = fail(DIST_DEADLINE_EXCEEDED,
                  "`dist_instances_close()`: %zu request%s did not complete within %s and %s cancelled%s%s",
                  cut, cut == 1 ? "" : "s", DurationText(timeout_ns).text, cut == 1 ? "was" : "were",
                  inside[0] == '\0' ? "" : "; still inside their functions: ", inside);
  }
  const ErrorRecord why = closed.ok() ? ErrorRecord{} : last_error();
  enter(Phase::kEnding);
  end_states(closed.ok() ? 0 : deadline_after(serving_.host.now_ns(), kReturnGraceNs));
  enter(Phase::kClosed);
  return closed.ok() ? kOk : fail(why);
}

Status Opening::end_idle(const char* call) noexcept {
  DIST_TRY(helpers_.teller().check(call));
  const std::unique_lock changing = serving_.lifecycle.try_lock_to_change();
  if (!changing) return changed_elsewhere(call);
  {
    const std::lock_guard lock(serving_.dispatcher.mutex());
    if (tally_.some_under_way(serving_.dispatcher.instances()))
      return failed_precondition(
          "`%s()`: some requests have not completed. Call `dist_instances_close()` first.", call);
  }
  // A thread that has just completed a request is about to release it.
  while (undelivered() != 0) {
    if (helpers_.teller().has_untold())
      return failed_precondition(
          "`%s()`: a `dist_done_fn` has not returned. Call `dist_instances_close()` first.", call);
    yield_this_thread();
  }
  {
    if (batchers_.at(0))
      return failed_precondition(
          "`%s()`: the strategy still has batchers. Call `dist_batcher_destroy()` first.", call);
    const std::lock_guard lock(serving_.dispatcher.mutex());
    if (supply_.has_kept())
      return failed_precondition(
          "`%s()`: the strategy still has requests; call `dist_request_destroy()` for them first", call);
    for (const Instance& at : serving_.dispatcher.instances()) {
      if (serving_.pool.threads() == DIST_THREADS_HOST && at.attended)
        return failed_precondition(
            "`%s()`: a thread is serving as replica %d. Call `dist_instances_close()` first.", call,
            serving_.pool.name_of(at.rank));
    }
    if (serving_.lifecycle.phase() == Phase::kOpen) serving_.lifecycle.set(Phase::kClosing);
  }
  if (serving_.lifecycle.phase() != Phase::kClosing) return kOk;
  enter(Phase::kEnding);
  end_states(0);
  enter(Phase::kClosed);
  return kOk;
}

void Opening::shut_down(const char* call, int64_t deadline_ns) noexcept {
  {
    const std::lock_guard lock(serving_.dispatcher.mutex());
    if (serving_.lifecycle.phase() == Phase::kOpen || serving_.lifecycle.phase() == Phase::kOpening)
      serving_.lifecycle.set(Phase::kClosing);
  }
  idle_.refuse_all();
  serving_.lifecycle.changed();
  // A thread that opens or closes the instances notices this soon, but a callback that creates a state may
  // not.
  char reason[64];
  (void)write_marked(reason, sizeof reason, "`%s()`", call);
  serving_.withdrawals.cancel_all(reason);
  (void)wait_until(deadline_ns, [&] { return all_delivered(); });
  const std::unique_lock changing = serving_.lifecycle.lock_to_change();
  if (serving_.lifecycle.phase() == Phase::kNever || serving_.lifecycle.phase() == Phase::kClosed) return;
  enter(Phase::kEnding);
  end_states(
      deadline_ns == 0 ? 0 : std::max(deadline_ns, deadline_after(serving_.host.now_ns(), kReturnGraceNs)));
  enter(Phase::kClosed);
}

}  // namespace dist
