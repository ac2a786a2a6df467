// SPDX-License-Identifier: Apache-2.0
//
// serve.c in C++: each request runs on one idle replica, which has its own copy of the model.
//
//     c++ -std=c++17 serve.cpp $(pkg-config --cflags --libs dist) -o serve && ./serve
#include <array>
#include <cstdio>
#include <dist/dist.hpp>

struct model {
  double weight;
};

int main() {
  try {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    options.threads = DIST_THREADS_LIBRARY;  // the replicas serve while this thread does something else
    const dist::strategy strategy(options);
    const dist::instances instances(strategy,
                                    [](dist::replica) { return model{3}; });  // loads the model on each

    std::array<double, 4> answers{};
    std::array<dist::request, 4> requests;
    for (std::size_t i = 0; i < requests.size(); i++) {
      requests[i] = strategy.submit([&answers, i](dist::replica replica) {  // returns immediately
        answers[i] = static_cast<double>(i) * dist::instance_state<model>(replica).weight;
      });
    }
    for (std::size_t i = 0; i < requests.size(); i++) {
      requests[i].wait();
      std::printf("%zu -> %g\n", i, answers[i]);
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "serve: %s\n", error.what());
    return 1;
  }
  return 0;
}
