// SPDX-License-Identifier: Apache-2.0
// Instances: a function that does not return, though its request's deadline is over or it was cancelled. Its replica gets
// another thread, with a pool and a state of its own; the function keeps the old ones, and ends them when it comes back.
#include "core/serve/stuck.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "core/base/text.hpp"

namespace dist {

void Stuck::end() noexcept {
  // Who has left this thread alone is done with it.
  { const std::lock_guard lock(instances_->mutex_); }
  if (pool_->pool().host_state() != nullptr) {
    (void)pool_->pool().run(Body{.call = Instances::call_end, .context = &options_},
                            {.call = "dist_instances_close", .uncounted = true});
  }
  InnerPool::destroy(std::exchange(pool_, nullptr));
  instances_->stuck_ends();
  release();
}

// Under the mutex: an instance has got a request, or what it runs is to end now.
void Instances::watch(Seat& at, int64_t end_ns) noexcept {
  if (options_.stuck_ns == 0 || end_ns == 0) return;
  const int64_t stuck_at = deadline_after(end_ns, options_.stuck_ns);
  if (at.stuck_at != 0 && at.stuck_at <= stuck_at) return;
  at.stuck_at = stuck_at;
  // Seldom: later requests have later deadlines.
  if (watched_until_ != 0 && watched_until_ <= stuck_at) return;
  watched_until_ = stuck_at;
  helpers_.deadline_changed();
}

// Under the mutex: what an instance runs has been told to end. Not the time: the host's clock is not called in a signal.
void Instances::watch_told(Seat& at) noexcept {
  if (options_.stuck_ns == 0 || at.current->unlimited) return;
  at.told = true;
  helpers_.deadline_changed();
}

// Replaces the threads of those that are stuck, and says when to look again; 0: when watch() says so.
int64_t Instances::replace_stuck() noexcept {
  for (;;) {
    int stuck = -1;
    {
      const std::lock_guard lock(mutex_);
      const int64_t now_ns = options_.stuck_ns == 0 ? 0 : host_.now_ns();
      int64_t next_ns = 0;
      for (int rank = 0; rank < num_instances() && stuck < 0; ++rank) {
        Seat& at = seat(rank);
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

namespace {

// What takes memory, before anything is decided.
struct Replacement {
  Stuck* stuck = nullptr;
  InnerPool* pool = nullptr;

  ~Replacement() {
    if (stuck != nullptr) stuck->release();
    InnerPool::destroy(pool);
  }
};

}  // namespace

Status Instances::prepare(int rank, Stuck** out_stuck, InnerPool** out_pool) noexcept {
  Options options;
  {
    const std::lock_guard lock(mutex_);
    options = options_;
  }
  try {
    *out_stuck = make_counted<Stuck>(memory(), *this, options).take();
    return pool_.instance(LocalReplica{rank}, out_pool);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

// Under the mutex: why the request that an instance runs ends now.
ErrorRecord Instances::why_stuck(int rank, const Request& request) const noexcept {
  ErrorRecord why;
  const bool overdue = request.deadline_ns != 0 && host_.now_ns() >= request.deadline_ns;
  const bool cancelled = request.cancel_asked.load(std::memory_order_relaxed) ||
                         (request.cancel_object() != nullptr && request.cancel_object()->signalled());
  why.code = overdue && !cancelled ? DIST_DEADLINE_EXCEEDED : DIST_CANCELLED;
  char what[128] = "the request was cancelled";
  if (overdue && !cancelled) {
    std::snprintf(what, sizeof what, "the request's deadline of %s was over",
                  DurationText(request.timeout_ns()).text);
  }
  std::snprintf(why.message, sizeof why.message,
                "%s, and %s later its function had not returned on replica %d, which got another thread",
                what, DurationText(options_.stuck_ns).text, pool_.name_of(rank));
  why.culprit.replica = GlobalReplica{pool_.name_of(rank)};
  copy_text(why.expected, "a function that returns when dist_replica_check() says so");
  copy_text(why.received, "still inside its function");
  copy_text(why.hint, "what the function waits for: it holds its thread, and what it uses, until it returns");
  return why;
}

void Instances::replace(int rank) noexcept {
  Replacement made;
  const Status prepared = prepare(rank, &made.stuck, &made.pool);
  Seat& at = seat(rank);
  Request* request = nullptr;
  ErrorRecord why;
  Status started = kOk;
  int32_t replaced = 0;
  {
    const std::lock_guard lock(mutex_);
    if (at.current == nullptr || at.stuck_at == 0 || at.stuck_at > host_.now_ns()) return;
    at.stuck_at = 0;
    if (prepared.ok() && replaced_ < options_.max_replaced) {
      made.stuck->take(at.pool);
      at.stay->stuck = made.stuck;
      // release: with that. acquire: with what the thread has recorded.
      uint32_t in = Stay::kIn;
      if (!at.stay->call.compare_exchange_strong(in, Stay::kLeft, std::memory_order_acq_rel)) {
        // It is about to begin, or has returned just now.
        at.stuck_at = deadline_after(host_.now_ns(), options_.stuck_ns);
        return;
      }
      made.stuck = nullptr;
      at.pool->pool().give_up();
      at.pool = std::exchange(made.pool, nullptr);
      why = why_stuck(rank, *at.current);
      request = std::exchange(at.current, nullptr);
      replaced = ++replaced_;
      ++replaced_ever_;
      ++stuck_;
      at.stay = nullptr;
      at.ready = at.attended = false;
      at.awaited = true;
      at.failure = DIST_OK;
      at.inside.store(false, std::memory_order_release);
      record_left(rank, *request, why.code);
      // Under the mutex, where no run begins: its thread comes here first.
      started = pool_.replace_thread(LocalReplica{rank});
      if (!started.ok()) {
        at.failure = started.code();
        at.awaited = false;
      }
      queue_.take_no_part(rank);
      dispatch();
    }
  }
  if (request == nullptr) {
    host_.log(DIST_LOG_WARNING,
              "a request's function has not returned on replica %d, which gets no other thread: %s",
              pool_.name_of(rank), prepared.ok() ? "max_replaced is reached" : last_error().message);
    return;
  }
  request->end(Status(why.code), &why);
  settled_.advance();
  host_.log(DIST_LOG_WARNING, "a request's function has not returned on replica %d, which %s (%d so far)",
            pool_.name_of(rank),
            started.ok() ? "gets another thread" : "is lost: no other thread could be made", replaced);
}

// What its thread would have recorded.
void Instances::record_left(int rank, const Request& request, dist_status status) noexcept {
  Recorder& recorder = pool_.recorder()[LocalReplica{rank}];
  const uint64_t begun = recorder.run_began();
  recorder.end_run(status);
  recorder.end_request();
  count_times(seat(rank), request.accepted_at, begun);
  count_end(seat(rank), request, status);
}

}  // namespace dist
