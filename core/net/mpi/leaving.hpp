// SPDX-License-Identifier: Apache-2.0
// Leaving: how the ranks of a job in which this module has initialized MPI decide whether to finalize it when
// they exit.
//
// Finalizing waits for all ranks. It never returns if one of them has died and the launcher lets the others
// continue. So each rank asks rank 0 for permission, which rank 0 grants when all ranks have asked. Until
// then, the ranks ask each other whether they are alive. If a rank does not answer for a lease, no rank
// finalizes MPI. A rank that has failed waits for the others for at most a lease: if it then exits without
// finalizing MPI, the launcher ends the job.
//
// All functions are called by the job's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/net/mpi/frame.hpp"

namespace dist::mpi_link {

class LeavingUser {
 public:
  virtual void send(int rank, Kind kind, uint64_t value) noexcept = 0;

 protected:
  ~LeavingUser() = default;
};

class Leaving {
 public:
  enum class Decision { kNone, kFinalize, kAbandon };

  // Throws std::bad_alloc.
  Leaving(LeavingUser& user, int rank, int size)
      : user_(user), rank_(rank), ranks_(rank == 0 ? static_cast<std::size_t>(size) : 1) {}

  // The time between two calls of tick().
  static int64_t tick_ns(int64_t lease_ns) noexcept { return lease_ns / kTicks; }

  // This rank wants to leave. `failed`: its exit status is not 0.
  void begin(bool failed) noexcept;
  // A message of one of the kinds from kAsk on has arrived.
  void take(int from, const Head& head) noexcept;
  // A tick has passed. Ticks are counted instead of comparing times, so that a job that was stopped as a
  // whole does not give up.
  void tick() noexcept;
  Decision decision() const noexcept { return decision_; }

 private:
  static constexpr int kTicks = 8;
  struct Rank {
    bool leaves = false;
    int silent = 0;  // ticks since its latest message
  };
  void decide_if_complete() noexcept;
  void decide(bool all) noexcept;
  // The state of a rank that this one watches: rank 0 watches all others, and they watch rank 0.
  Rank& at(int rank) noexcept { return ranks_[rank_ == 0 ? static_cast<std::size_t>(rank) : 0]; }

  LeavingUser& user_;
  const int rank_;
  std::vector<Rank> ranks_;
  bool begun_ = false;
  bool failed_ = false;
  int waited_ = 0;  // ticks since begin()
  Decision decision_ = Decision::kNone;
};

}  // namespace dist::mpi_link
