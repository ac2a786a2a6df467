// SPDX-License-Identifier: Apache-2.0
// Defines how elements are stored, folded and written, for kernels that are plain loops. An element class has
//
//     Stored, Acc, Result   the types in memory, of the fold, and of the result
//     kLanes                how many numbers an element has (complex64: 2)
//     read(), write()       conversion from Stored to Acc, and from Acc to Result
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel/convert.hpp"
#include "dist/types.h"

namespace dist::stored {

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

// A weight is real and multiplies both parts of a complex number.
struct Complex : Plain<float, float> {
  static constexpr std::size_t kLanes = 2;
};

// Calls use.operator()<Element>() with the class of a dtype that check_op() accepts for MEAN.
// @every dtype but BOOL: it has no MEAN
template <class Use>
auto with_weighted_element(dist_dtype dtype, Use&& use) {
  switch (dtype) {
    case DIST_F16: return use.template operator()<Half>();
    case DIST_BF16: return use.template operator()<BrainFloat>();
    case DIST_F64: return use.template operator()<Plain<double, double>>();
    case DIST_I8: return use.template operator()<Plain<int8_t, float>>();
    case DIST_U8: return use.template operator()<Plain<uint8_t, float>>();
    case DIST_I16: return use.template operator()<Plain<int16_t, float>>();
    case DIST_U16: return use.template operator()<Plain<uint16_t, float>>();
    case DIST_I32: return use.template operator()<Plain<int32_t, double>>();
    case DIST_U32: return use.template operator()<Plain<uint32_t, double>>();
    case DIST_I64: return use.template operator()<Plain<int64_t, double>>();
    case DIST_U64: return use.template operator()<Plain<uint64_t, double>>();
    case DIST_COMPLEX64: return use.template operator()<Complex>();
    case DIST_F32:
    default: return use.template operator()<Plain<float, float>>();
  }
}

}  // namespace dist::stored
