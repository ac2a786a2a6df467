// SPDX-License-Identifier: Apache-2.0
// Asynchronous and planned collectives between workers. Messages arrive late and in a different order, and
// one worker is lost at an arbitrary message.
#include <cinttypes>
#include <cstring>
#include <thread>

#include "core/async/plan.hpp"
#include "tests/unit/plain_error.hpp"
#include "tests/unit/worker_cluster.hpp"

namespace dist {
namespace {

constexpr int kWorks = 6;
constexpr int kRounds = 2;
constexpr std::size_t kMost = 5000;

float element(int rank, int k, std::size_t i) noexcept {
  return 1.0F / static_cast<float>(rank + 3 * k + static_cast<int>(i % 17) + 1);
}
std::size_t elements(int k) noexcept { return k % 3 == 0 ? 1 : k % 3 == 1 ? 100 : kMost; }

// One member's calls. All its tensors have the same number of elements.
struct Calls {
  std::vector<float> data[kWorks];
  int64_t shape[kWorks];
  dist_tensor tensors[kWorks];

  explicit Calls(int rank) {
    for (int k = 0; k < kWorks; ++k) {
      shape[k] = static_cast<int64_t>(elements(k));
      data[k].resize(elements(k));
      tensors[k] = {data[k].data(), DIST_F32, 1, &shape[k], nullptr};
    }
    fill(rank);
  }
  void fill(int rank) {
    for (int k = 0; k < kWorks; ++k) {
      for (std::size_t i = 0; i < elements(k); ++i) data[k][i] = element(rank, k, i);
    }
  }
  // Returns the call with n tensors, from the k-th on.
  Call call(int k, int n) const noexcept {
    Call call;
    call.collective = Collective::kAllReduce;
    call.op = DIST_REDUCE_SUM;
    call.in = call.out = &tensors[k];
    call.n = static_cast<std::size_t>(n);
    return call;
  }
  bool right(int k, int members) const noexcept {
    for (std::size_t i = 0; i < elements(k); ++i) {
      float sum = element(0, k, i);
      for (int r = 1; r < members; ++r) sum += element(r, k, i);
      if (data[k][i] != sum) return false;
    }
    return true;
  }
};

Status wrong() noexcept { return dist::fail(DIST_DATA_LOSS, "another sum"); }

// Starts all of them, and then waits for them in reverse order.
Status asynchronous(Cluster& cluster, const Member& member, WorkerCommunicator& communicator, int rank,
                    WorkList& works) {
  Calls calls(rank);
  Ref<Work> out[kWorks];
  Status status;
  for (int k = 0; k < kWorks && status.ok(); ++k) {
    Call call = calls.call(k, 1);
    status = cluster.channel(communicator.me()).get().issue(member, call, works, nullptr, &out[k]);
  }
  for (int k = kWorks - 1; k >= 0 && status.ok(); --k) {
    status = out[k]->wait(-1);
    if (status.ok() && !calls.right(k, communicator.num_members())) status = wrong();
  }
  // Ends the works before their tensors are destroyed.
  const ErrorRecord why = status.ok() ? ErrorRecord{} : last_error();
  (void)works.drain(status, why);
  return status.ok() ? status : dist::fail(why);
}

// Each member makes the packs ready in a different order.
Status planned(Cluster& cluster, const Member& member, WorkerCommunicator& communicator, int rank,
               WorkList& works) {
  Calls calls(rank);
  Ref<Work> plan;
  Call call = calls.call(0, kWorks);
  const Member here{member.group, member.me, nullptr, 0, member.cache_bytes, nullptr, nullptr, &communicator};
  Status status = PlannedWork::create(cluster.memory(), here, call, works,
                                      cluster.channel(communicator.me()).home(), 256, &plan);
  for (int round = 0; round < kRounds && status.ok(); ++round) {
    calls.fill(rank);
    for (int k = 0; k < kWorks && status.ok(); ++k)
      status = plan->ready(static_cast<std::size_t>((k + rank + round) % kWorks));
    if (status.ok()) status = plan->wait(-1);
    for (int k = 0; k < kWorks && status.ok(); ++k) {
      if (!calls.right(k, communicator.num_members())) status = wrong();
    }
  }
  const ErrorRecord why = status.ok() ? ErrorRecord{} : last_error();
  (void)works.drain(status, why);
  return status.ok() ? status : dist::fail(why);
}

Status both(Cluster& cluster, const Member& member, WorkerCommunicator& communicator, int rank) {
  WorkList works;
  DIST_TRY(asynchronous(cluster, member, communicator, rank, works));
  return planned(cluster, member, communicator, rank, works);
}

void hold(const std::vector<int>& members, const Cluster::Options& options) {
  Cluster cluster(members, options);
  for (int again = 0; again < 3; ++again) {
    const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
      return both(cluster, member, communicator, rank);
    });
    for (const Outcome& each : outcomes) {
      if (!each.status.ok()) std::printf("# %s\n", each.error.message);
      assert_true(each.status.ok());
    }
    works_again(cluster);
  }
}

void sums_are_right_whatever_messages_do(void**) {
  CountingMemory memory;
  Arena arena(*memory, 2);
  for (Arena* const helpers : {static_cast<Arena*>(nullptr), &arena}) {
    for (const bool unsteady : {false, true}) {
      for (const std::size_t most_bytes : {std::size_t{1}, std::size_t{1} << 20}) {
        hold({2, 2}, {.unsteady = unsteady, .most_bytes = most_bytes, .helpers = helpers});
        hold({1, 3, 2}, {.unsteady = unsteady, .most_bytes = most_bytes, .helpers = helpers});
      }
    }
  }
}

