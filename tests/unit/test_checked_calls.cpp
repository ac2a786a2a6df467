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

void kinds_do_not_displace_each_other(void**) {
  constexpr CheckedCalls::Place kWhere{0, 1};
  const Tensors first;
  const Tensors second;
  const dist_tensor ins[] = {first.in, second.in};
  const dist_tensor outs[] = {first.out, second.out};
  const auto list = [&] {
    Call call = call_of(Collective::kAllReduce, DIST_NUMERICS_ORDERED, first, 2);
    call.in = ins;
    call.out = outs;
    return call;
  };
  const auto barrier = [] {
    Call call;
    call.collective = Collective::kBarrier;
    return call;
  };
  const auto one = [&] { return call_of(Collective::kAllReduce, DIST_NUMERICS_ORDERED, first, 1); };
  CheckedCalls checked;
  for (Call call : {list(), barrier(), one()}) {
    Signature signature;
    Signature found;
    assert_false(checked.recall(call, nullptr, kWhere, found));
    assert_true(call.check(kWhere.me, kWhere.size, signature).ok());
    close_digest(signature, nullptr);
    checked.keep(call, kWhere, signature);
  }
  for (Call call : {list(), barrier(), one()}) {
    Signature found;
    assert_true(checked.recall(call, nullptr, kWhere, found));
    assert_int_equal(static_cast<int>(found.collective), static_cast<int>(call.collective));
    assert_int_equal(call.bytes, 16 * call.n);
  }
}

void a_list_is_not_the_beginning_of_a_longer_one(void**) {
  constexpr CheckedCalls::Place kWhere{0, 1};
  const Tensors tensors;
  const dist_tensor ins[] = {tensors.in, tensors.in, tensors.in, tensors.in,
                             tensors.in, tensors.in, tensors.in, tensors.in};
  Call call = call_of(Collective::kAllReduce, DIST_NUMERICS_ORDERED, tensors, 8);
  call.in = call.out = ins;
  Signature signature;
  assert_true(call.check(kWhere.me, kWhere.size, signature).ok());
  close_digest(signature, nullptr);
  CheckedCalls checked;
  checked.keep(call, kWhere, signature);
  for (std::size_t n = 2; n <= 8; ++n) {
    Call other = call_of(Collective::kAllReduce, DIST_NUMERICS_ORDERED, tensors, n);
    other.in = other.out = ins;
    Signature found;
    assert_int_equal(checked.recall(other, nullptr, kWhere, found), n == 8);
  }
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(dist::repeated_calls_are_recognized),
                              cmocka_unit_test(dist::kinds_do_not_displace_each_other),
                              cmocka_unit_test(dist::a_list_is_not_the_beginning_of_a_longer_one)};
  return cmocka_run_group_tests_name("checked_calls", tests, nullptr, nullptr);
}
