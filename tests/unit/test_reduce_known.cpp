// SPDX-License-Identifier: Apache-2.0
// Known results of reduction kernels on every target that this CPU supports: order, wrapping, zeros,
// infinities, NaN, subnormals, and every rounding boundary of f16 and bf16.
#include <bit>
#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/kernel/convert.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/targets.hpp"
#include "tests/enums.h"
#include "tests/unit/each_value.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr uint64_t kNan = 0x7FF8DEADBEEF0BAD;  // stands for any quiet NaN of the result's type

struct Known {
  dist_dtype dtype;
  dist_reduce_op op;
  std::vector<uint64_t> sources;  // bits
  uint64_t expected;
};

const Known kKnown[] = {
    // From left to right, 2^24 + 1 is a tie and stays 2^24, twice. In the other order, both ones count.
    {DIST_F32, DIST_REDUCE_SUM, {0x4B800000, 0x3F800000, 0x3F800000}, 0x4B800000},
    {DIST_F32, DIST_REDUCE_SUM, {0x3F800000, 0x3F800000, 0x4B800000}, 0x4B800001},
    {DIST_F32, DIST_REDUCE_SUM, {0x00000001, 0x00000001}, 0x00000002},
    {DIST_F32, DIST_REDUCE_SUM, {0x00800000, 0x80000001}, 0x007FFFFF},
    {DIST_F32, DIST_REDUCE_SUM, {0x80000000, 0x80000000}, 0x80000000},
    {DIST_F32, DIST_REDUCE_SUM, {0x80000000, 0x00000000}, 0x00000000},
    {DIST_F32, DIST_REDUCE_SUM, {0x7F7FFFFF, 0x7F7FFFFF}, 0x7F800000},
    {DIST_F32, DIST_REDUCE_SUM, {0x7F800000, 0xFF800000}, kNan},
    {DIST_F32, DIST_REDUCE_SUM, {0x3F800000, 0x7F800001}, kNan},
    // 5/3 and 5/6 differ in the last bit from 5 * (1/3) and 5 * (1/6).
    {DIST_F32, DIST_REDUCE_MEAN, {0x3F800000, 0x40000000, 0x40000000}, 0x3FD55555},
    {DIST_F32, DIST_REDUCE_MEAN, {0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000, 0}, 0x3F555555},
    {DIST_F32, DIST_REDUCE_PROD, {0x00800000, 0x3F000000}, 0x00400000},
    {DIST_F32, DIST_REDUCE_PROD, {0x80000000, 0x3F800000}, 0x80000000},
    {DIST_F32, DIST_REDUCE_MIN, {0x80000000, 0x00000000}, 0x80000000},
    {DIST_F32, DIST_REDUCE_MIN, {0x00000000, 0x80000000}, 0x80000000},
    {DIST_F32, DIST_REDUCE_MAX, {0x80000000, 0x00000000}, 0x00000000},
    {DIST_F32, DIST_REDUCE_MAX, {0x00000000, 0x80000000}, 0x00000000},
    {DIST_F32, DIST_REDUCE_MAX, {0x80000000, 0x80000000}, 0x80000000},
    {DIST_F32, DIST_REDUCE_MIN, {0x7FC00000, 0x3F800000}, kNan},
    {DIST_F32, DIST_REDUCE_MIN, {0x3F800000, 0x7F800001, 0x3F800000}, kNan},
    {DIST_F32, DIST_REDUCE_MAX, {0x3F800000, 0xFFC00000, 0x7F800000}, kNan},
    {DIST_F32, DIST_REDUCE_MAX, {0x7FC00000, 0x3F800000}, kNan},
    {DIST_F32, DIST_REDUCE_MIN, {0x7F800000, 0xFF800000, 0x3F800000}, 0xFF800000},
    {DIST_F32, DIST_REDUCE_MAX, {0x80000001, 0x80000002}, 0x80000001},
    {DIST_F64,
     DIST_REDUCE_SUM,
     {0x4340000000000000, 0x3FF0000000000000, 0x3FF0000000000000},
     0x4340000000000000},
    {DIST_F64, DIST_REDUCE_MIN, {0, 0x8000000000000000}, 0x8000000000000000},
    {DIST_F64, DIST_REDUCE_MAX, {0x3FF0000000000000, 0x7FF0000000000001}, kNan},
    {DIST_F64, DIST_REDUCE_PROD, {0x0010000000000000, 0x3FE0000000000000}, 0x0008000000000000},
    {DIST_F64, DIST_REDUCE_MEAN, {0x3FF0000000000000, 0x4000000000000000}, 0x3FF8000000000000},
    // Rounded once: 1 + 2^-11 + 2^-11 is 1 + 2^-10 if added in f32, and 1 if each addition is rounded to f16.
    {DIST_F16, DIST_REDUCE_SUM, {0x3C00, 0x1000, 0x1000}, 0x3C01},
    {DIST_F16, DIST_REDUCE_SUM, {0x7BFF, 0x4C00}, 0x7C00},          // 65504 + 16: a tie, to infinity
    {DIST_F16, DIST_REDUCE_SUM, {0x7BFF, 0x4BFF}, 0x7BFF},          // just below the tie
    {DIST_F16, DIST_REDUCE_SUM, {0x7BFF, 0x7BFF, 0xFBFF}, 0x7BFF},  // the partial sum is too large
    {DIST_F16, DIST_REDUCE_SUM, {0x0001, 0x03FF}, 0x0400},
    {DIST_F16, DIST_REDUCE_MEAN, {0x0001, 0x0000}, 0x0000},  // 2^-25: a tie, to zero
    {DIST_F16, DIST_REDUCE_MEAN, {0x8001, 0x8000}, 0x8000},
    {DIST_F16, DIST_REDUCE_MEAN, {0x0001, 0x0001, 0x0000}, 0x0001},
    {DIST_F16, DIST_REDUCE_MIN, {0x0000, 0x8000}, 0x8000},
    {DIST_F16, DIST_REDUCE_MAX, {0x7C01, 0x3C00}, kNan},
    {DIST_F16, DIST_REDUCE_SUM, {0x7C00, 0xFC00}, kNan},
    {DIST_F16, DIST_REDUCE_PROD, {0x1400, 0x0200, 0x6400}, 0x0200},  // 2^-25 is not an f16
    {DIST_BF16, DIST_REDUCE_SUM, {0x3F80, 0x3B80, 0x3B80}, 0x3F81},
    {DIST_BF16, DIST_REDUCE_SUM, {0x7F7F, 0x7B00}, 0x7F80},
    {DIST_BF16, DIST_REDUCE_SUM, {0x7F7F, 0x7A80}, 0x7F7F},
    {DIST_BF16, DIST_REDUCE_SUM, {0x0001, 0x007F}, 0x0080},
    {DIST_BF16, DIST_REDUCE_MEAN, {0x0001, 0x0000}, 0x0000},
    {DIST_BF16, DIST_REDUCE_MEAN, {0x0003, 0x0000}, 0x0002},
    {DIST_BF16, DIST_REDUCE_MAX, {0x8000, 0x0000}, 0x0000},
    {DIST_BF16, DIST_REDUCE_MIN, {0x3F80, 0x7F81}, kNan},
    {DIST_BF16, DIST_REDUCE_PROD, {0x4000, 0xC040}, 0xC0C0},
    {DIST_I8, DIST_REDUCE_SUM, {0x7F, 0x01}, 0x80},
    {DIST_I8, DIST_REDUCE_PROD, {0x07, 0xFD}, 0xEB},
    {DIST_I8, DIST_REDUCE_PROD, {0x10, 0x10}, 0x00},
    {DIST_I8, DIST_REDUCE_MIN, {0x80, 0x7F}, 0x80},
    {DIST_I8, DIST_REDUCE_MEAN, {0x01, 0x02}, 0x3FC00000},
    {DIST_I8, DIST_REDUCE_MEAN, {0x7F, 0x01}, 0xC2800000},  // wrapped to -128
    {DIST_U8, DIST_REDUCE_MAX, {0x80, 0x7F}, 0x80},
    {DIST_U8, DIST_REDUCE_PROD, {0xC8, 0x03}, 0x58},
    {DIST_U8, DIST_REDUCE_MEAN, {0xFE, 0x01}, 0x42FF0000},
    {DIST_I16, DIST_REDUCE_PROD, {0xFFFF, 0xFFFF}, 0x0001},
    {DIST_I16, DIST_REDUCE_MEAN, {0x8000, 0x0000}, 0xC6800000},
    {DIST_U16, DIST_REDUCE_PROD, {0xFFFF, 0xFFFF}, 0x0001},
    {DIST_U16, DIST_REDUCE_MEAN, {0xFFFE, 0x0001}, 0x46FFFF00},
    {DIST_I32, DIST_REDUCE_SUM, {0x7FFFFFFF, 0x00000001}, 0x80000000},
    {DIST_I32, DIST_REDUCE_MAX, {0xFFFFFFFF, 0x00000001}, 0x00000001},
    {DIST_I32, DIST_REDUCE_MEAN, {0x80000000}, 0xC1E0000000000000},
    {DIST_U32, DIST_REDUCE_MAX, {0xFFFFFFFF, 0x00000001}, 0xFFFFFFFF},
    {DIST_U32, DIST_REDUCE_MEAN, {0xFFFFFFFF}, 0x41EFFFFFFFE00000},
    {DIST_U32, DIST_REDUCE_MEAN, {0}, 0},
    {DIST_I64, DIST_REDUCE_PROD, {0x100000001, 0x100000001}, 0x200000001},
    {DIST_I64, DIST_REDUCE_MIN, {0x8000000000000000, 0x0000000000000001}, 0x8000000000000000},
    {DIST_I64, DIST_REDUCE_MEAN, {0x8000000000000000}, 0xC3E0000000000000},
    {DIST_I64, DIST_REDUCE_MEAN, {0xFFDFFFFFFFFFFFFF}, 0xC340000000000000},  // -(2^53 + 1): a tie
    {DIST_I64, DIST_REDUCE_MEAN, {0}, 0},
    {DIST_U64, DIST_REDUCE_MIN, {0x8000000000000000, 0x0000000000000001}, 0x0000000000000001},
    {DIST_U64, DIST_REDUCE_SUM, {0xFFFFFFFFFFFFFFFF, 0x0000000000000002}, 0x0000000000000001},
    {DIST_U64, DIST_REDUCE_MEAN, {0xFFFFFFFFFFFFFFFF}, 0x43F0000000000000},
    {DIST_U64, DIST_REDUCE_MEAN, {0x0020000000000001}, 0x4340000000000000},
    {DIST_U64, DIST_REDUCE_MEAN, {0x0020000000000003}, 0x4340000000000002},
    // (1 + 2i)(3 + 4i) = -5 + 10i. The second product has other bits if a multiplication and an addition are
    // fused.
    {DIST_COMPLEX64, DIST_REDUCE_PROD, {0x400000003F800000, 0x4080000040400000}, 0x41200000C0A00000},
    {DIST_COMPLEX64, DIST_REDUCE_PROD, {0x3FED23133FD2170B, 0x3FA14AE03FCBE57E}, 0x40A09EAA3E8F6188},
    {DIST_COMPLEX64, DIST_REDUCE_SUM, {0x400000003F800000, 0x4080000040400000}, 0x40C0000040800000},
    {DIST_COMPLEX64, DIST_REDUCE_MEAN, {0x400000003F800000, 0x4080000040400000}, 0x4040000040000000},
    {DIST_BOOL, DIST_REDUCE_MIN, {0x02, 0x04}, 0x01},
    {DIST_BOOL, DIST_REDUCE_MIN, {0xFF, 0x00}, 0x00},
    {DIST_BOOL, DIST_REDUCE_MAX, {0x00, 0x80}, 0x01},
    {DIST_BOOL, DIST_REDUCE_MAX, {0x07}, 0x01},
};

