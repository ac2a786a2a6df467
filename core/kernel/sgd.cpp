// SPDX-License-Identifier: Apache-2.0
// Compiles the fused update once for each SIMD target. The remaining operations are plain loops.
#include "core/kernel/sgd.hpp"
#include "core/kernel/highway_names.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

// The same targets as in targets.hpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/sgd.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dist {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, bool kMomentum>
class Step {
 public:
  using D = hn::ScalableTag<T>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D());

  explicit HWY_INLINE Step(const SgdArguments& args)
      : args_(args),
        scale_(hn::Set(D(), static_cast<T>(args.scale))),
        rate_(hn::Set(D(), static_cast<T>(args.learning_rate))),
        momentum_(hn::Set(D(), static_cast<T>(args.momentum))) {}

  // With kStream, copies after the first are stored past the caches.
  template <bool kStream>
  HWY_INLINE std::size_t vectors(std::size_t at, std::size_t end) const {
    const T* const gradient = reinterpret_cast<const T*>(args_.gradient);
    T* const parameter = to(args_.parameters, 0);
    T* const velocity = kMomentum ? to(args_.velocities, 0) : nullptr;
    if (args_.copies == 2) {  // by far the most usual; both pointers stay in registers
      T* const other_parameter = to(args_.parameters, 1);
      T* const other_velocity = kMomentum ? to(args_.velocities, 1) : nullptr;
      for (; at + kLanes <= end; at += kLanes) {
        Values values = load(gradient + at, parameter + at, velocity + (kMomentum ? at : 0));
        change(values);
        store<false>(values, parameter + at, velocity + (kMomentum ? at : 0));
        store<kStream>(values, other_parameter + at, other_velocity + (kMomentum ? at : 0));
      }
      return at;
    }
    for (; at + kLanes <= end; at += kLanes) {
      Values values = load(gradient + at, parameter + at, velocity + (kMomentum ? at : 0));
      change(values);
      store<false>(values, parameter + at, velocity + (kMomentum ? at : 0));
      for (std::size_t c = 1; c < args_.copies; ++c) {
        store<kStream>(values, to(args_.parameters, c) + at,
                       kMomentum ? to(args_.velocities, c) + at : nullptr);
      }
    }
    return at;
  }

  // Processes n lanes, fewer than a vector has.
  HWY_INLINE void part(std::size_t at, std::size_t n) const {
    HWY_ALIGN T gradient[kLanes] = {}, parameter[kLanes] = {}, velocity[kLanes] = {};
    const std::size_t offset = at * sizeof(T), bytes = n * sizeof(T);
    std::memcpy(gradient, args_.gradient + offset, bytes);
    std::memcpy(parameter, args_.parameters[0] + offset, bytes);
    if (kMomentum) std::memcpy(velocity, args_.velocities[0] + offset, bytes);
    Values values = load(gradient, parameter, velocity);
    change(values);
    store<false>(values, parameter, velocity);
    for (std::size_t c = 0; c < args_.copies; ++c) {
      std::memcpy(args_.parameters[c] + offset, parameter, bytes);
      if (kMomentum) std::memcpy(args_.velocities[c] + offset, velocity, bytes);
    }
  }

 private:
  struct Values {
    hn::Vec<D> gradient, parameter, velocity;
  };

  static HWY_INLINE T* to(std::byte* const* copies, std::size_t c) { return reinterpret_cast<T*>(copies[c]); }

  static HWY_INLINE Values load(const T* gradient, const T* parameter, const T* velocity) {
    const D d;
    return {hn::LoadU(d, gradient), hn::LoadU(d, parameter),
            kMomentum ? hn::LoadU(d, velocity) : hn::Zero(d)};
  }

  HWY_INLINE void change(Values& values) const {
    const auto step = hn::Mul(rate_, hn::Mul(scale_, values.gradient));
    if constexpr (kMomentum) {
      values.velocity = hn::Sub(hn::Mul(momentum_, values.velocity), step);
      values.parameter = hn::Add(values.parameter, values.velocity);
    } else {
      values.parameter = hn::Sub(values.parameter, step);
    }
  }

  template <bool kStream>
  static HWY_INLINE void store(const Values& values, T* parameter, T* velocity) {
    const D d;
    if constexpr (kStream) {
      hn::Stream(values.parameter, d, parameter);
      if constexpr (kMomentum) hn::Stream(values.velocity, d, velocity);
    } else {
      hn::StoreU(values.parameter, d, parameter);
      if constexpr (kMomentum) hn::StoreU(values.velocity, d, velocity);
    }
  }

  const SgdArguments& args_;
  hn::Vec<D> scale_, rate_, momentum_;
};

