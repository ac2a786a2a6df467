// SPDX-License-Identifier: Apache-2.0
// Opens and closes the instances. The phases are those of Lifecycle.
//
// Invariant: one thread at a time changes the phase, with the lock of Lifecycle. Only shut_down() ends the phases
// kOpening and kOpen without it.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/serve/batcher_list.hpp"
#include "core/serve/helpers.hpp"
#include "core/serve/idle_replicas.hpp"
#include "core/serve/replacements.hpp"
#include "core/serve/request_supply.hpp"
#include "core/serve/tally.hpp"

namespace dist {

class Opening {
 public:
  Opening(Serving& serving, IdleReplicas& idle, const Tally& tally, const BatcherList& batchers,
          const RequestSupply& supply, Helpers& helpers, Replacements& replacements) noexcept
      : serving_(serving),
        idle_(idle),
        tally_(tally),
        batchers_(batchers),
        supply_(supply),
        helpers_(helpers),
        replacements_(replacements) {}
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  Status open(const InstancesOptions& options);
  // Opens them with the default options if nobody has.
  Status open_first(const char* call);
  Status close(int64_t timeout_ns) noexcept;
  // Checks that no request, handle or host thread is left, and closes open instances.
  Status end_idle(const char* call) noexcept;
  // Ends all requests, waits for their functions until the deadline (0: no limit), and destroys the state of
  // the instances whose functions have returned. Accepts nothing from now on, and fails runs that would have
  // to wait.
  void shut_down(const char* call, int64_t deadline_ns) noexcept;

 private:
  template <class Holds>
  bool wait_until(int64_t deadline_ns, Holds&& holds) noexcept;
  Status check_threads(const char* call) const noexcept;
  Status check_watch() noexcept;
  Status check_all_out() noexcept;
  bool all_out() const noexcept;
  bool all_delivered() const noexcept;
  std::size_t undelivered() const noexcept;
  Status open_with(const InstancesOptions& options);
  Status await_ready() noexcept;
  void enter(Phase phase) noexcept;
  void end_states(int64_t deadline_ns) noexcept;

  Serving& serving_;
  IdleReplicas& idle_;
  const Tally& tally_;
  const BatcherList& batchers_;
  const RequestSupply& supply_;
  Helpers& helpers_;
  Replacements& replacements_;
  bool let_ = false;  // the pool knows the idle handler
};

// Fails if the calling thread must not wait for a request because the request may need that thread's replica.
Status check_wait(const ReplicaPool& pool, const char* call) noexcept;

}  // namespace dist
