// SPDX-License-Identifier: Apache-2.0
// TREE: every kernel produces the bits of the equation in core/kernel/tree.hpp, which the test evaluates
// literally. Subtotals of blocks produce the bits of a single pass, however contributions are distributed.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/kernel/convert.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/partial.hpp"
#include "core/kernel/targets.hpp"
#include "core/kernel/tree.hpp"
#include "core/kernel/weighted.hpp"
#include "tests/unit/contributions.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261123;
constexpr std::size_t kMany[] = {100, 127, 128, 129, 255, 256, 257, 700, 1023, 1024, 1025, 2000};

struct Complex {
  float re;
  float im;
};

// ---- The equation ----

// T(a, n) of the equation, with leaf(p) for x[p].
template <class Leaf, class Op>
auto tree(const Leaf& leaf, const Op& op, std::size_t a, std::size_t n) -> decltype(leaf(a)) {
  if (n == 1) return leaf(a);
  std::size_t m = 1;
  while (2 * m < n) m *= 2;
  return op(tree(leaf, op, a, m), tree(leaf, op, a + m, n - m));
}

template <class T>
T apply(dist_reduce_op op, T a, T b) {
  if constexpr (std::is_same_v<T, Complex>) {
    if (op != DIST_REDUCE_PROD) return {a.re + b.re, a.im + b.im};
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else if constexpr (std::is_integral_v<T>) {
    if (op == DIST_REDUCE_MIN) return b < a ? b : a;
    if (op == DIST_REDUCE_MAX) return b > a ? b : a;
    // Only the low bits count.
    const auto x = static_cast<uint64_t>(a);  // NOLINT(bugprone-signed-char-misuse)
    const auto y = static_cast<uint64_t>(b);  // NOLINT(bugprone-signed-char-misuse)
    return static_cast<T>(op == DIST_REDUCE_PROD ? x * y : x + y);
  } else {
    if (op == DIST_REDUCE_PROD) return a * b;
    if (op != DIST_REDUCE_MIN && op != DIST_REDUCE_MAX) return a + b;
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    const bool least = op == DIST_REDUCE_MIN;
    if (a == b) return (std::signbit(a) ? least : !least) ? a : b;
    return (a < b) == least ? a : b;
  }
}

template <class T>
T stored_at(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void put(Bytes& out, T value) {
  const auto* const from = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), from, from + sizeof value);
}

// Computes element i. `read` returns a source's element, a mean is divided in type `Mean`, and `write`
// stores.
template <class Mean, class Read, class Write>
void element(const Sources& sources, dist_reduce_op op, const Read& read, const Write& write) {
  const std::size_t n = sources.src.size();
  const auto sum = tree([&](std::size_t p) { return read(sources.src[p]); },
                        [op](auto a, auto b) { return apply(op, a, b); }, 0, n);
  if constexpr (std::is_same_v<Mean, Complex>) {
    const auto by = static_cast<float>(n);
    write(op == DIST_REDUCE_MEAN ? Complex{sum.re / by, sum.im / by} : sum);
  } else if (op == DIST_REDUCE_MEAN) {
    write(static_cast<Mean>(sum) / static_cast<Mean>(n));
  } else {
    write(sum);
  }
}

template <class T>
void elements_of_numbers(const Sources& sources, dist_reduce_op op, Bytes& out) {
  using Mean =
      std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<sizeof(T) >= 4, double, float>>;
  for (std::size_t i = 0; i < sources.count; ++i) {
    element<Mean>(
        sources, op, [i](const std::byte* from) { return stored_at<T>(from + i * sizeof(T)); },
        [&out](auto value) { put(out, value); });
  }
}

template <class Widen, class Round>
void elements_of_halves(const Sources& sources, dist_reduce_op op, Bytes& out, Widen widen, Round round) {
  for (std::size_t i = 0; i < sources.count; ++i) {
    element<float>(
        sources, op, [&](const std::byte* from) { return widen(stored_at<uint16_t>(from + 2 * i)); },
        [&](float value) { put(out, round(value)); });
  }
}

