// SPDX-License-Identifier: Apache-2.0
// Workers in one process for tests, each with a group, a communicator, and one thread per member.
#pragma once

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/async/async_memory.hpp"
#include "core/async/channel.hpp"
#include "core/async/crossings.hpp"
#include "core/collective/worker_collective.hpp"
#include "core/net/in_process.hpp"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/unsteady_transport.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail() is meant below

namespace dist {

inline constexpr uint64_t kSeed = 20261122;

// The result of a member's function.
struct Outcome {
  Status status;
  ErrorRecord error;
};

class Cluster {
 public:
  struct Options {
    bool unsteady = false;
    int64_t lose_at = -1;  // the message before which worker `victim` is lost
    int victim = 0;
    std::size_t most_bytes = std::size_t{64} << 20;
    // The members of each worker as worker `misled` receives them; empty: the correct ones.
    std::vector<int> told = {};
    int misled = 0;
    uint64_t seed = kSeed;
    Host host = {};
    Arena* helpers = nullptr;
    std::vector<Transport*> transports = {};  // one per worker; empty = transports within this process
  };

  // `members` has the number of members of each worker.
  Cluster(const std::vector<int>& members, const Options& options)
      : network_(make_counted<InProcessNetwork>(*memory_, static_cast<int>(members.size()),
                                                std::size_t{1} << 16)) {
    WaitPolicy policy;
    policy.spin_ns = 1000;
    policy.oversubscribed = true;
    fate_.lose_at = options.lose_at;
    GlobalReplica first{0};
    for (std::size_t w = 0; w < members.size(); ++w) {
      Transport* transport = nullptr;
      if (!options.transports.empty()) {
        transport = options.transports[w];
      } else {
        assert_true(network_->join(static_cast<int>(w), &transport).ok());
      }
      if (static_cast<int>(w) == options.victim) fate_.victim = transport;
      Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
      worker.transport = transport;
      if (options.unsteady) {
        worker.unsteady = std::make_unique<UnsteadyTransport>(*transport, fate_, options.seed + w);
        worker.transport = worker.unsteady.get();
      }
      worker.group = std::make_unique<Group>(*memory_, members[w], policy, options.host, 0,
                                             GroupMembers{.naming = {.first = first}});
      worker.crossings = std::make_unique<Crossings>(options.helpers);
      worker.communicator = std::make_unique<WorkerCommunicator>(
          *memory_, *worker.transport, *worker.group, options.host,
          WorkerCommunicator::Options{
              static_cast<int>(w) == options.misled && !options.told.empty() ? options.told : members, 0,
              options.most_bytes, worker.crossings.get()});
      worker.channel = std::make_unique<LazyChannel>(
          *memory_, *worker.group,
          ChannelHome{options.helpers, &async_memory_, 1 << 20, worker.crossings.get()},
          worker.communicator.get());
      worker.first = number(first);
      first = GlobalReplica{number(first) + members[w]};
    }
  }

  int size() const noexcept { return workers_.back()->first + workers_.back()->group->size(); }
  std::size_t held() { return (*memory_).held(); }
  // Returns the number of messages that the unsteady transports began to send.
  int64_t messages() const { return fate_.messages.load(); }
  WorkerCommunicator& communicator(int worker) {
    return *workers_[static_cast<std::size_t>(worker)]->communicator;
  }
  Group& group(int worker) { return *workers_[static_cast<std::size_t>(worker)]->group; }
  LazyChannel& channel(int worker) { return *workers_[static_cast<std::size_t>(worker)]->channel; }
  Memory& memory() { return *memory_; }
  Transport& transport(int worker) { return *workers_[static_cast<std::size_t>(worker)]->transport; }

  using Function = std::function<Status(const Member& member, WorkerCommunicator& communicator, int rank)>;

  // Runs the function on every worker, with a thread for each member. Returns the outcomes by rank among all
  // members.
  std::vector<Outcome> run(const Function& function) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(size()));
    std::vector<std::thread> threads;
    for (auto& each : workers_) {
      each->channel->begin_run();
      each->group->begin_run({});
      each->communicator->begin_run();
      each->inside = each->group->size();
    }
    for (auto& each : workers_) {
      for (int me = 0; me < each->group->size(); ++me) {
        threads.emplace_back([&, me, worker = each.get()] {
          const int rank = worker->first + me;
          Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
          const Member member{*worker->group, me, nullptr, 0, 1 << 20};
          outcome.status = function(member, *worker->communicator, rank);
          if (!outcome.status.ok()) outcome.error = last_error();
          ErrorRecord own = outcome.error;
          if (own.culprit.replica == kNoReplica && !own.of_all) own.culprit = worker->group->name(me);
          worker->group->leave(me, outcome.status, own);
          if (!outcome.status.ok()) {
            const std::scoped_lock lock(worker->mutex);
            if (!worker->failure) worker->failure = own;
          }
          if (worker->inside.fetch_sub(1) != 1) return;
          const ErrorRecord why = worker->failure.value_or(ErrorRecord{});
          worker->failure.reset();
          worker->communicator->leave(Status(why.code), why);
        });
      }
    }
    for (std::thread& each : threads) each.join();
    return outcomes;
  }

 private:
  struct Worker {
    Transport* transport = nullptr;
    std::unique_ptr<UnsteadyTransport> unsteady;
    std::unique_ptr<Group> group;
    std::unique_ptr<Crossings> crossings;
    std::unique_ptr<WorkerCommunicator> communicator;
    std::unique_ptr<LazyChannel> channel;
    int first = 0;
    std::atomic<int> inside{0};
    std::mutex mutex;
    std::optional<ErrorRecord> failure;
  };

  CountingMemory memory_;
  AsyncMemory async_memory_{std::size_t{64} << 20};
  Ref<InProcessNetwork> network_;
  UnsteadyTransport::Fate fate_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// An all_reduce SUM of one number, `times` times.
inline Status sum(const Member& member, WorkerCommunicator& communicator, int rank, int times, double* out) {
  for (int i = 0; i < times; ++i) {
    double in = rank + i;
    const dist_tensor from{&in, DIST_F64, 0, nullptr, nullptr};
    const dist_tensor to{out, DIST_F64, 0, nullptr, nullptr};
    Call call;
    call.collective = Collective::kAllReduce;
    call.op = DIST_REDUCE_SUM;
    call.in = &from;
    call.out = &to;
    call.n = 1;
    DIST_TRY(worker_collective(member, communicator, call));
  }
  return kOk;
}

// Asserts that a run succeeds.
inline void works_again(Cluster& cluster) {
  double got[256];
  const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
    return sum(member, communicator, rank, 3, &got[rank]);
  });
  const int n = cluster.size();
  const int64_t wanted = n * (n - 1) / 2 + 2 * n;
  for (int r = 0; r < n; ++r) {
    if (!outcomes[static_cast<std::size_t>(r)].status.ok())
      std::printf("# %s\n", outcomes[static_cast<std::size_t>(r)].error.message);
    assert_true(outcomes[static_cast<std::size_t>(r)].status.ok());
    assert_true(got[r] == static_cast<double>(wanted));
  }
}

}  // namespace dist
