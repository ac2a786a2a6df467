// SPDX-License-Identifier: Apache-2.0
// InnerPool: a pool beside a strategy's own, with a group, records and threads of its own: of replicas, for
// runs inside merge functions, while the strategy's wait; of one replica's logical devices; or of one replica alone.
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
  // As `options` say, but for the recorder. Throws std::bad_alloc, which leaves nothing behind.
  static Status create(Memory& memory, const WaitPolicy& policy, const Host& host,
                       ReplicaPool::Options options, InnerPool** out);
  // No replica is running.
  static void destroy(InnerPool* pool) noexcept;

  ReplicaPool& pool() noexcept { return pool_; }

 private:
  InnerPool(Memory& memory, const WaitPolicy& policy, const Host& host, ReplicaPool::Options options);
  ~InnerPool() = default;
  std::optional<FlightRecorder>& own_recorder(Memory& memory, const ReplicaPool::Options& options);

  Memory& memory_;
  WaitGraph wait_graph_;
  Group group_;
  std::optional<FlightRecorder> recorder_;  // its own; none: it has that of the other pool
  ReplicaPool pool_;
};

}  // namespace dist
