// SPDX-License-Identifier: Apache-2.0
// Compares exact sums with big integers. A sum of doubles is an integer multiple of 2^-1074, stored here in
// 2304 bits and rounded bit by bit according to the definition. Every target must produce these bits, for any
// order of the sources, also in a hostile floating-point environment.
#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "core/base/tensor.hpp"
#include "core/kernel/exact.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/targets.hpp"
#include "tests/enums.h"
#include "tests/unit/each_value.hpp"
#include "tests/unit/exact_oracle.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr uint64_t kSeed = 20240301;
constexpr dist_dtype kTypes[] = {DIST_F16, DIST_BF16, DIST_F32, DIST_F64};

// ---- Data ----------------------------------------------------------------------------------------

using Column = std::vector<uint64_t>;  // the terms of one element, as bits

enum class Kind {
  kNarrow,
  kWide,
  kAnyBits,
  kCancelling,
  kSpecial,
  kSubnormal,
  kZeros,
  kTies,
  kHumps,
  kHuge,
  kCount
};

uint64_t random_bits(dist_dtype dtype, std::mt19937_64& random) {
  return random() >> (64 - 8 * dtype_size(dtype));
}

uint64_t scaled(dist_dtype dtype, double fraction, int exponent) {
  const Format f = format_of(dtype);
  return to_bits(dtype, rounded(std::ldexp(fraction, std::clamp(exponent, f.least, f.most)), f));
}

uint64_t random_finite(dist_dtype dtype, int from, int to, std::mt19937_64& random) {
  const double fraction = std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -63);
  return scaled(dtype, fraction, from + static_cast<int>(random() % static_cast<uint64_t>(to - from + 1)));
}

uint64_t negated(dist_dtype dtype, uint64_t bits) {
  return bits ^ uint64_t { 1 } << (8 * dtype_size(dtype) - 1);
}

Column special_terms(dist_dtype dtype, std::size_t num, std::mt19937_64& random) {
  const Format f = format_of(dtype);
  const double special[] = {HUGE_VAL, -HUGE_VAL, NAN,
                            0.0,      -0.0,      std::ldexp(1, f.least),
                            1.0,      -1.0,      std::ldexp(2 - std::ldexp(1.0, 1 - f.precision), f.most)};
  // Few kinds in one column, so that not every one is NaN.
  const std::size_t first = random() % std::size(special), second = random() % std::size(special);
  Column column(num);
  for (auto& x : column) x = to_bits(dtype, special[random() % 3 == 0 ? second : first]);
  return column;
}

// A number, half of its last place, and a much smaller term that breaks the tie, or two that cancel and leave
// it.
Column tie_terms(dist_dtype dtype, std::size_t num, std::mt19937_64& random) {
  const Format f = format_of(dtype);
  const int lasts = std::min(f.most - f.precision - f.least, 400);
  const int last = f.least + 1 + static_cast<int>(random() % static_cast<uint64_t>(lasts));
  const auto units = static_cast<double>((uint64_t{1} << (f.precision - 1)) + random() % 4);
  const int below = static_cast<int>(random() % static_cast<uint64_t>(last - f.least));
  Column column(num);
  column[0] = to_bits(dtype, std::ldexp(units, last));
  if (num > 1) column[1] = scaled(dtype, random() % 2 == 0 ? 1 : -1, last - 1);
  if (num > 2) column[2] = scaled(dtype, random() % 2 == 0 ? 1 : -1, f.least + below);
  if (num > 3 && random() % 2 == 0) column[3] = negated(dtype, column[2]);
  return column;
}

// Adds numbers and subtracts them again, except that one is missing and one is slightly larger. The rest
// shows every bit that was lost.
Column hump_terms(dist_dtype dtype, std::size_t num, std::mt19937_64& random) {
  const Format f = format_of(dtype);
  const auto range = static_cast<uint64_t>(f.most - f.least);
  const int from = f.least + static_cast<int>(random() % range);
  const int to = std::min(f.most, from + static_cast<int>(random() % (random() % 2 == 0 ? range : 120)));
  Column column(num);
  const std::size_t half = num / 2;
  for (std::size_t p = 0; p < half; ++p) {
    const bool high = random() % 2 == 0;
    const double fraction = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    column[p] = scaled(dtype, fraction, high ? to : from + static_cast<int>(random() % (to - from + 1)));
    column[half + p] = negated(dtype, column[p]);
  }
  if (num % 2 == 1) column[num - 1] = random_finite(dtype, f.least, from, random);
  if (half > 1) column[half] = negated(dtype, 0);
  if (half > 2 && random() % 2 == 0) column[half + 1] ^= 1;
  return column;
}

