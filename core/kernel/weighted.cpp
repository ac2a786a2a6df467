// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/weighted.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernel/convert.hpp"

namespace dist {
namespace {

// How an element is stored, and the type that it is folded in and written as.
template <class T, class A>
struct Plain {
  using Stored = T;
  using Acc = A;
  using Result = A;
  static constexpr std::size_t kLanes = 1;
  static A read(T stored) noexcept { return static_cast<A>(stored); }
  static A write(A value) noexcept { return value; }
};

struct Half {
  using Stored = uint16_t;
  using Acc = float;
  using Result = uint16_t;
  static constexpr std::size_t kLanes = 1;
  static float read(uint16_t stored) noexcept { return f32_from_f16(stored); }
  static uint16_t write(float value) noexcept { return f16_from_f32(value); }
};

struct BrainFloat {
  using Stored = uint16_t;
  using Acc = float;
  using Result = uint16_t;
  static constexpr std::size_t kLanes = 1;
  static float read(uint16_t stored) noexcept { return f32_from_bf16(stored); }
  static uint16_t write(float value) noexcept { return bf16_from_f32(value); }
};

// A complex number times a real weight: both its parts are.
struct Complex : Plain<float, float> {
  static constexpr std::size_t kLanes = 2;
};

template <class Element>
void fold(const WeightedArguments& args) noexcept {
  using Stored = typename Element::Stored;
  using Acc = typename Element::Acc;
  using Result = typename Element::Result;
  constexpr std::size_t kBlock = 128;  // three arrays of it are on the stack
  Acc total = static_cast<Acc>(args.weights[0]);
  for (std::size_t p = 1; p < args.num_src; ++p) total += static_cast<Acc>(args.weights[p]);
  const std::size_t lanes = args.count * Element::kLanes;
  for (std::size_t at = 0; at < lanes; at += kBlock) {
    const std::size_t n = std::min(kBlock, lanes - at);
    Stored stored[kBlock];
    Acc acc[kBlock];
    for (std::size_t p = 0; p < args.num_src; ++p) {
      const Acc weight = static_cast<Acc>(args.weights[p]);
      // Buffers need no alignment.
      std::memcpy(stored, args.src[p] + at * sizeof(Stored), n * sizeof(Stored));
      if (p == 0) {
        for (std::size_t i = 0; i < n; ++i) acc[i] = weight * Element::read(stored[i]);
      } else {
        for (std::size_t i = 0; i < n; ++i) acc[i] += weight * Element::read(stored[i]);
      }
    }
    Result result[kBlock];
    for (std::size_t i = 0; i < n; ++i) result[i] = Element::write(acc[i] / total);
    for (std::size_t d = 0; d < args.num_dst; ++d) {
      std::memcpy(args.dst[d] + at * sizeof(Result), result, n * sizeof(Result));
    }
  }
}

}  // namespace

void weighted_mean(dist_dtype dtype, const WeightedArguments& args) noexcept {
  switch (dtype) {
    case DIST_F16: return fold<Half>(args);
    case DIST_BF16: return fold<BrainFloat>(args);
    case DIST_F32: return fold<Plain<float, float>>(args);
    case DIST_F64: return fold<Plain<double, double>>(args);
    case DIST_I8: return fold<Plain<int8_t, float>>(args);
    case DIST_U8: return fold<Plain<uint8_t, float>>(args);
    case DIST_I16: return fold<Plain<int16_t, float>>(args);
    case DIST_U16: return fold<Plain<uint16_t, float>>(args);
    case DIST_I32: return fold<Plain<int32_t, double>>(args);
    case DIST_U32: return fold<Plain<uint32_t, double>>(args);
    case DIST_I64: return fold<Plain<int64_t, double>>(args);
    case DIST_U64: return fold<Plain<uint64_t, double>>(args);
    case DIST_COMPLEX64: return fold<Complex>(args);
    default: return;
  }
}

}  // namespace dist
