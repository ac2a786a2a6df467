// SPDX-License-Identifier: Apache-2.0
// How the running workers form a new generation of their cluster. Worker 0 waits for them and decides which
// of them take part. A worker that arrives too late takes part in the next generation.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/net/worker_set.hpp"

namespace dist {

inline constexpr uint32_t kNoGeneration = UINT32_MAX;

// Identifies a job: one start of worker 0, through all of its generations. All zero: none yet.
using JobIdentity = std::array<std::byte, 16>;

// The generation that a worker belonged to before it asked to form a new one.
struct CameFrom {
  uint32_t generation = kNoGeneration;
  JobIdentity job{};
};

struct Forming {
  uint32_t generation = 1;  // worker 0: number of the generation to form
  WorkerSet before;         // worker 0: members of the previous generation
  WorkerSet expected;       // worker 0: the workers to wait for
  int64_t window_ns = 0;    // worker 0: how long to wait for them before continuing without the missing ones
  int least = 1;            // worker 0: minimum number of workers
  int64_t timeout_ns = 0;   // how long to try; 0: without limit
  const std::atomic<bool>* cancelled = nullptr;
};

struct Formed {
  uint32_t generation = 0;
  WorkerSet members;
  WorkerSet stayed;  // those of them that were in the previous generation
};

// What a worker knows about the others when it leaves them to form another generation.
struct Parting {
  bool met = false;     // worker 0 has admitted this worker
  WorkerSet gone;       // workers that were lost or have ended, without those that left to form a generation
  WorkerSet newcomers;  // worker 0: workers that asked to join and could not be admitted
  JobIdentity job{};    // the job to which this worker belonged
};

}  // namespace dist
