// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/exact_scalar.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/kernel/convert.hpp"
#include "core/kernel/narrow.hpp"
#include "core/kernel/superaccumulator.hpp"

namespace dist {
namespace {

constexpr uint64_t kNan = 0x7FF8000000000000;
constexpr uint64_t kSign = uint64_t{1} << 63;

// ---- Elements: how one is read, and how a double is written, rounded once. -----------------------

struct Double {
  using Stored = uint64_t;
  static constexpr bool kToOdd = false;
  static double read(Stored stored) { return std::bit_cast<double>(stored); }
  static Stored write(double value) { return std::bit_cast<Stored>(value); }
};

struct Float {
  using Stored = uint32_t;
  static constexpr bool kToOdd = true;
  static double read(Stored stored) { return std::bit_cast<float>(stored); }
  static Stored write(double value) { return std::bit_cast<Stored>(static_cast<float>(value)); }
};

struct Half {
  using Stored = uint16_t;
  static constexpr bool kToOdd = true;
  static double read(Stored stored) { return f32_from_f16(stored); }
  static Stored write(double value) { return f16_from_f64(value); }
};

struct BrainFloat {
  using Stored = uint16_t;
  static constexpr bool kToOdd = true;
  static double read(Stored stored) { return f32_from_bf16(stored); }
  static Stored write(double value) { return bf16_from_f64(value); }
};

// ---- The kernel ----------------------------------------------------------------------------------

template <class Element>
double exact_sum(const ExactArguments& args, std::size_t i) noexcept {
  Superaccumulator sum;
  double special = 0;  // the infinities and NaNs, added as the CPU adds them
  bool all_negative_zero = true;
  for (std::size_t p = 0; p < args.num_src; ++p) {
    typename Element::Stored stored;
    std::memcpy(&stored, args.src[p] + i * sizeof stored, sizeof stored);
    double term = Element::read(stored);
    if (args.weights != nullptr) term *= args.weights[p];
    all_negative_zero = all_negative_zero && std::bit_cast<uint64_t>(term) == kSign;
    if (std::isfinite(term))
      sum.add(term);
    else
      special += term;
  }
  if (special != 0) return special;  // NaN too is unequal
  return all_negative_zero ? -0.0 : sum.round(Element::kToOdd);
}

template <class Element>
typename Element::Stored result(const ExactArguments& args, std::size_t i) noexcept {
  double value = exact_sum<Element>(args, i);
  if (args.divisor != 1) value /= args.divisor;
  return Element::write(std::isnan(value) ? std::bit_cast<double>(kNan) : value);
}

template <class Element>
uint64_t exact_element(const ExactArguments& args, std::size_t i) noexcept {
  return result<Element>(args, i);
}

template <class Element>
void exact(const ExactArguments& args) noexcept {
  for (std::size_t i = 0; i < args.count; ++i) {
    const auto stored = result<Element>(args, i);
    for (std::size_t d = 0; d < args.num_dst; ++d) {
      std::memcpy(args.dst[d] + i * sizeof stored, &stored, sizeof stored);
    }
  }
}

}  // namespace

ExactKernel scalar_exact_kernel(dist_dtype dtype) noexcept {
  switch (dtype) {
    case DIST_F16: return exact<Half>;
    case DIST_BF16: return exact<BrainFloat>;
    case DIST_F32: return exact<Float>;
    case DIST_F64: return exact<Double>;
    default: return nullptr;
  }
}

ExactElement scalar_exact_element(dist_dtype dtype) noexcept {
  switch (dtype) {
    case DIST_F16: return exact_element<Half>;
    case DIST_BF16: return exact_element<BrainFloat>;
    case DIST_F32: return exact_element<Float>;
    case DIST_F64: return exact_element<Double>;
    default: return nullptr;
  }
}

}  // namespace dist
