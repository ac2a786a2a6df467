// SPDX-License-Identifier: Apache-2.0
// libdist as a program uses it: one dist_run() a block, collectives inside, default options throughout.
#include <sched.h>

#include <atomic>
#include <stdexcept>

#include "tests/bench/sides.hpp"

namespace bench {
namespace {

void require(dist_status status, const char* what) {
  if (status == DIST_OK) return;
  throw std::runtime_error(std::string(what) + ": " + dist_status_name(status) + ": " + dist_last_error());
}

// A collective in a loop: what the two sides below have in common.
class InReplicas : public Side {
 public:
  InReplicas(const Strategy& strategy, Data* data, CpuPair& seen)
      : strategy_(strategy), data_(data), seen_(seen) {}
  std::string name() const override { return "libdist"; }

  void block(const Plan& plan, Samples& samples) override {
    if (data_ != nullptr) data_->expect(plan.iterations);
    Stopwatch watch(strategy_.replicas(), plan);
    Job job{this, &plan, &watch};
    require(dist_run(strategy_.get(), &InReplicas::replica_main, &job), "dist_run");
    watch.collect(samples);
  }

 protected:
  struct Job {
    InReplicas* side;
    const Plan* plan;
    Stopwatch* watch;
  };
  virtual dist_status replica(dist_replica* replica, const Job& job) = 0;

  template <class Op>
  dist_status loop(dist_replica* replica, const Job& job, Op op) {
    const int id = dist_replica_id(replica);
    dist_status status = DIST_OK;
    replica_block(
        *job.plan, *job.watch, data_, id,
        [&] { return (status = dist_barrier(replica, nullptr)) == DIST_OK; },
        [&] { return (status = op()) == DIST_OK; });
    if (id == 0) seen_.first = sched_getcpu();
    if (id == 1) seen_.second = sched_getcpu();
    return status;
  }

  const Strategy& strategy_;
  Data* data_;
  CpuPair& seen_;

 private:
  static dist_status replica_main(dist_replica* replica, void* user_data) {
    const Job& job = *static_cast<Job*>(user_data);
    return job.side->replica(replica, job);
  }
};

class AllReduce final : public InReplicas {
 public:
  using InReplicas::InReplicas;
  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    const int64_t shape[] = {static_cast<int64_t>(data_->count())};
    const dist_tensor in{data_->in(id), data_->dtype(), 1, shape, nullptr};
    dist_tensor out{data_->out(id), data_->dtype(), 1, shape, nullptr};
    return loop(replica, job,
                [&] { return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr); });
  }
};

class Barrier final : public InReplicas {
 public:
  using InReplicas::InReplicas;
  dist_status replica(dist_replica* replica, const Job& job) override {
    return loop(replica, job, [&] { return dist_barrier(replica, nullptr); });
  }
};

dist_status do_nothing(dist_replica*, void*) { return DIST_OK; }

class EmptyRun final : public Side {
 public:
  explicit EmptyRun(const Strategy& strategy) : strategy_(strategy) {}
  std::string name() const override { return "libdist"; }
  void block(const Plan& plan, Samples& samples) override {
    dist_status status = DIST_OK;
    caller_block(plan, samples, [&] {
      const dist_status one = dist_run(strategy_.get(), do_nothing, nullptr);
      if (status == DIST_OK) status = one;
    });
    require(status, "dist_run");
  }

 private:
  const Strategy& strategy_;
};

class Idle final : public Side {
 public:
  explicit Idle(const Strategy& strategy) : strategy_(strategy) {}
  std::string name() const override { return "libdist"; }
  void block(const Plan& plan, Samples& samples) override {
    for (int i = 0; i < plan.batches; ++i) {
      require(dist_run(strategy_.get(), do_nothing, nullptr), "dist_run");
      wait_until_quiet();
      const double begin = process_cpu_us();
      sleep_us(kIdleUs);
      samples.push_back(process_cpu_us() - begin);
    }
  }

 private:
  const Strategy& strategy_;
};

}  // namespace

Strategy::Strategy(int replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  require(dist_strategy_create(&options, &strategy_), "dist_strategy_create");
}

Strategy::~Strategy() { dist_strategy_destroy(strategy_); }

std::unique_ptr<Side> libdist_all_reduce(const Strategy& strategy, Data& data, CpuPair& seen) {
  return std::make_unique<AllReduce>(strategy, &data, seen);
}
std::unique_ptr<Side> libdist_barrier(const Strategy& strategy, CpuPair& seen) {
  return std::make_unique<Barrier>(strategy, nullptr, seen);
}
std::unique_ptr<Side> libdist_idle(const Strategy& strategy) { return std::make_unique<Idle>(strategy); }
std::unique_ptr<Side> libdist_run(const Strategy& strategy) { return std::make_unique<EmptyRun>(strategy); }

}  // namespace bench