void bools(const Sources& sources, dist_reduce_op op, Bytes& out) {
  for (std::size_t i = 0; i < sources.count; ++i) {
    element<uint8_t>(
        sources, op, [i](const std::byte* from) { return static_cast<uint8_t>(from[i] != std::byte{0}); },
        [&out](uint8_t value) { put(out, value); });
  }
}

// @every dtype
Bytes by_equation(const Sources& sources, dist_dtype dtype, dist_reduce_op op) {
  Bytes out;
  switch (dtype) {
    case DIST_F16: elements_of_halves(sources, op, out, f32_from_f16, f16_from_f32); break;
    case DIST_BF16: elements_of_halves(sources, op, out, f32_from_bf16, bf16_from_f32); break;
    case DIST_F32: elements_of_numbers<float>(sources, op, out); break;
    case DIST_F64: elements_of_numbers<double>(sources, op, out); break;
    case DIST_I8: elements_of_numbers<int8_t>(sources, op, out); break;
    case DIST_U8: elements_of_numbers<uint8_t>(sources, op, out); break;
    case DIST_I16: elements_of_numbers<int16_t>(sources, op, out); break;
    case DIST_U16: elements_of_numbers<uint16_t>(sources, op, out); break;
    case DIST_I32: elements_of_numbers<int32_t>(sources, op, out); break;
    case DIST_U32: elements_of_numbers<uint32_t>(sources, op, out); break;
    case DIST_I64: elements_of_numbers<int64_t>(sources, op, out); break;
    case DIST_U64: elements_of_numbers<uint64_t>(sources, op, out); break;
    case DIST_COMPLEX64:
      for (std::size_t i = 0; i < sources.count; ++i) {
        element<Complex>(
            sources, op, [i](const std::byte* from) { return stored_at<Complex>(from + 8 * i); },
            [&out](Complex value) { put(out, value); });
      }
      break;
    case DIST_BOOL: bools(sources, op, out); break;
    default: fail();
  }
  return out;
}

// T of the products divided by T of the weights, computed in Acc. An element has `lanes` numbers.
template <class Acc, class Read, class Write>
void weighted_numbers(const Sources& sources, std::size_t lanes, const Read& read, const Write& write) {
  const auto plus = [](Acc a, Acc b) { return a + b; };
  const std::size_t n = sources.src.size();
  const auto weight = [&](std::size_t p) { return static_cast<Acc>(sources.weights[p]); };
  for (std::size_t i = 0; i < sources.count * lanes; ++i) {
    const Acc sum = tree([&](std::size_t p) { return weight(p) * static_cast<Acc>(read(sources.src[p], i)); },
                         plus, 0, n);
    write(sum / tree(weight, plus, 0, n));
  }
}
template <class T, class Acc>
void weighted_of(const Sources& sources, std::size_t lanes, Bytes& out) {
  weighted_numbers<Acc>(
      sources, lanes, [](const std::byte* from, std::size_t i) { return stored_at<T>(from + i * sizeof(T)); },
      [&out](Acc value) { put(out, value); });
}
template <class Widen, class Round>
void weighted_halves(const Sources& sources, Bytes& out, Widen widen, Round round) {
  weighted_numbers<float>(
      sources, 1,
      [&](const std::byte* from, std::size_t i) { return widen(stored_at<uint16_t>(from + 2 * i)); },
      [&](float value) { put(out, round(value)); });
}

