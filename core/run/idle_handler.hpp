// SPDX-License-Identifier: Apache-2.0
// IdleHandler: the interface of the idle handler, which uses the replicas between runs and returns all of them
// when a run asks for them. core/serve implements it.
//
// All functions are called by the pool. Only take_all() and serve() may block for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/cancel.hpp"
#include "core/base/status.hpp"

namespace dist {

class IdleHandler {
 public:
  // A request for all replicas. It must live until give_back().
  struct Asking {
    const char* call = "";    // the host's function, for messages
    int64_t timeout_ns = 0;   // as passed by the host, for messages
    int64_t deadline_ns = 0;  // of the host's clock; 0: none
    Cancel* cancel = nullptr;
  };

  // Waits until the caller has all replicas, in FIFO order. It keeps them until give_back().
  virtual Status take_all(const Asking& asking) noexcept = 0;
  virtual void give_back() noexcept = 0;
  // The non-blocking form, for host threads that enter one by one. Returns whether they may begin a run now.
  // If not, ReplicaPool::handler_gives() tells them when to ask again; no_longer_asks() withdraws the request.
  virtual bool ask_to_enter() noexcept = 0;
  virtual void no_longer_asks() noexcept = 0;

  // Called on a replica's own thread between runs. Returns when `started` differs from `seen` or `stopping`
  // is set. Returns false if another thread has replaced this one, which must then end.
  virtual bool serve(int rank, const std::atomic<uint32_t>& started, uint32_t seen,
                     const std::atomic<bool>& stopping) = 0;
  // `started` or `stopping` has changed.
  virtual void wake() noexcept = 0;

  // The pool is being destroyed: fails all calls that would have to wait for the replicas.
  virtual void refuse_all() noexcept = 0;
  // Ends the running callbacks, like ReplicaPool::cancel().
  virtual void cancel(const char* reason) noexcept = 0;
  // Whether a host callback is running on the replica.
  virtual bool is_inside(int rank) const noexcept = 0;

 protected:
  ~IdleHandler() = default;
};

}  // namespace dist
