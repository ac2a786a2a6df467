// SPDX-License-Identifier: Apache-2.0
// Instances: opening and closing.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/serve/batcher.hpp"
#include "core/serve/error_room.hpp"
#include "core/serve/instances.hpp"

namespace dist {
namespace {

// How long functions that were told to end may take after a deadline.
constexpr int64_t kReturnGraceNs = 50'000'000;

Status changed_elsewhere(const char* call) noexcept {
  return failed_precondition("`%s()`: another thread is opening or closing the instances", call);
}

}  // namespace

// Waits until holds(), which is called under the mutex, returns true. Returns false if the deadline (0: none)
// expires.
template <class Holds>
bool Instances::wait_until(int64_t deadline_ns, Holds&& holds) noexcept {
  for (;;) {
    // The acquire keeps this load before the check, so a later change ends the wait.
    const uint32_t seen = settled_.value.load(std::memory_order_acquire);
    {
      const std::lock_guard lock(mutex_);
      if (holds()) return true;
    }
    const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - host_.now_ns();
    if (deadline_ns != 0 && left <= 0) return false;
    const auto changed = [&] { return settled_.value.load(std::memory_order_seq_cst) != seen; };
    if (!spin_until(policy_, changed)) settled_.sleep(seen, host_.slice_ns(left), policy_, changed);
  }
}

const char* Instances::phase_name() const noexcept {
  switch (phase()) {
    case Phase::kNever: return "not open yet";
    case Phase::kOpening: return "opening";
    case Phase::kOpen: return "open";
    case Phase::kClosing:
    case Phase::kEnding: return "closing";
    case Phase::kClosed: return "closed";
  }
  return "";
}

void Instances::enter(Phase phase) noexcept {
  {
    const std::lock_guard lock(mutex_);
    // seq_cst: one_less() reads it.
    phase_.store(phase, std::memory_order_seq_cst);
  }
  wake();
  settled_.advance();
}

Status Instances::check_threads(const char* call) const noexcept {
  if (pool_.workers() != nullptr)
    return fail(DIST_UNIMPLEMENTED, "`%s()`: strategies with several workers do not support instances", call);
  if (pool_.threads() != DIST_THREADS_CALLER) return kOk;
  return failed_precondition(
      "`%s()`: replica 0 of this strategy runs on the `thread` that calls `dist_run()`, so it has no thread "
      "between runs. Create the strategy with `dist_strategy_options.threads` = `DIST_THREADS_LIBRARY`, or "
      "with "
      "`DIST_THREADS_HOST` and call `dist_serve()`.",
      call);
}

Status Instances::check_watch() noexcept {
  if (pool_.threads() == DIST_THREADS_HOST) {
    return fail(DIST_UNIMPLEMENTED,
                "`dist_instances_open()`: `stuck_ns` needs library threads, but the strategy has "
                "`DIST_THREADS_HOST`. Leave it at 0.");
  }
  if (pool_.devices_of(LocalReplica{0}) != nullptr) {
    return fail(DIST_UNIMPLEMENTED,
                "`dist_instances_open()`: `stuck_ns` is not supported for replicas with logical devices. "
                "Leave it at 0.");
  }
  return helpers_.need_clock();
}

// While the instances are open, a request that waited for that may hold the lock for a moment.
std::unique_lock<std::mutex> Instances::lock_to_change() {
  std::unique_lock changing(changing_, std::try_to_lock);
  while (!changing && phase() == Phase::kOpen) {
    yield_this_thread();
    (void)changing.try_lock();
  }
  return changing;
}

Status Instances::open(const Options& options) {
  DIST_TRY(check_threads("dist_instances_open"));
  DIST_TRY(check_wait("dist_instances_open"));
  const BudgetStay stay(pool_.insider());
  const std::unique_lock changing = lock_to_change();
  if (!changing) return changed_elsewhere("dist_instances_open");
  const Phase now = phase();
  if (now != Phase::kNever && now != Phase::kClosed)
    return failed_precondition(
        "`dist_instances_open()`: the instances are already open. Call `dist_instances_close()` first.");
  return open_with(options);
}

Status Instances::open_first(const char* call) {
  DIST_TRY(check_threads(call));
  DIST_TRY(check_wait(call));
  const BudgetStay stay(pool_.insider());
  const std::lock_guard changing(changing_);
  return phase() == Phase::kNever ? open_with({}) : kOk;
}

Status Instances::open_with(const Options& options) {
  const Phase before = phase();
  DIST_TRY(check_all_out());
  if (options.stuck_ns != 0) DIST_TRY(check_watch());
  {
    const std::lock_guard lock(mutex_);
    queue_.set_most(options.max_queued);  // the queue is empty
    options_ = options;
    replaced_ = 0;
  }
  spin_ns_.store(std::max<int64_t>(options.spin_ns, 0), std::memory_order_relaxed);
  has_helpers_.store(options.helper_threads || pool_.threads() != DIST_THREADS_HOST,
                     std::memory_order_relaxed);
  for (int rank = 0; rank < num_instances(); ++rank) {
    Instance& at = instance(rank);
    at.failure = DIST_OK;
    if (at.pool == nullptr) DIST_TRY(pool_.instance(LocalReplica{rank}, &at.pool));
    need_error_room(memory(), at.why);
  }
  enter(Phase::kOpening);
  Status opened = kOk;
  if (!std::exchange(let_, true)) {
    opened = pool_.let_to(*this, "dist_instances_open");
    let_ = opened.ok();
  }
  if (opened.ok() && pool_.threads() != DIST_THREADS_HOST) opened = await_ready();
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
bool Instances::all_out() const noexcept {
  return count_undelivered() == 0 && std::none_of(instances_.begin(), instances_.end(),
                                                  [](const Instance& at) { return at.ready || at.awaited; });
}

Status Instances::check_all_out() noexcept {
  if (wait_until(deadline_after(host_.now_ns(), kReturnGraceNs), [&] { return all_out(); })) return kOk;
  char inside[256];
  (void)list_inside(inside);
  return failed_precondition(
      "`dist_instances_open()`: functions have not returned since the instances were closed: %s. Call "
      "`dist_instances_close()` to wait for them.",
      inside);
}

Status Instances::check_teller(const char* call) const noexcept {
  if (!helpers_.telling()) return kOk;
  return failed_precondition(
      "`%s()`: this `thread` is inside a `dist_done_fn`, which other requests wait for. Call it on another "
      "thread.",
      call);
}

// Waits until all instances have their states or one has failed. The failure of the lowest one is reported.
Status Instances::await_ready() noexcept {
  const auto all_have = [&] {
    return refused_.load(std::memory_order_relaxed) ||
           std::all_of(instances_.begin(), instances_.end(),
                       [](const Instance& at) { return at.ready || at.failure != DIST_OK; });
  };
  (void)wait_until(0, all_have);
  const std::lock_guard lock(mutex_);
  for (const Instance& at : instances_) {
    if (at.failure == DIST_OK) continue;
    return at.why != nullptr ? fail(*at.why) : fail(at.failure, "an instance could not be prepared");
  }
  return refused_.load(std::memory_order_relaxed) ? pool_.shutting_down() : kOk;
}

// In phase kEnding: each instance destroys its state, unless a host callback is still running there.
void Instances::end_states(int64_t deadline_ns) noexcept {
  (void)wait_until(deadline_ns, [&] {
    return std::none_of(instances_.begin(), instances_.end(),
                        [](const Instance& at) { return at.ready || at.awaited; });
  });
  // States left behind by threads that ended inside a callback.
  for (Instance& at : instances_) {
    bool left = false;
    {
      const std::lock_guard lock(mutex_);
      left = !at.attended && at.pool != nullptr && at.pool->pool().host_state() != nullptr;
    }
    if (left)
      (void)run_alone(at, Body{.call = call_end, .context = &options_},
                      {.call = "dist_instances_close", .uncounted = true});
  }
}

Status Instances::close(int64_t timeout_ns) noexcept {
  DIST_TRY(check_wait("dist_instances_close"));
  const BudgetStay stay(pool_.insider());
  DIST_TRY(check_teller("dist_instances_close"));
  const std::unique_lock changing = lock_to_change();
  if (!changing) return changed_elsewhere("dist_instances_close");
  const int64_t deadline_ns =
      timeout_ns < 0 ? 0 : deadline_after(host_.now_ns(), std::max<int64_t>(timeout_ns, 1));
  if (phase() == Phase::kNever) return kOk;
  if (phase() == Phase::kClosed) {
    // Requests left by an earlier close().
    if (wait_until(deadline_ns, [&] { return all_out(); })) return kOk;
    char late[256];
    (void)list_inside(late);
    return fail(DIST_DEADLINE_EXCEEDED,
                "`dist_instances_close()`: these functions did not return within %s: %s",
                DurationText(timeout_ns).text, late);
  }
  enter(Phase::kClosing);
  const auto none_left = [&] { return count_undelivered() == 0; };
  Status closed = kOk;
  if (!wait_until(deadline_ns, none_left)) {
    const std::size_t cut = undelivered();
    end_all("`dist_instances_close()`"_m);
    const bool all_out = wait_until(deadline_after(host_.now_ns(), kReturnGraceNs), none_left);
    char inside[256] = "";
    if (!all_out) (void)list_inside(inside);
    closed = fail(DIST_DEADLINE_EXCEEDED,
                  "`dist_instances_close()`: %zu request%s did not complete within %s and %s cancelled%s%s",
                  cut, cut == 1 ? "" : "s", DurationText(timeout_ns).text, cut == 1 ? "was" : "were",
                  inside[0] == '\0' ? "" : "; still inside their functions: ", inside);
  }
  const ErrorRecord why = closed.ok() ? ErrorRecord{} : last_error();
  enter(Phase::kEnding);
  end_states(closed.ok() ? 0 : deadline_after(host_.now_ns(), kReturnGraceNs));
  enter(Phase::kClosed);
  return closed.ok() ? kOk : fail(why);
}

void Instances::end_all(const char* reason) noexcept {
  ErrorRecord why;
  why.code = DIST_CANCELLED;
  // First: while items wait, their batcher queues another step in place of each that is ended.
  std::snprintf(why.message, sizeof why.message, "the item was cancelled: %s", reason);
  batchers_.end_all(why);
  std::snprintf(why.message, sizeof why.message, "the request was cancelled before it started: %s", reason);
  end_queued(why);
  cancel(reason);
}

// Lists for example "replicas 1, 3" and returns the number.
int Instances::list_inside(std::span<char> text) const noexcept {
  int count = 0;
  std::size_t used = 0;
  text[0] = '\0';
  for (int rank = 0; rank < num_instances(); ++rank) {
    if (!is_inside(rank)) continue;
    const int length = std::snprintf(text.data() + used, text.size() - used, "%s%d",
                                     count == 0 ? "replica " : ", ", pool_.name_of(rank));
    used = std::min(text.size() - 1, used + static_cast<std::size_t>(std::max(0, length)));
    ++count;
  }
  return count;
}

Status Instances::end_idle(const char* call) noexcept {
  DIST_TRY(check_teller(call));
  const std::unique_lock changing = lock_to_change();
  if (!changing) return changed_elsewhere(call);
  {
    const std::lock_guard lock(mutex_);
    if (some_under_way())
      return failed_precondition(
          "`%s()`: some requests have not completed. Call `dist_instances_close()` first.", call);
  }
  // A thread that has just completed a request is about to release it.
  while (undelivered() != 0) {
    if (helpers_.has_untold())
      return failed_precondition(
          "`%s()`: a `dist_done_fn` has not returned. Call `dist_instances_close()` first.", call);
    yield_this_thread();
  }
  {
    if (batchers_.at(0))
      return failed_precondition(
          "`%s()`: the strategy still has batchers. Call `dist_batcher_destroy()` first.", call);
    const std::lock_guard lock(mutex_);
    if (out_ != 0)
      return failed_precondition(
          "`%s()`: the strategy still has requests; call `dist_request_destroy()` for them first", call);
    for (int rank = 0; rank < num_instances(); ++rank) {
      if (pool_.threads() == DIST_THREADS_HOST && instance(rank).attended)
        return failed_precondition(
            "`%s()`: a thread is serving as replica %d. Call `dist_instances_close()` first.", call,
            pool_.name_of(rank));
    }
    if (phase() == Phase::kOpen) phase_.store(Phase::kClosing, std::memory_order_seq_cst);
  }
  if (phase() != Phase::kClosing) return kOk;
  enter(Phase::kEnding);
  end_states(0);
  enter(Phase::kClosed);
  return kOk;
}

void Instances::shut_down(const char* call, int64_t deadline_ns) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (phase() == Phase::kOpen || phase() == Phase::kOpening)
      phase_.store(Phase::kClosing, std::memory_order_seq_cst);
  }
  refuse_all();
  settled_.advance();
  // A thread that opens or closes the instances notices this soon, but a callback that creates a state may
  // not.
  char reason[64];
  (void)write_marked(reason, sizeof reason, "`%s()`", call);
  end_all(reason);
  (void)wait_until(deadline_ns, [&] { return count_undelivered() == 0; });
  const std::lock_guard changing(changing_);
  if (phase() == Phase::kNever || phase() == Phase::kClosed) return;
  enter(Phase::kEnding);
  end_states(deadline_ns == 0 ? 0 : std::max(deadline_ns, deadline_after(host_.now_ns(), kReturnGraceNs)));
  enter(Phase::kClosed);
}

void Instances::detach() noexcept {
  helpers_.stop();
  for (Instance& at : instances_) {
    InnerPool::destroy(std::exchange(at.pool, nullptr));
    free_error_room(memory(), at.why);
  }
}

}  // namespace dist