bool is_quiet_nan(dist_dtype dtype, uint64_t bits) {
  switch (dtype) {
    case DIST_F16: return (bits & 0x7E00) == 0x7E00;
    case DIST_BF16: return (bits & 0x7FC0) == 0x7FC0;
    case DIST_F32: return (bits & 0x7FC00000) == 0x7FC00000;
    case DIST_F64: return (bits & 0x7FF8000000000000) == 0x7FF8000000000000;
    default: return false;
  }
}

// The elements of one result: `copies` of each source reduced with one kernel.
std::vector<uint64_t> reduce_copies(ReduceKernel kernel, const Known& known, std::size_t copies) {
  const std::size_t size = dtype_size(known.dtype);
  const bool mean = known.op == DIST_REDUCE_MEAN;
  const std::size_t result_size = mean ? dtype_size(dtype_of_mean(known.dtype)) : size;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<const std::byte*> src;
  for (const uint64_t bits : known.sources) {
    std::vector<std::byte>& buffer = buffers.emplace_back(copies * size);
    for (std::size_t i = 0; i < copies; ++i) std::memcpy(buffer.data() + i * size, &bits, size);
  }
  for (const auto& buffer : buffers) src.push_back(buffer.data());
  std::vector<std::byte> result(copies * result_size);
  std::byte* dst = result.data();
  kernel({src.data(), &dst, src.size(), 1, copies, static_cast<double>(src.size()), false});
  std::vector<uint64_t> elements(copies);
  for (std::size_t i = 0; i < copies; ++i) std::memcpy(&elements[i], dst + i * result_size, result_size);
  return elements;
}

