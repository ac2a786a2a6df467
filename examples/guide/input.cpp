// SPDX-License-Identifier: Apache-2.0
//
// input.c in C++: batches of a source function, and a value from a function.
//
//     c++ -std=c++17 input.cpp $(pkg-config --cflags --libs dist) -o input && ./input
#include <cstdio>
#include <dist/dist.hpp>

int main() {
  try {
    const dist::strategy strategy(2);
    dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
    options.global_batch_size = 4;
    const auto dataset = dist::dataset::from_callback(
        strategy,
        [&](int64_t index) {
          if (index == 7) return dist::value();  // the end of the pass
          const int64_t square = index * index;
          return dist::value(strategy, dist::const_tensor(&square, {}));
        },
        options);
    for (const dist::value &batch : dataset) {
      std::printf("%s\n", batch.describe().c_str());  // a training loop passes the batch to run_values()
    }
    const dist::value seeds = strategy.values_from_function([&](const dist_value_context &context) {
      const int64_t seed = 100 + context.replica_id_in_sync_group;
      return dist::value(strategy, dist::const_tensor(&seed, {}));
    });
    std::printf("%s\n", seeds.describe().c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "input: %s\n", error.what());
    return 1;
  }
  return 0;
}
