// SPDX-License-Identifier: Apache-2.0
//
// training.c in C++: two replicas learn w in y = w * x.
//
//     c++ -std=c++17 training.cpp $(pkg-config --cflags --libs dist) -o training && ./training
#include <cstdio>
#include <dist/dist.hpp>

struct model {
  dist::variable w;
  dist::metric loss;
};

// Runs on each replica with its rows of the batch: args is the list (x, y).
void train_step(const model &m, dist::replica replica, const dist::value &args) {
  const dist::value x_value = args[0], y_value = args[1];
  const dist::const_tensor x = x_value.tensor(), y = y_value.tensor();
  const double w = *m.w.component(replica.id()).data<double>();  // this replica's copy

  std::vector<double> losses(static_cast<std::size_t>(x.size(0)));  // can be empty
  std::array<double, 2> sums{0, static_cast<double>(losses.size())};
  for (std::size_t i = 0; i < losses.size(); i++) {
    const double error = w * x.data<double>()[i] - y.data<double>()[i];
    losses[i] = error * error;
    sums[0] += 2 * error * x.data<double>()[i];
  }

  // Add up the gradients and the numbers of rows of all replicas, in one call.
  replica.all_reduce(dist::reduce_op::sum, sums);

  // Every replica has the same sums, so each changes its own copy, and the copies stay equal.
  const double change = 0.2 * sums[0] / sums[1];
  replica.assign(m.w, dist::const_tensor(&change, {}), DIST_ASSIGN_SUB);
  m.loss.update(replica, losses);
}

int main() {
  try {
    const dist::strategy strategy(2);
    const double zero = 0;
    const model m{dist::variable(strategy, dist::const_tensor(&zero, {})),
                  dist::metric(strategy, DIST_METRIC_MEAN, "loss")};
    std::vector<double> x, y;
    for (int i = 0; i < 9; i++) {
      x.push_back((i + 1) / 8.0);
      y.push_back(3 * x.back());
    }
    dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
    options.global_batch_size = 4;
    const dist::dataset dataset(strategy, {dist::tensor(x), dist::tensor(y)}, options);

    for (int epoch = 1; epoch <= 5; epoch++) {
      for (const dist::value &batch : dataset) {
        strategy.run_values(
            [&](dist::replica replica, const dist::value &args) { train_step(m, replica, args); }, batch);
      }
      std::printf("epoch %d: loss %.4f\n", epoch, m.loss.result());  // over all rows of all replicas
      m.loss.reset();
    }
    std::printf("w = %.3f\n", *strategy.read(m.w).tensor().data<double>());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "training: %s\n", error.what());
    return 1;
  }
  return 0;
}