void known_answers(void**) {
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    for (const Known& known : kKnown) {
      const ReduceKernel kernel = reduce_kernel_of(*target, known.dtype, known.op);
      assert_non_null(kernel);
      for (const std::size_t copies : {1, 37}) {  // a part of a vector; whole vectors and a part
        for (const uint64_t got : reduce_copies(kernel, known, copies)) {
          if (known.expected == kNan ? is_quiet_nan(known.dtype, got) : got == known.expected) continue;
          fail_msg("%s, %s of %s, row %td: got %#llx, expected %#llx", *target, op_name(known.op),
                   dtype_name(known.dtype), &known - kKnown, static_cast<unsigned long long>(got),
                   static_cast<unsigned long long>(known.expected));
        }
      }
    }
  }
}

// Converts every 16-bit pattern to the accumulator's type and back.
void round_trips(void**) {
  std::vector<uint16_t> all(65536), result(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const auto* src = reinterpret_cast<const std::byte*>(all.data());
  auto* dst = reinterpret_cast<std::byte*>(result.data());
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    for (const dist_dtype dtype : {DIST_F16, DIST_BF16}) {
      reduce_kernel_of(*target, dtype, DIST_REDUCE_SUM)({&src, &dst, 1, 1, all.size(), 1.0, false});
      const uint16_t infinity = dtype == DIST_F16 ? 0x7C00 : 0x7F80;
      const uint16_t quiet = dtype == DIST_F16 ? 0x0200 : 0x0040;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const bool nan = (all[i] & 0x7FFF) > infinity;
        const auto expected = static_cast<uint16_t>(nan ? all[i] | quiet : all[i]);
        if (result[i] != expected)
          fail_msg("%s, %s: %#zx became %#x", *target, dtype_name(dtype), i, result[i]);
      }
    }
  }
}

