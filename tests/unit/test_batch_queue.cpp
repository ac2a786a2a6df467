// SPDX-License-Identifier: Apache-2.0
// core/serve/batch_queue.hpp, event by event, and its invariants under random events.
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "core/serve/batch_queue.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

using Entry = BatchQueue::Entry;

struct Fixture {
  Fixture(int instances, const BatchQueue::Options& options)
      : memory(Ref<Memory>::adopt(Memory::create({}))),
        queue(*memory, instances, options),
        room(static_cast<std::size_t>(options.max_items)) {}
  std::vector<Entry*> form(int instance, int64_t now) {
    return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(queue.form(instance, now, room))};
  }
  // Ends the step, and completes all its entries.
  void end(int instance, const std::vector<Entry*>& step) {
    for (Entry* const each : step) queue.leave(*each);
    queue.end_step(instance);
  }

  Ref<Memory> memory;
  BatchQueue queue;
  std::vector<Entry*> room;
};

void a_step_begins_when_it_is_due(void**) {
  Fixture f(1, {.max_items = 2, .max_delay_ns = 100});
  std::array<Entry, 3> entries;
  assert_true(f.queue.arrive(entries[0], 1000));
  assert_false(f.queue.is_due(1099));
  assert_int_equal(f.queue.due_at(1000), 1100);
  assert_true(f.form(0, 1099).empty());
  assert_true(f.queue.is_due(1100));
  assert_true(f.queue.arrive(entries[1], 1050));
  assert_true(f.queue.is_due(1050));
  assert_int_equal(f.queue.due_at(1050), 0);
  assert_true(f.queue.arrive(entries[2], 1060));
  const auto step = f.form(0, 1060);
  assert_int_equal(step.size(), 2);
  assert_ptr_equal(step[0], &entries[0]);
  assert_ptr_equal(step[1], &entries[1]);
  assert_true(f.queue.is_stepping(0));
  assert_int_equal(f.queue.due_at(1060), 1160);
  f.end(0, step);
  assert_int_equal(f.queue.num_active(), 0);
  assert_int_equal(f.queue.num_waiting(), 1);
}

// If an instance has entries, an arriving entry joins them at once.
void who_comes_joins_those_who_are_there(void**) {
  Fixture f(2, {.max_items = 3, .max_delay_ns = 100});
  std::array<Entry, 5> entries;
  (void)f.queue.arrive(entries[0], 0);
  assert_int_equal(f.form(0, 100).size(), 1);
  f.queue.end_step(0);
  (void)f.queue.arrive(entries[1], 101);
  assert_true(f.form(1, 101).empty());
  const auto step = f.form(0, 101);
  assert_int_equal(step.size(), 2);
  assert_ptr_equal(step[0], &entries[0]);
  f.queue.end_step(0);
  // A held entry occupies room of its instance, but takes part in no step.
  entries[0].held = true;
  assert_true(f.queue.has_own(0));
  for (std::size_t i = 2; i < 5; ++i) (void)f.queue.arrive(entries[i], 102);
  const auto next = f.form(0, 102);
  assert_int_equal(next.size(), 2);
  assert_ptr_equal(next[0], &entries[1]);
  assert_ptr_equal(next[1], &entries[2]);
  assert_false(f.queue.could_join(0, 500));
  assert_true(f.queue.could_join(1, 500));
  assert_true(f.queue.has_empty_instance());
}

void buckets_take_turns(void**) {
  Fixture f(1, {.max_items = 4, .num_buckets = 3});
  std::array<Entry, 6> entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].bucket = static_cast<int>(i % 3);
    (void)f.queue.arrive(entries[i], 0);
  }
  std::array<int, 3> turns{};
  for (int k = 0; k < 6; ++k) {
    const auto step = f.form(0, 0);
    assert_true(!step.empty());
    for (const Entry* const each : step) assert_int_equal(each->bucket, step.front()->bucket);
    ++turns[static_cast<std::size_t>(step.front()->bucket)];
    f.queue.end_step(0);
  }
  // The instance has room for four, so no entry of the third bucket has joined.
  assert_int_equal(turns[0], 3);
  assert_int_equal(turns[1], 3);
  assert_int_equal(turns[2], 0);
  // Free room goes to the entry that arrived first, even if the bucket whose turn it is has a later one.
  Entry late;
  late.bucket = 0;
  (void)f.queue.arrive(late, 0);
  f.queue.leave(entries[0]);
  std::array<int, 3> later{};
  for (int k = 0; k < 3; ++k) {
    for (const Entry* const each : f.form(0, 0)) ++later[static_cast<std::size_t>(each->bucket)];
    f.queue.end_step(0);
  }
  assert_int_equal(later[0], 1);
  assert_int_equal(later[2], 1);
  assert_ptr_equal(f.queue.items(0).back(), &entries[2]);
}