// @every dtype but BOOL: it has no MEAN
Bytes weighted_by_equation(const Sources& sources, dist_dtype dtype) {
  Bytes out;
  switch (dtype) {
    case DIST_F16: weighted_halves(sources, out, f32_from_f16, f16_from_f32); break;
    case DIST_BF16: weighted_halves(sources, out, f32_from_bf16, bf16_from_f32); break;
    case DIST_F32: weighted_of<float, float>(sources, 1, out); break;
    case DIST_F64: weighted_of<double, double>(sources, 1, out); break;
    case DIST_I8: weighted_of<int8_t, float>(sources, 1, out); break;
    case DIST_U8: weighted_of<uint8_t, float>(sources, 1, out); break;
    case DIST_I16: weighted_of<int16_t, float>(sources, 1, out); break;
    case DIST_U16: weighted_of<uint16_t, float>(sources, 1, out); break;
    case DIST_I32: weighted_of<int32_t, double>(sources, 1, out); break;
    case DIST_U32: weighted_of<uint32_t, double>(sources, 1, out); break;
    case DIST_I64: weighted_of<int64_t, double>(sources, 1, out); break;
    case DIST_U64: weighted_of<uint64_t, double>(sources, 1, out); break;
    case DIST_COMPLEX64: weighted_of<float, float>(sources, 2, out); break;
    default: fail();
  }
  return out;
}

dist_dtype dtype_of_result(dist_dtype dtype, dist_reduce_op op) {
  return op == DIST_REDUCE_MEAN ? dtype_of_mean(dtype) : dtype;
}

// Calls check with all small numbers of contributions, and with some around powers of two.
template <class Check>
void for_numbers(Check&& check) {
  for (std::size_t num = 1; num <= 70; ++num) check(num, num % 8 == 0 ? std::size_t{291} : std::size_t{21});
  for (const std::size_t num : kMany) check(num, std::size_t{37});
}

// ---- One pass ----

// Folds in two parts, into `dsts` destinations, the last of which may be the first source.
Bytes in_one_pass(ReduceKernel kernel, const Sources& sources, std::size_t size, std::size_t result_size,
                  std::size_t cut, std::size_t dsts) {
  std::vector<Bytes> outs(dsts, Bytes(sources.count * result_size));
  for (const auto& [first, count] : {std::pair{std::size_t{0}, cut}, std::pair{cut, sources.count - cut}}) {
    std::vector<const std::byte*> src;
    std::vector<std::byte*> dst;
    for (const std::byte* from : sources.src) src.push_back(from + first * size);
    for (Bytes& out : outs) dst.push_back(out.data() + first * result_size);
    kernel({src.data(), dst.data(), src.size(), dsts, count, static_cast<double>(src.size()), dsts == 2});
  }
  for (const Bytes& out : outs) assert_true(out == outs[0]);
  return std::move(outs[0]);
}

void kernels_give_the_equation(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  int checked = 0;
  for (const dist_dtype dtype : kDtypes) {
    for_numbers([&](std::size_t num, std::size_t elements) {
      const Sources sources(dtype, num, elements, random);
      for (const dist_reduce_op op : kOps) {
        if (!check_op(op, dtype).ok()) continue;
        const dist_dtype result = dtype_of_result(dtype, op);
        const Bytes expected = with_one_nan(by_equation(sources, dtype, op), result);
        const auto expect = [&](const char* which, ReduceKernel kernel) {
          ++checked;
          const std::size_t cut = random() % (elements + 1);
          Bytes got = in_one_pass(kernel, sources, dtype_size(dtype), dtype_size(result), cut, 1 + num % 3);
          if (with_one_nan(std::move(got), result) == expected) return;
          std::printf("# %s, operator %d, %s: %zu contributions, cut at element %zu\n", dtype_name(dtype), op,
                      which, num, cut);
          fail();
        };
        expect("chosen", tree_kernel(dtype, op, num));
        assert_int_equal(depends_on_order(dtype, op), tree_kernel_of("SCALAR", dtype, op) != nullptr);
        if (!depends_on_order(dtype, op)) {
          expect("ordered", reduce_kernel(dtype, op));
          continue;
        }
        for (const char* const* target = kernel_targets(); *target != nullptr; ++target)
          expect(*target, tree_kernel_of(*target, dtype, op));
      }
    });
  }
  assert_true(checked > 10000);
  assert_null(tree_kernel_of("no such target", DIST_F32, DIST_REDUCE_SUM));
}

