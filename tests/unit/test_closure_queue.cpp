// SPDX-License-Identifier: Apache-2.0
// core/ps/closure_queue.hpp, event by event, and under random events.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory_resource>
#include <random>
#include <set>
#include <vector>

#include "core/ps/closure_queue.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

constexpr int64_t kPause = ClosureQueue::kFirstPauseNs;

struct Fixture {
  explicit Fixture(int workers, int per_worker = 1, int max_losses = 16)
      : memory(Ref<Memory>::adopt(Memory::create({}))), queue(*memory, workers, per_worker, max_losses) {}
  // Returns the closure of the next assignment, or -1 if there is none. `worker` receives its worker.
  int64_t next(int64_t now, int* worker = nullptr) {
    ClosureQueue::Assignment out{-1, -1};
    if (!queue.next(now, &out)) return -1;
    if (worker != nullptr) *worker = out.worker;
    return out.id;
  }
  void schedule(int n) {
    for (int i = 0; i < n; ++i) (void)queue.schedule();
  }

  Ref<Memory> memory;
  ClosureQueue queue;
};

void workers_take_turns(void**) {
  Fixture f(2);
  f.schedule(4);
  assert_int_equal(f.next(0), -1);
  f.queue.worker_up(1);
  f.queue.worker_up(0);
  f.queue.worker_up(0);
  int worker = -1;
  assert_int_equal(f.next(0, &worker), 0);
  assert_int_equal(worker, 1);
  assert_int_equal(f.next(0, &worker), 1);
  assert_int_equal(worker, 0);
  assert_int_equal(f.next(0), -1);
  assert_int_equal(f.queue.num_in_flight(), 2);
  assert_int_equal(f.queue.num_waiting(), 2);
  f.queue.done(1);
  // The watermark does not pass a closure that has not ended.
  assert_int_equal(f.queue.watermark(), 0);
  assert_int_equal(f.next(0, &worker), 2);
  assert_int_equal(worker, 0);
  f.queue.done(0);
  assert_int_equal(f.queue.watermark(), 2);
  assert_int_equal(f.next(0, &worker), 3);
  assert_int_equal(worker, 1);
  f.queue.done(2);
  f.queue.done(3);
  assert_int_equal(f.queue.watermark(), 4);
  assert_true(f.queue.idle());
}

void several_at_a_time(void**) {
  Fixture f(1, 3);
  f.schedule(4);
  f.queue.worker_up(0);
  for (int i = 0; i < 3; ++i) assert_int_equal(f.next(0), i);
  assert_int_equal(f.next(0), -1);
  assert_int_equal(f.queue.num_of(0), 3);
  // A worker that is down gets no new closure when one of its closures ends.
  f.queue.worker_down(0);
  f.queue.done(1);
  assert_int_equal(f.next(0), -1);
  f.queue.worker_up(0);
  assert_int_equal(f.next(0), 3);
  assert_int_equal(f.next(0), -1);
}

void what_is_lost_goes_to_another_worker(void**) {
  Fixture f(3);
  f.schedule(2);
  f.queue.worker_up(0);
  assert_int_equal(f.next(0), 0);
  f.queue.worker_down(0);
  assert_true(f.queue.lost(0, 0) == ClosureQueue::Lost::kAgain);
  f.queue.worker_up(0);
  f.queue.worker_up(1);
  int worker = -1;
  // Other closures go first until the pause has passed.
  assert_int_equal(f.next(kPause - 1, &worker), 1);
  assert_int_equal(worker, 0);
  assert_int_equal(f.queue.ask_again_ns(kPause - 1), kPause);
  assert_int_equal(f.next(kPause, &worker), 0);
  assert_int_equal(worker, 1);
  // Worker 1 loses it again. Now worker 0 counts as another worker, and the pause is twice as long.
  f.queue.worker_down(1);
  assert_true(f.queue.lost(0, kPause) == ClosureQueue::Lost::kAgain);
  f.queue.done(1);
  assert_int_equal(f.next(3 * kPause - 1), -1);
  assert_int_equal(f.next(3 * kPause, &worker), 0);
  assert_int_equal(worker, 0);
  assert_int_equal(f.queue.num_losses(), 2);
}

void the_same_worker_gets_it_where_there_is_no_other(void**) {
  Fixture f(2);
  f.schedule(1);
  f.queue.worker_up(0);
  assert_int_equal(f.next(0), 0);
  f.queue.worker_down(0);
  assert_true(f.queue.lost(0, 0) == ClosureQueue::Lost::kAgain);
  f.queue.worker_up(0);
  int worker = -1;
  assert_int_equal(f.next(kPause, &worker), 0);
  assert_int_equal(worker, 0);
  // While another worker is up and busy, the closure waits for that worker, but only for a limited time.
  f.queue.worker_up(1);
  f.schedule(1);
  assert_int_equal(f.next(kPause, &worker), 1);
  assert_int_equal(worker, 1);
  f.queue.worker_down(0);
  assert_true(f.queue.lost(0, 0) == ClosureQueue::Lost::kAgain);
  f.queue.worker_up(0);
  assert_int_equal(f.next(2 * kPause), -1);
  const int64_t patient = ClosureQueue::kPatience * 2 * kPause;
  assert_int_equal(f.queue.ask_again_ns(2 * kPause), patient);
  assert_int_equal(f.next(patient, &worker), 0);
  assert_int_equal(worker, 0);
}