// Means of two neighbours are the exact middle of a pair if the divisor is 2, and slightly above or below it
// with other divisors.
void rounding_boundaries(void**) {
  struct Format {
    dist_dtype dtype;
    uint16_t last;  // its sum with the next value is the last finite one
    double nearby;  // less than half a last place of each dtype, more than a subnormal of f32
  };
  for (const Format format : {Format{DIST_F16, 0x7BFE, 0x1p-20}, Format{DIST_BF16, 0x7EFE, 0x1p-10}}) {
    for (const uint16_t sign : {0x0000, 0x8000}) {
      std::vector<uint16_t> lower, upper;
      for (unsigned h = 0; h <= format.last; ++h) {
        lower.push_back(static_cast<uint16_t>(h | sign));
        upper.push_back(static_cast<uint16_t>((h + 1) | sign));
      }
      std::vector<uint16_t> result(lower.size());
      const std::byte* src[] = {reinterpret_cast<const std::byte*>(lower.data()),
                                reinterpret_cast<const std::byte*>(upper.data())};
      auto* dst = reinterpret_cast<std::byte*>(result.data());
      for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
        const ReduceKernel kernel = reduce_kernel_of(*target, format.dtype, DIST_REDUCE_MEAN);
        for (const double side : {-1.0, 0.0, 1.0}) {
          kernel({src, &dst, 2, 1, lower.size(), 2.0 * (1.0 + side * format.nearby), false});
          for (std::size_t i = 0; i < lower.size(); ++i) {
            const uint16_t even = lower[i] % 2 == 0 ? lower[i] : upper[i];
            const uint16_t expected = side < 0 ? upper[i] : side > 0 ? lower[i] : even;
            if (result[i] != expected) {
              fail_msg("%s, %s: beside the middle (%+.0f) of %#x and %#x: %#x", *target,
                       dtype_name(format.dtype), -side, lower[i], upper[i], result[i]);
            }
          }
        }
      }
    }
  }
}

