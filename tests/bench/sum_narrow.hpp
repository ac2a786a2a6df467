// SPDX-License-Identifier: Apache-2.0
// sum_into_all.hpp for bf16 and f16: elements are widened to f32, summed and rounded once to nearest even,
// with the instructions that the compiler may use on this machine.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace bench {

// Each format has a register type for elements in memory (Narrow), one for the same number of f32 (Wide), and
// this number (kLanes).
#if defined(__AVX512F__) && defined(__AVX512VL__)
struct Registers {
  using Narrow = __m256i;
  using Wide = __m512;
  static constexpr size_t kLanes = 16;
};
struct F16 : Registers {
  static Wide widen(Narrow from) { return _mm512_cvtph_ps(from); }
  static Narrow narrow(Wide from) {
    return _mm512_cvtps_ph(from, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
struct Bf16 : Registers {
  static Wide widen(Narrow from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(from), 16));
  }
  static Narrow narrow(Wide from) {
#ifdef __AVX512BF16__
    return (Narrow)_mm512_cvtneps_pbh(from);
#else
    const __m512i bits = _mm512_castps_si512(from);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(nearest, 16));
#endif
  }
};
#elif defined(__AVX2__) && defined(__F16C__)
struct Registers {
  using Narrow = __m128i;
  using Wide = __m256;
  static constexpr size_t kLanes = 8;
};
struct F16 : Registers {
  static Wide widen(Narrow from) { return _mm256_cvtph_ps(from); }
  static Narrow narrow(Wide from) {
    return _mm256_cvtps_ph(from, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
struct Bf16 : Registers {
  static Wide widen(Narrow from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(from), 16));
  }
  static Narrow narrow(Wide from) {
    const __m256i bits = _mm256_castps_si256(from);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i upper = _mm256_srli_epi32(nearest, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  }
};
#else
// A single element. Only for normal numbers within the range, like the data of this benchmark.
struct Registers {
  using Narrow = uint16_t;
  using Wide = float;
  static constexpr size_t kLanes = 1;
};
struct F16 : Registers {
  static Wide widen(Narrow from) {
    return std::bit_cast<float>((from & 0x8000u) << 16 | ((from & 0x7fffu) + (112u << 10)) << 13);
  }
  static Narrow narrow(Wide from) {
    uint32_t bits = std::bit_cast<uint32_t>(from);
    bits += 0xfffu + (bits >> 13 & 1u);
    return static_cast<Narrow>((bits >> 16 & 0x8000u) | (((bits & 0x7fffffffu) >> 13) - (112u << 10)));
  }
};
struct Bf16 : Registers {
  static Wide widen(Narrow from) { return std::bit_cast<float>(static_cast<uint32_t>(from) << 16); }
  static Narrow narrow(Wide from) {
    const uint32_t bits = std::bit_cast<uint32_t>(from);
    return static_cast<Narrow>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
};
#endif

template <class Format>
struct SumNarrow {
  using Element = uint16_t;

  static void into_all(uint16_t* const* in, uint16_t* const* out, int replicas, size_t begin, size_t end) {
    if (replicas == 2) return sum<2, 2>(in, out, begin, end);
    if (replicas == 4) return sum<4, 4>(in, out, begin, end);
    sum<0, 0>(in, out, begin, end, static_cast<size_t>(replicas), static_cast<size_t>(replicas));
  }
  static void into_one(uint16_t* const* in, uint16_t* out, int replicas, size_t count) {
    if (replicas == 2) return sum<2, 1>(in, &out, 0, count);
    if (replicas == 4) return sum<4, 1>(in, &out, 0, count);
    sum<0, 0>(in, &out, 0, count, static_cast<size_t>(replicas), 1);
  }

 private:
  using Narrow = typename Format::Narrow;
  static constexpr size_t kMost = 16;

  // The compiler knows the numbers of inputs and outputs unless they are 0.
  template <size_t kIn, size_t kOut>
  static void sum(uint16_t* const* in, uint16_t* const* out, size_t begin, size_t end, size_t num_in = kIn,
                  size_t num_out = kOut) {
    std::array<uint16_t*, kIn != 0 ? kIn : kMost> from;
    std::array<uint16_t*, kOut != 0 ? kOut : kMost> to;
    for (size_t p = 0; p < num_in; ++p) from[p] = in[p];
    for (size_t r = 0; r < num_out; ++r) to[r] = out[r];
    size_t i = begin;
    for (; i + Format::kLanes <= end; i += Format::kLanes) {
      step(from, to, num_in, num_out, i, sizeof(Narrow));
    }
    if (i < end) step(from, to, num_in, num_out, i, (end - i) * sizeof(uint16_t));
  }
  template <class From, class To>
  [[gnu::always_inline]] static void step(const From& from, const To& to, size_t num_in, size_t num_out,
                                          size_t at, size_t bytes) {
    Narrow lanes{};
    std::memcpy(&lanes, from[0] + at, bytes);
    auto total = Format::widen(lanes);
    for (size_t p = 1; p < num_in; ++p) {
      std::memcpy(&lanes, from[p] + at, bytes);
      total += Format::widen(lanes);
    }
    lanes = Format::narrow(total);
    for (size_t r = 0; r < num_out; ++r) std::memcpy(to[r] + at, &lanes, bytes);
  }
};

}  // namespace bench
