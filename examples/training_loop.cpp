// SPDX-License-Identifier: Apache-2.0
//
// training_loop.c in C++. Run it as `training_loop_cpp [REPLICAS]` (default 2). It learns the same bits and
// prints the same lines. Objects release their resources in their destructors, and every error reaches main()
// as an exception.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dist/dist.hpp>

namespace {

constexpr int64_t kExamples = 1000, kGlobalBatch = 64;
constexpr int kEpochs = 8;
constexpr float kLearningRate = 2.0F;

struct model {
  dist::variable weights;  // for x, y and the bias
  dist::metric accuracy;
};

// Runs on every replica with its part of the batch. args is the list (points [n, 2], labels [n]).
dist::value train_step(const model &m, dist::replica replica, const dist::value &args) {
  const dist::value points_value = args[0], labels_value = args[1];
  const float *points = points_value.tensor().data<float>();
  const dist::const_tensor labels = labels_value.tensor();
  const float *w = m.weights.component(replica.id()).data<float>();

  // Forward and backward pass: the loss of each example, and the gradient of the mean loss over the global
  // batch.
  const auto n = static_cast<std::size_t>(labels.size(0));
  std::vector<float> losses(n);
  std::vector<int32_t> predictions(n);
  std::array<float, 3> step{};
  for (std::size_t i = 0; i < n; ++i) {
    const float *point = points + 2 * i;
    const float z = w[0] * point[0] + w[1] * point[1] + w[2];
    const float side = labels.data<int32_t>()[i] != 0 ? 1.0F : -1.0F;
    const float missing = side * z < 1.0F ? 1.0F - side * z : 0.0F;  // squared hinge loss
    losses[i] = missing * missing;
    predictions[i] = z > 0;
    const float slope = kLearningRate / kGlobalBatch * (-side * missing);
    step[0] += slope * point[0];
    step[1] += slope * point[1];
    step[2] += slope;
  }

  // The variable's aggregation is SUM: libdist adds the changes of all replicas and applies the sum to every
  // copy.
  replica.assign(m.weights, step, DIST_ASSIGN_SUB);
  m.accuracy.update(replica, predictions, labels);
  const auto loss = dist::average_loss<float>(replica, losses, kGlobalBatch);
  return {replica.strategy(), dist::const_tensor(&loss, {})};
}

// Points in the square [-1, 1) x [-1, 1). The label tells which side of the line a point is on.
dist::dataset make_dataset(const dist::strategy &strategy) {
  std::vector<float> points;
  std::vector<int32_t> labels;
  uint32_t random = 1;
  for (int64_t i = 0; i < kExamples; ++i) {
    float point[2];
    for (float &coordinate : point) {
      random = random * 1664525U + 1013904223U;
      coordinate = static_cast<float>(random >> 8) / (1 << 23) - 1;
      points.push_back(coordinate);
    }
    labels.push_back(point[0] + 2 * point[1] > 0.25F);
  }
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = kGlobalBatch;
  options.shuffle = 1;
  return dist::dataset(strategy, {dist::tensor(points.data(), {kExamples, 2}), dist::tensor(labels)},
                       options);
}

model make_model(const dist::strategy &strategy) {
  const auto scope = strategy.scope();
  const std::array<float, 3> zeros{};
  return {dist::variable(strategy, zeros, "weights", DIST_AGGREGATION_SUM),
          dist::metric(strategy, DIST_METRIC_ACCURACY, "accuracy")};
}

void train(int32_t replicas) {
  const dist::strategy strategy(replicas);
  const model m = make_model(strategy);
  const dist::dataset dataset = make_dataset(strategy);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    double total_loss = 0;
    int steps = 0;
    for (const dist::value &batch : dataset) {
      const dist::value losses = strategy.run_values(
          [&](dist::replica replica, const dist::value &args) { return train_step(m, replica, args); },
          batch);
      total_loss += *strategy.reduce(dist::reduce_op::sum, losses).tensor().data<float>();
      ++steps;
    }
    std::printf("epoch %d: loss %.4f, accuracy %.1f%%\n", epoch, total_loss / steps,
                100 * m.accuracy.result());
    m.accuracy.reset();
  }
  strategy.check_drift(m.weights);  // fails unless all copies are equal
  uint32_t bits[3];
  std::memcpy(bits, m.weights.component(0).data<float>(), sizeof bits);
  std::printf("weights %08x %08x %08x\n", bits[0], bits[1], bits[2]);
}

}  // namespace

int main(int argc, char **argv) try {
  train(argc > 1 ? std::atoi(argv[1]) : 2);
  return EXIT_SUCCESS;
} catch (const std::exception &failure) {
  std::fprintf(stderr, "training_loop_cpp: %s\n", failure.what());
  return EXIT_FAILURE;
}
