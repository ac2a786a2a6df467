// SPDX-License-Identifier: Apache-2.0
// The first three lines of dist_strategy_explain(): what runs, on which machine, and what to worry about.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/text_out.hpp"
#include "dist/types.h"

namespace dist {

// "512 B", "64 KiB", "1.5 MiB".
struct Size {
  explicit Size(std::size_t bytes) noexcept;
  char text[32];
};

// "1 CPU", "2 CPUs".
struct Count {
  Count(long long number, const char* noun) noexcept;
  char text[64];
};

struct ExplainSummary {
  const char* kind = "";  // "mirrored"
  int replicas = 1;       // on all workers
  int first_replica = 0;  // of those on this worker
  int local_replicas = 1;
  int logical_devices = 1;  // per replica
  int workers = 1;
  int worker = 0;  // this one
  int threads = DIST_THREADS_CALLER;

  int allowed_cpus = 1;  // in the affinity mask, or chosen by the host
  int usable_cpus = 1;   // the same, limited by the quota
  double cpu_quota = 0;  // in CPUs; 0: none
  int numa_domains = 1;
  const char* simd = "";
  std::size_t held_bytes = 0;

  // Causes of warnings.
  const char* no_connection = nullptr;  // why the other workers cannot be reached; NULL: they can
  bool exposed = false;                 // data goes to other machines without encryption
  bool network_threads = false;         // threads that move messages run beside the replicas
  bool quota_changed = false;           // since the strategy was created
  int pinned_cpu = -1;                  // to which several library threads of this strategy are pinned
  int colliding = 0;                    // replicas that kept sharing a CPU and stayed there
  int budget_threads = 0;               // 0: no budget
  int run_threads = 0;                  // that a run takes from the budget
  uint64_t stuck = 0;                   // functions that have not returned, and lost their replica
};

// Three lines.
void write_summary(const ExplainSummary& summary, TextOut& out);

}  // namespace dist
