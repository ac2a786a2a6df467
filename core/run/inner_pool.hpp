// SPDX-License-Identifier: Apache-2.0
// A ReplicaPool with its own group and wait graph, nested in a strategy's pool. It has one of three purposes:
// - runs that a merge function starts while the strategy's replicas wait;
// - runs on the logical devices of one replica;
// - requests on a single replica.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/memory.hpp"
#include "core/comm/group.hpp"
#include "core/comm/wait_graph.hpp"
#include "core/run/current.hpp"
#include "core/run/nesting.hpp"
#include "core/run/replica_pool.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class InnerPool final : public NestedRuns {
 public:
  // `settings` are passed on, except for the recorder. Throws std::bad_alloc and then leaves nothing behind.
  static Status create(Memory& memory, const WaitPolicy& policy, const Host& host, PoolSettings settings,
                       InnerPool** out);
  // No replica may be running.
  static void destroy(InnerPool* pool) noexcept;

  ReplicaPool& pool() noexcept { return pool_; }

  // ---- Runs inside a merge function ----
  void cancel(const char* reason) noexcept override { pool_.cancel_from_outside(reason); }
  bool is_inside(const Sight& of) const noexcept override { return pool_.is_inside(of); }
  Status check_idle(const char* call, const char* advice) noexcept override {
    return pool_.check_idle(call, advice);
  }
  void refuse_runs(const char* call) noexcept override { pool_.refuse_runs(call); }
  void shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept override {
    pool_.shut_down(deadline_ns, inside, call);
  }

  // ---- Requests ----
  // A request is a run of one function on the calling thread. begin_alone() and call_alone() together do what
  // ReplicaPool::run() does, except for what such a run does not need: the run lock, which only this thread
  // takes, the rounds of the group, which has one member, and the start and end of other members' functions.

  // The variables of the calling thread, which it looks up once.
  struct Caller {
    Current& current = dist::current();
    const uint64_t& failures = failure_count_of_this_thread();
  };
  // Whether the pool's runs need nothing else: neither threads of a budget nor logical devices.
  bool runs_alone() const noexcept { return runs_alone_; }
  // The run can be cancelled from now on.
  void begin_alone(const RunDeadline& deadline) noexcept {
    const bool cancelled = group_.aborted();
    group_.begin_run(deadline);
    // The caller checks next whether the request was cancelled before. The check must not come before the group
    // is clean, because a cancellation has no effect until then.
    if (cancelled) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // `begun` is the time before the call, and *out_ended receives the time after it, both as timestamps of the
  // replica's recorder.
  Status call_alone(const Body& body, const Caller& by, uint64_t begun, uint64_t* out_ended);

 private:
  InnerPool(Memory& memory, const WaitPolicy& policy, const Host& host, PoolSettings settings);
  ~InnerPool() = default;
  void thread_ends(uint64_t failures_before) noexcept;
  Status end_badly(Status status, uint64_t failures_before, uint64_t* out_ended) noexcept;
  Status end_in_full() noexcept;
  std::optional<FlightRecorder>& own_recorder(Memory& memory, const PoolSettings& settings);

  Memory& memory_;
  WaitGraph wait_graph_;
  Group group_;
  std::optional<FlightRecorder> recorder_;  // empty if it uses the recorder of the other pool
  ReplicaPool pool_;
  const bool runs_alone_;
};

}  // namespace dist
