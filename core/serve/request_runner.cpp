// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request_runner.hpp"

#include "core/base/text.hpp"
#include "core/serve/stuck.hpp"
#include "core/serve/withdrawals.hpp"

namespace dist {

struct RequestRunner::Asked {
  const RequestRunner& runner;
  Request& request;
  Stay& stay;
};

// Once the function was abandoned, its request belongs to another thread or to nobody.
dist_status RequestRunner::call(Replica& replica, const Body& self) {
  const auto& asked = *static_cast<const Asked*>(self.context);
  const Request& request = asked.request;
  // A cancellation that came before the run's groups had begun.
  if (request.cancel_asked.load(std::memory_order_seq_cst)) asked.runner.cancel_late(request, replica.pool());
  const Body body = request.body();
  struct Inside {
    Inside(Stay& of, Replica& on) noexcept : stay(of), replica(on) {
      // release: publishes what this thread has recorded to the thread that may abandon it.
      stay.call.store(Stay::kIn, std::memory_order_release);
    }
    ~Inside() {
      uint32_t in = Stay::kIn;
      if (!stay.call.compare_exchange_strong(in, Stay::kOut, std::memory_order_acq_rel))
        replica.record_in(stay.stuck->recorder());
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Stay& stay;
    Replica& replica;
  };
  const Inside inside(asked.stay, replica);
  return body.call(replica, body);
}

void RequestRunner::cancel_late(const Request& request, ReplicaPool& pool) const noexcept {
  char reason[kReasonBytes];
  dispatcher_.copy_reason(request, reason);
  pool.cancel(reason);
}

// Whether the request's deadline has expired. `now` is a stamp. The time counter, which is faster than the clock,
// shows it if the request has waited only for a small part of its timeout. The host's own clock may run at another
// rate.
inline bool RequestRunner::is_overdue(const Request& request, uint64_t now) const noexcept {
  constexpr uint64_t kMostNsPerTick = 64;  // counters run at 16 MHz or more, those of x86 at 1 GHz or more
  if (host_.clock_fn == nullptr && !request.unlimited &&
      now - request.accepted_at < static_cast<uint64_t>(request.timeout_ns()) / kMostNsPerTick)
    return false;
  return host_.now_ns() >= request.deadline_ns;
}

[[gnu::noinline, gnu::cold]] Status RequestRunner::refuse_overdue(const Request& request) const noexcept {
  return fail(overdue_in_queue(request));
}

inline Status RequestRunner::run(Instance& at, Stay& stay, Request& request) {
  Recorder& recorder = *at.recorder;
  const uint64_t begun = recorder.now();
  if (request.deadline_ns != 0 && is_overdue(request, begun)) [[unlikely]]
    return refuse_overdue(request);
  // Cancel objects, budgets, logical devices and the replacement of stuck threads need more than a call.
  if (request.cancel_object() != nullptr || dispatcher_.watch().on() || !at.pool->runs_alone()) [[unlikely]]
    return run_in_full(at, stay, request);
  const bool of_batcher = request.unlimited;
  const uint64_t accepted = request.accepted_at;
  if (!of_batcher) recorder.begin_request(request.id, accepted);
  at.inside.store(true, std::memory_order_relaxed);
  at.pool->begin_alone({request.deadline_ns, request.timeout_ns()});
  // A cancellation that came before the group was clean.
  if (request.cancel_asked.load(std::memory_order_seq_cst)) [[unlikely]]
    cancel_late(request, at.pool->pool());
  uint64_t ended = begun;
  const Status status = at.pool->call_alone(request.body(), stay.caller, begun, &ended);
  at.inside.store(false, std::memory_order_release);
  if (!of_batcher) {
    recorder.end_request();
    at.count_times(accepted, begun, ended);
  }
  return status;
}

[[gnu::noinline]] Status RequestRunner::run_in_full(Instance& at, Stay& stay, Request& request) {
  if (const Cancel* const by = request.cancel_object(); by != nullptr && by->signalled())
    return fail(DIST_CANCELLED, "the request was cancelled before it started: %s", by->reason());
  Recorder& recorder = *at.recorder;
  const bool of_batcher = request.unlimited;
  const uint64_t accepted = of_batcher ? 0 : request.accepted_at;
  const uint64_t begun = recorder.now();
  if (!of_batcher) recorder.begin_request(request.id, accepted);
  Asked asked{*this, request, stay};
  at.inside.store(true, std::memory_order_relaxed);
  const Status status =
      at.pool->pool().run(Body{.call = call, .context = &asked}, {.timeout_ns = request.timeout_ns(),
                                                                  .cancel = request.cancel_object(),
                                                                  .call = "dist_submit",
                                                                  .deadline_ns = request.deadline_ns,
                                                                  .cancel_asked = &request.cancel_asked});
  if (stay.left()) return status;
  at.inside.store(false, std::memory_order_release);
  recorder.end_request();
  if (!of_batcher) at.count_times(accepted, begun, recorder.now());
  return status;
}

Request* RequestRunner::perform(Instance& at, Stay& stay, Request& request) {
  const Status status = run(at, stay, request);
  if (memory_.forked() || stay.left()) return nullptr;
  at.count_end(request, status.code());
  Request* next = nullptr;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    next = dispatcher_.come(at);
  }
  // It was prefetched itself when it was second.
  if (next != nullptr) next->prefetch_behind();
  if (request.is_plain() && !request.unlimited) [[likely]] {
    at.endings.own_completed();
    supply_.put_back(request);
    lifecycle_.delivered(at.endings);
  } else {
    request.end(status, status.ok() ? nullptr : &last_error(), at.endings);
  }
  return next;
}

}  // namespace dist
