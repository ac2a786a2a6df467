// SPDX-License-Identifier: Apache-2.0
// core/run/budget_queue.hpp, event by event, and its invariants under random events.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "core/run/budget_queue.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

using Party = BudgetQueue::Party;
using Entry = BudgetQueue::Entry;

struct Told {
  std::vector<Entry*>* list;
  void operator()(Entry& entry) const { list->push_back(&entry); }
};

void threads_are_taken_and_given_back(void**) {
  Party a;
  BudgetQueue queue(3);
  Entry two(a, 2);
  Entry one(a, 1);
  std::vector<Entry*> told;
  queue.arrive(two);
  assert_true(two.admitted() && two.has() == 2 && queue.used() == 2);
  queue.leave(two, Told{&told});
  assert_int_equal(queue.used(), 0);
  queue.arrive(one);
  assert_true(one.admitted() && one.has() == 1);
  queue.leave(one, Told{&told});
  queue.leave(one, Told{&told});  // the second call has no effect
  assert_int_equal(queue.used(), 0);
  assert_true(told.empty());
}

void nobody_overtakes_a_run(void**) {
  Party a;
  Party b;
  BudgetQueue queue(2);
  Entry first(a, 1);
  Entry run(b, 2);
  Entry later(a, 1);
  std::vector<Entry*> told;
  queue.arrive(first);
  queue.arrive(run);
  queue.arrive(later);  // one thread is free, but the run is ahead
  assert_true(run.queued() && later.queued());
  assert_int_equal(queue.queued(), 2);
  queue.leave(first, Told{&told});
  assert_true(told == std::vector<Entry*>{&run});
  queue.leave(run, Told{&told});
  assert_true((told == std::vector<Entry*>{&run, &later}));
  queue.leave(later, Told{&told});
  assert_int_equal(queue.used(), 0);
}

void who_gives_up_makes_way(void**) {
  Party a;
  Party b;
  BudgetQueue queue(2);
  Entry holder(a, 1);
  Entry run(b, 2);
  Entry middle(b, 2);
  Entry last(a, 1);
  std::vector<Entry*> told;
  for (Entry* each : {&holder, &run, &middle, &last}) queue.arrive(*each);
  queue.leave(middle, Told{&told});
  assert_true(told.empty());
  queue.leave(run, Told{&told});
  assert_true(told == std::vector<Entry*>{&last});
  assert_int_equal(queue.queued(), 0);
}

void more_than_there_is_means_all(void**) {
  Party a;
  BudgetQueue queue(2);
  Entry large(a, 100);
  Entry larger(a, 3);
  std::vector<Entry*> told;
  queue.arrive(large);
  queue.arrive(larger);
  assert_true(large.admitted() && large.has() == 2 && larger.queued());
  queue.leave(large, Told{&told});
  assert_true(larger.admitted());
  assert_int_equal(queue.used(), 2);
}

void insiders_let_all_of_their_strategy_pass(void**) {
  Party a;
  Party b;
  BudgetQueue queue(1);
  Entry run(b, 1);
  Entry waiting(a, 1);
  Entry other(b, 1);
  Entry gang(a, 5);
  std::vector<Entry*> told;
  for (Entry* each : {&run, &other, &waiting, &gang}) queue.arrive(*each);
  assert_int_equal(queue.queued(), 3);
  queue.enter_inside(a, Told{&told});  // a replica of b waits for a
  assert_true((told == std::vector<Entry*>{&waiting, &gang}));
  assert_int_equal(waiting.has() + gang.has(), 0);
  Entry also(a, 1);
  queue.arrive(also);
  assert_true(also.admitted() && also.has() == 0);
  queue.enter_inside(a, Told{&told});
  queue.leave_inside(a);
  Entry again(a, 1);
  queue.arrive(again);
  assert_true(again.admitted());
  queue.leave_inside(a);
  Entry late(a, 1);
  queue.arrive(late);
  assert_true(late.queued());
  told.clear();
  queue.leave(waiting, Told{&told});
  assert_true(told.empty());
  assert_int_equal(queue.used(), 1);
  queue.leave(run, Told{&told});
  assert_true(told == std::vector<Entry*>{&other});
}

