// SPDX-License-Identifier: Apache-2.0
// Tenant: who has the replicas between the runs, and gives all of them back when a run asks (core/serve).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/cancel.hpp"
#include "core/base/status.hpp"

namespace dist {

class Tenant {
 public:
  // Who asks for all replicas; it lives until give_back().
  struct Asking {
    const char* call = "";    // the host's function, in messages
    int64_t timeout_ns = 0;   // as the host gave it, for messages
    int64_t deadline_ns = 0;  // of the host's clock; 0: none
    Cancel* cancel = nullptr;
  };

  // Waits until all replicas are the caller's, after those who asked before. They are until give_back().
  virtual Status take_all(const Asking& asking) noexcept = 0;
  virtual void give_back() noexcept = 0;
  // The same for threads of the host's that enter one by one: whether they may begin a run now. If not, they are
  // told by told(), and ask again; or none of them wants to any more.
  virtual bool ask_to_enter() noexcept = 0;
  virtual void no_longer_asks() noexcept = 0;

  // A replica's own thread, between runs: returns when `started` is no longer `seen`, or `stopping`. False: the replica
  // has got another thread meanwhile, and this one is to end.
  virtual bool serve(int rank, const std::atomic<uint32_t>& started, uint32_t seen,
                     const std::atomic<bool>& stopping) = 0;
  // `started` or `stopping` has changed.
  virtual void wake() noexcept = 0;

  // The pool ends: nobody gets all replicas any more who has to wait for them.
  virtual void refuse_all() noexcept = 0;
  // Ends what runs now, as ReplicaPool::cancel().
  virtual void cancel(const char* reason) noexcept = 0;
  // Whether a function of the host's is under way on the replica.
  virtual bool is_inside(int rank) const noexcept = 0;

 protected:
  ~Tenant() = default;
};

}  // namespace dist