// The number of elements before the first cache line boundary, if it is the same in every copy that is
// streamed; otherwise `count`.
template <class T>
std::size_t elements_before_line(const SgdArguments& args) {
  constexpr std::size_t kLine = 64;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(args.parameters[1]) % kLine;
  for (std::size_t c = 1; c < args.copies; ++c) {
    if (reinterpret_cast<std::uintptr_t>(args.parameters[c]) % kLine != past) return args.count;
    if (args.velocities == nullptr) continue;
    if (reinterpret_cast<std::uintptr_t>(args.velocities[c]) % kLine != past) return args.count;
  }
  return past % sizeof(T) == 0 ? std::min(args.count, (kLine - past) % kLine / sizeof(T)) : args.count;
}

template <class T, bool kMomentum>
void sgd_range(const SgdArguments& args) {
  const Step<T, kMomentum> step(args);
  std::size_t at = 0;
  const auto up_to = [&](std::size_t end) {
    at = step.template vectors<false>(at, end);
    if (at < end) step.part(at, end - at);
    at = end;
  };
  if (args.stream && args.copies > 1) {
    up_to(elements_before_line<T>(args));
    at = step.template vectors<true>(at, args.count);
    hwy::FlushStream();
  }
  up_to(args.count);
}

template <class T>
void sgd_of(const SgdArguments& args) {
  args.velocities == nullptr ? sgd_range<T, false>(args) : sgd_range<T, true>(args);
}

void target_sgd(dist_dtype dtype, const SgdArguments& args) {
  dtype == DIST_F32 ? sgd_of<float>(args) : sgd_of<double>(args);
}

// kSums sums are added side by side, whatever the size of a vector. This is enough to hide the latency of an
// addition behind other additions.
constexpr std::size_t kSums = 32;

// At -O2 GCC must be told to keep an array of vectors in registers.
#undef DIST_UNROLL
#if HWY_COMPILER_CLANG
#define DIST_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DIST_UNROLL _Pragma("GCC unroll 32")
#endif

template <class T>
double squares_of(const std::byte* x, std::size_t count) {
  using D = hn::CappedTag<double, kSums>;
  constexpr D d;
  constexpr std::size_t kLanes = hn::MaxLanes(d), kVectors = kSums / kLanes;
  const auto load = [d](const T* from) HWY_ATTR {
    if constexpr (sizeof(T) == sizeof(double)) {
      return hn::LoadU(d, from);
    } else {
      return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
    }
  };
  hn::Vec<D> sums[kVectors];
  DIST_UNROLL
  for (std::size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  const auto add = [&](const T* from) HWY_ATTR {
    DIST_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto value = load(from + v * kLanes);
      sums[v] = hn::Add(sums[v], hn::Mul(value, value));
    }
  };
  const T* const from = reinterpret_cast<const T*>(x);
  std::size_t at = 0;
  for (; at + kSums <= count; at += kSums) add(from + at);
  if (at < count) {
    T rest[kSums] = {};  // a zero adds nothing
    std::memcpy(rest, x + at * sizeof(T), (count - at) * sizeof(T));
    add(rest);
  }
  HWY_ALIGN double each[kSums];
  for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], d, each + v * kLanes);
  double total = 0;
  for (const double sum : each) total += sum;
  return total;
}

double target_squares(dist_dtype dtype, const std::byte* x, std::size_t count) {
  return dtype == DIST_F32 ? squares_of<float>(x, count) : squares_of<double>(x, count);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace dist
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dist {

HWY_EXPORT(target_sgd);
HWY_EXPORT(target_squares);

namespace {

// How many elements are copied to aligned memory, scaled and copied back at a time.
constexpr std::size_t kStep = 256;

template <class T>
void scale_of(std::byte* x, std::size_t count, double scale) noexcept {
  const T by = static_cast<T>(scale);
  T values[kStep];
  for (std::size_t at = 0; at < count; at += kStep) {
    const std::size_t n = std::min(kStep, count - at);
    std::memcpy(values, x + at * sizeof(T), n * sizeof(T));
    for (std::size_t i = 0; i < n; ++i) values[i] *= by;
    std::memcpy(x + at * sizeof(T), values, n * sizeof(T));
  }
}

}  // namespace

void sgd(dist_dtype dtype, const SgdArguments& args) noexcept {
  HWY_DYNAMIC_DISPATCH(target_sgd)(dtype, args);
}

void scale_elements(dist_dtype dtype, std::byte* x, std::size_t count, double scale) noexcept {
  dtype == DIST_F32 ? scale_of<float>(x, count, scale) : scale_of<double>(x, count, scale);
}

double sum_of_squares(dist_dtype dtype, const std::byte* x, std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(target_squares)(dtype, x, count);
}

}  // namespace dist
#endif  // HWY_ONCE
