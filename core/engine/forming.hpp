// SPDX-License-Identifier: Apache-2.0
// How the running workers form a new generation of their cluster. Worker 0 waits for them and decides who
// takes part. A worker that arrives too late takes part in the next generation.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace dist {

// By their numbers in the cluster.
inline constexpr int kMostFormingWorkers = 256;
using WorkerSet = std::bitset<kMostFormingWorkers>;

inline constexpr uint32_t kNoGeneration = UINT32_MAX;

// Which job a worker is of: worker 0, in one start of it, through all generations. All 0: none yet.
using JobIdentity = std::array<std::byte, 16>;

// Where a worker comes from that forms a generation.
struct CameFrom {
  uint32_t generation = kNoGeneration;
  JobIdentity job{};
};

struct Forming {
  uint32_t generation = 1;  // worker 0's to say: of the one to come
  WorkerSet before;         // worker 0: who took part in the one before
  WorkerSet expected;       // worker 0 waits for these,
  int64_t window_ns = 0;    // so long; then it goes on with those who have come,
  int least = 1;            // if they are so many
  int64_t timeout_ns = 0;   // when to give up; 0: never
  const std::atomic<bool>* cancelled = nullptr;
};

struct Formed {
  uint32_t generation = 0;
  WorkerSet members;
  WorkerSet stayed;  // of these, who took part in the one before
};

// What a worker knows of the others as it leaves them to form another generation.
struct Parting {
  bool met = false;     // it has been one of them: worker 0 has let it in
  WorkerSet gone;       // who was lost, or has ended; not who has left to form one, too
  WorkerSet newcomers;  // worker 0: who has asked to be let in, and could not be
  JobIdentity job{};    // that it has been in
};

}  // namespace dist
