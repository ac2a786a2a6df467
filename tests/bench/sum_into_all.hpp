// SPDX-License-Identifier: Apache-2.0
// The core of every hand-written all_reduce: sums a slice of all inputs and writes the sums to all outputs.
// It moves no byte twice. sum_narrow.hpp has the same for 16-bit floats.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace bench {

// The compiler knows the number of replicas, so a sum stays in a register.
template <size_t... R>
void sum_into_all(std::index_sequence<R...>, float* const* in, float* const* out, size_t begin, size_t end) {
  const std::array<const float*, sizeof...(R)> from{in[R]...};
  const std::array<float*, sizeof...(R)> to{out[R]...};
#pragma omp simd
  for (size_t i = begin; i < end; ++i) {
    float sum = -0.0f;  // the neutral element, also for zeros
    ((sum += from[R][i]), ...);
    ((to[R][i] = sum), ...);
  }
}

// The same with one output.
template <size_t... R>
void sum_into_one(std::index_sequence<R...>, float* const* in, float* out, size_t count) {
  const std::array<const float*, sizeof...(R)> from{in[R]...};
#pragma omp simd
  for (size_t i = 0; i < count; ++i) {
    float sum = -0.0f;
    ((sum += from[R][i]), ...);
    out[i] = sum;
  }
}

inline void sum_into_all(float* const* in, float* const* out, int replicas, size_t begin, size_t end) {
  switch (replicas) {
    case 2: return sum_into_all(std::make_index_sequence<2>(), in, out, begin, end);
    case 4: return sum_into_all(std::make_index_sequence<4>(), in, out, begin, end);
    case 8: return sum_into_all(std::make_index_sequence<8>(), in, out, begin, end);
    case 16: return sum_into_all(std::make_index_sequence<16>(), in, out, begin, end);
    default: break;
  }
  for (size_t i = begin; i < end; ++i) {
    float sum = in[0][i];
    for (int r = 1; r < replicas; ++r) sum += in[r][i];
    for (int r = 0; r < replicas; ++r) out[r][i] = sum;
  }
}

inline void sum_into_one(float* const* in, float* out, int replicas, size_t count) {
  switch (replicas) {
    case 2: return sum_into_one(std::make_index_sequence<2>(), in, out, count);
    case 4: return sum_into_one(std::make_index_sequence<4>(), in, out, count);
    default: break;
  }
  for (size_t i = 0; i < count; ++i) {
    float sum = in[0][i];
    for (int r = 1; r < replicas; ++r) sum += in[r][i];
    out[i] = sum;
  }
}

// The sums of f32, for use as a template argument.
struct SumF32 {
  using Element = float;
  static void into_all(float* const* in, float* const* out, int replicas, size_t begin, size_t end) {
    sum_into_all(in, out, replicas, begin, end);
  }
  static void into_one(float* const* in, float* out, int replicas, size_t count) {
    sum_into_one(in, out, replicas, count);
  }
};

}  // namespace bench
