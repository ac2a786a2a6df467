// SPDX-License-Identifier: Apache-2.0
// Wait graph: records which replica sleeps in which rounds, so that replicas that wait for each other in
// different groups are found at once instead of at the deadline.
//
// A round needs all of its members. A sleeping replica wakes when one of the rounds it waits for ends, and it
// enters no other round before that. A replica is deadlocked if each of these rounds lacks a deadlocked
// replica; the members of such a set never wake, and their waits contain a cycle. Only replicas that are
// about to sleep search for cycles, so the steady path pays nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/signature.hpp"
#include "dist/types.h"

namespace dist {

// How reports name members.
class MemberNames {
 public:
  // A member's rank among all replicas, as used by `naming`.
  virtual int local_rank(int rank) const noexcept = 0;
  virtual Naming naming() const noexcept = 0;

  MemberName name(int rank) const noexcept { return naming().name(local_rank(rank)); }

 protected:
  ~MemberNames() = default;
};

// A place where replicas wait for each other, such as a group. Local ranks are those of the wait graph.
class WaitPlace : public MemberNames {
 public:
  virtual int size() const noexcept = 0;
  virtual int32_t number() const noexcept = 0;
  // Whether a member has arrived at a round that has not ended.
  virtual bool arrived(int rank, uint32_t round) const noexcept = 0;
  // The member's signature, and the round's number in the run.
  virtual const Signature& signature(int rank, uint32_t round, int64_t* out_sequence) const noexcept = 0;
  // Ends the rounds. If it returns true, the caller must supply the report with post().
  virtual bool claim() noexcept = 0;
  virtual void post(const ErrorRecord& report) noexcept = 0;

  // Belongs to the graph and its mutex: the number of replicas that sleep here for a single round.
  int sleeping_here = 0;

 protected:
  ~WaitPlace() = default;
};

// One round that a replica sleeps for.
struct Wait {
  WaitPlace* where;
  int rank;        // the replica's rank there
  uint32_t round;  // 0: the place has only one round
};

// The rounds that a replica sleeps for; it wakes when any of them ends.
class Waits {
 public:
  virtual std::size_t size() const noexcept = 0;
  virtual Wait at(std::size_t i) const noexcept = 0;

 protected:
  ~Waits() = default;
};

class WaitGraph {
 public:
  // Throws std::bad_alloc.
  WaitGraph(Memory& memory, int num_replicas);
  ~WaitGraph();
  WaitGraph(const WaitGraph&) = delete;
  WaitGraph& operator=(const WaitGraph&) = delete;

  // Call this when a replica is about to sleep. If that closes a cycle, all rounds on the cycle fail.
  void block(int local_rank, const Waits& waits) noexcept;
  void unblock(int local_rank) noexcept;
  // Whether any replica sleeps.
  bool anyone_blocked() noexcept;

 private:
  struct Blocked {
    const Waits* waits = nullptr;
    // Written by the search.
    bool hopeless = false;
    uint32_t searched = 0;  // the latest search that has visited this replica
    // The replica that waits for this one, and the round in which it does.
    int32_t from = -1;
    std::size_t via = 0;
  };

  // Calls visit(local_rank) for each member that has not arrived at the round, until it returns false.
  // Returns true if it never did.
  template <class Visit>
  static bool all_missing(const Wait& wait, Visit&& visit) noexcept {
    for (int rank = 0; rank < wait.where->size(); ++rank) {
      if (!wait.where->arrived(rank, wait.round) && !visit(wait.where->local_rank(rank))) return false;
    }
    return true;
  }
  void count(const Waits& waits, int more) noexcept {
    num_blocked_ += more;
    if (waits.size() == 1) waits.at(0).where->sleeping_here += more;
  }
  // Whether all sleeping replicas sleep in rounds of one group at which they have arrived. (A replica that
  // waits for a work, whose round is 0, may not have arrived.)
  bool all_sleep_at(const Waits& waits) const noexcept {
    return waits.size() == 1 && waits.at(0).round != 0 && waits.at(0).where->sleeping_here == num_blocked_;
  }
  // Whether a replica that is missing in a round sleeps. If it still appears in an earlier round of the same
  // place, that round is complete and the replica has been woken.
  bool sleeps(int32_t missing, const Wait& round) const noexcept {
    const Waits* const waits = blocked_[missing].waits;
    if (waits == nullptr || waits->size() != 1) return waits != nullptr;
    const Wait its = waits->at(0);
    return its.where != round.where || its.round == round.round;
  }
  template <class Awake>
  bool may_wake(int local_rank, Awake&& awake) const noexcept;
  bool is_hopeless(int start) noexcept;
  bool find_cycle(int start) noexcept;
  // Overwrites stack_.
  ErrorRecord describe_cycle(int last) noexcept;

  // Size of the arrays for each replica.
  static constexpr std::size_t kBytesEach = sizeof(Blocked) + sizeof(WaitPlace*) + sizeof(int32_t);

  Memory& memory_;
  const int num_replicas_;
  std::mutex mutex_;
  int num_blocked_ = 0;
  uint32_t search_ = 0;         // number of searches
  Blocked* blocked_ = nullptr;  // by local rank
  WaitPlace** claimed_ = nullptr;
  int32_t* stack_ = nullptr;
};

// The replica counts as asleep while this object exists.
class BlockedHere {
 public:
  BlockedHere(WaitGraph* graph, int local_rank, const Waits& waits) noexcept
      : graph_(graph), local_rank_(local_rank) {
    if (graph_ != nullptr) graph_->block(local_rank, waits);
  }
  ~BlockedHere() {
    if (graph_ != nullptr) graph_->unblock(local_rank_);
  }
  BlockedHere(const BlockedHere&) = delete;
  BlockedHere& operator=(const BlockedHere&) = delete;

 private:
  WaitGraph* const graph_;
  const int local_rank_;
};

// A sleep for a single round.
class OneWait final : public Waits {
 public:
  OneWait(WaitPlace& where, int rank, uint32_t round) noexcept : wait_{&where, rank, round} {}
  std::size_t size() const noexcept override { return 1; }
  Wait at(std::size_t) const noexcept override { return wait_; }

 private:
  const Wait wait_;
};

}  // namespace dist
