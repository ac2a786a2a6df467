// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/split/turns.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tests/bench/harness.hpp"

namespace bench::split {
namespace {

constexpr double kFallAsleepUs = 2e6;

void require(dist_status status, const char* what) {
  if (status != DIST_OK) throw std::runtime_error(std::string(what) + ": " + dist_last_error());
}

}  // namespace

OnDevices::OnDevices(int devices, const Files& files) {
  weights of_file{};
  require(layout_strategy({1, devices}, &strategy_), "the strategy");
  require(reference_load(strategy_, files.reference, &reference_), files.reference);
  const dist_status loaded = weights_load(strategy_, files.weights, &of_file);
  const dist_status packed =
      loaded != DIST_OK ? loaded : encoder_create(strategy_, &of_file, reference_.heads, &encoder_);
  weights_release(&of_file);
  require(packed, files.weights);
}

OnDevices::~OnDevices() {
  encoder_destroy(encoder_);
  reference_release(&reference_);
  std::ignore = dist_strategy_destroy(strategy_);
}

// Returns the time of a pass in microseconds.
double OnDevices::pass() {
  dist_value* output = nullptr;
  const double begin = now_us();
  const dist_status status = encoder_run(encoder_, reference_.input, &output);
  const double us = now_us() - begin;
  require(status, "a pass");
  difference_ = std::max(difference_, reference_difference(&reference_, output));
  dist_value_release(output);
  if (!(difference_ <= REFERENCE_MOST_DIFFERENCE))
    throw std::runtime_error("libdist: wrong result: " + std::to_string(difference_) + " from the reference");
  return us;
}

Turn OnDevices::take(int passes) {
  Samples us, own, waiting;
  for (int i = -1; i < passes; ++i) {
    const double one = pass();
    if (i < 0) continue;
    const encoder_times times = encoder_last_times(encoder_);
    us.push_back(one);
    own.push_back(times.own_seconds * 1e6 / one);
    waiting.push_back(times.waiting_seconds * 1e6 / one);
  }
  if (!wait_until_quiet()) throw std::runtime_error("libdist does not sleep while it is others' turn");
  return {median(us), median(own), median(waiting)};
}

Turn OnThreads::take(int threads, int passes) {
  const size_t form = static_cast<size_t>(threads) - 1;
  if (form >= process_.forms().size()) process_.lose("has no form for as many threads");
  peers::Request request;
  request.form = process_.forms()[form];
  request.operation = Operation::kEncode;
  request.plan = {Pace::kHot, 1, passes};
  const peers::Words answer = process_.ask(peers::to_line(request));
  if (answer[0] != "@times" || answer.size() < 2)
    throw std::runtime_error(process_.name() + ": " + (answer.size() > 1 ? answer[1] : answer[0]));
  Samples us;
  for (size_t i = 1; i < answer.size(); ++i) us.push_back(std::strtod(answer[i].c_str(), nullptr));
  if (!wait_until_quiet(process_.processes(), kFallAsleepUs)) process_.lose("does not sleep after its turn");
  return {median(us), 0, 0};
}

}  // namespace bench::split
