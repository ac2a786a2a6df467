// SPDX-License-Identifier: Apache-2.0
// libdist's blocking all_reduce and barrier, the empty run, and an idle strategy.
#include <sched.h>

#include <stdexcept>
#include <thread>

#include "tests/bench/in_replicas.hpp"

namespace bench {

void require(dist_status status, const char* what) {
  if (status == DIST_OK) return;
  throw std::runtime_error(std::string(what) + ": " + dist_status_name(status) + ": " + dist_last_error());
}

void InReplicas::block(const Plan& plan, Samples& samples) {
  if (data_ != nullptr) data_->expect(plan.in_a_row());
  Stopwatch watch(strategy_.replicas(), plan);
  Job job{this, &plan, &watch};
  strategy_.run(&InReplicas::replica_main, &job);
  watch.collect(samples);
}

dist_status InReplicas::replica_main(dist_replica* replica, void* user_data) {
  const Job& job = *static_cast<Job*>(user_data);
  return job.side->replica(replica, job);
}

namespace {

// Records the CPUs of replicas 0 and 1.
void note_cpu(dist_replica* replica, CpuPair& seen) {
  if (dist_replica_id(replica) == 0) seen.first = sched_getcpu();
  if (dist_replica_id(replica) == 1) seen.second = sched_getcpu();
}

class AllReduce final : public InReplicas {
 public:
  AllReduce(const Strategy& strategy, Data& data, CpuPair& seen)
      : InReplicas(strategy, &data), tensors_(data), seen_(seen) {}
  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    const int64_t shape[] = {static_cast<int64_t>(tensors_.count())};
    const dist_tensor in{tensors_.in(id), tensors_.dtype(), 1, shape, nullptr};
    dist_tensor out{tensors_.out(id), tensors_.dtype(), 1, shape, nullptr};
    const dist_status status = loop(replica, job, [&] {
      return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr, nullptr);
    });
    note_cpu(replica, seen_);
    return status;
  }

 private:
  Data& tensors_;
  CpuPair& seen_;
};

class Barrier final : public InReplicas {
 public:
  Barrier(const Strategy& strategy, CpuPair& seen) : InReplicas(strategy, nullptr), seen_(seen) {}
  dist_status replica(dist_replica* replica, const Job& job) override {
    const dist_status status = loop(replica, job, [&] { return dist_barrier(replica, nullptr, nullptr); });
    note_cpu(replica, seen_);
    return status;
  }

 private:
  CpuPair& seen_;
};

dist_status do_nothing(dist_replica*, void*) { return DIST_OK; }

class EmptyRun final : public Side {
 public:
  explicit EmptyRun(const Strategy& strategy) : strategy_(strategy) {}
  std::string name() const override { return "libdist"; }
  void block(const Plan& plan, Samples& samples) override {
    dist_status status = DIST_OK;
    caller_block(plan, samples, [&] {
      const dist_status one = dist_run(strategy_.get(), do_nothing, nullptr, nullptr);
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
      require(dist_run(strategy_.get(), do_nothing, nullptr, nullptr), "dist_run");
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

Strategy::Strategy(int replicas, dist_threads threads) : threads_(threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.threads = threads;
  require(dist_strategy_create(&options, &strategy_), "dist_strategy_create");
}

void Strategy::run(dist_replica_fn fn, void* user_data) const {
  if (threads_ != DIST_THREADS_HOST) return require(dist_run(strategy_, fn, user_data, nullptr), "dist_run");
  std::string failure;  // replica 0's, because all replicas get the run's
  std::vector<std::thread> threads;
  for (int id = 0; id < replicas(); ++id) {
    threads.emplace_back([&, id] {
      dist_replica* replica = nullptr;
      dist_status status = dist_replica_enter(strategy_, id, &replica);
      if (status == DIST_OK) status = dist_replica_leave(replica, fn(replica, user_data));
      if (status != DIST_OK && id == 0)
        failure = std::string(dist_status_name(status)) + ": " + dist_last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!failure.empty()) throw std::runtime_error("replicas on host threads: " + failure);
}

void Strategy::make_groups(int count) {
  constexpr int32_t kBoth[] = {0, 1};
  for (int i = 0; i < count; ++i)
    require(dist_group_create(strategy_, kBoth, 2, &groups_.emplace_back()), "dist_group_create");
}

Strategy::~Strategy() {
  for (dist_group* const group : groups_) (void)!dist_group_destroy(group);
  (void)!dist_strategy_destroy(strategy_);
}

std::unique_ptr<Side> libdist_all_reduce(const Strategy& strategy, Data& data, CpuPair& seen) {
  return std::make_unique<AllReduce>(strategy, data, seen);
}
std::unique_ptr<Side> libdist_barrier(const Strategy& strategy, CpuPair& seen) {
  return std::make_unique<Barrier>(strategy, seen);
}
std::unique_ptr<Side> libdist_idle(const Strategy& strategy) { return std::make_unique<Idle>(strategy); }
std::unique_ptr<Side> libdist_run(const Strategy& strategy) { return std::make_unique<EmptyRun>(strategy); }

}  // namespace bench