Column make_column(dist_dtype dtype, Kind kind, std::size_t num, std::mt19937_64& random) {
  const Format f = format_of(dtype);
  if (kind == Kind::kSpecial) return special_terms(dtype, num, random);
  if (kind == Kind::kTies) return tie_terms(dtype, num, random);
  if (kind == Kind::kHumps) return hump_terms(dtype, num, random);
  const int spread = static_cast<int>(random() % 400);
  const int base = f.least + static_cast<int>(random() % static_cast<uint64_t>(f.most - f.least));
  Column column(num);
  for (std::size_t p = 0; p < num; ++p) {
    uint64_t& x = column[p];
    switch (kind) {
      case Kind::kNarrow: x = random_finite(dtype, -8, 2, random); break;
      case Kind::kAnyBits: x = random_bits(dtype, random); break;
      case Kind::kSubnormal: x = random_finite(dtype, f.least, f.least + f.precision, random); break;
      case Kind::kZeros:
        x = random() % 8 != 0 ? negated(dtype, 0) : random() % 2 * random_bits(dtype, random);
        break;
      case Kind::kHuge: x = random_finite(dtype, f.most - 1, f.most, random); break;
      case Kind::kCancelling:
        x = p % 2 == 1 && random() % 8 != 0 ? negated(dtype, column[p - 1])
                                            : random_finite(dtype, base, base + spread, random);
        break;
      default: x = random_finite(dtype, base, base + spread, random); break;
    }
  }
  return column;
}

// ---- Running -------------------------------------------------------------------------------------

struct Run {
  const char* target;
  dist_dtype dtype;
  std::size_t offset;  // bytes past a cache line's start
  std::size_t num_dst;
  bool in_place;
  bool stream;
};

struct Problem {
  std::vector<Column> columns;  // one per element
  std::vector<double> weights;
  double divisor = 1;
  std::vector<uint64_t> answers;

  std::size_t num_src() const { return columns[0].size(); }
  const double* weights_or_null() const { return weights.empty() ? nullptr : weights.data(); }
  void solve(dist_dtype dtype) {
    answers.clear();
    for (const Column& c : columns) answers.push_back(expected(dtype, c, weights_or_null(), divisor));
  }
};

std::byte* line_start(std::vector<std::byte>& memory) {
  return memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
}

void check(const Run& run, const Problem& problem, uint64_t seed) {
  constexpr std::size_t kGuard = 64;
  constexpr auto kUntouched = std::byte{0xA5};
  const std::size_t size = dtype_size(run.dtype);
  const std::size_t bytes = problem.columns.size() * size;
  const std::size_t num_src = problem.num_src();
  std::vector<std::vector<std::byte>> memory(num_src + run.num_dst,
                                             std::vector<std::byte>(bytes + 256 + run.offset, kUntouched));
  std::vector<std::byte*> at;
  for (auto& m : memory) at.push_back(line_start(m) + kGuard + run.offset);
  for (std::size_t p = 0; p < num_src; ++p) {
    for (std::size_t i = 0; i < problem.columns.size(); ++i) {
      std::memcpy(at[p] + i * size, &problem.columns[i][p], size);
    }
  }
  const std::vector<const std::byte*> src(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(num_src));
  std::byte* const* dst = at.data() + (run.in_place ? 0 : num_src);
  exact_kernel_of(run.target, run.dtype)({src.data(), dst, num_src, run.num_dst, problem.columns.size(),
                                          problem.weights_or_null(), problem.divisor, run.stream});
  for (std::size_t d = 0; d < run.num_dst; ++d) {
    for (std::size_t i = 0; i < problem.columns.size(); ++i) {
      uint64_t got = 0;
      std::memcpy(&got, dst[d] + i * size, size);
      if (got == problem.answers[i]) continue;
      fail_msg("%s %s: %016" PRIx64 ", expected %016" PRIx64
               "; %zu sources, element %zu of %zu, divisor %g%s%s%s, "
               "destination %zu, offset %zu, seed %" PRIu64,
               run.target, dtype_name(run.dtype), got, problem.answers[i], num_src, i, problem.columns.size(),
               problem.divisor, problem.weights.empty() ? "" : ", weighted", run.in_place ? ", in place" : "",
               run.stream ? ", stream" : "", d, run.offset, seed);
    }
    const std::vector<std::byte> guard(kGuard, kUntouched);
    assert_memory_equal(dst[d] - kGuard, guard.data(), kGuard);
    assert_memory_equal(dst[d] + bytes, guard.data(), kGuard);
  }
}

