// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/exact_scalar.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/kernel/convert.hpp"
#include "core/kernel/narrow.hpp"
#include "core/kernel/partial.hpp"

namespace dist {
namespace {

constexpr uint64_t kNan = 0x7FF8000000000000;
constexpr uint64_t kSign = uint64_t{1} << 63;

// ---- Elements: how an element is read, and how a double is written, rounded once. ----------------

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
double term_of(const std::byte* from, const double* weights, std::size_t p, std::size_t i) noexcept {
  typename Element::Stored stored;
  std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
  const double value = Element::read(stored);
  return weights != nullptr ? value * weights[p] : value;
}

template <class Element>
typename Element::Stored finish(ExactPartial& sum, double divisor) noexcept {
  double value = sum.round(Element::kToOdd);
  if (divisor != 1) value /= divisor;
  return Element::write(std::isnan(value) ? std::bit_cast<double>(kNan) : value);
}

template <class Element>
typename Element::Stored result(const ExactArguments& args, std::size_t i) noexcept {
  ExactPartial sum;
  for (std::size_t p = 0; p < args.num_src; ++p) sum.add(term_of<Element>(args.src[p], args.weights, p, i));
  return finish<Element>(sum, args.divisor);
}

template <class Element>
uint64_t exact_element(const ExactArguments& args, std::size_t i) noexcept {
  return result<Element>(args, i);
}

template <class Stored>
void store(Stored stored, std::byte* const* dst, std::size_t num_dst, std::size_t i) noexcept {
  for (std::size_t d = 0; d < num_dst; ++d) std::memcpy(dst[d] + i * sizeof stored, &stored, sizeof stored);
}

template <class Element>
void exact(const ExactArguments& args) noexcept {
  for (std::size_t i = 0; i < args.count; ++i) store(result<Element>(args, i), args.dst, args.num_dst, i);
}

bool sums_exactly(dist_dtype dtype) noexcept {
  return dtype == DIST_F16 || dtype == DIST_BF16 || dtype == DIST_F32 || dtype == DIST_F64;
}

// Calls use.operator()<Element>() with the class of one of these.
template <class Use>
auto with_element(dist_dtype dtype, Use&& use) {
  switch (dtype) {
    case DIST_F16: return use.template operator()<Half>();
    case DIST_BF16: return use.template operator()<BrainFloat>();
    case DIST_F32: return use.template operator()<Float>();
    default: return use.template operator()<Double>();
  }
}

}  // namespace

ExactKernel scalar_exact_kernel(dist_dtype dtype) noexcept {
  if (!sums_exactly(dtype)) return nullptr;
  return with_element(dtype, []<class Element>() -> ExactKernel { return exact<Element>; });
}

ExactElement scalar_exact_element(dist_dtype dtype) noexcept {
  if (!sums_exactly(dtype)) return nullptr;
  return with_element(dtype, []<class Element>() -> ExactElement { return exact_element<Element>; });
}

// ---- Partials ------------------------------------------------------------------------------------

void ExactPartial::add(double term) noexcept {
  all_negative_zero_ = all_negative_zero_ && std::bit_cast<uint64_t>(term) == kSign;
  if (std::isfinite(term))
    sum_.add(term);
  else
    special_ += term;
}

void ExactPartial::add(const ExactPartial& other) noexcept {
  all_negative_zero_ = all_negative_zero_ && other.all_negative_zero_;
  special_ += other.special_;
  Superaccumulator settled = other.sum_;
  settled.settle();
  sum_.settle();
  sum_.add(settled);
}

double ExactPartial::round(bool to_odd) noexcept {
  if (special_ != 0) return special_;  // includes NaN, which is not equal to 0
  return all_negative_zero_ ? -0.0 : sum_.round(to_odd);
}

void fold_exact(dist_dtype dtype, const std::byte* const* src, const double* weights, std::size_t num_src,
                std::size_t count, ExactPartial* acc) noexcept {
  with_element(dtype, [&]<class Element>() {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t p = 0; p < num_src; ++p) acc[i].add(term_of<Element>(src[p], weights, p, i));
    }
  });
}

void finish_exact(dist_dtype dtype, ExactPartial* acc, double divisor, std::byte* const* dst,
                  std::size_t num_dst, std::size_t count) noexcept {
  with_element(dtype, [&]<class Element>() {
    for (std::size_t i = 0; i < count; ++i) store(finish<Element>(acc[i], divisor), dst, num_dst, i);
  });
}

}  // namespace dist
