// SPDX-License-Identifier: Apache-2.0
// core/comm/worker_communicator.hpp and core/collective/worker_collective.hpp: workers in one process, each
// with a group and one thread per member. Their outputs equal those of a single group with all members.
// Whatever happens to one member, all of them return.
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/collective/worker_collective.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/net/forwarding_transport.hpp"
#include "core/net/in_process.hpp"
#include "tests/unit/exchange_cases.hpp"
#include "tests/unit/worker_cluster.hpp"

namespace dist {
namespace {

std::string text_of(const std::vector<int>& members) {
  std::string text;
  for (const int each : members) text += (text.empty() ? "" : "+") + std::to_string(each);
  return text;
}

// Every collective, on one tensor and on lists, over layouts of the same number of members.
void all_layouts_write_the_same(void** state) {
  const bool unsteady = *state != nullptr;
  const std::vector<std::vector<int>> layouts = {{4}, {2, 2}, {1, 1, 1, 1}, {3, 1}, {1, 2, 1}};
  for (std::size_t i = 0; i < 3 * layouts.size(); ++i) {
    const std::vector<int>& layout = layouts[i / 3];
    // In whole, in pieces, and one unit at a time.
    const std::size_t most_bytes = std::array<std::size_t, 3>{1 << 20, 2000, 1}[i % 3];
    std::mt19937_64 random(kSeed);
    Cluster cluster(layout, {.unsteady = unsteady, .most_bytes = most_bytes});
    for (const Case& each : kCases) {
      for (const std::size_t n : {std::size_t{1}, std::size_t{3}}) {
        for (int turn = 0; turn < (i % 3 == 2 ? 1 : 3); ++turn) {
          Members members(each, 4, n, random);
          const auto expected = members.together();
          const auto outcomes =
              cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
                Call call = members[rank].call;
                call.offsets = nullptr;
                return worker_collective(member, communicator, call);
              });
          for (const Outcome& outcome : outcomes) {
            if (!outcome.status.ok())
              std::printf("# %s: %s\n", text_of(layout).c_str(), outcome.error.message);
            assert_true(outcome.status.ok());
          }
          if (members.take() == expected) continue;
          std::printf("# %s of %zu tensors over %s members, %zu bytes\n", traits_of(each.collective).name, n,
                      text_of(layout).c_str(), most_bytes);
          assert_true(false);
        }
      }
    }
  }
}

void sixteen_workers_meet_often(void**) {
  Cluster cluster(std::vector<int>(16, 1), {});
  std::vector<double> got(16);
  for (int run = 0; run < 3; ++run) {
    const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
      return sum(member, communicator, rank, 20, &got[static_cast<std::size_t>(rank)]);
    });
    for (std::size_t r = 0; r < 16; ++r) {
      assert_true(outcomes[r].status.ok());
      assert_true(got[r] == 120 + 16 * 19);
    }
  }
}

// Asserts that all failed outcomes have the same text, and that it contains these words.
void assert_all_say(const std::vector<Outcome>& outcomes, dist_status code, int worker,
                    std::initializer_list<const char*> words) {
  for (const Outcome& each : outcomes) {
    if (each.status.code() != code || std::strcmp(each.error.message, outcomes[0].error.message) != 0)
      std::printf("# %s: %s\n", status_name(each.status.code()), each.error.message);
    assert_int_equal(each.status.code(), code);
    assert_int_equal(each.error.culprit.worker, worker);
    assert_string_equal(each.error.message, outcomes[0].error.message);
  }
  for (const char* word : words) {
    if (std::strstr(outcomes[0].error.message, word) == nullptr)
      std::printf("# %s\n", outcomes[0].error.message);
    assert_non_null(std::strstr(outcomes[0].error.message, word));
  }
}

