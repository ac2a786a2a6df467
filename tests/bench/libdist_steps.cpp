// SPDX-License-Identifier: Apache-2.0
// A training step after the gradients have been computed: fused, and composed from all_reduce and
// user-written loops.
#include <cmath>

#include "tests/bench/in_replicas.hpp"

namespace bench {
namespace {

class FusedStep final : public InReplicas {
 public:
  FusedStep(const Strategy& strategy, StepData& data) : InReplicas(strategy, &data), step_(data) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    std::vector<dist_tensor> gradients = step_.gradients(id), parameters = step_.parameters(id);
    const std::vector<dist_tensor> velocities = step_.velocities(id);
    dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
    apply.kind = DIST_APPLY_SGD;
    apply.learning_rate = StepData::kRate;
    apply.clip_norm = step_.clip_norm();
    if (step_.form().momentum) {
      apply.momentum = StepData::kMomentum;
      apply.states = velocities.data();
      apply.num_states = 1;
    }
    return loop(replica, job, [&] {
      return dist_reduce_apply(replica, DIST_REDUCE_MEAN, gradients.data(), parameters.data(),
                               gradients.size(), &apply, nullptr, nullptr);
    });
  }

 private:
  StepData& step_;
};

// Every replica gets all reduced gradients and updates its own copy of the parameters.
class SeparateStep final : public InReplicas {
 public:
  SeparateStep(const Strategy& strategy, StepData& data)
      : InReplicas(strategy, &data, "libdist all_reduce, then loops"), step_(data) {}

  dist_status replica(dist_replica* replica, const Job& job) override {
    const int id = dist_replica_id(replica);
    std::vector<dist_tensor> gradients = step_.gradients(id);
    const std::vector<dist_tensor> parameters = step_.parameters(id), velocities = step_.velocities(id);
    return loop(replica, job, [&] {
      const dist_status status = dist_all_reduce(replica, DIST_REDUCE_MEAN, gradients.data(),
                                                 gradients.data(), gradients.size(), nullptr, nullptr);
      if (status != DIST_OK) return status;
      const auto rate = static_cast<float>(StepData::kRate * scale(gradients));
      for (size_t t = 0; t < gradients.size(); ++t) {
        const float* const gradient = floats(gradients[t]);
        if (velocities.empty()) {
          update(floats(parameters[t]), gradient, rate, step_.count(t));
        } else {
          update(floats(parameters[t]), floats(velocities[t]), gradient, rate, step_.count(t));
        }
      }
      return status;
    });
  }

 private:
  static float* floats(const dist_tensor& tensor) { return static_cast<float*>(tensor.data); }

  static void update(float* __restrict parameter, const float* __restrict gradient, float rate, size_t n) {
    for (size_t i = 0; i < n; ++i) parameter[i] -= rate * gradient[i];
  }
  static void update(float* __restrict parameter, float* __restrict velocity,
                     const float* __restrict gradient, float rate, size_t n) {
    const auto momentum = static_cast<float>(StepData::kMomentum);
    for (size_t i = 0; i < n; ++i) {
      velocity[i] = momentum * velocity[i] - rate * gradient[i];
      parameter[i] += velocity[i];
    }
  }

  // The factor by which clipping scales the gradients.
  double scale(const std::vector<dist_tensor>& gradients) const {
    if (!step_.form().clip) return 1;
    double squares = 0;
    for (size_t t = 0; t < gradients.size(); ++t) {
      const float* const gradient = floats(gradients[t]);
      double sums[16] = {};  // separate sums, so that the loop is vectorized
      const size_t n = step_.count(t), whole = n / 16 * 16;
      for (size_t i = 0; i < whole; i += 16) {
        for (size_t lane = 0; lane < 16; ++lane) {
          const double value = gradient[i + lane];
          sums[lane] += value * value;
        }
      }
      for (size_t i = whole; i < n; ++i) sums[0] += static_cast<double>(gradient[i]) * gradient[i];
      for (const double sum : sums) squares += sum;
    }
    const double norm = std::sqrt(squares);
    return norm > step_.clip_norm() ? step_.clip_norm() / norm : 1;
  }

  StepData& step_;
};

}  // namespace

std::unique_ptr<Side> libdist_fused_step(const Strategy& strategy, StepData& data) {
  return std::make_unique<FusedStep>(strategy, data);
}
std::unique_ptr<Side> libdist_separate_step(const Strategy& strategy, StepData& data) {
  return std::make_unique<SeparateStep>(strategy, data);
}

}  // namespace bench
