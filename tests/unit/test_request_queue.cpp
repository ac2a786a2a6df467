// SPDX-License-Identifier: Apache-2.0
// core/serve/request_queue.hpp, event by event, and under random events next to a much simpler queue.
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "core/serve/request_queue.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

using Arrived = RequestQueue::Arrived;

struct Fixture {
  explicit Fixture(int instances, std::size_t most = 1000)
      : memory(Ref<Memory>::adopt(Memory::create({}))), queue(*memory, instances, most) {
    for (int i = 0; i < instances; ++i) queue.take_part(i);
  }
  Arrived arrive(RequestQueue::Entry& entry) {
    given = -1;
    return queue.arrive(entry, &given);
  }

  Ref<Memory> memory;
  RequestQueue queue;
  int given = -1;
};

RequestQueue::Entry& with_priority(RequestQueue::Entry& entry, int32_t priority) {
  entry.priority = priority;
  return entry;
}

void first_come_first_served(void**) {
  Fixture f(1);
  std::array<RequestQueue::Entry, 4> entries;
  for (auto& entry : entries) assert_true(f.arrive(entry) == Arrived::kQueued);
  assert_int_equal(f.queue.queued(), 4);
  for (auto& entry : entries) {
    assert_ptr_equal(f.queue.come(0), &entry);
    assert_false(entry.queued);
  }
  assert_null(f.queue.come(0));
  assert_int_equal(f.queue.busy(), 0);
}

void the_greater_priority_first(void**) {
  Fixture f(1);
  std::array<RequestQueue::Entry, 5> entries;
  const std::array<int32_t, 5> priorities{0, kGreatestPriority, kLeastPriority, 3, kGreatestPriority};
  for (std::size_t i = 0; i < entries.size(); ++i)
    assert_true(f.arrive(with_priority(entries[i], priorities[i])) == Arrived::kQueued);
  for (const std::size_t i : {std::size_t{1}, std::size_t{4}, std::size_t{3}, std::size_t{0}, std::size_t{2}})
    assert_ptr_equal(f.queue.come(0), &entries[i]);
}

// The instance that became free last has the warmest caches.
void the_latest_free_one_is_taken(void**) {
  Fixture f(3);
  for (const int i : {0, 2, 1}) assert_null(f.queue.come(i));
  std::array<RequestQueue::Entry, 3> entries;
  const std::array<int, 3> expected{1, 2, 0};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    assert_true(f.arrive(entries[i]) == Arrived::kGiven);
    assert_int_equal(f.given, expected[i]);
  }
  RequestQueue::Entry late;
  assert_true(f.arrive(late) == Arrived::kQueued);
}

void a_full_queue_refuses(void**) {
  Fixture f(1, 2);
  std::array<RequestQueue::Entry, 4> entries;
  assert_true(f.arrive(entries[0]) == Arrived::kQueued);
  assert_true(f.arrive(entries[1]) == Arrived::kQueued);
  assert_true(f.arrive(entries[2]) == Arrived::kFull);
  assert_false(entries[2].queued);
  f.queue.withdraw(entries[0]);
  assert_true(f.arrive(entries[2]) == Arrived::kQueued);
  // An entry that wants all instances is not a request, and is never refused.
  RequestQueue::Entry run;
  assert_false(f.queue.arrive_for_all(run));
}

void nothing_passes_a_run(void**) {
  Fixture f(2);
  assert_null(f.queue.come(0));
  assert_null(f.queue.come(1));
  RequestQueue::Entry busy;
  RequestQueue::Entry behind;
  RequestQueue::Entry urgent;
  RequestQueue::Entry run;
  assert_true(f.arrive(busy) == Arrived::kGiven);
  const int at = f.given;
  assert_false(f.queue.arrive_for_all(run));
  // One instance is free, but a later request waits behind the run. A request with a higher priority does
  // not.
  assert_true(f.arrive(behind) == Arrived::kQueued);
  assert_true(f.arrive(with_priority(urgent, 1)) == Arrived::kGiven);
  const int urgent_at = f.given;
  assert_null(f.queue.next_for_all());
  assert_null(f.queue.come(urgent_at));
  assert_null(f.queue.next_for_all());
  assert_null(f.queue.come(at));
  assert_ptr_equal(f.queue.next_for_all(), &run);
  assert_true(f.queue.all_taken());
  int instance = -1;
  assert_null(f.queue.next(&instance));
  f.queue.give_back();
  assert_ptr_equal(f.queue.next(&instance), &behind);
  assert_null(f.queue.next(&instance));
}

