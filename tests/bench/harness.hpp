// SPDX-License-Identifier: Apache-2.0
// Parts that both sides of every comparison share: the clock, the pace of a loop, timing a block of batches
// over a team of threads, and waiting until no other threads are running.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/bench/data.hpp"

namespace bench {

enum class Operation {
  kAllReduce,
  kBarrier,
  kRun,
  kIdle,
  kList,      // an all_reduce of many tensors
  kReduceTo,  // the same in the cross-replica context
  kStep,      // reduces gradients and updates parameters
  kWideSum,   // several contributions per replica, with a wide range of magnitudes
  kPlanned,   // an all_reduce that is repeated
  kOverlap,   // an all_reduce during a computation
  kHanding,   // a collective other than all_reduce
  kGrowth,    // the same operation with more replicas, tensors or groups
  kPush,      // pushes a variable to a parameter server; this and the next ones are rows of
              // dist_bench_servers
  kPull,
  kClosure,  // a closure that does nothing
  kClosurePush,
  kEncode,  // a pass through a model, in dist_bench_split
};

// How operations follow one another.
enum class Pace {
  kHot,     // back to back
  kPaused,  // each replica sleeps for 1 ms before each operation
  kAsleep,  // before each operation, the caller waits until all other threads of the process sleep
  kWork,    // like in programs, each replica writes its whole tensor before each operation and reads it
            // afterwards
};
const char* pace_name(Pace pace);

// One block: what a side does in one turn.
struct Plan {
  Pace pace = Pace::kHot;
  int iterations = 1;  // operations between two resets of the data
  int batches = 1;     // timed batches, after one as a warm-up
  // The number of operations that produce a result.
  int in_a_row() const { return pace == Pace::kWork ? 1 : iterations; }
};

using Samples = std::vector<double>;  // microseconds per operation

// One way to do a row's operation.
class Side {
 public:
  virtual ~Side() = default;
  virtual std::string name() const = 0;
  // Runs the plan and appends one sample per batch (kHot) or per operation (otherwise). Throws
  // std::runtime_error if the operation fails.
  virtual void block(const Plan& plan, Samples& samples) = 0;
};

// Quotes a JSON string.
std::string quoted(const std::string& text);

double now_us();
void sleep_us(double us);
// CPU time of this process, and of all processes of the machine (in steps of 10 ms).
double process_cpu_us();
double machine_cpu_us();
int online_cpus();
double median(Samples values);

// Returns the CPUs that this process may use.
std::vector<int> usable_cpus();
void pin_this_thread(int cpu);

// Waits until all threads of these processes, except the caller's, sleep, so that threads that spin for one
// side do not slow down the next. Returns false if some still run after `limit_us`.
bool wait_until_quiet(const std::vector<pid_t>& processes, double limit_us);
bool wait_until_quiet();  // for this process

// The times at which each replica began and ended each timed interval. A replica writes only its own line.
class Stopwatch {
 public:
  struct Interval {
    double begin_us, end_us;
  };
  Stopwatch(int replicas, const Plan& plan);
  void record(int replica, double begin_us, double end_us) noexcept;
  // Returns the intervals of one replica, which a replica in another process sends.
  const std::vector<Interval>& of(int replica) const {
    return lines_[static_cast<size_t>(replica)].intervals;
  }
  // A sample is the time from the last replica's beginning to the last replica's end, because the time before
  // is spent waiting for a thread that has not arrived. The warm-up is left out.
  void collect(Samples& samples) const;

 private:
  struct alignas(128) Line {
    std::vector<Interval> intervals;  // never exceeds the capacity reserved by the constructor
  };
  std::vector<Line> lines_;
  int iterations_;  // per interval
  int warm_up_;     // number of intervals
};

// One replica's part of a block. `meet` waits for all replicas, and `op` is timed; both return false to end
// the block. `data` may be null.
template <class Meet, class Op>
bool replica_block(const Plan& plan, Stopwatch& watch, Checked* data, int replica, Meet meet, Op op) {
  for (int batch = 0; batch <= plan.batches; ++batch) {
    if (data != nullptr) data->reset(replica);
    if (!meet()) return false;
    if (plan.pace == Pace::kHot) {
      const double begin = now_us();
      for (int i = 0; i < plan.iterations; ++i) {
        if (!op()) return false;
      }
      watch.record(replica, begin, now_us());
    } else {
      for (int i = 0; i < plan.iterations; ++i) {
        if (plan.pace != Pace::kWork) {
          sleep_us(1000);
        } else if (data != nullptr) {
          data->reset(replica);
        }
        const double begin = now_us();
        if (!op()) return false;
        watch.record(replica, begin, now_us());
        if (plan.pace == Pace::kWork && data != nullptr) data->check(replica, 1);
      }
    }
    // With fewer CPUs than replicas, a replica that checks could delay another one that has finished.
    if (!meet()) return false;
    if (data != nullptr) data->check(replica, plan.in_a_row());
    // A peer may share this replica's output, so it must not be reset before all have checked.
    if (!meet()) return false;
  }
  return true;
}

// A block of an operation that one caller makes. It may use any other threads.
template <class Op>
void caller_block(const Plan& plan, Samples& samples, Op op) {
  const int timed = plan.pace == Pace::kHot ? plan.batches : plan.batches * plan.iterations;
  const int repeat = plan.pace == Pace::kHot ? plan.iterations : 1;
  for (int i = 0; i <= timed; ++i) {
    if (plan.pace == Pace::kPaused) sleep_us(1000);
    if (plan.pace == Pace::kAsleep) wait_until_quiet();
    const double begin = now_us();
    for (int k = 0; k < repeat; ++k) op();
    const double end = now_us();
    if (i > 0) samples.push_back((end - begin) / repeat);
  }
}

}  // namespace bench
