// SPDX-License-Identifier: Apache-2.0
// core/collective/algorithm.hpp: which algorithm is chosen for a call.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "core/collective/algorithm.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr std::size_t kKi = 1024;

struct Row {
  AlgorithmQuestion question;
  Algorithm algorithm;
};

void algorithms(void**) {
  constexpr bool kFree = false;
  constexpr bool kOversubscribed = true;
  // members, oversubscribed, nothing, can_travel, bytes
  constexpr Row kRows[] = {
      {{2, kFree, true, true, 0}, Algorithm::kNothing},
      {{1, kFree, true, false, 1 << 20}, Algorithm::kNothing},
      {{2, kOversubscribed, true, true, 4}, Algorithm::kNothing},
      // Up to 96 bytes always travel. More do if all peers together bring at most 2 KiB, or at most 8 KiB of
      // at most 1 KiB each.
      {{1, kFree, false, true, 2048}, Algorithm::kTravels},
      {{2, kFree, false, true, 1}, Algorithm::kTravels},
      {{2, kFree, false, true, 2048}, Algorithm::kTravels},
      {{2, kFree, false, true, 2049}, Algorithm::kParts},
      {{4, kFree, false, true, 1024}, Algorithm::kTravels},
      {{4, kFree, false, true, 1025}, Algorithm::kParts},
      {{256, kFree, false, true, 96}, Algorithm::kTravels},
      {{256, kFree, false, true, 97}, Algorithm::kParts},
      // Lists, collectives other than all_reduce, and tensors with gaps.
      {{2, kFree, false, false, 4}, Algorithm::kParts},
      {{2, kFree, false, false, 1 << 20}, Algorithm::kParts},
      {{2, kFree, false, false, (1 << 20) + 1}, Algorithm::kBlocks},
      {{2, kFree, false, true, SIZE_MAX}, Algorithm::kBlocks},
      // More members than CPUs.
      {{8, kOversubscribed, false, true, 4}, Algorithm::kAlone},
      {{8, kOversubscribed, false, false, 64 * kKi}, Algorithm::kAlone},
      {{8, kOversubscribed, false, false, 64 * kKi + 1}, Algorithm::kBlocks},
      {{256, kOversubscribed, false, false, 64 * kKi}, Algorithm::kAlone},
  };
  for (const Row& row : kRows)
    assert_int_equal(static_cast<int>(algorithm_of(row.question)), static_cast<int>(row.algorithm));
}

// dist_strategy_explain() uses this to iterate over the sizes.
void sizes_of_one_algorithm(void**) {
  AlgorithmQuestion q{4, false, false, true, 1};
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
  const CMUnitTest tests[] = {cmocka_unit_test(algorithms), cmocka_unit_test(sizes_of_one_algorithm)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