Problem make_problem(dist_dtype dtype, Kind kind, std::size_t num_src, std::size_t count,
                     std::mt19937_64& random) {
  Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    // Every fourth column is of another kind, so that neighbouring lanes need different levels.
    const Kind this_kind =
        random() % 4 == 0 ? static_cast<Kind>(random() % static_cast<int>(Kind::kCount)) : kind;
    problem.columns.push_back(make_column(dtype, this_kind, num_src, random));
  }
  return problem;
}

void each_target(dist_dtype dtype, const Problem& problem, uint64_t seed) {
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    check({*target, dtype, 0, 1, false, false}, problem, seed);
    check({*target, dtype, dtype_size(dtype), problem.num_src() > 1 ? 2u : 1u, true, false}, problem, seed);
    check({*target, dtype, 3 * dtype_size(dtype), 2, false, true}, problem, seed);
    check({*target, dtype, 1, 1, false, true}, problem, seed);
  }
}

// ---- Tests ---------------------------------------------------------------------------------------

void sums_are_exact(void** state) {
  const auto dtype = *static_cast<const dist_dtype*>(*state);
  print_message("# seed %" PRIu64 "\n", kSeed);
  std::mt19937_64 random(kSeed);
  for (int kind = 0; kind < static_cast<int>(Kind::kCount); ++kind) {
    for (const std::size_t num_src : {1, 2, 3, 5, 8, 17}) {
      for (const std::size_t count : {1, 15, 150}) {
        Problem problem = make_problem(dtype, static_cast<Kind>(kind), num_src, count, random);
        problem.solve(dtype);
        each_target(dtype, problem, kSeed);
      }
    }
  }
}

void means_are_exact(void** state) {
  const auto dtype = *static_cast<const dist_dtype*>(*state);
  const uint64_t seed = kSeed + 1;
  print_message("# seed %" PRIu64 "\n", seed);
  std::mt19937_64 random(seed);
  for (int kind = 0; kind < static_cast<int>(Kind::kCount); ++kind) {
    for (const std::size_t num_src : {1, 3, 8, 10}) {
      Problem problem = make_problem(dtype, static_cast<Kind>(kind), num_src, 100, random);
      problem.divisor = static_cast<double>(num_src);
      problem.solve(dtype);
      each_target(dtype, problem, seed);
      // Numbers of examples, fractions, zero, and some values that no one should pass.
      const double choices[] = {32, 17, 0, 0.1, 1, -2.5, 0x1p-1060, 0x1p1000, HUGE_VAL};
      for (std::size_t p = 0; p < num_src; ++p) {
        problem.weights.push_back(choices[random() % (random() % 8 == 0 ? std::size(choices) : 5)]);
      }
      for (const double divisor : {1.0, 49.1, 0.0}) {
        problem.divisor = divisor;
        problem.solve(dtype);
        each_target(dtype, problem, seed);
      }
    }
  }
}

