// SPDX-License-Identifier: Apache-2.0
//
// embedding.c in C++: two threads of the program are the replicas.
//
//     c++ -std=c++17 embedding.cpp $(pkg-config --cflags --libs dist) -pthread -o embedding && ./embedding
#include <cstdio>
#include <dist/dist.hpp>
#include <future>

int main() {
  try {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    options.threads = DIST_THREADS_HOST;
    const dist::strategy strategy(options);
    const auto work = [&](int32_t id) {
      strategy.enter(id, [](dist::replica replica) {  // also leaves, and throws if the run has failed
        double number = replica.id() + 1;
        replica.all_reduce(dist::reduce_op::sum, dist::tensor(&number, {}));
        std::printf("replica %d: the sum is %g\n", replica.id(), number);
      });
    };
    std::future<void> other = std::async(std::launch::async, work, 1);
    work(0);
    other.get();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "embedding: %s\n", error.what());
    return 1;
  }
  return 0;
}