void weighted_means_give_the_equation(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  for (const dist_dtype dtype : kDtypes) {
    if (dtype == DIST_BOOL) continue;
    for_numbers([&](std::size_t num, std::size_t elements) {
      const Sources sources(dtype, num, elements, random);
      const dist_dtype result = dtype_of_mean(dtype);
      Bytes out(elements * dtype_size(result));
      Bytes more(out.size());
      std::byte* const to[] = {out.data(), more.data()};
      weighted_tree_mean(dtype, {sources.src.data(), sources.weights.data(), to, num, 2, elements});
      assert_true(out == more);
      if (with_one_nan(out, result) == with_one_nan(weighted_by_equation(sources, dtype), result)) return;
      std::printf("# %s: %zu weighted contributions\n", dtype_name(dtype), num);
      fail();
    });
  }
}

// A destination may be a source.
void in_place(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  for (const dist_dtype dtype : {DIST_F16, DIST_F32, DIST_F64}) {
    for (const std::size_t num : {std::size_t{4}, std::size_t{7}, std::size_t{8}, std::size_t{21}}) {
      Sources sources(dtype, num, 133, random);
      const Bytes expected = with_one_nan(by_equation(sources, dtype, DIST_REDUCE_SUM), dtype);
      auto* to = const_cast<std::byte*>(sources.src[num / 2]);
      tree_kernel(dtype, DIST_REDUCE_SUM, num)({sources.src.data(), &to, num, 1, 133, 1, false});
      const Bytes got(to, to + expected.size());
      assert_true(with_one_nan(got, dtype) == expected);
    }
  }
}

// ---- Subtotals ----

struct Subtotal {
  TreeBlock block;
  std::vector<double> acc;  // aligned for any accumulator
  double weight;
  std::byte* at() { return reinterpret_cast<std::byte*>(acc.data()); }
};

class Subtotals {
 public:
  Subtotals(dist_dtype dtype, dist_reduce_op op, bool weighted, const Sources& sources)
      : dtype_(dtype), op_(op), weighted_(weighted), sources_(sources) {}

  // Adds what a worker with the contributions `first` to `first + n - 1` sends. Returns the number of
  // subtotals.
  std::size_t add(std::size_t first, std::size_t n) {
    std::size_t blocks = 0;
    for (const std::size_t end = first + n; first != end; ++blocks) {
      const TreeBlock block = first_tree_block(first, end - first);
      assert_true(std::has_single_bit(block.size));
      assert_int_equal(first % block.size, 0);
      add(block);
      first += block.size;
    }
    return blocks;
  }

  Bytes finish() {
    while (all_.size() > 1) join_last();
    const dist_dtype result = dtype_of_result(dtype_, op_);
    Bytes out(sources_.count * dtype_size(result));
    std::byte* to = out.data();
    const double divisor = weighted_ ? all_[0].weight : static_cast<double>(sources_.src.size());
    finish_partial(dtype_, op_, {all_[0].at(), &to, 1, sources_.count, divisor, weighted_, false});
    return with_one_nan(std::move(out), result);
  }

 private:
  void add(TreeBlock block) {
    const double* const weights = weighted_ ? sources_.weights.data() + block.first : nullptr;
    all_.push_back({block, std::vector<double>(sources_.count * 2), 0});
    fold_subtree(
        dtype_, op_,
        {sources_.src.data() + block.first, weights, block.size, sources_.count, all_.back().at(), false});
    if (weighted_) all_.back().weight = tree_weights(dtype_, weights, block.size);
    while (all_.size() > 1 && all_[all_.size() - 2].block.joins(all_.back().block)) join_last();
  }
  void join_last() {
    Subtotal right = std::move(all_.back());
    all_.pop_back();
    Subtotal& left = all_.back();
    join_subtrees(dtype_, op_, weighted_, left.at(), right.at(), sources_.count);
    if (weighted_) left.weight = fold_weights(dtype_, left.weight, &right.weight, 1);
    left.block.size += right.block.size;
  }

