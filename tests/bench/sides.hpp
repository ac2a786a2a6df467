// SPDX-License-Identifier: Apache-2.0
// The participants: libdist and its peers. Each is created in its own file.
#pragma once

#include <cstddef>
#include <memory>

#include "dist/dist.h"
#include "tests/bench/harness.hpp"
#include "tests/bench/more_data.hpp"

namespace bench {

// The CPUs on which replicas 0 and 1 were last seen. The cache-line hop is measured between them.
struct CpuPair {
  int first = -1, second = -1;
};

// ---- libdist, through its C ABI (libdist_side.cpp) ----

// A strategy with default options except for its threads. All rows with one number of replicas share it, and
// it is idle in between.
class Strategy {
 public:
  explicit Strategy(int replicas, dist_threads threads = DIST_THREADS_CALLER);
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  dist_strategy* get() const { return strategy_; }
  int replicas() const { return dist_strategy_num_replicas(strategy_); }
  // Creates groups of replicas 0 and 1, which are destroyed with the strategy.
  void make_groups(int count);
  // Runs `fn` on every replica, like dist_run(). If the strategy has no threads, uses new ones.
  void run(dist_replica_fn fn, void* user_data) const;

 private:
  dist_strategy* strategy_ = nullptr;
  dist_threads threads_;
  std::vector<dist_group*> groups_;
};

std::unique_ptr<Side> libdist_all_reduce(const Strategy& strategy, Data& data, CpuPair& seen);
std::unique_ptr<Side> libdist_barrier(const Strategy& strategy, CpuPair& seen);
std::unique_ptr<Side> libdist_run(const Strategy& strategy);
// A sample is the CPU time that the process uses in kIdleUs after a run, when its threads sleep.
std::unique_ptr<Side> libdist_idle(const Strategy& strategy);
constexpr double kIdleUs = 100e3;

// Inspects full recorders (libdist_inspect.cpp).
enum class Inspect { kStragglers, kMetrics, kTrace };
std::unique_ptr<Side> libdist_inspect(const Strategy& strategy, Inspect what);

// Lists of gradients (libdist_lists.cpp): in one call or one by one; in replicas, or in the cross-replica
// context by reduce_to.
std::unique_ptr<Side> libdist_list(const Strategy& strategy, DataList& list, bool one_by_one);
std::unique_ptr<Side> libdist_reduce_to(const Strategy& strategy, DataList& list, bool one_by_one);

// reduce_apply, and all_reduce followed by loops (libdist_steps.cpp).
std::unique_ptr<Side> libdist_fused_step(const Strategy& strategy, StepData& data);
std::unique_ptr<Side> libdist_separate_step(const Strategy& strategy, StepData& data);

// Work handles (libdist_works.cpp): start and wait of a plan; an all_reduce during a computation of this many
// rounds, or on its own; and the computation on its own.
std::unique_ptr<Side> libdist_planned(const Strategy& strategy, Data& data);
enum class Overlap { kTogether, kExchange };
std::unique_ptr<Side> libdist_overlapped(const Strategy& strategy, Data& data, Overlap which, int64_t rounds);
std::unique_ptr<Side> libdist_computed(const Strategy& strategy, int64_t rounds);
// Returns the number of rounds that take as long as the exchange.
int64_t rounds_as_long_as(const Strategy& strategy, Side& exchange);

// Other collectives, and a sum of several contributions per replica (libdist_handing.cpp).
std::unique_ptr<Side> libdist_handing(const Strategy& strategy, Handing handing, Exchanged& data);
std::unique_ptr<Side> libdist_sum(const Strategy& strategy, Exchanged& data, dist_numerics numerics);

// ---- What a programmer would write with std::thread and loops (peers_naive.cpp) ----

// The barrier of its replicas.
enum class Naive { kStd, kSpin };
// In place or out of place.
std::unique_ptr<Side> naive_all_reduce(Naive barrier, Data& data);
std::unique_ptr<Side> naive_one_phase(Data& data);                // up to 16 replicas with one CPU each
std::unique_ptr<Side> naive_last_sums(Data& data);                // f32, more replicas than CPUs
std::unique_ptr<Side> naive_list(Naive barrier, DataList& list);  // all tensors between two rounds
std::unique_ptr<Side> naive_handing(Naive barrier, Handing handing, Exchanged& data);
std::unique_ptr<Side> naive_barrier(Naive barrier, int replicas);

// An empty run on a pool of threads that wait like libdist's (naive_pool.cpp). The caller is replica 0, or
// only waits.
std::unique_ptr<Side> naive_pool(int replicas, bool caller_works);

// ---- OpenMP (peer_openmp.cpp) ----

// One caller sums all replicas' f32 buffers in a parallel region over all CPUs, without replicas that meet.
std::unique_ptr<Side> openmp_all_reduce(Data& data);
std::unique_ptr<Side> openmp_barrier(int threads);
std::unique_ptr<Side> openmp_empty_region(int threads);

// ---- The limits of the machine (limits.cpp) ----

// A sample is the one-way time of a cache line between two CPUs.
std::unique_ptr<Side> cache_line_hop(const CpuPair& between);

// The sums of an all_reduce in place of 2 replicas, on two CPUs with one half each, repeated without
// synchronization: the time that moving the bytes takes.
std::unique_ptr<Side> loops_alone(Data& data, const CpuPair& on);

// A sample is one pass of a = b = (a + b) / 2 over two arrays, divided among `threads`. It has the memory
// traffic of an all-reduce.
std::unique_ptr<Side> memory_rmw2(int threads);
// Bytes read and written in one pass.
constexpr size_t kRmw2Bytes = size_t{4} * 128 << 20;

// Every sample has this duration.
std::unique_ptr<Side> wall_time(double us);

}  // namespace bench
