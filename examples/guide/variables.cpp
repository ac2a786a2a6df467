// SPDX-License-Identifier: Apache-2.0
//
// variables.c in C++: a mirrored variable, whose copies are equal, and a counter, of which each replica changes its own
// copy.
//
//     c++ -std=c++17 variables.cpp $(pkg-config --cflags --libs dist) -o variables && ./variables
#include <cstdio>
#include <dist/dist.hpp>

int main() {
  try {
    const dist::strategy strategy(2);
    const double zero = 0;
    const dist::variable w(strategy, dist::const_tensor(&zero, {}), "w", DIST_AGGREGATION_SUM);
    dist_variable_options counter = DIST_VARIABLE_OPTIONS_INIT;
    counter.name = "seen";
    counter.aggregation = DIST_AGGREGATION_SUM;
    counter.synchronization = DIST_SYNCHRONIZATION_ON_READ;
    const dist::variable seen(strategy, dist::const_tensor(&zero, {}), counter);
    strategy.run([&](dist::replica replica) {
      const double change = replica.id() + 1, rows = 4 - replica.id();
      // A collective: all copies change by the sum of the replicas' changes, 1 + 2.
      replica.assign(w, dist::const_tensor(&change, {}), DIST_ASSIGN_ADD);
      // Not a collective: this replica's copy changes by its rows, 4 or 3.
      replica.assign(seen, dist::const_tensor(&rows, {}), DIST_ASSIGN_ADD);
    });
    std::printf("%s\n%s\n", w.describe().c_str(), seen.describe().c_str());
    std::printf("seen: %g\n", *strategy.read(seen).tensor().data<double>());  // the sum of the copies
  } catch (const std::exception &error) {
    std::fprintf(stderr, "variables: %s\n", error.what());
    return 1;
  }
  return 0;
}
