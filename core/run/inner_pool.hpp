// SPDX-License-Identifier: Apache-2.0
// A ReplicaPool with its own group and wait graph, nested in a strategy's pool. It has one of three purposes:
// - runs that a merge function starts while the strategy's replicas wait;
// - runs on the logical devices of one replica;
// - requests on a single replica.
#pragma once

#include <optional>

#include "core/base/memory.hpp"
#include "core/comm/group.hpp"
#include "core/comm/wait_graph.hpp"
#include "core/run/replica_pool.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class InnerPool {
 public:
  // `options` are passed on, except for the recorder. Throws std::bad_alloc and then leaves nothing behind.
  static Status create(Memory& memory, const WaitPolicy& policy, const Host& host,
                       ReplicaPool::Options options, InnerPool** out);
  // No replica may be running.
  static void destroy(InnerPool* pool) noexcept;

  ReplicaPool& pool() noexcept { return pool_; }

 private:
  InnerPool(Memory& memory, const WaitPolicy& policy, const Host& host, ReplicaPool::Options options);
  ~InnerPool() = default;
  std::optional<FlightRecorder>& own_recorder(Memory& memory, const ReplicaPool::Options& options);

  Memory& memory_;
  WaitGraph wait_graph_;
  Group group_;
  std::optional<FlightRecorder> recorder_;  // empty if it uses the recorder of the other pool
  ReplicaPool pool_;
};

}  // namespace dist
