// SPDX-License-Identifier: Apache-2.0
// Compares every SIMD kernel with the SCALAR one, bit for bit: each target, dtype and operator; few and many
// sources and destinations; lengths around vector sizes; unaligned addresses; streaming; in place and out of
// place; a hostile floating-point environment. `--bench` prints the speed of the kernels instead.
#include <algorithm>
#include <bit>
#include <cinttypes>
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

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "core/base/tensor.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/targets.hpp"
#include "tests/enums.h"
#include "tests/unit/each_value.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {

int bench_reduce_kernels();  // bench_reduce_kernel.cpp

namespace {

constexpr std::size_t kGuard = 128;  // two vectors of the widest target
constexpr std::size_t kMaxCount = 1000;
constexpr std::size_t kMaxSources = 16;
constexpr std::size_t kMaxBytes = kMaxCount * 8;
constexpr auto kUntouched = std::byte{0xA5};
constexpr uint64_t kSeed = 20240229;

// Bytes between guards, `offset` past a cache line's start.
class Buffer {
 public:
  Buffer() : memory_(kMaxBytes + 2 * kGuard + 128) {}
  std::byte* place(std::size_t offset, std::size_t bytes) {
    const auto base = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = memory_.data() + kGuard + (64 - base % 64) % 64 + offset;
    end_ = begin_ + bytes;
    std::fill(begin_ - kGuard, end_ + kGuard, kUntouched);
    return begin_;
  }
  bool guards_untouched() const {
    static const std::vector<std::byte> guard(kGuard, kUntouched);
    return std::memcmp(begin_ - kGuard, guard.data(), kGuard) == 0 &&
           std::memcmp(end_, guard.data(), kGuard) == 0;
  }

 private:
  std::vector<std::byte> memory_;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

template <class T>
void put(std::byte* to, std::size_t i, T value) {
  std::memcpy(to + i * sizeof value, &value, sizeof value);
}

// Values for corner cases: random bits, and for floats also zeros, subnormals, infinities, NaN and numbers
// whose sums need rounding.
void fill(std::byte* to, dist_dtype dtype, std::size_t count, std::mt19937_64& random) {
  static constexpr uint32_t kSpecial[] = {0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F800000,
                                          0xFF800000, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 0x00800000};
  const std::size_t lanes = dtype == DIST_COMPLEX64 ? 2 * count : count;
  for (std::size_t i = 0; i < lanes; ++i) {
    const uint64_t bits = random();
    const uint32_t special = kSpecial[(bits >> 8) % std::size(kSpecial)];
    const bool take_special = bits % 16 == 0;
    const bool take_bits = bits % 4 == 1;
    const float common = static_cast<float>(static_cast<int64_t>(bits) >> 28) * 0x1p-34f;
    const uint32_t f32 = take_special ? special
                         : take_bits  ? static_cast<uint32_t>(bits >> 32)
                                      : std::bit_cast<uint32_t>(common);
    switch (dtype) {
      case DIST_F32:
      case DIST_COMPLEX64: put(to, i, f32); break;
      case DIST_BF16: put(to, i, static_cast<uint16_t>(f32 >> 16)); break;
      case DIST_F16:
        put(to, i,
            static_cast<uint16_t>(take_special ? (special >> 16 & 0x8000) | (special >> 13 & 0x7FFF)
                                               : bits >> 16));
        break;
      case DIST_F64:
        put(to, i,
            take_special ? static_cast<uint64_t>(special) << 32
            : take_bits  ? bits
                         : std::bit_cast<uint64_t>(static_cast<double>(common) / 3));
        break;
      default: std::memcpy(to + i * dtype_size(dtype), &bits, dtype_size(dtype)); break;
    }
  }
}

// Compares one element of the results: equal bits, or NaN in both.
template <class T>
bool same_float(const std::byte* a, const std::byte* b, T infinity) {
  T x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  const auto nan = [infinity](T bits) {
    return static_cast<T>(bits & static_cast<T>(~T{0} >> 1)) > infinity;
  };
  return x == y || (nan(x) && nan(y));
}

bool same(const std::byte* a, const std::byte* b, dist_dtype dtype, std::size_t i) {
  const std::size_t at = i * dtype_size(dtype);
  switch (dtype) {
    case DIST_F16: return same_float<uint16_t>(a + at, b + at, 0x7C00);
    case DIST_BF16: return same_float<uint16_t>(a + at, b + at, 0x7F80);
    case DIST_F32: return same_float<uint32_t>(a + at, b + at, 0x7F800000);
    case DIST_F64: return same_float<uint64_t>(a + at, b + at, 0x7FF0000000000000);
    case DIST_COMPLEX64:
      return same_float<uint32_t>(a + at, b + at, 0x7F800000) &&
             same_float<uint32_t>(a + at + 4, b + at + 4, 0x7F800000);
    default: return std::memcmp(a + at, b + at, dtype_size(dtype)) == 0;
  }
}

struct Case {
  const char* target;
  dist_dtype dtype;
  dist_reduce_op op;
  std::size_t num_src;
  std::size_t num_dst;
  std::size_t count;
  std::size_t offset;
  bool stream;
  bool in_place;
};

class Checker {
 public:
  Checker() : random_(kSeed), src_(kMaxSources), dst_(kMaxSources) {}