void workers_that_disagree_are_told_so(void**) {
  for (const int odd : {0, 1, 2}) {
    Cluster cluster({2, 2, 2}, {});
    const auto outcomes =
        cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
          double got = 0;
          DIST_TRY(sum(member, communicator, rank, 2, &got));
          const double in[2] = {1, 2};
          double out[2];
          const int64_t shape[] = {rank / 2 == odd ? 2 : 1};
          const dist_tensor from{const_cast<double*>(in), DIST_F64, 1, shape, nullptr};
          const dist_tensor to{out, DIST_F64, 1, shape, nullptr};
          Call call;
          call.collective = Collective::kAllReduce;
          call.op = DIST_REDUCE_MAX;
          call.in = &from;
          call.out = &to;
          call.n = 1;
          return worker_collective(member, communicator, call);
        });
    assert_all_say(outcomes, DIST_INVALID_ARGUMENT, odd, {"all_reduce #3: worker", "f64[2]", "f64[1]"});
    works_again(cluster);
  }
}

void other_members_than_expected_are_told_so(void**) {
  for (const int misled : {0, 1}) {
    Cluster cluster(
        {2, 2}, {.told = misled == 0 ? std::vector<int>{2, 4} : std::vector<int>{4, 2}, .misled = misled});
    const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
      double got = 0;
      return sum(member, communicator, rank, 1, &got);
    });
    const std::string who = "worker " + std::to_string(1 - misled) + " has 2 replicas, but worker " +
                            std::to_string(misled) + " expects it to have 4 replicas";
    assert_all_say(outcomes, DIST_INVALID_ARGUMENT, 1 - misled, {"all_reduce #1: ", who.c_str()});
    assert_string_equal(outcomes[0].error.expected, "4 replicas");
    assert_string_equal(outcomes[0].error.received, "2 replicas");
    assert_true(outcomes[0].error.hint[0] != '\0');
  }
}

// Runs a worker whose peer is played by the test, and answers it with `header`.
Outcome answer_to(const std::byte* header) {
  CountingMemory memory;
  const auto network = make_counted<InProcessNetwork>(*memory, 2, std::size_t{1} << 16);
  Transport* transports[2] = {};
  for (int w = 0; w < 2; ++w) assert_true(network->join(w, &transports[w]).ok());
  Group group(*memory, 1, {}, {}, 0);
  const std::vector<int> members = {1, 1};
  WorkerCommunicator communicator(*memory, *transports[0], group, {}, {.members = members});
  group.begin_run({});
  communicator.begin_run();
  Transfer transfer;
  transports[1]->send(0, {.run = 1, .number = 1}, header, WorkerHeader::kBytes, transfer);
  double got = 0;
  Outcome outcome;
  outcome.status = sum({group, 0, nullptr, 0, 1 << 20}, communicator, 0, 1, &got);
  if (!outcome.status.ok()) outcome.error = last_error();
  for (Transport* each : transports) each->close();
  return outcome;
}

