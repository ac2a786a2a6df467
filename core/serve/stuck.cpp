// SPDX-License-Identifier: Apache-2.0
// Instances: replacing the thread of a function that does not return although its request's deadline has
// expired or it was cancelled. The replica gets a new thread with its own pool and state. The stuck function
// keeps the old ones, and its thread destroys them when the function returns.
#include "core/serve/stuck.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/serve/batcher.hpp"

namespace dist {

void Stuck::end() noexcept {
  // Waits for the thread that abandons this one, which calls no host function.
  while (!has_all_.load(std::memory_order_acquire)) yield_this_thread();
  // Before the instance's state, which these may use.
  while (items_ != nullptr) std::exchange(items_, items_->next_to_end)->come_back();
  if (step_ != nullptr) step_->come_back();
  if (pool_->pool().host_state() != nullptr) {
    (void)pool_->pool().run(Body{.call = Instances::call_end, .context = &options_},
                            {.call = "dist_instances_close", .uncounted = true});
  }
  InnerPool::destroy(std::exchange(pool_, nullptr));
  instances_->stuck_ends();
  release();
}

// Must be called under the mutex: an instance has another request or none.
void Instances::watch_next(Instance& at) noexcept {
  at.stuck_at = 0;
  at.told = false;
  if (at.current != nullptr) watch(at, at.current->deadline_ns);
}

// Must be called under the mutex: the request is to end at this time.
void Instances::watch(Instance& at, int64_t end_ns) noexcept {
  if (options_.stuck_ns == 0 || end_ns == 0) return;
  const int64_t stuck_at = deadline_after(end_ns, options_.stuck_ns);
  if (at.stuck_at != 0 && at.stuck_at <= stuck_at) return;
  at.stuck_at = stuck_at;
  // Rare: later requests usually have later deadlines.
  if (watched_until_ != 0 && watched_until_ <= stuck_at) return;
  watched_until_ = stuck_at;
  helpers_.deadline_changed();
}

// Must be called under the mutex: the current request was told to end. Does not record the time, because the
// host's clock must not be called in a signal handler.
void Instances::watch_told(Instance& at) noexcept {
  if (options_.stuck_ns == 0) return;
  at.told = true;
  helpers_.deadline_changed();
}

void Instances::tell_step(int rank, const Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  // The step may have ended and be on its way to its batcher.
  if (instance(rank).current == &step) watch_told(instance(rank));
}

// Replaces the threads of stuck functions, and returns when to check again; 0: when watch() requests it.
int64_t Instances::replace_stuck() noexcept {
  for (;;) {
    int stuck = -1;
    {
      const std::lock_guard lock(mutex_);
      const int64_t now_ns = options_.stuck_ns == 0 ? 0 : host_.now_ns();
      int64_t next_ns = 0;
      for (int rank = 0; rank < num_instances() && stuck < 0; ++rank) {
        Instance& at = instance(rank);
        const int64_t told_ns = std::exchange(at.told, false) ? deadline_after(now_ns, options_.stuck_ns) : 0;
        if (told_ns != 0 && (at.stuck_at == 0 || told_ns < at.stuck_at)) at.stuck_at = told_ns;
        const int64_t at_ns = at.stuck_at;
        if (at_ns != 0 && at_ns <= now_ns) stuck = rank;
        if (at_ns != 0 && (next_ns == 0 || at_ns < next_ns)) next_ns = at_ns;
      }
      if (stuck < 0) return watched_until_ = next_ns;
    }
    replace(stuck);
  }
}

// The memory that is allocated before the decision, and the description of the function.
struct Instances::Replacement {
  Stuck* stuck = nullptr;
  InnerPool* pool = nullptr;
  Ref<Batcher> batcher;  // set if the function is a step
  Request* running = nullptr;
  ErrorRecord why;
  int32_t count = 0;