void one_that_kills_all_workers_ends(void**) {
  Fixture f(1, 1, 2);
  f.schedule(1);
  int64_t now = 0;
  for (int i = 0; i < 3; ++i) {
    f.queue.worker_up(0);
    now += ClosureQueue::kLongestPauseNs;
    assert_int_equal(f.next(now), 0);
    f.queue.worker_down(0);
    assert_true((f.queue.lost(0, now) == ClosureQueue::Lost::kTooOften) == (i == 2));
  }
  assert_true(f.queue.idle());
  assert_int_equal(f.queue.watermark(), 1);
}

void waiting_ones_are_cancelled(void**) {
  Fixture f(2);
  f.schedule(4);
  f.queue.worker_up(0);
  f.queue.worker_up(1);
  assert_int_equal(f.next(0), 0);
  assert_int_equal(f.next(0), 1);
  f.queue.worker_down(1);
  assert_true(f.queue.lost(1, 0) == ClosureQueue::Lost::kAgain);
  assert_true(f.queue.cancel(3));
  assert_false(f.queue.cancel(3));
  assert_false(f.queue.cancel(0));
  std::pmr::vector<int64_t> cancelled;
  f.queue.cancel_waiting(&cancelled);
  assert_true((cancelled == std::pmr::vector<int64_t>{1, 2}));
  assert_int_equal(f.queue.watermark(), 0);
  f.queue.done(0);
  assert_int_equal(f.queue.watermark(), 4);
  assert_true(f.queue.idle());
}

void numbers_go_on(void**) {
  Fixture f(1);
  f.queue.resume(7);
  assert_int_equal(f.queue.watermark(), 7);
  assert_int_equal(f.queue.schedule(), 7);
  f.queue.worker_up(0);
  assert_int_equal(f.next(0), 7);
  f.queue.done(7);
  assert_int_equal(f.queue.watermark(), 8);
}

// Each closure ends exactly once. A worker never has more closures than places, and the watermark never
// decreases.
void random_events(void**) {
  constexpr uint64_t kSeed = 20261123;
  std::printf("# seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    const int workers = 1 + static_cast<int>(random() % 5);
    const int per_worker = 1 + static_cast<int>(random() % 3);
    Fixture f(workers, per_worker, 1 << 20);
    std::map<int64_t, int> in_flight;  // closure, worker
    std::set<int64_t> over;
    std::vector<bool> up(static_cast<std::size_t>(workers));
    int64_t now = 0;
    int64_t scheduled = 0;
    int64_t watermark = 0;
    for (int step = 0; step < 400 || static_cast<int64_t>(over.size()) < scheduled; ++step) {
      const bool ends = step >= 400;
      const auto w = static_cast<std::size_t>(random() % static_cast<unsigned>(workers));
      switch (random() % 5) {
        case 0:
          if (!ends) f.queue.schedule(), ++scheduled;
          break;
        case 1:
          f.queue.worker_up(static_cast<int>(w));
          up[w] = true;
          break;
        case 2:
          if (ends || !up[w]) break;
          f.queue.worker_down(static_cast<int>(w));
          up[w] = false;
          for (auto at = in_flight.begin(); at != in_flight.end();) {
            if (at->second != static_cast<int>(w)) {
              ++at;
              continue;
            }
            assert_true(f.queue.lost(at->first, now) == ClosureQueue::Lost::kAgain);
            at = in_flight.erase(at);
          }
          break;
        case 3: {
          ClosureQueue::Assignment next{};
          while (f.queue.next(now, &next)) {
            assert_true(up[static_cast<std::size_t>(next.worker)]);
            assert_true(in_flight.emplace(next.id, next.worker).second);
            assert_true(over.count(next.id) == 0);
            assert_true(f.queue.num_of(next.worker) <= per_worker);
          }
          break;
        }
        default:
          if (in_flight.empty()) break;
          {
            auto at = in_flight.begin();
            std::advance(at, static_cast<long>(random() % in_flight.size()));
            f.queue.done(at->first);
            assert_true(over.insert(at->first).second);
            in_flight.erase(at);
          }
      }
      now += static_cast<int64_t>(random() % static_cast<unsigned>(kPause));
      assert_true(f.queue.watermark() >= watermark);
      watermark = f.queue.watermark();
      assert_true(over.count(watermark) == 0);
      assert_int_equal(f.queue.num_in_flight(), in_flight.size());
      assert_int_equal(f.queue.num_waiting(),
                       scheduled - static_cast<int64_t>(over.size() + in_flight.size()));
    }
    assert_true(f.queue.idle());
    assert_int_equal(f.queue.watermark(), scheduled);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(workers_take_turns),
      cmocka_unit_test(several_at_a_time),
      cmocka_unit_test(what_is_lost_goes_to_another_worker),
      cmocka_unit_test(the_same_worker_gets_it_where_there_is_no_other),
      cmocka_unit_test(one_that_kills_all_workers_ends),
      cmocka_unit_test(waiting_ones_are_cancelled),
      cmocka_unit_test(numbers_go_on),
      cmocka_unit_test(random_events),
  };
  return cmocka_run_group_tests_name("the queue of closures", tests, nullptr, nullptr);
}