// Computed without the oracle, in case the oracle is wrong too.
void known_answers(void**) {
  struct Known {
    dist_dtype dtype;
    Column terms;
    double divisor;
    uint64_t sum;
  };
  static const Known kKnown[] = {
      {DIST_F32, {0x4B800000, 0x3F800000, 0x3F800000}, 1, 0x4B800001},  // 2^24 + 1 + 1
      {DIST_F32, {0x4B800000, 0x3F800000}, 1, 0x4B800000},              // a tie
      {DIST_F32, {0x4B800000, 0x3F800000, 0x00000001}, 1, 0x4B800001},  // just above it, by 2^-149
      {DIST_F32, {0x4B800000, 0x3F800000, 0x80000001}, 1, 0x4B800000},
      {DIST_F32, {0x7F7FFFFF, 0x00000001, 0xFF7FFFFF}, 1, 0x00000001},
      {DIST_F32, {0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF}, 1, 0x7F7FFFFF},  // no infinity in between
      {DIST_F32, {0x7F7FFFFF, 0x73000000}, 1, 0x7F800000},              // plus half a last place: infinity
      {DIST_F32, {0x7F7FFFFF, 0x73000000, 0x80000001}, 1, 0x7F7FFFFF},
      {DIST_F32, {0x7F800000, 0xFF800000}, 1, 0x7FC00000},
      {DIST_F32, {0xFFC12345, 0x3F800000}, 1, 0x7FC00000},
      {DIST_F32, {0x80000000, 0x80000000}, 1, 0x80000000},
      {DIST_F32, {0x80000000, 0x00000000}, 1, 0x00000000},
      {DIST_F32, {0x3F800000, 0xBF800000}, 1, 0x00000000},
      {DIST_F32, {0x3F800000, 0x40000000, 0x40000000}, 3, 0x3FD55555},
      {DIST_F64, {0x4340000000000000, 0x3FF0000000000000}, 1, 0x4340000000000000},
      {DIST_F64, {0x4340000000000000, 0x3FF0000000000000, 0x0000000000000001}, 1, 0x4340000000000001},
      {DIST_F64, {0x7FEFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF}, 1, 0x7FEFFFFFFFFFFFFF},
      {DIST_F64, {0x7FEFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF}, 2, 0x7FF0000000000000},
      {DIST_F16, {0x3C00, 0x1000}, 1, 0x3C00},          // 1 + 2^-11: a tie
      {DIST_F16, {0x3C00, 0x1000, 0x0001}, 1, 0x3C01},  // and 2^-24 more
      {DIST_F16, {0x7BFF, 0x4C00}, 1, 0x7C00},          // 65504 + 16: a tie, to infinity
      {DIST_F16, {0x7BFF, 0x4C00, 0x8001}, 1, 0x7BFF},
      {DIST_BF16, {0x3F80, 0x3B80}, 1, 0x3F80},          // 1 + 2^-8: a tie
      {DIST_BF16, {0x3F80, 0x3B80, 0x0001}, 1, 0x3F81},  // and 2^-133 more
      {DIST_BF16, {0x0001, 0x0000}, 2, 0x0000},          // 2^-134: a tie, to even
      {DIST_BF16, {0x0003, 0x0000}, 2, 0x0002},
  };
  for (const Known& known : kKnown) {
    Problem problem;
    problem.columns.assign(40, known.terms);
    problem.divisor = known.divisor;
    problem.solve(known.dtype);
    assert_int_equal(problem.answers[0], known.sum);
    each_target(known.dtype, problem, 0);
  }
}

// The same 96 numbers in many orders.
void order_is_irrelevant(void** state) {
  const auto dtype = *static_cast<const dist_dtype*>(*state);
  const uint64_t seed = kSeed + 2;
  print_message("# seed %" PRIu64 "\n", seed);
  std::mt19937_64 random(seed);
  for (const Kind kind : {Kind::kNarrow, Kind::kWide, Kind::kHumps, Kind::kAnyBits, Kind::kHuge}) {
    Problem problem = make_problem(dtype, kind, 96, 70, random);
    problem.solve(dtype);
    for (int order = 0; order < 4; ++order) {
      for (Column& column : problem.columns) std::shuffle(column.begin(), column.end(), random);
      for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
        check({*target, dtype, 0, 1, false, false}, problem, seed);
      }
    }
  }
}

