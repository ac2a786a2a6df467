// SPDX-License-Identifier: Apache-2.0
// core/comm/word.hpp: when a thread that waits in a loop yields.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "core/comm/word.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

// A machine on which each yield takes yield_ns, and everything else 1 us.
struct SlowSync {
  static inline int64_t now = 0;
  static inline int64_t yield_ns = 0;
  static inline int64_t from_ns = 0;
  static inline int yields = 0;

  static constexpr bool kSpins = true;
  static void pause() noexcept {}
  static void yield() noexcept {
    ++yields;
    now += yield_ns;
  }
  static int64_t now_ns() noexcept { return now += 1000; }
  static int64_t& yields_from_ns() noexcept { return from_ns; }
};

// Waits once without success, and returns the number of yields.
int yields_of_a_wait(bool oversubscribed = false, int64_t spin_ns = 60'000) {
  SlowSync::yields = 0;
  const WaitPolicy policy{.oversubscribed = oversubscribed, .spin_ns = spin_ns};
  assert_false(spin_until<SlowSync>(policy, [] { return false; }));
  return SlowSync::yields;
}

void a_loop_yields_in_each_turn(void**) {
  SlowSync::yield_ns = 1000;
  assert_int_equal(yields_of_a_wait(), 30);
}

// If 128 members share a CPU, each of them has a turn before a yield returns.
void many_members_may_need_longer_than_a_long_yield(void**) {
  SlowSync::from_ns = 0;
  SlowSync::yield_ns = 1'500'000;
  assert_int_equal(yields_of_a_wait(true, 500'000), 1);
  assert_int_equal(yields_of_a_wait(true, 500'000), 1);
  SlowSync::from_ns = 0;
}

void after_a_long_yield_waits_do_not_yield_for_a_while(void**) {
  SlowSync::yield_ns = 4'000'000;
  assert_int_equal(yields_of_a_wait(), 1);
  const int64_t long_one = SlowSync::now;
  // If the awaited thread needs this CPU, the loop ends at once.
  assert_int_equal(yields_of_a_wait(true), 0);
  assert_true(SlowSync::now - long_one < 10'000);
  int waits = 0;
  for (; yields_of_a_wait() == 0; ++waits)
    assert_true(SlowSync::now - long_one < 2 * BasicSpinTime<SlowSync>::kRestNs);
  assert_true(waits > 100);
  assert_true(SlowSync::now - long_one >= BasicSpinTime<SlowSync>::kRestNs);
  // The other program has ended.
  SlowSync::from_ns = 0;
  SlowSync::yield_ns = 1000;
  assert_int_equal(yields_of_a_wait(), 30);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_loop_yields_in_each_turn),
      cmocka_unit_test(many_members_may_need_longer_than_a_long_yield),
      cmocka_unit_test(after_a_long_yield_waits_do_not_yield_for_a_while),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