void an_insider_makes_way_for_who_stood_behind(void**) {
  Party a;
  Party b;
  BudgetQueue queue(2);
  Entry held(b, 1);
  Entry gang(a, 2);
  Entry behind(b, 1);
  std::vector<Entry*> told;
  for (Entry* each : {&held, &gang, &behind}) queue.arrive(*each);
  queue.enter_inside(a, Told{&told});
  assert_true((told == std::vector<Entry*>{&gang, &behind}));
  assert_int_equal(gang.has(), 0);
  assert_int_equal(queue.used(), 2);
}

struct Known {
  std::unique_ptr<Entry> entry;
  std::size_t party;
};

// At most all threads are in use; the first queued entry does not fit; the entries behind it are in the order
// of arrival; and no entry of an insider's strategy is queued.
void check(const BudgetQueue& queue, const std::vector<Known>& line, const std::vector<Party>& parties) {
  int used = 0;
  int queued = 0;
  const Entry* first = nullptr;
  for (const Known& each : line) {
    used += each.entry->has();
    queued += each.entry->queued();
    if (each.entry->queued() && first == nullptr) first = each.entry.get();
    if (each.entry->queued()) assert_int_equal(parties[each.party].insiders, 0);
  }
  assert_int_equal(queue.used(), used);
  assert_int_equal(queue.queued(), queued);
  assert_true(used <= queue.threads());
  if (first != nullptr) assert_true(used + std::min(first->wants(), queue.threads()) > queue.threads());
  bool behind = false;
  for (const Known& each : line) {
    behind = behind || each.entry->queued();
    // An admitted entry behind a queued one was admitted without threads.
    if (behind && each.entry->admitted()) assert_int_equal(each.entry->has(), 0);
  }
}

void random_events(void**) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    BudgetQueue queue(1 + below(5));
    std::vector<Party> parties(3);
    std::vector<Known> line;  // in the order of arrival
    std::vector<Entry*> told;
    const auto remove = [&](std::vector<Known>::iterator at) {
      queue.leave(*at->entry, Told{&told});
      line.erase(at);
    };
    for (int step = 0; step < 200; ++step) {
      const auto party = static_cast<std::size_t>(below(3));
      const int event = below(5);
      told.clear();
      if (event < 2) {
        line.push_back({std::make_unique<Entry>(parties[party], 1 + below(7)), party});
        queue.arrive(*line.back().entry);
      } else if (event == 2 && !line.empty()) {
        remove(line.begin() + below(static_cast<int>(line.size())));
      } else if (event == 3) {
        queue.enter_inside(parties[party], Told{&told});
      } else if (event == 4 && parties[party].insiders > 0) {
        queue.leave_inside(parties[party]);
      }
      for (const Entry* each : told) assert_true(each->admitted());
      check(queue, line, parties);
    }
    // Finally all entries leave, and each queued entry is admitted before it does.
    while (!line.empty()) {
      const auto at =
          std::find_if(line.begin(), line.end(), [](const Known& k) { return k.entry->admitted(); });
      assert_true(at != line.end());
      remove(at);
      check(queue, line, parties);
    }
    assert_int_equal(queue.used(), 0);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(threads_are_taken_and_given_back),
      cmocka_unit_test(nobody_overtakes_a_run),
      cmocka_unit_test(who_gives_up_makes_way),
      cmocka_unit_test(more_than_there_is_means_all),
      cmocka_unit_test(insiders_let_all_of_their_strategy_pass),
      cmocka_unit_test(an_insider_makes_way_for_who_stood_behind),
      cmocka_unit_test(random_events),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
