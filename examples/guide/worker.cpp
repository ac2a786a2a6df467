// SPDX-License-Identifier: Apache-2.0
//
// worker.c in C++: one worker process of a job. The replicas of all workers add up their numbers.
//
//     c++ -std=c++17 worker.cpp $(pkg-config --cflags --libs dist) -o worker
//     dist-launch -n 2 --replicas 2 -- ./worker
#include <cstdio>
#include <dist/dist.hpp>

int main() {
  try {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    const dist::strategy strategy(options);
    strategy.run([](dist::replica replica) {
      double number = replica.id() + 1;
      dist::collective_options named;
      named.tag = "numbers";  // appears in error reports, and is the same in the other languages
      replica.all_reduce(dist::reduce_op::sum, dist::tensor(&number, {1}), named);
      std::printf("replica %d of %d: %g\n", replica.id(), replica.num_replicas(), number);
    });
  } catch (const std::exception &error) {
    std::fprintf(stderr, "worker: %s\n", error.what());
    return 1;
  }
  return 0;
}
