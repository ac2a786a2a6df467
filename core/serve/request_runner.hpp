// SPDX-License-Identifier: Apache-2.0
// Runs the requests of an instance on the thread that serves it.
//
// | a request | runs as |
// |---|---|
// | whose deadline has expired | nothing: it fails |
// | that needs no more than a call | InnerPool::call_alone() |
// | with a cancel object, a budget, logical devices or replaceable threads | a run of the instance's pool |
//
// Invariant: after a request that was abandoned (Stay::left()), neither the request nor the instance is touched.
#pragma once

#include <cstdint>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/serve/dispatcher.hpp"
#include "core/serve/instance.hpp"
#include "core/serve/lifecycle.hpp"
#include "core/serve/request_supply.hpp"

namespace dist {

class RequestRunner {
 public:
  RequestRunner(const Memory& memory, const Host& host, Dispatcher& dispatcher, Lifecycle& lifecycle,
                RequestSupply& supply) noexcept
      : memory_(memory), host_(host), dispatcher_(dispatcher), lifecycle_(lifecycle), supply_(supply) {}
  RequestRunner(const RequestRunner&) = delete;
  RequestRunner& operator=(const RequestRunner&) = delete;

  // Runs the request and returns what the instance runs next. NULL: the instance must check for itself; or this
  // thread was abandoned and must not touch the instance and the request any more.
  Request* perform(Instance& at, Stay& stay, Request& request);

 private:
  struct Asked;
  static dist_status call(Replica& replica, const Body& self);
  Status run(Instance& at, Stay& stay, Request& request);
  Status run_in_full(Instance& at, Stay& stay, Request& request);
  Status refuse_overdue(const Request& request) const noexcept;
  bool is_overdue(const Request& request, uint64_t now) const noexcept;
  void cancel_late(const Request& request, ReplicaPool& pool) const noexcept;

  const Memory& memory_;
  const Host& host_;
  Dispatcher& dispatcher_;
  Lifecycle& lifecycle_;
  RequestSupply& supply_;
};

}  // namespace dist
