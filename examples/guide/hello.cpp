// SPDX-License-Identifier: Apache-2.0
//
// hello.c in C++: errors are exceptions, and the strategy destroys itself.
//
//     c++ -std=c++17 hello.cpp $(pkg-config --cflags --libs dist) -o hello && ./hello
#include <cstdio>
#include <dist/dist.hpp>

int main() {
  try {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 4;
    const dist::strategy strategy(options);
    strategy.run([](dist::replica replica) {
      double number = replica.id() + 1;  // 1, 2, 3 and 4
      replica.all_reduce(dist::reduce_op::sum, dist::tensor(&number, {}));
      std::printf("replica %d: the sum is %g\n", replica.id(), number);
    });
  } catch (const std::exception &error) {
    std::fprintf(stderr, "hello: %s\n", error.what());
    return 1;
  }
  return 0;
}
