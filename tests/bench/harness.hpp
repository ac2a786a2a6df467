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
  kReduceTo,  // the same from outside of replicas
  kStep,      // gradients are reduced, and parameters updated
  kWideSum,   // several contributions a replica, of wide range
  kPlanned,   // an all_reduce that repeats
  kOverlap,   // an all_reduce beside a computation
  kHanding,   // a collective that is no all_reduce
  kGrowth,    // the same operation with more replicas, tensors or groups
  kPush,      // of a variable to a parameter server, and back: rows of dist_bench_servers, as the next two
  kPull,
  kClosure,  // that does nothing
  kClosurePush,
  kEncode,  // a pass through a model: of dist_bench_split
};

// How operations follow one another.
enum class Pace {
  kHot,     // back to back
  kPaused,  // 1 ms of sleep on every replica before each one
  kAsleep,  // before each one the caller waits until all other threads of the process sleep
  kWork,    // before each one every replica writes its whole tensor, and afterwards reads it: as programs do
};
const char* pace_name(Pace pace);

// One block: what one side does before it is the other side's turn.
struct Plan {
  Pace pace = Pace::kHot;
  int iterations = 1;  // operations between two resets of the data
  int batches = 1;     // timed ones; one more goes ahead to warm up
  // How many operations a result is the outcome of.
  int in_a_row() const { return pace == Pace::kWork ? 1 : iterations; }
};

using Samples = std::vector<double>;  // microseconds an operation

// One way of doing a row's operation.
class Side {
 public:
  virtual ~Side() = default;
  virtual std::string name() const = 0;
  // Runs the plan and appends one sample a batch (kHot) or an operation (otherwise). Throws
  // std::runtime_error where the operation fails.
  virtual void block(const Plan& plan, Samples& samples) = 0;
};

// A text as JSON has it.
std::string quoted(const std::string& text);

double now_us();
void sleep_us(double us);
// CPU time: this process's, and everybody's on the machine (in steps of 10 ms).
double process_cpu_us();
double machine_cpu_us();
int online_cpus();
double median(Samples values);

// How many CPUs this process may run on, and which.
std::vector<int> usable_cpus();
void pin_this_thread(int cpu);

// Waits until every thread of these processes sleeps but the caller's, so that one side's spinners take
// nothing from the next side's time. False: some still ran after `limit_us`.
bool wait_until_quiet(const std::vector<pid_t>& processes, double limit_us);
bool wait_until_quiet();  // this process's

// When each replica began and ended each thing that is timed. A replica writes its own line only.
class Stopwatch {
 public:
  struct Interval {
    double begin_us, end_us;
  };
  Stopwatch(int replicas, const Plan& plan);
  void record(int replica, double begin_us, double end_us) noexcept;
  // What one of them recorded: a replica in another process sends it.
  const std::vector<Interval>& of(int replica) const {
    return lines_[static_cast<size_t>(replica)].intervals;
  }
  // A sample is the time from the last replica's begin to the last replica's end: what came before was
  // waiting for a thread that had not arrived. The warm-up is left out.
  void collect(Samples& samples) const;

 private:
  struct alignas(128) Line {
    std::vector<Interval> intervals;  // never grows past what the constructor reserved
  };
  std::vector<Line> lines_;
  int iterations_;  // in an interval
  int warm_up_;     // intervals
};

// One replica's part of a block. `meet` waits for all replicas, `op` is what is timed; both return false to
// give up. `data` may be null.
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
    // Where there are fewer CPUs than replicas, who checks would keep from its end one that is done, too.
    if (!meet()) return false;
    if (data != nullptr) data->check(replica, plan.in_a_row());
    // A peer may share this replica's output: it must not reset it before all have checked.
    if (!meet()) return false;
  }
  return true;
}

// A block of an operation that one caller makes; what other threads it uses is its own affair.
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
