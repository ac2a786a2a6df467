// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/overlap/part.hpp"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "tests/bench/harness.hpp"
#include "tests/bench/more_data.hpp"

namespace bench::overlap {
namespace {

// A batch normalization is bound by memory. An element takes as long as this number of multiplications.
constexpr double kNormalisation = 16;
constexpr std::size_t kConvolutions = 53;

// Returns the number of positions in the output of a convolution, for an image of 224 x 224.
double positions_of(std::size_t convolution) {
  constexpr std::size_t ends[] = {1, 11, 24, 43, kConvolutions};
  double width = 112;
  for (std::size_t stage = 0; convolution >= ends[stage]; ++stage) width /= 2;
  return width * width;
}

std::vector<Layer> layers_of(const std::vector<std::size_t>& elements) {
  std::vector<Layer> layers;
  double all = 0;
  const auto add = [&](int tensors, double cost) {
    layers.push_back({layers.empty() ? 0 : layers.back().first + layers.back().tensors, tensors, cost});
    all += cost;
  };
  for (std::size_t c = 0; c < kConvolutions; ++c) {
    const double positions = positions_of(c);
    add(1, static_cast<double>(elements[3 * c]) * positions);
    add(2, static_cast<double>(elements[3 * c + 1]) * positions * kNormalisation);
  }
  add(2, static_cast<double>(elements[3 * kConvolutions]));
  for (Layer& layer : layers) layer.share /= all;
  return layers;
}

Page& map_page() {
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, kPageFd, 0);
  if (at == MAP_FAILED) throw std::runtime_error("the page cannot be mapped");
  return *static_cast<Page*>(at);
}

void sleep_until(double us) {
  const timespec when{static_cast<time_t>(us / 1e6), static_cast<long>(std::fmod(us, 1e6) * 1e3)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) != 0) {
  }
}

float value_of(std::size_t element) { return static_cast<float>(element % 256 + 1); }

}  // namespace

void Side::fail(const std::string& what) {
  if (!failed.exchange(true)) std::snprintf(why.data(), why.size(), "%s", what.c_str());
  inside.go_on();
  outside.go_on();
}

void compute(double loops) {
  alignas(64) static float x[1024], y[1024];
  for (auto left = static_cast<long>(loops); left > 0; --left) {
    for (std::size_t i = 0; i < std::size(x); ++i) y[i] = y[i] * 0.5F + x[i];
    asm volatile("" : : "r"(x), "r"(y) : "memory");
  }
}

double measure_loops_per_us() {
  constexpr double kLoops = 1e6;
  double fastest = 0;
  for (int i = 0; i < 5; ++i) {
    const double begin = process_cpu_us();
    compute(kLoops);
    fastest = std::max(fastest, kLoops / (process_cpu_us() - begin));
  }
  return fastest;
}

Part::Part(int side, int me)
    : page_(map_page()),
      side_(page_.sides[static_cast<std::size_t>(side)]),
      me_(me),
      elements_(tensor_counts(Network::kResNet50, page_.share)),
      layers_(layers_of(elements_)),
      until_(layers_.size()),
      gradients_(elements_.size()) {
  double done = 0;
  for (std::size_t l = layers_.size(); l-- > 0;) until_[l] = done += layers_[l].share;
}

// All values are small integers, so that a sum is exact.
float Part::scale_of(double worker) const noexcept {
  return static_cast<float>((worker + 1) * (1 + step_ % 3));
}

void Part::write(int tensor) {
  const auto t = static_cast<std::size_t>(tensor);
  const float scale = scale_of(me_);
  for (std::size_t i = 0; i < elements_[t]; ++i) gradients_[t][i] = scale * value_of(i);
}

void Part::check(int tensor, const float* mean) const {
  const float scale = scale_of((page_.workers - 1) / 2.0);
  for (std::size_t i = 0; i < elements_[static_cast<std::size_t>(tensor)]; ++i) {
    const float wanted = scale * value_of(i);
    if (!(std::abs(mean[i] - wanted) <= 1e-6F * wanted))
      throw std::runtime_error("a wrong mean in tensor " + std::to_string(tensor));
  }
}

Turn Part::next_turn() {
  if (side_.turn.steps != 0 && step_ != 0) side_.outside.meet(side_.failed);  // the end of the previous turn
  side_.outside.meet(side_.failed);
  step_of_turn_ = 0;
  return side_.turn;
}

void Part::begin_step() {
  ++step_;
  // A device writes them, which takes no time in this process.
  for (int t = 0; side_.turn.device && t < static_cast<int>(elements_.size()); ++t) write(t);
  side_.inside.meet(side_.failed);
  begin_us_ = now_us();
  begin_cpu_us_ = process_cpu_us();
}

void Part::pass(int layer) {
  const Layer& it = layers_[static_cast<std::size_t>(layer)];
  if (side_.turn.device) {
    sleep_until(begin_us_ + until_[static_cast<std::size_t>(layer)] * page_.compute_us);
    return;
  }
  compute(it.share * page_.compute_us * page_.loops_per_us);
  for (int t = it.first; t < it.first + it.tensors; ++t) write(t);
}

void Part::end_step() {
  side_.steps[me_][step_of_turn_++] = {begin_us_, now_us(), process_cpu_us() - begin_cpu_us_};
  side_.inside.meet(side_.failed);
}

}  // namespace bench::overlap