void nobody_passes_the_first_one(void**) {
  Fixture f(1, {.max_items = 8, .max_bytes = 10});
  std::array<Entry, 3> entries;
  const std::array<int64_t, 3> bytes{7, 5, 1};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].bytes = bytes[i];
    (void)f.queue.arrive(entries[i], 0);
  }
  const auto step = f.form(0, 0);
  assert_int_equal(step.size(), 1);
  f.end(0, step);
  assert_int_equal(f.form(0, 0).size(), 2);
}

// Checks the invariants of the header after each random event.
void what_must_hold(void**) {
  const uint32_t seed = std::random_device{}();
  std::printf("# seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  for (int round = 0; round < 100; ++round) {
    const int n = 1 + below(3);
    const BatchQueue::Options options{.max_items = 1 + below(5),
                                      .max_delay_ns = below(3) * 50,
                                      .max_waiting = 40,
                                      .max_bytes = below(2) * 100,
                                      .num_buckets = 1 + below(3)};
    Fixture f(n, options);
    std::vector<Entry> entries(400);
    std::vector<Entry*> waiting;
    std::vector<std::vector<Entry*>> steps(static_cast<std::size_t>(n));
    std::size_t used = 0;
    std::size_t active = 0;
    int64_t now = 0;
    while (used < entries.size()) {
      now += below(20);
      const int instance = below(n);
      auto& step = steps[static_cast<std::size_t>(instance)];
      switch (below(4)) {
        case 0: {
          Entry& entry = entries[used++];
          entry.priority = below(3) - 1;
          entry.bucket = below(options.num_buckets);
          entry.bytes = options.max_bytes == 0 ? below(1000) : below(101);
          entry.deadline_ns = below(2) * (1 + below(1000));
          const bool taken = f.queue.arrive(entry, now);
          assert_int_equal(taken, waiting.size() < options.max_waiting);
          if (taken) waiting.push_back(&entry);
          break;
        }
        case 1:
          if (f.queue.is_stepping(instance)) break;
          step = f.form(instance, now);
          for (const Entry* const each : step) {
            assert_int_equal(each->bucket, step.front()->bucket);
            assert_int_equal(each->instance(), instance);
          }
          for (Entry* const each : step) {
            const auto was = std::find(waiting.begin(), waiting.end(), each);
            if (was == waiting.end()) continue;
            waiting.erase(was);
            ++active;
            // No entry of the same bucket that has precedence over a joined one is left waiting.
            for (const Entry* const other : waiting) {
              const bool joined = std::find(step.begin(), step.end(), other) != step.end();
              assert_false(other->bucket == each->bucket && !joined && other->before(*each));
            }
          }
          break;
        case 2:
          if (!f.queue.is_stepping(instance)) break;
          for (Entry* const each : step) {
            assert_true(each->in_step());
            if (below(2) == 0)
              f.queue.leave(*each), --active, assert_false(each->in_step());
            else
              each->held = below(4) == 0;
          }
          f.queue.end_step(instance);
          step.clear();
          break;
        default:
          if (!waiting.empty()) {
            const auto which = waiting.begin() + below(static_cast<int>(waiting.size()));
            f.queue.leave(**which);
            waiting.erase(which);
          }
          break;
      }
      for (int i = 0; i < n; ++i) {
        int64_t bytes = 0;
        for (Entry* const each : f.queue.items(i)) {
          bytes += each->bytes;
          if (!each->in_step() && below(2) == 0) each->held = false;
        }
        assert_true(f.queue.items(i).size() <= static_cast<std::size_t>(options.max_items));
        assert_true(options.max_bytes == 0 || bytes <= options.max_bytes);
      }
      assert_int_equal(f.queue.num_waiting(), waiting.size());
      assert_int_equal(f.queue.num_active(), active);
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_step_begins_when_it_is_due),
      cmocka_unit_test(who_comes_joins_those_who_are_there),
      cmocka_unit_test(buckets_take_turns),
      cmocka_unit_test(nobody_passes_the_first_one),
      cmocka_unit_test(what_must_hold),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