// Compares convert.hpp with independent arithmetic: ldexp, and the neighbours of each middle.
void conversions(void**) {
  for (unsigned h = 0; h < 0x7C00; ++h) {
    const int exponent = static_cast<int>(h >> 10);
    const double mantissa = (h & 0x3FF) + (exponent == 0 ? 0 : 0x400);
    const auto value = static_cast<float>(std::ldexp(mantissa, (exponent == 0 ? 1 : exponent) - 25));
    assert_true(f32_from_f16(static_cast<uint16_t>(h)) == value);
    assert_true(f32_from_f16(static_cast<uint16_t>(h | 0x8000)) == -value);
    const float next = h == 0x7BFF ? 65536.0f : f32_from_f16(static_cast<uint16_t>(h + 1));
    const float middle = (value + next) / 2;
    const unsigned even = h % 2 == 0 ? h : h + 1;
    assert_int_equal(f16_from_f32(middle), even);
    assert_int_equal(f16_from_f32(-middle), even | 0x8000);
    assert_int_equal(f16_from_f32(std::nextafter(middle, 0.0f)), h);
    assert_int_equal(f16_from_f32(std::nextafter(middle, INFINITY)), h + 1);
  }
  for (uint32_t h = 0; h < 0x7F80; ++h) {
    const auto from_bits = [](uint32_t bits) { return bf16_from_f32(std::bit_cast<float>(bits)); };
    assert_int_equal(from_bits(h << 16 | 0x7FFF), h);
    assert_int_equal(from_bits(h << 16 | 0x8000), h % 2 == 0 ? h : h + 1);
    assert_int_equal(from_bits(h << 16 | 0x8001), h + 1);
    assert_int_equal(from_bits(0x80000000 | h << 16 | 0x8001), 0x8000 | (h + 1));
  }
  // A NaN stays NaN even if its payload is only in the bits that are removed. The largest f32 becomes
  // infinite in both.
  const float low_nan = std::bit_cast<float>(0x7F800001u);
  assert_int_equal(f16_from_f32(low_nan), 0x7E00);
  assert_int_equal(bf16_from_f32(low_nan), 0x7FC0);
  assert_int_equal(bf16_from_f32(std::bit_cast<float>(0xFFFFFFFFu)), 0xFFFF);
  assert_int_equal(f16_from_f32(std::bit_cast<float>(0x7F7FFFFFu)), 0x7C00);
  assert_int_equal(bf16_from_f32(std::bit_cast<float>(0x7F7FFFFFu)), 0x7F80);
  assert_int_equal(f16_from_f32(std::bit_cast<float>(0x80000001u)), 0x8000);
}

// On every target, a kernel exists for exactly the pairs that check_op() accepts.
void kernels_match_check_op(void**) {
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    for (dist_dtype dtype{}; dtype <= LAST_DTYPE + 1; ++dtype) {
      for (dist_reduce_op op{DIST_REDUCE_SUM - 1}; op <= LAST_REDUCE; ++op) {
        const bool wanted = dtype_size(dtype) != 0 && check_op(op, dtype).ok();
        assert_int_equal(reduce_kernel_of(*target, dtype, op) != nullptr, wanted);
        assert_int_equal(reduce_kernel(dtype, op) != nullptr, wanted);
      }
    }
  }
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::known_answers),          cmocka_unit_test(dist::round_trips),
      cmocka_unit_test(dist::rounding_boundaries),    cmocka_unit_test(dist::conversions),
      cmocka_unit_test(dist::kernels_match_check_op),
  };
  return cmocka_run_group_tests_name("reduce_known", tests, nullptr, nullptr);
}