  // Makes the sources of the next cases, and the results of SCALAR.
  void prepare(dist_dtype dtype, dist_reduce_op op, std::size_t num_src, std::size_t count) {
    original_.resize(num_src);
    std::vector<const std::byte*> src(num_src);
    for (std::size_t p = 0; p < num_src; ++p) {
      original_[p].resize(kMaxBytes);
      fill(original_[p].data(), dtype, count, random_);
      src[p] = original_[p].data();
    }
    expected_.resize(kMaxBytes);
    std::byte* dst = expected_.data();
    reduce_kernel_of("SCALAR", dtype,
                     op)({src.data(), &dst, num_src, 1, count, static_cast<double>(num_src), false});
  }

  void check(const Case& c) {
    const std::size_t src_bytes = c.count * dtype_size(c.dtype);
    const dist_dtype result = c.op == DIST_REDUCE_MEAN ? dtype_of_mean(c.dtype) : c.dtype;
    const std::size_t dst_bytes = c.count * dtype_size(result);
    std::vector<const std::byte*> src(c.num_src);
    std::vector<std::byte*> dst(c.num_dst);
    for (std::size_t p = 0; p < c.num_src; ++p) {
      // Destinations are spread over the offset; sources sit elsewhere, so that the two differ in alignment.
      const std::size_t offset = c.in_place ? c.offset : (c.offset * (p + 1)) % 61;
      std::byte* at = src_[p].place(offset, src_bytes);
      std::memcpy(at, original_[p].data(), src_bytes);
      src[p] = at;
      if (c.in_place && p < c.num_dst) dst[p] = at;
    }
    const std::vector<Buffer>& outputs = c.in_place ? src_ : dst_;
    for (std::size_t d = 0; !c.in_place && d < c.num_dst; ++d) dst[d] = dst_[d].place(c.offset, dst_bytes);
    reduce_kernel_of(c.target, c.dtype, c.op)(
        {src.data(), dst.data(), c.num_src, c.num_dst, c.count, static_cast<double>(c.num_src), c.stream});
    for (std::size_t d = 0; d < c.num_dst; ++d) {
      const bool equal = std::memcmp(dst[d], expected_.data(), dst_bytes) == 0;
      for (std::size_t i = 0; !equal && i < c.count; ++i) {
        if (!same(dst[d], expected_.data(), result, i)) complain(c, "differs from SCALAR", d, i);
      }
      if (!outputs[d].guards_untouched()) complain(c, "wrote outside", d, 0);
    }
    for (std::size_t p = c.in_place ? c.num_dst : 0; p < c.num_src; ++p) {
      if (std::memcmp(src[p], original_[p].data(), src_bytes) != 0) complain(c, "changed a source", p, 0);
    }
  }

 private:
  static void complain(const Case& c, const char* what, std::size_t buffer, std::size_t i) {
    fail_msg(
        "%s %s of %s %s: %zu sources, %zu destinations, count %zu, offset %zu%s%s; buffer %zu, element %zu, "
        "seed %" PRIu64,
        c.target, op_name(c.op), dtype_name(c.dtype), what, c.num_src, c.num_dst, c.count, c.offset,
        c.stream ? ", stream" : "", c.in_place ? ", in place" : "", buffer, i, kSeed);
  }

  std::mt19937_64 random_;
  std::vector<Buffer> src_;
  std::vector<Buffer> dst_;
  std::vector<std::vector<std::byte>> original_;
  std::vector<std::byte> expected_;
};

// Calls check for one set of sources with every target, number of destinations, placement and kind of store.
template <class Check>
void each_placement(dist_dtype dtype, dist_reduce_op op, std::size_t num_src, std::size_t count,
                    Check check) {
  const dist_dtype result = op == DIST_REDUCE_MEAN ? dtype_of_mean(dtype) : dtype;
  const std::size_t size = dtype_size(result);
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    for (const std::size_t num_dst : {std::size_t{1}, std::size_t{2}, num_src}) {
      if (num_dst > num_src) continue;
      for (const std::size_t offset : {std::size_t{0}, size, 7 * size, std::size_t{1}}) {
        for (const bool stream : {false, true}) {
          check({*target, dtype, op, num_src, num_dst, count, offset, stream, false});
          if (result == dtype) check({*target, dtype, op, num_src, num_dst, count, offset, stream, true});
        }
      }
    }
  }
}

void targets_match_scalar(void** state) {
  const auto dtype = *static_cast<const dist_dtype*>(*state);
  Checker checker;
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; ++op) {
    if (!check_op(op, dtype).ok()) continue;
    for (const std::size_t num_src : {1, 2, 3, 4, 5, 8, 16}) {
      for (const std::size_t count : {0, 1, 7, 8, 63, 64, 65, 129, 1000}) {
        checker.prepare(dtype, op, num_src, count);
        each_placement(dtype, op, num_src, count, [&checker](const Case& c) { checker.check(c); });
      }
    }
  }
}

