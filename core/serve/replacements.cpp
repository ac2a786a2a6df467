// SPDX-License-Identifier: Apache-2.0
#include "core/serve/replacements.hpp"

#include <cstdio>
#include <new>
#include <utility>

#include "core/base/text.hpp"
#include "core/serve/batcher.hpp"
#include "core/serve/stuck.hpp"

namespace dist {

int64_t Replacements::replace_stuck() noexcept {
  for (;;) {
    Instance* stuck = nullptr;
    int64_t next_ns = 0;
    {
      const std::lock_guard lock(dispatcher_.mutex());
      stuck = dispatcher_.watch().next_stuck(dispatcher_.instances(), &next_ns);
    }
    if (stuck == nullptr) return next_ns;
    replace(*stuck);
  }
}

// The memory that is allocated before the decision, and the description of the function.
struct Replacements::Replacement {
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

Status Replacements::prepare(const Instance& at, Replacement& out) noexcept {
  InstancesOptions options;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    options = options_;
    if (Request* const running = at.current; running != nullptr)
      out.batcher = Ref<Batcher>::share(running->batcher());
  }
  if (out.batcher) DIST_TRY(out.batcher->provide_step());
  try {
    out.stuck = make_counted<Stuck>(keeps_.memory(), keeps_, stuck_, options).take();
    return pool_.instance(LocalReplica{at.rank}, &out.pool);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

// The report for a function that has not returned. Must be called under the dispatcher's mutex.
ErrorRecord Replacements::why_stuck(const Instance& at, Request& running) const noexcept {
  ErrorRecord why;
  const bool is_step = running.batcher() != nullptr;
  const bool overdue = running.deadline_ns != 0 && host_.now_ns() >= running.deadline_ns;
  const bool cancelled = running.cancel_asked.load(std::memory_order_relaxed) ||
                         (running.cancel_object() != nullptr && running.cancel_object()->signalled());
  why.code = overdue && !cancelled ? DIST_DEADLINE_EXCEEDED : DIST_CANCELLED;
  char what[128] = "the request was cancelled";
  if (is_step) {
    copy_text(what, cancelled ? "the step was cancelled" : "an item of the step had to end");
  } else if (overdue && !cancelled) {
    std::snprintf(what, sizeof what, "the request's deadline of %s expired",
                  DurationText(running.timeout_ns()).text);
  }
  std::snprintf(why.message, sizeof why.message,
                "%s, and %s later its function had not returned on replica %d, which got a new thread", what,
                DurationText(options_.stuck_ns).text, pool_.name_of(at.rank));
  why.culprit.replica = GlobalReplica{pool_.name_of(at.rank)};
  copy_text(why.expected, is_step ? "a step that takes less than `dist_instances_options.stuck_ns`"_m
                                  : "a function that returns when `dist_replica_check()` fails"_m);
  copy_text(why.received, "still inside its function");
  copy_text(why.hint,
            "Find out what the function waits for. It keeps its thread and its resources until it returns.");
  return why;
}

// Must be called under the dispatcher's mutex. Abandons the function, which keeps its thread, pool and state. The instance
// counts as busy until the new thread has arrived, so that no run begins. Returns false if the function has
// not started yet, has just returned, or may not be replaced.
bool Replacements::leave_alone(Instance& at, Replacement& with) noexcept {
  with.stuck->take(at.pool);
  at.stay->stuck = with.stuck;
  // release: publishes this. acquire: makes visible what the thread has recorded.
  uint32_t in = Stay::kIn;
  if (!at.stay->call.compare_exchange_strong(in, Stay::kLeft, std::memory_order_acq_rel)) {
    dispatcher_.watch().put_off(at);
    return false;
  }
  at.pool->pool().give_up();
  at.pool = std::exchange(with.pool, nullptr);
  with.running = std::exchange(at.current, nullptr);
  with.why = why_stuck(at, *with.running);
  with.count = ++replaced_;
  ++replaced_ever_;
  ++stuck_;
  at.stay = nullptr;
  at.ready = at.attended = false;
  at.awaited = true;
  at.failure = DIST_OK;
  record_left(at, *with.running, with.why.code);
  return true;
}

Status Replacements::put_in_place(Instance& at) noexcept {
  const std::lock_guard lock(dispatcher_.mutex());
  at.inside.store(false, std::memory_order_release);
  // Under the mutex no run can begin, and the new thread comes here first.
  const Status started = pool_.replace_thread(LocalReplica{at.rank});
  if (!started.ok()) {
    at.failure = started.code();
    at.awaited = false;
  }
  dispatcher_.queue().take_no_part(at.rank);
  dispatcher_.dispatch();
  return started;
}

void Replacements::replace(Instance& at) noexcept {
  Replacement with;
  const Status prepared = prepare(at, with);
  {
    const std::lock_guard lock(dispatcher_.mutex());
    if (!dispatcher_.watch().is_stuck(at)) return;
    // It runs another request by now.
    if (at.current->batcher() != with.batcher.get()) return;
    at.stuck_at = 0;
    if (prepared.ok() && replaced_ < options_.max_replaced && !leave_alone(at, with)) return;
  }
  if (with.running == nullptr) {
    host_.log(DIST_LOG_WARNING, "a function has not returned on replica %d, which gets no new thread: %s",
              pool_.name_of(at.rank), prepared.ok() ? "max_replaced is reached" : last_error().message);
    return;
  }
  Item* const items = batchers_.leave_alone(at.rank, *with.running);
  const Status started = put_in_place(at);
  if (!with.batcher) with.running->end(Status(with.why.code), &with.why, by_);
  for (Item* each = items; each != nullptr; each = each->next_to_end) each->end_left(with.why);
  std::exchange(with.stuck, nullptr)->take_rest(items, with.batcher ? with.running : nullptr);
  lifecycle_.changed();
  // Threads that wait for a step: there is room now.
  dispatcher_.alarm().advance();
  host_.log(DIST_LOG_WARNING, "a function has not returned on replica %d, which %s (%d so far)",
            pool_.name_of(at.rank),
            started.ok() ? "gets a new thread" : "is lost, because no new thread could be created",
            with.count);
}

// Records what the abandoned thread would have recorded.
void Replacements::record_left(Instance& at, const Request& request, dist_status status) noexcept {
  Recorder& recorder = *at.recorder;
  const uint64_t begun = recorder.run_began();
  recorder.end_run(status);
  recorder.end_request();
  if (!request.unlimited) at.count_times(request.accepted_at, begun, recorder.now());
  at.count_end(request, status);
}

}  // namespace dist
