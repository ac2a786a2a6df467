// SPDX-License-Identifier: Apache-2.0
// Instances: the replicas of one strategy as workers that each take requests from a queue, between the runs
// that use all of them.
//
// The replica threads stay what they are. Between runs the pool calls IdleReplicas::serve() on them; they execute
// requests there and return when a run has been published. Each instance has a pool with one replica on that thread
// (InnerPool), and a request executes as a run of that pool. Ending a request therefore works like ending a run, and
// affects nothing else.
//
// This class connects the classes that do the work. Each knows only those above it:
//
// | class | does |
// |---|---|
// | Lifecycle | the phase: open, closing, closed |
// | Tally, AnyCompletion | count futures, and wake threads that wait for one of several |
// | BatcherList, RequestSupply | keep the batchers and unused requests |
// | Dispatcher | gives requests and runs the instances that they wait for |
// | Withdrawals | ends requests that wait |
// | Replacements | replaces threads of stuck functions |
// | Helpers | the threads for deadlines and for `done` callbacks |
// | IdleReplicas, InstanceThread | serve on the replicas' threads |
// | Opening | opens and closes |
//
// Invariant: every accepted future is counted once when it is accepted, and twice when it completes (Endings). So
// closing can wait until all have been delivered.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/any_completion.hpp"
#include "core/serve/batcher_list.hpp"
#include "core/serve/dispatcher.hpp"
#include "core/serve/helpers.hpp"
#include "core/serve/idle_replicas.hpp"
#include "core/serve/instances_options.hpp"
#include "core/serve/lifecycle.hpp"
#include "core/serve/opening.hpp"
#include "core/serve/replacements.hpp"
#include "core/serve/request.hpp"
#include "core/serve/request_supply.hpp"
#include "core/serve/tally.hpp"
#include "core/serve/withdrawals.hpp"

namespace dist {

class Instances final : public Counted {
 public:
  // The pool must outlive all use of the instances, until detach().
  Instances(Memory& memory, ReplicaPool& pool);
  ~Instances() override;

  Status open(const InstancesOptions& options) { return opening_.open(options); }
  // Opens them with the default options if nobody has.
  Status open_once(const char* call) {
    if (const Phase now = lifecycle_.phase(); now != Phase::kNever && now != Phase::kOpening) [[likely]]
      return kOk;
    return opening_.open_first(call);
  }
  Status close(int64_t timeout_ns) noexcept { return opening_.close(timeout_ns); }
  // Makes the calling host thread an instance until close().
  Status serve_here(GlobalReplica replica);

  // *out receives the caller's reference; NULL if the caller wants none.
  Status submit(const Submission& given, Request** out);
  // Counts one more item that will end; fails if none is accepted now.
  Status accept(const char* call) noexcept;
  void recycle(Request& request) noexcept;

  // ---- For the strategy's end ----
  Status end_idle(const char* call) noexcept { return opening_.end_idle(call); }
  void shut_down(const char* call, int64_t deadline_ns) noexcept { opening_.shut_down(call, deadline_ns); }
  void refuse_all() noexcept { idle_.refuse_all(); }
  // The pool is gone; handles of the host may still exist.
  void detach() noexcept;
  // Whether functions are still running on threads that have been replaced.
  bool has_stuck() const noexcept { return replacements_.stuck() != 0; }
  void stop_clock() noexcept { helpers_.clock().stop(); }
  // FAILED_PRECONDITION on the thread that calls the host's dist_done_fn.
  Status check_teller(const char* call) const noexcept { return helpers_.teller().check(call); }

  // ---- Parts ----
  ReplicaPool& pool() const noexcept { return serving_.pool; }
  const Host& host() const noexcept { return host_; }
  // Whether instances and threads that wait for them have a CPU each; see spin_eagerly().
  bool spins_eagerly() const noexcept { return serving_.spins_eagerly; }
  Lifecycle& lifecycle() noexcept { return lifecycle_; }
  Tally& tally() noexcept { return tally_; }
  AnyCompletion& any() noexcept { return any_; }
  BatcherList& batchers() noexcept { return batchers_; }
  Dispatcher& dispatcher() noexcept { return dispatcher_; }
  Withdrawals& withdrawals() noexcept { return withdrawals_; }
  Helpers& helpers() noexcept { return helpers_; }

  // ---- Looking inside ----
  struct Counts {
    uint64_t accepted;
    uint64_t queued;
    uint64_t running;
    std::array<uint64_t, kRefusals> refused;
    std::array<uint64_t, kRequestEnds> ended;
    uint64_t replaced;
    uint64_t stuck;
  };
  Counts counts() const noexcept;
  InstancesOptions options() const noexcept;

 private:
  Status refusal(const char* call) const noexcept;

  const Host host_;
  InstancesOptions options_;  // changes only while they are closed
  Lifecycle lifecycle_;
  Tally tally_;
  AnyCompletion any_;
  BatcherList batchers_;
  Dispatcher dispatcher_;
  Withdrawals withdrawals_;
  Replacements replacements_;
  Helpers helpers_;
  RequestSupply supply_;
  Serving serving_;
  IdleReplicas idle_;
  Opening opening_;
};

}  // namespace dist
