// SPDX-License-Identifier: Apache-2.0
// The choice whether to prefetch batches: it must find and keep the faster way, regardless of what else takes
// time. The test controls the clock.
#include <cstdint>
#include <cstdio>
#include <random>

#include "core/input/ahead_choice.hpp"

#include <setjmp.h>
#include <stdarg.h>

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261126;
constexpr int kMeasured = AheadChoice::kWindows * (AheadChoice::kSkipped + AheadChoice::kCounted);

// A host loop that takes a given time per batch, with prefetching and without.
struct Loop {
  int64_t ahead_ns;
  int64_t in_place_ns;
  AheadChoice choice{};
  int64_t now_ns = 1000;
  int64_t reads = 0;  // of the clock
  std::mt19937_64 random{kSeed};
  int noise = 0;  // one batch in this many takes a thousand times as long; 0 = none

  bool step() {
    int64_t time_ns = choice.ahead() ? ahead_ns : in_place_ns;
    if (noise != 0 && random() % static_cast<unsigned>(noise) == 0) time_ns *= 1000;
    now_ns += time_ns;
    return choice.gave([&] {
      ++reads;
      return now_ns;
    });
  }
  // Steps until a choice has been made, and returns the number of steps.
  int64_t until_chosen() {
    for (int64_t n = 1;; ++n) {
      if (step()) return n;
      assert_true(n < 100000);
    }
  }
};

void the_faster_way_is_chosen(void**) {
  const struct {
    int64_t ahead_ns, in_place_ns;
    bool ahead;
  } cases[] = {{1000, 2000, true},
               {2000, 1000, false},
               {1000, 1000, false},  // equal times: prefetching would only use more of the machine
               {990, 1000, false},
               {900, 1000, true},
               {0, 0, false},
               {1, 2, true},
               {int64_t{1} << 50, int64_t{1} << 51, true}};
  for (const auto& each : cases) {
    Loop loop{each.ahead_ns, each.in_place_ns};
    // The first batch is not measured.
    assert_int_equal(loop.until_chosen(), kMeasured + 1);
    assert_int_equal(loop.choice.ahead(), each.ahead);
    assert_int_equal(loop.choice.chosen(), each.ahead);
    assert_int_equal(loop.choice.ahead_ns(), each.ahead_ns);
    assert_int_equal(loop.choice.in_place_ns(), each.in_place_ns);
  }
}

void both_ways_get_as_many_batches(void**) {
  Loop loop{1000, 2000};
  int ahead = 0;
  for (int i = 0; i < kMeasured; ++i) {
    ahead += loop.choice.ahead() ? 1 : 0;
    assert_false(loop.step());
  }
  assert_int_equal(ahead, kMeasured / 2 + 1);
}

void a_choice_is_kept_for_longer_each_time_that_it_proves_right(void**) {
  Loop loop{2000, 1000};
  (void)loop.until_chosen();
  int64_t kept = AheadChoice::kLeastKept;
  for (int i = 0; i < 10; ++i) {
    const int64_t reads = loop.reads;
    assert_int_equal(loop.until_chosen(), kept + kMeasured + 1);
    assert_false(loop.choice.ahead());
    // While a choice is kept, the clock is not read.
    assert_int_equal(loop.reads - reads, kMeasured + 1);
    if (kept < AheadChoice::kMostKept) kept *= 2;
  }
  assert_int_equal(kept, AheadChoice::kMostKept);
  // The loop has changed. The next measurement detects this, and then choices are kept as briefly as in the
  // beginning.
  loop.in_place_ns = 3000;
  assert_int_equal(loop.until_chosen(), kept + kMeasured + 1);
  assert_true(loop.choice.ahead());
  assert_int_equal(loop.until_chosen(), AheadChoice::kLeastKept + kMeasured + 1);
}

void single_long_batches_do_not_count(void**) {
  std::printf("# seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (const bool ahead : {false, true}) {
    Loop loop{ahead ? 1000 : 1100, 1050};
    loop.noise = 8;
    for (int i = 0; i < 20; ++i) {
      (void)loop.until_chosen();
      assert_int_equal(loop.choice.ahead(), ahead);
    }
  }
}

void short_passes_are_measured_together(void**) {
  for (const int length : {2, 3, 5, 17}) {
    AheadChoice kept;  // the dataset's
    int64_t now_ns = 0;
    bool chosen = false;
    int passes = 0;
    while (!chosen) {
      AheadChoice pass = kept;
      pass.begin_pass();
      now_ns += 1000000000;  // time between passes
      for (int i = 0; i < length; ++i) {
        now_ns += pass.ahead() ? 500 : 1000;
        chosen |= pass.gave([&] { return now_ns; });
      }
      kept = pass;
      assert_true(++passes < 1000);
    }
    assert_true(kept.ahead());
    assert_int_equal(kept.ahead_ns(), 500);
    assert_int_equal(kept.in_place_ns(), 1000);
  }
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::the_faster_way_is_chosen),
      cmocka_unit_test(dist::both_ways_get_as_many_batches),
      cmocka_unit_test(dist::a_choice_is_kept_for_longer_each_time_that_it_proves_right),
      cmocka_unit_test(dist::single_long_batches_do_not_count),
      cmocka_unit_test(dist::short_passes_are_measured_together),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
