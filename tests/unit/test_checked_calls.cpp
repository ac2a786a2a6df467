// SPDX-License-Identifier: Apache-2.0
// CheckedCalls: a call that repeats an earlier one is recognized, and one that differs from it is not.
#include "core/collective/checked_calls.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail()

namespace dist {
namespace {

struct Tensors {
  float data[2][4] = {};
  int64_t shape[1] = {4};
  dist_tensor in{data[0], DIST_F32, 1, shape, nullptr};
  dist_tensor out{data[1], DIST_F32, 1, shape, nullptr};
};

Call call_of(Collective collective, dist_numerics numerics, const Tensors& tensors, std::size_t n) {
  Call call;
  call.collective = collective;
  if (call.reduces()) call.op = DIST_REDUCE_SUM;
  if (call.traits().rooted()) call.root = 0;
  call.kind = DIST_SCAN_INCLUSIVE;
  call.numerics = numerics;
  call.in = &tensors.in;
  call.out = &tensors.out;
  call.n = n;
  return call;
}

void repeated_calls_are_recognized(void**) {
  constexpr CheckedCalls::Place kWhere{0, 1};
  constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kBroadcast, Collective::kScan};
  const Tensors tensors;
  for (const Collective collective : kAll) {
    for (const dist_numerics numerics : {DIST_NUMERICS_ORDERED, DIST_NUMERICS_TREE}) {
      CheckedCalls checked;
      Call call = call_of(collective, numerics, tensors, 1);
      Signature signature;
      assert_true(call.check(kWhere.me, kWhere.size, signature).ok());
      close_digest(signature, nullptr);
      checked.keep(call, kWhere, signature);

      Signature found;
      Call again = call_of(collective, numerics, tensors, 1);
      assert_true(checked.recall(again, nullptr, kWhere, found));
      assert_int_equal(found.digest, signature.digest);
      for (const dist_numerics other :
           {DIST_NUMERICS_ORDERED, DIST_NUMERICS_REPRODUCIBLE, DIST_NUMERICS_TREE}) {
        Call differs = call_of(collective, other, tensors, 1);
        assert_int_equal(checked.recall(differs, nullptr, kWhere, found), other == numerics);
      }
      assert_false(checked.recall(again, "tag", kWhere, found));
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(dist::repeated_calls_are_recognized)};
  return cmocka_run_group_tests_name("checked_calls", tests, nullptr, nullptr);
}