void who_cannot_be_understood_is_named(void**) {
  WorkerHeader header;
  std::byte bytes[WorkerHeader::kBytes];
  header.members = 1;
  header.version = 9;
  header.write(bytes);
  Outcome outcome = answer_to(bytes);
  assert_int_equal(outcome.status.code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(outcome.error.culprit.worker, 1);
  assert_non_null(
      std::strstr(outcome.error.message, "worker 1 uses version 9 of the protocol between workers"));
  assert_string_equal(outcome.error.received, "version 9");
  assert_true(outcome.error.hint[0] != '\0');
  // A collective that does not exist; then also another magic number.
  header.version = kWorkerVersion;
  header.signature.collective = collective_at(index_of(kLastCollective) + 1);
  header.write(bytes);
  for (int turn = 0; turn < 2; ++turn) {
    outcome = answer_to(bytes);
    assert_int_equal(outcome.status.code(), DIST_INTERNAL);
    assert_non_null(std::strstr(outcome.error.message, "worker 1 sent a header that cannot be read"));
    bytes[0] ^= std::byte{1};
  }
  // A member that no worker can have, and a negative time.
  header.signature.collective = Collective::kBarrier;
  header.last = -2;
  header.write(bytes);
  assert_true(WorkerHeader().read(bytes) == Reading::kBad);
  header.last = INT32_MAX;
  header.last_alone_ns = -2;
  header.write(bytes);
  assert_true(WorkerHeader().read(bytes) == Reading::kBad);
  header.last_alone_ns = 77;
  header.write(bytes);
  WorkerHeader again;
  assert_true(again.read(bytes) == Reading::kGood);
  assert_int_equal(again.last, INT32_MAX);
  assert_int_equal(again.last_alone_ns, 77);
  // If the header equals this worker's own in all other fields, only these two are read.
  const WorkerHeader own = again;
  std::byte own_bytes[WorkerHeader::kBytes];
  own.write(own_bytes);
  header.last_alone_ns = 78;
  header.write_last(bytes);
  assert_true(again.read(bytes, own, own_bytes) == Reading::kGood);
  assert_int_equal(again.last_alone_ns, 78);
  header.last = -2;
  header.write_last(bytes);
  assert_true(again.read(bytes, own, own_bytes) == Reading::kBad);
}

// The transport of a worker that was stopped: after worker 2 is lost, this worker takes some time to learn
// that the others have given it up.
class LateTransport final : public ForwardingTransport {
 public:
  explicit LateTransport(Transport& below) noexcept : ForwardingTransport(below) {}

  bool up_to_date() const noexcept override {
    if (!below_.lost(2)) return true;
    ++asked_;
    return false;
  }
  bool given_up() const noexcept override { return asked_ > 5; }

 private:
  mutable std::atomic<int> asked_{0};
};

void who_was_given_up_blames_no_other_worker(void**) {
  CountingMemory memory;
  const auto network = make_counted<InProcessNetwork>(*memory, 3, std::size_t{1} << 16);
  Transport* transports[3] = {};
  for (int w = 0; w < 3; ++w) assert_true(network->join(w, &transports[w]).ok());
  LateTransport late(*transports[1]);
  Group group(*memory, 1, {}, {}, 0);
  const std::vector<int> members = {1, 1, 1};
  WorkerCommunicator communicator(*memory, late, group, {}, {.members = members});
  group.begin_run({});
  communicator.begin_run();
  transports[2]->close();
  double got = 0;
  assert_int_equal(sum({group, 0, nullptr, 0, 1 << 20}, communicator, 1, 1, &got).code(), DIST_UNAVAILABLE);
  assert_int_equal(last_error().culprit.worker, 1);
  for (Transport* each : transports) each->close();
}

void who_fails_is_named_with_its_replica(void**) {
  for (int turn = 0; turn < 18; ++turn) {
    const int who = turn % 6;
    Cluster cluster({2, 2, 2}, {});
    const auto outcomes =
        cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
          double got = 0;
          DIST_TRY(sum(member, communicator, rank, 2, &got));
          if (rank == who) return invalid_argument("no more data");
          return sum(member, communicator, rank, 1, &got);
        });
    for (int r = 0; r < 6; ++r) {
      const Outcome& each = outcomes[static_cast<std::size_t>(r)];
      if (r == who) {
        assert_int_equal(each.status.code(), DIST_INVALID_ARGUMENT);
        continue;
      }
      assert_int_equal(each.status.code(), DIST_ABORTED);
      assert_non_null(std::strstr(each.error.message, "no more data"));
      if (number(each.error.culprit.replica) != who)
        std::printf("# %d of %d: %s\n", r, who, each.error.message);
      assert_int_equal(number(each.error.culprit.replica), who);
      // The members of the failed member's worker have the report of their own group.
      if (r / 2 != who / 2) assert_int_equal(each.error.culprit.worker, who / 2);
    }
    works_again(cluster);
  }
}