// Requests that arrived before the run or have a higher priority are handled before it, even if they want one
// specific instance.
void a_run_waits_for_those_before_it(void**) {
  Fixture f(2);
  RequestQueue::Entry one;
  RequestQueue::Entry own;
  RequestQueue::Entry run;
  own.wants = 1;
  assert_true(f.arrive(one) == Arrived::kQueued);
  assert_true(f.arrive(own) == Arrived::kQueued);
  assert_false(f.queue.arrive_for_all(run));
  assert_ptr_equal(f.queue.come(0), &one);
  assert_null(f.queue.come(0));
  assert_null(f.queue.next_for_all());
  assert_ptr_equal(f.queue.come(1), &own);
  assert_null(f.queue.next_for_all());
  assert_null(f.queue.come(1));
  assert_ptr_equal(f.queue.next_for_all(), &run);
}

void what_wants_one_instance_gets_that(void**) {
  Fixture f(2);
  assert_null(f.queue.come(0));
  RequestQueue::Entry own;
  RequestQueue::Entry any;
  own.wants = 1;
  assert_true(f.arrive(own) == Arrived::kQueued);
  assert_true(f.arrive(any) == Arrived::kGiven);
  assert_int_equal(f.given, 0);
  assert_ptr_equal(f.queue.come(1), &own);
  RequestQueue::Entry again;
  again.wants = 0;
  assert_null(f.queue.come(0));
  assert_true(f.arrive(again) == Arrived::kGiven);
  assert_int_equal(f.given, 0);
}

void the_first_deadline_is_known(void**) {
  Fixture f(1);
  std::array<RequestQueue::Entry, 6> entries;
  const std::array<int64_t, 6> deadlines{50, 0, 10, 40, 30, 20};
  assert_null(f.queue.first_deadline());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].deadline_ns = deadlines[i];
    assert_true(f.arrive(entries[i]) == Arrived::kQueued);
  }
  assert_ptr_equal(f.queue.first_deadline(), &entries[2]);
  f.queue.withdraw(entries[2]);
  assert_ptr_equal(f.queue.first_deadline(), &entries[5]);
  assert_ptr_equal(f.queue.come(0), &entries[0]);
  assert_ptr_equal(f.queue.come(0), &entries[1]);
  f.queue.withdraw(entries[5]);
  assert_ptr_equal(f.queue.first_deadline(), &entries[4]);
}

void who_takes_no_part_gets_nothing(void**) {
  Fixture f(2);
  assert_null(f.queue.come(0));
  assert_null(f.queue.come(1));
  f.queue.take_no_part(1);
  RequestQueue::Entry one;
  RequestQueue::Entry two;
  assert_true(f.arrive(one) == Arrived::kGiven);
  assert_int_equal(f.given, 0);
  assert_true(f.arrive(two) == Arrived::kQueued);
  // Without any instance, the waiting requests do not delay a run.
  f.queue.take_no_part(0);
  assert_false(f.queue.has_instances());
  RequestQueue::Entry run;
  assert_true(f.queue.arrive_for_all(run));
}

// The same rules, implemented with a list that is always searched from its beginning.
class Simple {
 public:
  explicit Simple(int instances) : state_(static_cast<std::size_t>(instances), 'a') {}

  struct Waiting {
    RequestQueue::Entry* entry;
    int wants;
    int32_t priority;
    int ticket;
  };
  void add(RequestQueue::Entry& entry) {
    const Waiting waiting{&entry, entry.wants, entry.priority, ++ticket_};
    const auto place = std::find_if(list_.begin(), list_.end(),
                                    [&](const Waiting& each) { return each.priority < waiting.priority; });
    list_.insert(place, waiting);
  }
  void remove(RequestQueue::Entry& entry) {
    list_.erase(
        std::find_if(list_.begin(), list_.end(), [&](const Waiting& each) { return each.entry == &entry; }));
  }
  // Returns the entry that instance i takes next, or NULL.
  RequestQueue::Entry* candidate(int i) const {
    if (taken_) return nullptr;
    for (const Waiting& each : list_) {
      if (each.wants == kAllInstances) return nullptr;
      if (each.wants == kAnyInstance || each.wants == i) return each.entry;
    }
    return nullptr;
  }
  RequestQueue::Entry* for_all() const {
    if (taken_ || std::count(state_.begin(), state_.end(), 'b') > 0 || list_.empty()) return nullptr;
    return list_.front().wants == kAllInstances ? list_.front().entry : nullptr;
  }
  char& state(int i) { return state_[static_cast<std::size_t>(i)]; }
  bool& taken() { return taken_; }
  const std::vector<Waiting>& list() const { return list_; }

