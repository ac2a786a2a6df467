// SPDX-License-Identifier: Apache-2.0
// Ends requests and items early: because they were cancelled, their deadline has expired, or the instances close.
//
// | the request is | it ends |
// |---|---|
// | queued | here; its function is never called |
// | running | on its instance, which is told to end it |
//
// Invariant: the thread that withdraws a request from the queue completes it, after it has released the mutex.
#pragma once

#include <cstdint>

#include "core/base/host.hpp"
#include "core/base/status.hpp"
#include "core/serve/batcher_list.hpp"
#include "core/serve/dispatcher.hpp"
#include "core/serve/tally.hpp"

namespace dist {

class Withdrawals {
 public:
  Withdrawals(Dispatcher& dispatcher, BatcherList& batchers, Tally& tally) noexcept
      : dispatcher_(dispatcher), batchers_(batchers), tally_(tally) {}
  Withdrawals(const Withdrawals&) = delete;
  Withdrawals& operator=(const Withdrawals&) = delete;

  // For dist_request_cancel().
  void cancel(Request& request) noexcept;
  // For the signal of its cancel object.
  void cancel_in_signal(Request& request, const char* reason) noexcept;
  // Ends the queued requests and items whose deadline has expired. Returns the next deadline; 0: none.
  int64_t end_overdue() noexcept;
  // Ends everything that waits, because no instance will serve it.
  void end_waiting(const ErrorRecord& why) noexcept;
  // Cancels everything.
  void cancel_all(const char* reason) noexcept;

 private:
  void end_unbegun(Request& request, const ErrorRecord& why) noexcept;
  void end_queued(const ErrorRecord& why) noexcept;
  int64_t end_overdue_requests() noexcept;

  Dispatcher& dispatcher_;
  BatcherList& batchers_;
  Tally& tally_;
};

// The report for a request whose deadline expired before an instance was free.
ErrorRecord overdue_in_queue(const Request& request) noexcept;

}  // namespace dist
