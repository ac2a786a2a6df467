// SPDX-License-Identifier: Apache-2.0
// core/collective/route: the choice of a collective's algorithm.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "core/collective/route.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr std::size_t kKi = 1024;

struct Row {
  RouteQuestion question;
  Route route;
};

void ways(void**) {
  constexpr bool kFree = false;
  constexpr bool kOversubscribed = true;
  // members, oversubscribed, nothing, can_travel, bytes
  constexpr Row kRows[] = {
      {{2, kFree, true, true, 0}, Route::kNothing},
      {{1, kFree, true, false, 1 << 20}, Route::kNothing},
      {{2, kOversubscribed, true, true, 4}, Route::kNothing},
      // What a slot holds always travels; beside it 2 KiB, or 1 KiB of each and 8 together.
      {{1, kFree, false, true, 2048}, Route::kTravels},
      {{2, kFree, false, true, 1}, Route::kTravels},
      {{2, kFree, false, true, 2048}, Route::kTravels},
      {{2, kFree, false, true, 2049}, Route::kParts},
      {{4, kFree, false, true, 1024}, Route::kTravels},
      {{4, kFree, false, true, 1025}, Route::kParts},
      {{256, kFree, false, true, 96}, Route::kTravels},
      {{256, kFree, false, true, 97}, Route::kParts},
      // Lists, other collectives, gaps.
      {{2, kFree, false, false, 4}, Route::kParts},
      {{2, kFree, false, false, 1 << 20}, Route::kParts},
      {{2, kFree, false, false, (1 << 20) + 1}, Route::kBlocks},
      {{2, kFree, false, true, SIZE_MAX}, Route::kBlocks},
      // More members than CPUs.
      {{8, kOversubscribed, false, true, 4}, Route::kAlone},
      {{8, kOversubscribed, false, false, 64 * kKi}, Route::kAlone},
      {{8, kOversubscribed, false, false, 64 * kKi + 1}, Route::kBlocks},
      {{256, kOversubscribed, false, false, 64 * kKi}, Route::kAlone},
  };
  for (const Row& row : kRows)
    assert_int_equal(static_cast<int>(route_of(row.question)), static_cast<int>(row.route));
}

// explain walks through the sizes by it.
void sizes_of_one_way(void**) {
  RouteQuestion q{4, false, false, true, 1};
  assert_int_equal(most_bytes_like(q), 1024);
  q.bytes = 1025;
  assert_int_equal(most_bytes_like(q), std::size_t{1} << 20);
  q.bytes = (std::size_t{1} << 20) + 1;
  assert_true(most_bytes_like(q) > PTRDIFF_MAX);
  q = {4, true, false, true, 1};
  assert_int_equal(most_bytes_like(q), 64 * kKi);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {cmocka_unit_test(ways), cmocka_unit_test(sizes_of_one_way)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
