// SPDX-License-Identifier: Apache-2.0
//
// Translation units that see different parts of dist.hpp can be linked into one program: its classes are the
// same in all of them. This one includes the baseline first and the rest later.
// clang-format off
#include <dist/dist.hpp>
#define DIST_EXPERIMENTAL
#include <dist/dist.hpp>

#include <setjmp.h>
#include <cstdarg>
#include <cstddef>
extern "C" {
#include <cmocka.h>
}

#include "hpp_program.hpp"
// clang-format on

namespace {

void assert_outcome(const parts::outcome &found) {
  assert_true(found.sum == 3);
  assert_true(found.read == 1);
  assert_int_equal(found.batches, 2);
}

void all_units_do_the_same(void **) {
  assert_outcome(parts::of_the_baseline());
  assert_outcome(parts::with_the_rest_first());
  assert_outcome(program(dist::strategy(2)));
}

void the_rest_is_there(void **) {
  const dist::strategy strategy(2);
  assert_int_equal(strategy.kind(), DIST_STRATEGY_MIRRORED);
  assert_string_equal(dist::reduce_op_name(dist::reduce_op::mean), "MEAN");
  const dist::metric metric(strategy, DIST_METRIC_SUM);
  strategy.run([&](dist::replica replica) {
    const float one = 1;
    metric.update(replica, dist::const_tensors{dist::const_tensor(&one, {})});
  });
  assert_true(metric.result() == 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(all_units_do_the_same), cmocka_unit_test(the_rest_is_there)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