void a_worker_may_be_lost_at_any_message(void**) {
  CountingMemory memory;
  Arena arena(*memory, 2);
  int failed_runs = 0;
  int64_t lose_at = 0;
  // Of the later messages, only every third is tried.
  for (bool lost = true; lost; lose_at += lose_at < 60 ? 1 : 3) {
    for (const int victim : {0, 1}) {
      Cluster cluster({2, 1, 1}, {.unsteady = true,
                                  .lose_at = lose_at,
                                  .victim = victim,
                                  .most_bytes = std::size_t{1} << 14,
                                  .seed = kSeed + static_cast<uint64_t>(lose_at),
                                  .helpers = lose_at % 2 == 0 ? &arena : nullptr});
      const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator,
                                            int rank) { return both(cluster, member, communicator, rank); });
      lost = cluster.transport(victim == 0 ? 1 : 0).lost(victim);
      for (const Outcome& each : outcomes) {
        if (each.status.ok()) continue;
        ++failed_runs;
        assert_int_not_equal(each.status.code(), DIST_DATA_LOSS);
        assert_true(each.error.message[0] != '\0');
        assert_true(lost);
      }
    }
  }
  assert_true(lose_at > 100);
  assert_true(failed_runs > 100);
}

// A message arrives just after its item has looked, and no thread calls the library afterwards.
class JustMissed final : public Crossings::Item {
 public:
  JustMissed(Group& group, Crossings& home) : Item(group), home_(home) {}
  ~JustMissed() override { home_.end(*this); }
  bool go_on() noexcept override {
    if (++looks_ == 1) home_.wake();
    return looks_ == 1;
  }
  void stop() noexcept override {}
  int looks() const noexcept { return looks_.load(); }

 private:
  Crossings& home_;
  std::atomic<int> looks_{0};
};

void what_comes_beside_the_first_look_is_seen(void**) {
  CountingMemory memory;
  Arena arena(*memory, 2);
  Group group(*memory, 1, {}, {}, 0, {});
  Crossings crossings(&arena);
  JustMissed item(group, crossings);
  crossings.begin(item, [] {});
  constexpr int64_t kGuardNs = 60'000'000'000;
  for (const int64_t begin = steady_now_ns(); item.looks() < 2; yield_this_thread())
    assert_true(steady_now_ns() - begin < kGuardNs);
}

// A round of a plan, whose messages the test moves step by step.
class SteppedRound {
 public:
  SteppedRound(Cluster& cluster, int worker, uint32_t stream)
      : communicator_(cluster.communicator(worker)),
        stream_(stream),
        round_(cluster.memory(), cluster.transport(worker), communicator_.members()) {}
  void begin(uint64_t number) {
    Signature signature;
    signature.collective = Collective::kBarrier;
    round_.reset();
    communicator_.begin(round_, stream_, number, signature, 1 << 20);
  }
  bool goes_on() { return communicator_.goes_on(round_); }
  // Advances as far as possible now, and returns true if the round has ended.
  bool advance() {
    while (goes_on() && round_.settled() && !round_.here())
      assert_true(round_.proceed().fault == WorkerRound::Fault::kNone);
    return round_.here();
  }

 private:
  WorkerCommunicator& communicator_;
  const uint32_t stream_;
  WorkerRound round_;
};

// A worker that leaves properly announces how many rounds it began, so the rounds without it are known at
// once.
void who_has_left_well_is_missed_at_once(void**) {
  constexpr uint32_t kFirst = WorkerCommunicator::kFirstPlanned;
  Cluster cluster({1, 1}, {});
  for (int again = 0; again < 2; ++again) {
    for (int w = 0; w < 2; ++w) cluster.group(w).begin_run({}), cluster.communicator(w).begin_run();
    SteppedRound theirs[] = {{cluster, 0, kFirst}, {cluster, 0, kFirst + 1}};
    SteppedRound ours[] = {{cluster, 1, kFirst}, {cluster, 1, kFirst + 1}, {cluster, 1, kFirst + 2}};
    theirs[0].begin(1), theirs[1].begin(1);
    ours[0].begin(1), ours[2].begin(1);
    assert_true(ours[0].advance() && theirs[0].advance());
    cluster.communicator(0).leave(kOk, {});
    // The leaving worker took part in one other round, which this worker has not begun yet. It might be the
    // third one.
    assert_true(ours[2].goes_on() && !ours[2].advance());
    ours[1].begin(1);
    assert_true(ours[1].advance());
    assert_false(ours[2].goes_on());
    assert_true(cluster.group(1).aborted());
    assert_int_equal(cluster.group(1).failure().code(), DIST_ABORTED);
    assert_non_null(std::strstr(last_message(), "worker 0"));
    cluster.communicator(1).leave(kOk, {});
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {
      cmocka_unit_test(sums_are_right_whatever_messages_do),
      cmocka_unit_test(a_worker_may_be_lost_at_any_message),
      cmocka_unit_test(what_comes_beside_the_first_look_is_seen),
      cmocka_unit_test(who_has_left_well_is_missed_at_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