  dist_dtype dtype_;
  dist_reduce_op op_;
  bool weighted_;
  const Sources& sources_;
  std::vector<Subtotal> all_;
};

std::size_t most_blocks(std::size_t n) {
  return n < 2 ? 1 : 2 * static_cast<std::size_t>(std::bit_width(n - 1));
}

void subtotals_give_the_bits_of_one_pass(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  for (const dist_dtype dtype : kDtypes) {
    for (const std::size_t num :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{9}, std::size_t{16}, std::size_t{23},
          std::size_t{64}, std::size_t{131}, std::size_t{2000}}) {
      const Sources sources(dtype, num, num == 2000 ? 3 : num > 12 ? 67 : 133, random);
      for (const dist_reduce_op op : kOps) {
        if (!check_op(op, dtype).ok()) continue;
        for (const bool weighted : {false, true}) {
          if (weighted && op != DIST_REDUCE_MEAN) continue;
          const dist_dtype result = dtype_of_result(dtype, op);
          const Bytes expected = with_one_nan(
              weighted ? weighted_by_equation(sources, dtype) : by_equation(sources, dtype, op), result);
          const auto check = [&](const std::vector<std::size_t>& cuts) {
            Subtotals subtotals(dtype, op, weighted, sources);
            std::size_t begin = 0;
            for (const std::size_t end : cuts) {
              assert_true(subtotals.add(begin, end - begin) <= most_blocks(end - begin));
              begin = end;
            }
            if (subtotals.finish() == expected) return;
            std::printf(
                "# %s, operator %d, weighted %d: %zu contributions, of %zu workers, the first has %zu\n",
                dtype_name(dtype), op, weighted, num, cuts.size(), cuts[0]);
            fail();
          };
          for (std::size_t a = 1; a <= num; a += 1 + a / 100) {
            check(a == num ? std::vector<std::size_t>{num} : std::vector<std::size_t>{a, num});
            // Each worker has `a` contributions, except the last.
            std::vector<std::size_t> equal;
            for (std::size_t end = a; end < num; end += a) equal.push_back(end);
            equal.push_back(num);
            if (a < 20) check(equal);
          }
        }
      }
    }
  }
}

// A worker whose number of contributions is a power of two sends one subtotal if it begins at a multiple of
// it.
void aligned_ranges_are_one_block(void**) {
  for (std::size_t size = 1; size <= 1024; size *= 2) {
    for (std::size_t first = 0; first < 4096; first += size) {
      assert_int_equal(first_tree_block(first, size).size, size);
    }
  }
  for (std::size_t n = 1; n <= kMostTreeSources; n += n < 4096 ? 1 : n - 1) {
    std::size_t used = 0;
    std::size_t most = 0;
    std::size_t sizes[kTreeSlots] = {};
    walk_tree(
        n,
        [&](std::size_t slot, std::size_t) { used = slot + 1, sizes[slot] = 1, most = std::max(most, used); },
        [&](std::size_t slot, std::size_t) { ++sizes[slot]; },
        [&](std::size_t slot) { sizes[slot] += sizes[slot + 1]; });
    assert_int_equal(sizes[0], n);
    assert_int_equal(most, tree_slots(n));
    assert_true(most <= kTreeSlots);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {
      cmocka_unit_test(kernels_give_the_equation),
      cmocka_unit_test(weighted_means_give_the_equation),
      cmocka_unit_test(in_place),
      cmocka_unit_test(subtotals_give_the_bits_of_one_pass),
      cmocka_unit_test(aligned_ranges_are_one_block),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