  ~Replacement() {
    if (stuck != nullptr) stuck->release();
    InnerPool::destroy(pool);
  }
};

Status Instances::prepare(int rank, Replacement& out) noexcept {
  Options options;
  {
    const std::lock_guard lock(mutex_);
    options = options_;
    if (Request* const running = instance(rank).current; running != nullptr)
      out.batcher = Ref<Batcher>::share(running->batcher());
  }
  if (out.batcher) DIST_TRY(out.batcher->provide_step());
  try {
    out.stuck = make_counted<Stuck>(memory(), *this, options).take();
    return pool_.instance(LocalReplica{rank}, &out.pool);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

// The report for a function that has not returned. Must be called under the mutex.
ErrorRecord Instances::why_stuck(int rank, Request& running) const noexcept {
  ErrorRecord why;
  const bool is_step = running.batcher() != nullptr;
  const bool overdue = running.deadline_ns != 0 && host_.now_ns() >= running.deadline_ns;
  const bool cancelled = running.cancel_asked.load(std::memory_order_relaxed) ||
                         (running.cancel_object() != nullptr && running.cancel_object()->signalled());
  why.code = overdue && !cancelled ? DIST_DEADLINE_EXCEEDED : DIST_CANCELLED;
  char what[128] = "the request was cancelled";
  if (is_step) {
    copy_text(what, cancelled ? "the step was cancelled" : "an item of the step was to end");
  } else if (overdue && !cancelled) {
    std::snprintf(what, sizeof what, "the request's deadline of %s was over",
                  DurationText(running.timeout_ns()).text);
  }
  std::snprintf(why.message, sizeof why.message,
                "%s, and %s later its function had not returned on replica %d, which got another thread",
                what, DurationText(options_.stuck_ns).text, pool_.name_of(rank));
  why.culprit.replica = GlobalReplica{pool_.name_of(rank)};
  copy_text(why.expected, is_step ? "a step that takes less than `dist_instances_options.stuck_ns`"_m
                                  : "a function that returns when `dist_replica_check()` says so"_m);
  copy_text(why.received, "still inside its function");
  copy_text(why.hint,
            "Find out what the function waits for. It keeps its thread and its resources until it returns.");
  return why;
}

// Must be called under the mutex. Abandons the function, which keeps its thread, pool and state. The instance
// counts as busy until the new thread has arrived, so that no run begins. Returns false if the function has
// not started yet, has just returned, or may not be replaced.
bool Instances::leave_alone(int rank, Replacement& with) noexcept {
  Instance& at = instance(rank);
  with.stuck->take(at.pool);
  at.stay->stuck = with.stuck;
  // release: publishes this. acquire: makes visible what the thread has recorded.
  uint32_t in = Stay::kIn;
  if (!at.stay->call.compare_exchange_strong(in, Stay::kLeft, std::memory_order_acq_rel)) {
    at.stuck_at = deadline_after(host_.now_ns(), options_.stuck_ns);
    return false;
  }
  at.pool->pool().give_up();
  at.pool = std::exchange(with.pool, nullptr);
  with.running = std::exchange(at.current, nullptr);
  with.why = why_stuck(rank, *with.running);
  with.count = ++replaced_;
  ++replaced_ever_;
  ++stuck_;
  at.stay = nullptr;
  at.ready = at.attended = false;
  at.awaited = true;
  at.failure = DIST_OK;
  record_left(rank, *with.running, with.why.code);
  return true;
}

Status Instances::put_in_place(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  Instance& at = instance(rank);
  at.inside.store(false, std::memory_order_release);
  // Under the mutex no run can begin, and the new thread comes here first.
  const Status started = pool_.replace_thread(LocalReplica{rank});
  if (!started.ok()) {
    at.failure = started.code();
    at.awaited = false;
  }
  queue_.take_no_part(rank);
  dispatch();
  return started;
}

void Instances::replace(int rank) noexcept {
  Replacement with;
  const Status prepared = prepare(rank, with);
  {
    const std::lock_guard lock(mutex_);
    Instance& at = instance(rank);
    if (at.current == nullptr || at.stuck_at == 0 || at.stuck_at > host_.now_ns()) return;
    // It runs another request by now.
    if (at.current->batcher() != with.batcher.get()) return;
    at.stuck_at = 0;
    if (prepared.ok() && replaced_ < options_.max_replaced && !leave_alone(rank, with)) return;
  }
  if (with.running == nullptr) {
    host_.log(DIST_LOG_WARNING, "a function has not returned on replica %d, which gets no other thread: %s",
              pool_.name_of(rank), prepared.ok() ? "max_replaced is reached" : last_error().message);
    return;
  }
  Item* const items = batchers_.leave_alone(rank, *with.running);
  const Status started = put_in_place(rank);
  if (!with.batcher) with.running->end(Status(with.why.code), &with.why, elsewhere_);
  for (Item* each = items; each != nullptr; each = each->next_to_end) each->end_left(with.why);
  std::exchange(with.stuck, nullptr)->take_rest(items, with.batcher ? with.running : nullptr);
  settled_.advance();
  // Threads that wait for a step: there is room now.
  helpers_.deadline_changed();
  host_.log(DIST_LOG_WARNING, "a function has not returned on replica %d, which %s (%d so far)",
            pool_.name_of(rank),
            started.ok() ? "gets another thread" : "is lost: no other thread could be made", with.count);
}

// Records what the abandoned thread would have recorded.
void Instances::record_left(int rank, const Request& request, dist_status status) noexcept {
  Recorder& recorder = pool_.recorder()[LocalReplica{rank}];
  const uint64_t begun = recorder.run_began();
  recorder.end_run(status);
  recorder.end_request();
  if (!request.unlimited) count_times(instance(rank), request.accepted_at, begun, clock_.now());
  count_end(instance(rank), request, status);
}

}  // namespace dist