void who_returns_early_is_named(void**) {
  // Repeated, because the order in which workers learn of events is random.
  for (int turn = 0; turn < 20; ++turn) {
    const int early = turn % 2;
    Cluster cluster({1, 1, 1}, {});
    auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
      double got = 0;
      return sum(member, communicator, rank, rank == early ? 2 : 3, &got);
    });
    assert_true(outcomes[static_cast<std::size_t>(early)].status.ok());
    outcomes.erase(outcomes.begin() + early);
    for (const Outcome& each : outcomes) {
      assert_int_equal(each.status.code(), DIST_ABORTED);
      assert_int_equal(each.error.culprit.worker, early);
      assert_non_null(std::strstr(each.error.message, "returned early"));
      // If worker 0, which reports, has left, every worker makes its own report, and states that.
      if ((std::strstr(each.error.message, "which reports for all workers") != nullptr) != (early == 0))
        std::printf("# %s\n", each.error.message);
      assert_int_equal(
          std::strstr(each.error.message, "only: worker 0, which reports for all workers, ") != nullptr,
          early == 0);
    }
    works_again(cluster);
  }
}

// The time of all workers, which the test advances, and how often each worker has read it.
struct Clock {
  static inline thread_local int reader = 0;
  std::atomic<int64_t> now{1};
  std::atomic<int> looks[3] = {};

  Host host() noexcept {
    Host host;
    host.clock_user_data = this;
    host.clock_fn = [](void* self) {
      auto& clock = *static_cast<Clock*>(self);
      ++clock.looks[reader];
      return clock.now.load();
    };
    return host;
  }
};

void who_does_not_come_is_named_after_the_deadline(void**) {
  // One member per worker, so that no member waits within its worker.
  for (const int late : {0, 2}) {
    Clock clock;
    Cluster cluster({1, 1, 1}, {.host = clock.host()});
    std::atomic<int> waiting{0};
    std::atomic<int> back{0};
    const auto outcomes =
        cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
          Clock::reader = rank;
          double got = 0;
          DIST_TRY(sum(member, communicator, rank, 1, &got));
          if (communicator.me() == late) {
            // Advances the time when both others wait. They read it when they begin, and again when they have
            // sent their headers.
            while (waiting.load() != 2) std::this_thread::yield();
            for (int other = 0; other < 3; ++other) {
              while (other != late && clock.looks[other].load() < 2) std::this_thread::yield();
            }
            while (back.load() != 2) {
              clock.now.fetch_add(1'000'000);
              std::this_thread::yield();
            }
            return kOk;
          }
          clock.looks[rank].store(0);
          waiting.fetch_add(1);
          Member hurried = member;
          hurried.timeout_ns = 20'000'000;
          const Status status = sum(hurried, communicator, rank, 1, &got);
          back.fetch_add(1);
          return status;
        });
    for (int r = 0; r < 3; ++r) {
      const Outcome& each = outcomes[static_cast<std::size_t>(r)];
      if (r == late) {
        assert_true(each.status.ok());
        continue;
      }
      assert_int_equal(each.status.code(), DIST_DEADLINE_EXCEEDED);
      assert_int_equal(each.error.culprit.worker, late);
      assert_non_null(std::strstr(each.error.message, "did not arrive"));
    }
    works_again(cluster);
  }
}

// If a member is late within its worker, less time remains for the other workers.
void a_collective_has_one_deadline(void**) {
  constexpr int64_t kMs = 1'000'000;
  Clock clock;
  Cluster cluster({2, 1}, {.host = clock.host()});
  std::atomic<int> back{0};
  const auto outcomes =
      cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
        Clock::reader = rank;
        if (rank == 2) {
          while (!cluster.group(0).arrived(1, 1)) std::this_thread::yield();
          clock.now = 25 * kMs;
          while (back.load() != 2) std::this_thread::yield();
          return kOk;
        }
        if (rank == 1) {
          while (clock.looks[0].load() == 0) std::this_thread::yield();
          clock.now = 15 * kMs;
        }
        Member hurried = member;
        hurried.timeout_ns = 20 * kMs;
        double got = 0;
        const Status status = sum(hurried, communicator, rank, 1, &got);
        back.fetch_add(1);
        return status;
      });
  for (int r = 0; r < 2; ++r) {
    const Outcome& each = outcomes[static_cast<std::size_t>(r)];
    assert_int_equal(each.status.code(), DIST_DEADLINE_EXCEEDED);
    assert_int_equal(each.error.culprit.worker, 1);
  }
}