// Destinations whose cache lines start at different elements cannot all be streamed to.
void destinations_of_different_alignment(void**) {
  std::vector<float> a(500, 1.5f), b(500, 2.25f), x(500), y(501);
  const std::byte* src[] = {reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data())};
  std::byte* dst[] = {reinterpret_cast<std::byte*>(x.data()), reinterpret_cast<std::byte*>(y.data() + 1)};
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    std::fill(x.begin(), x.end(), 0.0f);
    std::fill(y.begin(), y.end(), 0.0f);
    reduce_kernel_of(*target, DIST_F32, DIST_REDUCE_SUM)({src, dst, 2, 2, 500, 1.0, true});
    for (std::size_t i = 0; i < 500; ++i) assert_true(x[i] == 3.75f && y[i + 1] == 3.75f);
    assert_true(y[0] == 0.0f);
  }
}

#if defined(__linux__)
// Sources and destinations end at the boundaries of mapped memory, so access past either end is a fault.
void stays_within_its_memory(void**) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t kBuffers = 3;
  auto* pages = static_cast<std::byte*>(
      mmap(nullptr, (2 * kBuffers + 1) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  assert_ptr_not_equal(pages, MAP_FAILED);
  std::byte* usable[kBuffers];
  for (std::size_t i = 0; i < kBuffers; ++i) {
    usable[i] = pages + (2 * i + 1) * page;
    assert_int_equal(mprotect(usable[i], page, PROT_READ | PROT_WRITE), 0);
  }
  for (const char* const* target = kernel_targets(); *target != nullptr; ++target) {
    for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; ++dtype) {
      for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; ++op) {
        if (!check_op(op, dtype).ok()) continue;
        const std::size_t size = dtype_size(dtype);
        const std::size_t result_size = op == DIST_REDUCE_MEAN ? dtype_size(dtype_of_mean(dtype)) : size;
        for (std::size_t count = 1; count <= 130; ++count) {
          for (const std::size_t to_end : {0, 1}) {
            const std::byte* src[] = {usable[0] + to_end * (page - count * size),
                                      usable[1] + to_end * (page - count * size)};
            std::byte* dst = usable[2] + to_end * (page - count * result_size);
            reduce_kernel_of(*target, dtype, op)({src, &dst, 2, 1, count, 2.0, count % 2 == 0});
          }
        }
      }
    }
  }
  munmap(pages, (2 * kBuffers + 1) * page);
}
#endif

void default_is_the_widest(void**) {
  const char* widest = kernel_targets()[0];
  for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; ++dtype) {
    for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; ++op) {
      assert_ptr_equal(reinterpret_cast<void*>(reduce_kernel(dtype, op)),
                       reinterpret_cast<void*>(reduce_kernel_of(widest, dtype, op)));
    }
  }
  assert_null(reduce_kernel_of("no target", DIST_F32, DIST_REDUCE_SUM));
}

#if defined(__x86_64__)
// If the host flushes subnormals and rounds up, the results have the same bits, and its environment is
// restored.
void host_environment(void**) {
  constexpr uint32_t kHostile = 0x1F80u | 0x8000u | 0x0040u | 0x4000u;  // FTZ, DAZ, round up
  const uint32_t before = _mm_getcsr();
  Checker checker;
  for (const dist_dtype dtype : {DIST_F16, DIST_BF16, DIST_F32, DIST_F64, DIST_COMPLEX64, DIST_U64}) {
    for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; ++op) {
      if (!check_op(op, dtype).ok()) continue;
      checker.prepare(dtype, op, 3, 129);
      each_placement(dtype, op, 3, 129, [&checker](const Case& c) {
        _mm_setcsr(kHostile);
        {
          const FpEnvironment environment;
          checker.check(c);
        }
        assert_int_equal(_mm_getcsr() & ~0x3Fu, kHostile);
      });
      _mm_setcsr(before);
    }
  }
}
#endif

}  // namespace
}  // namespace dist

int main(int argc, char** argv) {
  using namespace dist;
  if (argc > 1 && std::strcmp(argv[1], "--bench") == 0) return bench_reduce_kernels();
  static dist_dtype dtypes[LAST_DTYPE + 1];
  std::vector<CMUnitTest> tests;
  for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; ++dtype) {
    dtypes[dtype] = dtype;
    tests.push_back({dtype_name(dtype), targets_match_scalar, nullptr, nullptr, &dtypes[dtype]});
  }
  tests.push_back(cmocka_unit_test(destinations_of_different_alignment));
  tests.push_back(cmocka_unit_test(default_is_the_widest));
#if defined(__linux__)
  tests.push_back(cmocka_unit_test(stays_within_its_memory));
#endif
#if defined(__x86_64__)
  tests.push_back(cmocka_unit_test(host_environment));
#endif
  return _cmocka_run_group_tests("reduce_kernel", tests.data(), tests.size(), nullptr, nullptr);
}
