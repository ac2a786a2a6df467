// SPDX-License-Identifier: Apache-2.0
// Contributions of arbitrary bits to one tensor, for tests of folds with any dtype and operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/tensor.hpp"
#include "dist/types.h"

namespace dist {

// @every dtype
inline constexpr dist_dtype kDtypes[] = {DIST_F16, DIST_BF16, DIST_F32,       DIST_F64, DIST_I8,
                                         DIST_U8,  DIST_I16,  DIST_U16,       DIST_I32, DIST_U32,
                                         DIST_I64, DIST_U64,  DIST_COMPLEX64, DIST_BOOL};
// @every operator but USER: the host folds its elements, not the library
inline constexpr dist_reduce_op kOps[] = {DIST_REDUCE_SUM, DIST_REDUCE_MEAN, DIST_REDUCE_MIN, DIST_REDUCE_MAX,
                                          DIST_REDUCE_PROD};

// Contributions of random bits to one tensor, which include NaNs, infinities, subnormals and zeros of both
// signs.
struct Sources {
  Sources(dist_dtype dtype, std::size_t num, std::size_t elements, std::mt19937_64& random)
      : count(elements), bytes(num * elements * dtype_size(dtype)), weights(num) {
    const std::size_t size = dtype_size(dtype);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      const uint64_t bits = random();
      std::memcpy(&bytes[at], &bits, size);
      // Use some numbers of similar size. In a sum of random bits, the largest number usually hides the
      // others.
      if (bits % 4 != 0 && dtype == DIST_F32) put(&bytes[at], static_cast<float>(bits % 2001) / 128 - 7);
      if (bits % 4 != 0 && dtype == DIST_COMPLEX64)
        put(&bytes[at], static_cast<float>(bits % 2001) / 1024 - 1);
      if (bits % 4 != 0 && dtype == DIST_F64) put(&bytes[at], static_cast<double>(bits % 2001) / 129 - 7);
      if (bits % 8 != 0 && dtype == DIST_F16) bytes[at + 1] &= std::byte{0xBB};
      if (bits % 8 != 0 && dtype == DIST_BF16) bytes[at + 1] &= std::byte{0xBF};
    }
    for (double& weight : weights) weight = static_cast<double>(random() % 1000 + 1) / 64;
    for (std::size_t p = 0; p < num; ++p) src.push_back(bytes.data() + p * elements * size);
  }
  template <class T>
  static void put(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }

  std::size_t count;
  std::vector<std::byte> bytes;
  std::vector<double> weights;
  std::vector<const std::byte*> src;
};

using Bytes = std::vector<std::byte>;

template <class Bits>
void unite_nans(Bytes& bytes, Bits infinity) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, &bytes[at], sizeof bits);
    const auto magnitude = static_cast<Bits>(bits << 1) >> 1;
    if (magnitude > infinity) bits = static_cast<Bits>(infinity + 1);
    std::memcpy(&bytes[at], &bits, sizeof bits);
  }
}

// If several contributions are NaN, the CPU and the compiler decide which of them is the result, even in a
// single pass. Replaces every NaN by the same one.
inline Bytes with_one_nan(Bytes bytes, dist_dtype dtype) {
  switch (dtype) {
    case DIST_F16: unite_nans<uint16_t>(bytes, 0x7C00); break;
    case DIST_BF16: unite_nans<uint16_t>(bytes, 0x7F80); break;
    case DIST_F32:
    case DIST_COMPLEX64: unite_nans<uint32_t>(bytes, 0x7F800000); break;
    case DIST_F64: unite_nans<uint64_t>(bytes, 0x7FF0000000000000); break;
    default: break;
  }
  return bytes;
}

}  // namespace dist
