// SPDX-License-Identifier: Apache-2.0
// Folds in steps: contributions split into two and three partials produce the bits of a single pass, for
// every dtype, operator and kind of weight.
#include <bit>
#include <cinttypes>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/kernel/exact.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/partial.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/weighted.hpp"
#include "tests/unit/contributions.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr std::size_t kMost = 2000;  // contributions

class Fold {
 public:
  Fold(dist_dtype dtype, dist_reduce_op op, bool weighted, const Sources& sources)
      : dtype_(dtype), op_(op), weighted_(weighted), sources_(sources) {
    result_ = op == DIST_REDUCE_MEAN ? dtype_of_mean(dtype) : dtype;
  }

  Bytes in_one_pass() const {
    Bytes out(sources_.count * dtype_size(result_));
    std::byte* to = out.data();
    const std::size_t num = sources_.src.size();
    if (weighted_) {
      weighted_mean(dtype_, {sources_.src.data(), sources_.weights.data(), &to, num, 1, sources_.count});
    } else {
      reduce_kernel(dtype_,
                    op_)({sources_.src.data(), &to, num, 1, sources_.count, static_cast<double>(num), false});
    }
    return with_one_nan(std::move(out), result_);
  }

  // Folds in partials that begin at each of `cuts`, which are in ascending order.
  Bytes in_partials(const std::vector<std::size_t>& cuts) const {
    std::vector<double> acc(sources_.count * 2);  // aligned for any accumulator
    auto* const at = reinterpret_cast<std::byte*>(acc.data());
    double total = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      const std::size_t end = i < cuts.size() ? cuts[i] : sources_.src.size();
      const double* const weights = weighted_ ? sources_.weights.data() + begin : nullptr;
      fold_partial(dtype_, op_,
                   {sources_.src.data() + begin, weights, end - begin, sources_.count, at, begin != 0});
      if (weighted_) total = fold_weights(dtype_, total, weights, end - begin);
      begin = end;
    }
    Bytes out(sources_.count * dtype_size(result_));
    std::byte* to = out.data();
    const double divisor = weighted_ ? total : static_cast<double>(sources_.src.size());
    finish_partial(dtype_, op_, {at, &to, 1, sources_.count, divisor, weighted_, false});
    return with_one_nan(std::move(out), result_);
  }

 private:
  dist_dtype dtype_;
  dist_dtype result_;
  dist_reduce_op op_;
  bool weighted_;
  const Sources& sources_;
};

// Calls check with every division into two parts. Divisions into three are tried completely for few
// contributions, and at random for many.
template <class Check>
void for_cuts(std::size_t num, std::mt19937_64& random, Check&& check) {
  constexpr std::size_t kFew = 12;
  for (std::size_t a = 1; a < num; ++a) {
    check(std::vector<std::size_t>{a});
    for (std::size_t b = a + 1; b < num && num <= kFew; ++b) check(std::vector<std::size_t>{a, b});
  }
  if (num <= kFew) return;
  for (int i = 0; i < 20; ++i) {
    const std::size_t a = 1 + random() % (num - 2);
    check(std::vector<std::size_t>{a, a + 1 + random() % (num - a - 1)});
  }
  check(std::vector<std::size_t>{1, num - 1});
}

void partials_have_the_bits_of_one_pass(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  int checked = 0;
  for (const dist_dtype dtype : kDtypes) {
    for (const std::size_t num :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{9}, std::size_t{63}, std::size_t{64},
          std::size_t{65}, std::size_t{130}, kMost}) {
      const Sources sources(dtype, num, num == kMost ? 3 : num > 12 ? 67 : 533, random);
      for (const dist_reduce_op op : kOps) {
        if (!check_op(op, dtype).ok()) continue;
        for (const bool weighted : {false, true}) {
          if (weighted && op != DIST_REDUCE_MEAN) continue;
          const Fold fold(dtype, op, weighted, sources);
          const Bytes expected = fold.in_one_pass();
          if (fold.in_partials({}) != expected) {
            std::printf("# %s, operator %d, weighted %d: %zu contributions in one partial\n",
                        dtype_name(dtype), op, weighted, num);
            fail();
          }
          for_cuts(num, random, [&](const std::vector<std::size_t>& cuts) {
            ++checked;
            if (fold.in_partials(cuts) == expected) return;
            std::printf("# %s, operator %d, weighted %d: %zu contributions cut before %zu\n",
                        dtype_name(dtype), op, weighted, num, cuts[0]);
            fail();
          });
        }
      }
    }
  }
  assert_true(checked > 5000);
}

// Exact sums may also add partials in another order.
void exact_partials(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  for (const dist_dtype dtype : {DIST_F16, DIST_BF16, DIST_F32, DIST_F64}) {
    for (const std::size_t num : {std::size_t{1}, std::size_t{3}, std::size_t{40}, kMost}) {
      const Sources sources(dtype, num, num == kMost ? 1 : 31, random);
      for (const bool weighted : {false, true}) {
        const double* const weights = weighted ? sources.weights.data() : nullptr;
        const double divisor = weighted ? 3.5 : 1;
        Bytes expected(sources.count * dtype_size(dtype));
        std::byte* to = expected.data();
        exact_kernel(dtype)({sources.src.data(), &to, num, 1, sources.count, weights, divisor, false});
        for_cuts(num, random, [&](const std::vector<std::size_t>& cuts) {
          std::vector<ExactPartial> first(sources.count);
          std::vector<ExactPartial> rest(sources.count);
          const std::size_t cut = cuts[0];
          fold_exact(dtype, sources.src.data(), weights, cut, sources.count, first.data());
          fold_exact(dtype, sources.src.data() + cut, weighted ? weights + cut : nullptr, num - cut,
                     sources.count, rest.data());
          for (std::size_t i = 0; i < sources.count; ++i) rest[i].add(first[i]);
          Bytes out(expected.size());
          std::byte* at = out.data();
          finish_exact(dtype, rest.data(), divisor, &at, 1, sources.count);
          assert_true(out == expected);
        });
      }
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {cmocka_unit_test(partials_have_the_bits_of_one_pass),
                              cmocka_unit_test(exact_partials)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
