// SPDX-License-Identifier: Apache-2.0
// The tensors of a training step. All repeat one pattern, so one period determines the expected results.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/bench/more_data.hpp"

namespace bench {
namespace {

constexpr size_t kPeriod = 65521;  // a prime, so that it does not coincide with the pieces of any side

std::vector<float> pattern(uint32_t seed, float low, float high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> magnitude(low, high);
  std::vector<float> values(kPeriod);
  for (float& value : values) value = magnitude(random);
  return values;
}

// The fused step and a user's loop may round differently, because a compiler may round a * b + c only once.
bool about(float value, float wanted) { return std::fabs(value - wanted) <= 1e-5f * std::fabs(wanted); }

}  // namespace

StepData::StepData(const std::vector<size_t>& counts, int replicas, StepForm form)
    : form_(form),
      counts_(counts.begin(), counts.end()),
      parameter_(pattern(1, 32, 64)),
      velocity_(pattern(2, -0.5f, -0.25f)),
      mean_(kPeriod, 0) {
  for (int r = 0; r < replicas; ++r) {
    gradient_.push_back(pattern(static_cast<uint32_t>(r) + 3, 0.5f, 1));
    std::vector<Buffer>& buffers = replicas_.emplace_back();
    for (const size_t count : counts) {
      for (size_t part = 0; part < parts(); ++part) buffers.push_back(allocate(count * sizeof(float)));
    }
    for (size_t i = 0; i < kPeriod; ++i) mean_[i] += gradient_.back()[i];
  }
  std::vector<double> squares(kPeriod + 1, 0);  // prefix sums over the elements
  for (size_t i = 0; i < kPeriod; ++i) {
    mean_[i] /= static_cast<float>(replicas);
    squares[i + 1] = squares[i] + static_cast<double>(mean_[i]) * mean_[i];
  }
  double sum = 0;
  for (const size_t count : counts)
    sum += static_cast<double>(count / kPeriod) * squares[kPeriod] + squares[count % kPeriod];
  norm_ = std::sqrt(sum);
}

std::vector<dist_tensor> StepData::views(int replica, size_t part) const {
  std::vector<dist_tensor> views;
  if (part >= parts()) return views;
  const std::vector<Buffer>& buffers = replicas_[static_cast<size_t>(replica)];
  for (size_t t = 0; t < size(); ++t)
    views.push_back({buffers[t * parts() + part].get(), DIST_F32, 1, &counts_[t], nullptr});
  return views;
}

void StepData::expect(int iterations) {
  const auto rate = static_cast<float>(kRate) * (form_.clip ? 0.5f : 1.0f);
  const float momentum = form_.momentum ? static_cast<float>(kMomentum) : 0;
  expected_parameter_ = parameter_;
  expected_velocity_ = velocity_;
  for (int step = 0; step < iterations; ++step) {
    for (size_t i = 0; i < kPeriod; ++i) {
      expected_velocity_[i] = momentum * expected_velocity_[i] - rate * mean_[i];
      expected_parameter_[i] += expected_velocity_[i];
    }
  }
}

void StepData::reset(int replica) noexcept {
  const std::vector<float>* const patterns[kParts] = {&gradient_[static_cast<size_t>(replica)], &parameter_,
                                                      &velocity_};
  const std::vector<Buffer>& buffers = replicas_[static_cast<size_t>(replica)];
  for (size_t b = 0; b < buffers.size(); ++b) {
    const std::vector<float>& from = *patterns[b % parts()];
    auto* const to = static_cast<float*>(buffers[b].get());
    const size_t count = this->count(b / parts());
    for (size_t at = 0; at < count; at += kPeriod)
      std::memcpy(to + at, from.data(), std::min(kPeriod, count - at) * sizeof(float));
  }
}

void StepData::check(int replica, int) noexcept {
  const std::vector<Buffer>& buffers = replicas_[static_cast<size_t>(replica)];
  size_t wrong = 0;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (b % parts() == 0) continue;  // gradients are not compared
    const std::vector<float>& expected = b % parts() == 1 ? expected_parameter_ : expected_velocity_;
    const auto* const values = static_cast<const float*>(buffers[b].get());
    const size_t count = this->count(b / parts());
    for (size_t at = 0; at < count; at += kPeriod) {
      const size_t n = std::min(kPeriod, count - at);
      for (size_t i = 0; i < n; ++i) wrong += !about(values[at + i], expected[i]);
    }
  }
  count_wrong(wrong);
}

}  // namespace bench
