// SPDX-License-Identifier: Apache-2.0
#include "core/serve/withdrawals.hpp"

#include <cstdio>

#include "core/base/text.hpp"

namespace dist {
namespace {

ErrorRecord record_of(dist_status code) noexcept {
  ErrorRecord record;
  record.code = code;
  return record;
}

}  // namespace

ErrorRecord overdue_in_queue(const Request& request) noexcept {
  ErrorRecord why = record_of(DIST_DEADLINE_EXCEEDED);
  std::snprintf(why.message, sizeof why.message,
                "the request's deadline of %s expired before an instance was free",
                DurationText(request.timeout_ns()).text);
  copy_text(why.hint, "Send fewer requests, use more replicas, or give a longer `timeout_ns`."_m);
  return why;
}

// Ends a request whose function was never called.
void Withdrawals::end_unbegun(Request& request, const ErrorRecord& why) noexcept {
  if (!request.unlimited) tally_.count_unbegun(why.code);
  request.end(Status(why.code), &why, tally_.elsewhere());
}

int64_t Withdrawals::end_overdue() noexcept {
  const int64_t next_ns = end_overdue_requests();
  const int64_t items_ns = batchers_.tend();
  return next_ns == 0 || (items_ns != 0 && items_ns < next_ns) ? items_ns : next_ns;
}

int64_t Withdrawals::end_overdue_requests() noexcept {
  for (;;) {
    Request* over = nullptr;
    int64_t next_ns = 0;
    {
      const std::lock_guard lock(dispatcher_.mutex());
      over = dispatcher_.withdraw_overdue(&next_ns);
    }
    if (over == nullptr) return next_ns;
    end_unbegun(*over, overdue_in_queue(*over));
  }
}

void Withdrawals::cancel_in_signal(Request& request, const char* reason) noexcept {
  {
    const std::lock_guard lock(dispatcher_.mutex());
    request.cancel_asked.store(true, std::memory_order_relaxed);
    // If it is running, its run is linked to the cancel object as well.
    if (!request.queued) {
      if (Instance* const at = dispatcher_.running(request); at != nullptr) dispatcher_.watch().told(*at);
      return;
    }
    dispatcher_.withdraw(request);
  }
  ErrorRecord why = record_of(DIST_CANCELLED);
  std::snprintf(why.message, sizeof why.message, "the request was cancelled before it started: %.900s",
                reason);
  tally_.count_unbegun(why.code);
  request.end_in_signal(why);
}

void Withdrawals::cancel(Request& request) noexcept {
  {
    const std::lock_guard lock(dispatcher_.mutex());
    if (request.ended()) return;
    // seq_cst: either its run sees this after it has begun, or this thread finds it running below.
    request.cancel_asked.store(true, std::memory_order_seq_cst);
    if (!request.queued) {
      Instance* const at = dispatcher_.running(request);
      if (at == nullptr) return;
      at->pool->pool().cancel("`dist_request_cancel()`"_m);
      dispatcher_.watch().told(*at);
      return;
    }
    dispatcher_.withdraw(request);
  }
  ErrorRecord why = record_of(DIST_CANCELLED);
  copy_text(why.message, "the request was cancelled before it started: `dist_request_cancel()`"_m);
  end_unbegun(request, why);
}

void Withdrawals::end_queued(const ErrorRecord& why) noexcept {
  for (;;) {
    RequestQueue::Entry* entry = nullptr;
    {
      const std::lock_guard lock(dispatcher_.mutex());
      entry = dispatcher_.queue().any();
      if (entry == nullptr) {
        dispatcher_.dispatch();
        return;
      }
      dispatcher_.queue().withdraw(*entry);
    }
    end_unbegun(static_cast<Request&>(*entry), why);
  }
}

void Withdrawals::end_waiting(const ErrorRecord& why) noexcept {
  // First: while items wait, their batcher queues another step in place of each that is ended.
  batchers_.end_all(why);
  end_queued(why);
}

void Withdrawals::cancel_all(const char* reason) noexcept {
  ErrorRecord why = record_of(DIST_CANCELLED);
  // First, as in end_waiting().
  std::snprintf(why.message, sizeof why.message, "the item was cancelled: %s", reason);
  batchers_.end_all(why);
  std::snprintf(why.message, sizeof why.message, "the request was cancelled before it started: %s", reason);
  end_queued(why);
  dispatcher_.cancel_running(reason);
}

}  // namespace dist