 private:
  std::vector<Waiting> list_;
  std::vector<char> state_;  // away, free, busy
  bool taken_ = false;
  int ticket_ = 0;
};

// Random arrivals, completions, withdrawals and runs. Each result must equal that of the simple queue.
void as_the_simple_queue_does(void**) {
  const uint32_t seed = std::random_device{}();
  std::printf("# seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  for (int round = 0; round < 200; ++round) {
    const int n = 1 + below(4);
    Fixture f(n);
    Simple simple(n);
    std::vector<RequestQueue::Entry> entries(300);
    std::size_t used = 0;
    // After each change, dispatches every entry that can run.
    const auto settle = [&] {
      int instance = -1;
      while (RequestQueue::Entry* const entry = f.queue.next(&instance)) {
        assert_ptr_equal(simple.candidate(instance), entry);
        assert_int_equal(simple.state(instance), 'f');
        simple.remove(*entry);
        simple.state(instance) = 'b';
      }
      for (int i = 0; i < n; ++i) assert_true(simple.state(i) != 'f' || simple.candidate(i) == nullptr);
      RequestQueue::Entry* const all = f.queue.next_for_all();
      assert_ptr_equal(all, simple.for_all());
      if (all == nullptr) return;
      simple.remove(*all);
      simple.taken() = true;
    };
    while (used < entries.size()) {
      switch (below(6)) {
        case 0:
        case 1: {
          RequestQueue::Entry& entry = entries[used++];
          entry.priority = below(3) == 0 ? below(15) - 7 : 0;
          entry.wants = below(3) == 0 ? below(n) : kAnyInstance;
          entry.deadline_ns = below(2) == 0 ? 1 + below(1000) : 0;
          simple.add(entry);
          if (f.arrive(entry) == Arrived::kGiven) {
            assert_int_equal(simple.state(f.given), 'f');
            assert_ptr_equal(simple.candidate(f.given), &entry);
            simple.remove(entry);
            simple.state(f.given) = 'b';
          }
          break;
        }
        case 2: {
          const int i = below(n);
          if (simple.state(i) == 'f') break;
          RequestQueue::Entry* const entry = f.queue.come(i);
          simple.state(i) = 'f';
          assert_ptr_equal(simple.candidate(i), entry);
          if (entry == nullptr) break;
          simple.remove(*entry);
          simple.state(i) = 'b';
          break;
        }
        case 3:
          if (!simple.list().empty()) {
            const auto which = static_cast<std::size_t>(below(static_cast<int>(simple.list().size())));
            RequestQueue::Entry& entry = *simple.list()[which].entry;
            f.queue.withdraw(entry);
            simple.remove(entry);
          }
          break;
        case 4:
          if (below(4) == 0) {
            RequestQueue::Entry& entry = entries[used++];
            entry.wants = kAllInstances;
            simple.add(entry);
            const bool has = f.queue.arrive_for_all(entry);
            assert_int_equal(has, simple.for_all() == &entry);
            if (has) {
              simple.remove(entry);
              simple.taken() = true;
            }
          }
          break;
        default:
          if (simple.taken()) {
            f.queue.give_back();
            simple.taken() = false;
          }
          break;
      }
      settle();
      int64_t first = 0;
      std::size_t for_one = 0;
      for (const auto& each : simple.list()) {
        if (each.wants == kAllInstances) continue;
        ++for_one;
        const int64_t at = each.entry->deadline_ns;
        if (at != 0 && (first == 0 || at < first)) first = at;
      }
      assert_int_equal(f.queue.queued(), for_one);
      assert_int_equal(f.queue.first_deadline() == nullptr ? 0 : f.queue.first_deadline()->deadline_ns,
                       first);
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(first_come_first_served),
      cmocka_unit_test(the_greater_priority_first),
      cmocka_unit_test(the_latest_free_one_is_taken),
      cmocka_unit_test(a_full_queue_refuses),
      cmocka_unit_test(nothing_passes_a_run),
      cmocka_unit_test(a_run_waits_for_those_before_it),
      cmocka_unit_test(what_wants_one_instance_gets_that),
      cmocka_unit_test(the_first_deadline_is_known),
      cmocka_unit_test(who_takes_no_part_gets_nothing),
      cmocka_unit_test(as_the_simple_queue_does),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