// So many sources that carries use most bits of a level.
void very_many_sources(void** state) {
  const auto dtype = *static_cast<const dist_dtype*>(*state);
  const uint64_t seed = kSeed + 3;
  print_message("# seed %" PRIu64 "\n", seed);
  std::mt19937_64 random(seed);
  constexpr std::size_t kMany = 65536;
  const std::size_t count = 64 / dtype_size(dtype);
  for (const Kind kind : {Kind::kNarrow, Kind::kWide, Kind::kHuge}) {
    // The largest values, all of one sign, produce the largest carries. A few rows are used again and again
    // to save memory.
    std::vector<std::vector<std::byte>> rows(64, std::vector<std::byte>(64));
    Problem few = make_problem(dtype, kind, rows.size(), count, random);
    std::vector<const std::byte*> src(kMany);
    for (std::size_t p = 0; p < kMany; ++p) src[p] = rows[p % rows.size()].data();
    for (std::size_t p = 0; p < rows.size(); ++p) {
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(rows[p].data() + i * dtype_size(dtype), &few.columns[i][p], dtype_size(dtype));
      }
    }
    Problem all = few;
    for (Column& column : all.columns) {
      const Column once = column;
      while (column.size() < kMany) column.insert(column.end(), once.begin(), once.end());
    }
    all.solve(dtype);
    for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
      std::vector<std::byte> out(64);
      std::byte* dst = out.data();
      exact_kernel_of(*target, dtype)({src.data(), &dst, kMany, 1, count, nullptr, 1, false});
      for (std::size_t i = 0; i < count; ++i) {
        uint64_t got = 0;
        std::memcpy(&got, dst + i * dtype_size(dtype), dtype_size(dtype));
        if (got != all.answers[i]) fail_msg("%s %s, element %zu", *target, dtype_name(dtype), i);
      }
    }
  }
}

void kernels_of_floats_only(void**) {
  for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; ++dtype) {
    const bool wanted = std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes);
    for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
      assert_int_equal(exact_kernel_of(*target, dtype) != nullptr, wanted);
    }
    assert_ptr_equal(reinterpret_cast<void*>(exact_kernel(dtype)),
                     reinterpret_cast<void*>(exact_kernel_of(kernel_targets()[0], dtype)));
  }
  assert_null(exact_kernel_of("no target", DIST_F32));
}

#if defined(__x86_64__)
// The host's environment flushes subnormals, treats them as zero, and rounds up.
void host_environment(void**) {
  constexpr uint32_t kHostile = 0x1F80u | 0x8000u | 0x0040u | 0x4000u;
  const uint64_t seed = kSeed + 4;
  print_message("# seed %" PRIu64 "\n", seed);
  std::mt19937_64 random(seed);
  const uint32_t before = _mm_getcsr();
  for (const dist_dtype dtype : kTypes) {
    for (int kind = 0; kind < static_cast<int>(Kind::kCount); ++kind) {
      Problem problem = make_problem(dtype, static_cast<Kind>(kind), 8, 100, random);
      problem.divisor = kind % 2 == 0 ? 1 : 7;
      problem.solve(dtype);
      _mm_setcsr(kHostile);
      {
        const FpEnvironment environment;
        each_target(dtype, problem, seed);
      }
      const uint32_t after = _mm_getcsr();
      _mm_setcsr(before);
      assert_int_equal(after & ~0x3Fu, kHostile);
    }
  }
}
#endif

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  static dist_dtype dtypes[std::size(kTypes)];
  std::vector<CMUnitTest> tests{cmocka_unit_test(known_answers), cmocka_unit_test(kernels_of_floats_only)};
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    dtypes[i] = kTypes[i];
    tests.push_back(cmocka_unit_test_prestate(sums_are_exact, &dtypes[i]));
    tests.push_back(cmocka_unit_test_prestate(means_are_exact, &dtypes[i]));
    tests.push_back(cmocka_unit_test_prestate(order_is_irrelevant, &dtypes[i]));
    tests.push_back(cmocka_unit_test_prestate(very_many_sources, &dtypes[i]));
  }
#if defined(__x86_64__)
  tests.push_back(cmocka_unit_test(host_environment));
#endif
  return _cmocka_run_group_tests("exact_kernel", tests.data(), tests.size(), nullptr, nullptr);
}
