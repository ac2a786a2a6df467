// SPDX-License-Identifier: Apache-2.0
// libdist's work handles: a plan next to the blocking call, and an exchange that overlaps with a computation.
#include <algorithm>
#include <cmath>

#include "tests/bench/in_replicas.hpp"

namespace bench {
namespace {

struct Destroy {
  void operator()(dist_work* work) const { dist_work_destroy(work); }
};
using Work = std::unique_ptr<dist_work, Destroy>;

class Planned final : public InReplicas {
 public:
  Planned(const Strategy& strategy, Data& data) : InReplicas(strategy, &data), tensors_(data) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    const int64_t shape[] = {static_cast<int64_t>(tensors_.count())};
    dist_tensor tensor{tensors_.in(id), tensors_.dtype(), 1, shape, nullptr};
    dist_work* made = nullptr;
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.planned = 1;
    const dist_status status =
        dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &made);
    if (status != DIST_OK) return status;
    const Work plan(made);
    return loop(replica, job, [&] {
      const dist_status started = dist_work_start(plan.get());
      return started == DIST_OK ? dist_work_wait(plan.get(), DIST_NO_TIMEOUT) : started;
    });
  }

 private:
  Data& tensors_;
};

// Arithmetic without memory access. Its input and output are volatile, so that the compiler cannot precompute
// it.
void compute(int64_t rounds) {
  volatile float seed = 1, result;
  float values[8];
  for (float& value : values) value = seed;
  for (int64_t i = 0; i < rounds; ++i) {
    for (float& value : values) value = value * 0.999f + 0.5f;
  }
  for (const float value : values) result = value;
  (void)result;
}

class Overlapped final : public InReplicas {
 public:
  Overlapped(const Strategy& strategy, Data& data, Overlap which, int64_t rounds)
      : InReplicas(strategy, &data, overlap_name(which)), tensors_(data), which_(which), rounds_(rounds) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    const int64_t shape[] = {static_cast<int64_t>(tensors_.count())};
    const dist_tensor in{tensors_.in(id), tensors_.dtype(), 1, shape, nullptr};
    dist_tensor out{tensors_.out(id), tensors_.dtype(), 1, shape, nullptr};
    dist_work* work = nullptr;
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    return loop(replica, job, [&] {
      const dist_status begun = dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options,
                                                which_ == Overlap::kTogether ? &work : nullptr);
      if (begun != DIST_OK || which_ == Overlap::kExchange) return begun;
      compute(rounds_);
      const Work owned(work);
      return dist_work_wait(work, DIST_NO_TIMEOUT);
    });
  }

 private:
  static const char* overlap_name(Overlap which) {
    return which == Overlap::kTogether ? "libdist, both" : "libdist, all_reduce alone";
  }
  Data& tensors_;
  Overlap which_;
  int64_t rounds_;
};

class Computed final : public InReplicas {
 public:
  Computed(const Strategy& strategy, int64_t rounds)
      : InReplicas(strategy, nullptr, "the computation alone"), rounds_(rounds) {}
  dist_status replica(dist_replica* replica, const Job& job) override {
    return loop(replica, job, [&] {
      compute(rounds_);
      return DIST_OK;
    });
  }

 private:
  int64_t rounds_;
};

}  // namespace

std::unique_ptr<Side> libdist_planned(const Strategy& strategy, Data& data) {
  return std::make_unique<Planned>(strategy, data);
}
std::unique_ptr<Side> libdist_overlapped(const Strategy& strategy, Data& data, Overlap which,
                                         int64_t rounds) {
  return std::make_unique<Overlapped>(strategy, data, which, rounds);
}
std::unique_ptr<Side> libdist_computed(const Strategy& strategy, int64_t rounds) {
  return std::make_unique<Computed>(strategy, rounds);
}

int64_t rounds_as_long_as(const Strategy& strategy, Side& exchange) {
  const Plan plan{Pace::kHot, 4, 5};
  Samples exchanging, computing;
  exchange.block(plan, exchanging);
  constexpr int64_t kRounds = 20'000;
  Computed(strategy, kRounds).block(plan, computing);
  const double rounds = static_cast<double>(kRounds) * median(exchanging) / median(computing);
  return std::max<int64_t>(1, std::llround(rounds));
}

}  // namespace bench
