// SPDX-License-Identifier: Apache-2.0
// Replaces the parts of PyTorch that vLLM's and DeepSpeed's shared-memory collectives use: a tensor as a
// view, its element types, and checks.
#pragma once

#include <immintrin.h>
#include <math.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace c10 {
struct Half {
  Half() = default;
  Half(float value) : x(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)) {}
  operator float() const { return _cvtsh_ss(x); }
  uint16_t x;
};
struct BFloat16 {
  BFloat16() = default;
  BFloat16(float value) {  // to nearest even, like PyTorch's for all numbers except NaN
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    x = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(uint32_t{x} << 16); }
  uint16_t x;
};
}  // namespace c10

namespace at {
enum class ScalarType : int8_t { Undefined, Char, Half, BFloat16, Float, Float8_e5m2 };
template <ScalarType>
struct TypeOf;
template <>
struct TypeOf<ScalarType::Half> {
  using type = c10::Half;
};
template <>
struct TypeOf<ScalarType::BFloat16> {
  using type = c10::BFloat16;
};
template <>
struct TypeOf<ScalarType::Float> {
  using type = float;
};
using c10::BFloat16;
using c10::Half;
}  // namespace at
namespace c10 {
using at::ScalarType;
}

namespace torch {
using at::ScalarType;
inline constexpr ScalarType kInt8 = ScalarType::Char;
inline constexpr int kCPU = 0;
inline int64_t elementSize(ScalarType type) {
  return type == ScalarType::Float ? 4 : type == ScalarType::Char ? 1 : 2;
}

struct TensorOptions {
  ScalarType type = ScalarType::Undefined;
  TensorOptions dtype(ScalarType t) const { return {t}; }
  TensorOptions device(int) const { return *this; }
};

struct Tensor {
  void* data = nullptr;
  ScalarType type = ScalarType::Undefined;
  int64_t elements = 0;
  std::shared_ptr<void> owner{};
  bool is_contiguous() const { return true; }
  int64_t numel() const { return elements; }
  int64_t nbytes() const { return elements * elementSize(type); }
  ScalarType scalar_type() const { return type; }
  void* data_ptr() const { return data; }
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(data);
  }
};

inline Tensor empty(std::vector<int64_t> sizes, TensorOptions options) {
  const int64_t elements = sizes.at(0);
  std::shared_ptr<void> memory(std::malloc(static_cast<size_t>(elements * elementSize(options.type))),
                               std::free);
  return {memory.get(), options.type, elements, memory};
}
}  // namespace torch

#define TORCH_CHECK(condition, ...)                                        \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "TORCH_CHECK: %s does not hold\n", #condition); \
      std::exit(2);                                                        \
    }                                                                      \
  } while (false);
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b))

#define AT_DISPATCH_SWITCH(TYPE, NAME, ...) \
  switch (TYPE) {                           \
    __VA_ARGS__                             \
    default: TORCH_CHECK(false)             \
  }
#define AT_DISPATCH_CASE(TYPE, ...)          \
  case TYPE: {                               \
    using scalar_t = at::TypeOf<TYPE>::type; \
    __VA_ARGS__();                           \
    break;                                   \
  }