void a_cancelled_worker_ends_all(void**) {
  Cluster cluster({2, 2}, {});
  std::atomic<int> waiting{0};
  const auto outcomes =
      cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
        double got = 0;
        DIST_TRY(sum(member, communicator, rank, 1, &got));
        if (communicator.me() == 1) {
          // The members of worker 0 wait for this worker, which never makes that call.
          while (waiting.load() != 2) std::this_thread::yield();
          if (member.me == 0) cluster.group(0).cancel("enough");
          return kOk;
        }
        waiting.fetch_add(1);
        return sum(member, communicator, rank, 1, &got);
      });
  for (int r = 0; r < 2; ++r) {
    // A member may learn first that the others have left.
    const Outcome& each = outcomes[static_cast<std::size_t>(r)];
    assert_true(each.status.code() == DIST_CANCELLED || each.status.code() == DIST_ABORTED);
    assert_string_equal(each.error.message, outcomes[0].error.message);
  }
  works_again(cluster);
}

// Loses one worker at every possible message. All members return, and results without an error are correct.
void a_worker_may_be_lost_at_any_message(void** state) {
  const std::size_t most_bytes = *state != nullptr ? 1 : std::size_t{1} << 20;
  constexpr int kTimes = 3;
  int failed_runs = 0;
  int64_t lose_at = 0;
  for (bool lost = true; lost; ++lose_at) {
    for (const int victim : {0, 1}) {
      Cluster cluster({2, 1, 1}, {.unsteady = true,
                                  .lose_at = lose_at,
                                  .victim = victim,
                                  .most_bytes = most_bytes,
                                  .seed = kSeed + static_cast<uint64_t>(lose_at)});
      double got[4] = {};
      const auto outcomes =
          cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
            return sum(member, communicator, rank, kTimes, &got[rank]);
          });
      lost = cluster.transport(victim == 0 ? 1 : 0).lost(victim);
      for (std::size_t r = 0; r < 4; ++r) {
        if (outcomes[r].status.ok()) {
          assert_true(got[r] == 6 + 4 * (kTimes - 1));
          continue;
        }
        ++failed_runs;
        assert_true(outcomes[r].error.message[0] != '\0');
        assert_true(lost);
      }
    }
  }
  // The loop must have covered the messages of all collectives.
  assert_true(lose_at > kTimes * 6);
  assert_true(failed_runs > kTimes * 6);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  static int unsteady = 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(all_layouts_write_the_same),
      {"all_layouts_write_the_same, unsteady", all_layouts_write_the_same, nullptr, nullptr, &unsteady},
      cmocka_unit_test(sixteen_workers_meet_often),
      cmocka_unit_test(workers_that_disagree_are_told_so),
      cmocka_unit_test(other_members_than_expected_are_told_so),
      cmocka_unit_test(who_cannot_be_understood_is_named),
      cmocka_unit_test(who_was_given_up_blames_no_other_worker),
      cmocka_unit_test(who_fails_is_named_with_its_replica),
      cmocka_unit_test(who_returns_early_is_named),
      cmocka_unit_test(who_does_not_come_is_named_after_the_deadline),
      cmocka_unit_test(a_cancelled_worker_ends_all),
      cmocka_unit_test(a_collective_has_one_deadline),
      cmocka_unit_test(a_worker_may_be_lost_at_any_message),
      {"a_worker_may_be_lost_at_any_message, in pieces", a_worker_may_be_lost_at_any_message, nullptr,
       nullptr, &unsteady},
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
