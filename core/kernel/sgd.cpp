// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/sgd.hpp"

#include <algorithm>
#include <cstring>

namespace dist {
namespace {

// Elements that are copied to aligned memory, worked on and copied back.
constexpr std::size_t kStep = 256;

template <class T>
void sgd_of(const SgdArguments& args) noexcept {
  const T scale = static_cast<T>(args.scale);
  const T rate = static_cast<T>(args.learning_rate);
  const T momentum = static_cast<T>(args.momentum);
  T g[kStep];
  T p[kStep];
  T v[kStep];
  for (std::size_t at = 0; at < args.count; at += kStep) {
    const std::size_t n = std::min(kStep, args.count - at);
    std::memcpy(g, args.gradient + at * sizeof(T), n * sizeof(T));
    std::memcpy(p, args.parameter + at * sizeof(T), n * sizeof(T));
    if (args.velocity == nullptr) {
      for (std::size_t i = 0; i < n; ++i) p[i] -= rate * (scale * g[i]);
    } else {
      std::memcpy(v, args.velocity + at * sizeof(T), n * sizeof(T));
      for (std::size_t i = 0; i < n; ++i) v[i] = momentum * v[i] - rate * (scale * g[i]);
      for (std::size_t i = 0; i < n; ++i) p[i] += v[i];
      std::memcpy(args.velocity + at * sizeof(T), v, n * sizeof(T));
    }
    std::memcpy(args.parameter + at * sizeof(T), p, n * sizeof(T));
  }
}

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

template <class T>
double squares_of(const std::byte* x, std::size_t count) noexcept {
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  T values[kStep];
  for (std::size_t at = 0; at < count; at += kStep) {
    const std::size_t n = std::min(kStep, count - at);
    std::memcpy(values, x + at * sizeof(T), n * sizeof(T));
    // A zero adds nothing, whatever its sign.
    std::fill(values + n, values + (n + kLanes - 1) / kLanes * kLanes, T{0});
    for (std::size_t i = 0; i < n; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double value = values[i + lane];
        sums[lane] += value * value;
      }
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

}  // namespace

void sgd(dist_dtype dtype, const SgdArguments& args) noexcept {
  dtype == DIST_F32 ? sgd_of<float>(args) : sgd_of<double>(args);
}

void scale_elements(dist_dtype dtype, std::byte* x, std::size_t count, double scale) noexcept {
  dtype == DIST_F32 ? scale_of<float>(x, count, scale) : scale_of<double>(x, count, scale);
}

double sum_of_squares(dist_dtype dtype, const std::byte* x, std::size_t count) noexcept {
  return dtype == DIST_F32 ? squares_of<float>(x, count) : squares_of<double>(x, count);
}

}  // namespace dist
