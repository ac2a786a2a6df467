// SPDX-License-Identifier: Apache-2.0
// Wait graph: which replica sleeps in which meeting, so that replicas which wait for each other in different
// groups are found at once.
//
// A meeting needs all of its members. A replica that sleeps in one comes to no other until that one is over:
// if it is missed elsewhere by a replica for which, in turn, its own meeting waits, nobody ever comes. Any
// cycle is such a deadlock. Only replicas that are about to sleep look, so the steady path knows nothing of
// this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/statement.hpp"
#include "dist/types.h"

namespace dist {

// Where replicas wait for each other.
class Gathering {
 public:
  virtual int size() const noexcept = 0;
  virtual int32_t number() const noexcept = 0;
  virtual int32_t replica(int rank) const noexcept = 0;
  // Whether a member has come to a meeting that has not ended.
  virtual bool arrived(int rank, uint32_t meeting) const noexcept = 0;
  // What that member came for, and the meeting's number in the run.
  virtual const Statement& statement(int rank, uint32_t meeting, int64_t* out_sequence) const noexcept = 0;
  // Ends the meetings; true: the caller gives the report, by post().
  virtual bool claim() noexcept = 0;
  virtual void post(const ErrorRecord& report) noexcept = 0;

 protected:
  ~Gathering() = default;
};

class WaitGraph {
 public:
  // Throws std::bad_alloc.
  WaitGraph(Memory& memory, int num_replicas);
  ~WaitGraph();
  WaitGraph(const WaitGraph&) = delete;
  WaitGraph& operator=(const WaitGraph&) = delete;

  // Rank `rank` of `where` is about to sleep in a meeting. Where this closes a cycle, all groups on it are
  // condemned.
  void block(Gathering& where, int rank, uint32_t meeting) noexcept;
  void unblock(int32_t replica) noexcept;
  // Whether some replica waits.
  bool anyone_blocked() noexcept;

 private:
  struct Blocked {
    Gathering* where = nullptr;
    int rank = 0;
    uint32_t meeting = 0;
    // Of the search.
    int32_t from = -1;
    uint32_t searched = 0;
  };

  bool find_cycle(int32_t start) noexcept;
  ErrorRecord describe_cycle(int32_t last) const noexcept;

  Memory& memory_;
  const int num_replicas_;
  std::mutex mutex_;
  uint32_t search_ = 0;
  Blocked* blocked_ = nullptr;  // by replica
  int32_t* stack_ = nullptr;
};

// A scope in which a replica sleeps.
class BlockedHere {
 public:
  BlockedHere(WaitGraph* graph, Gathering& where, int rank, uint32_t meeting) noexcept
      : graph_(graph), replica_(where.replica(rank)) {
    if (graph_ != nullptr) graph_->block(where, rank, meeting);
  }
  ~BlockedHere() {
    if (graph_ != nullptr) graph_->unblock(replica_);
  }
  BlockedHere(const BlockedHere&) = delete;
  BlockedHere& operator=(const BlockedHere&) = delete;

 private:
  WaitGraph* const graph_;
  const int32_t replica_;
};

}  // namespace dist
