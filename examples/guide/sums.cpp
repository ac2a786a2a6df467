// SPDX-License-Identifier: Apache-2.0
//
// sums.c in C++: adds up four numbers with each order of additions.
//
//     c++ -std=c++17 sums.cpp $(pkg-config --cflags --libs dist) -o sums && ./sums
#include <cstdio>
#include <dist/dist.hpp>

// Each replica contributes the same number of terms, in order.
double add(int32_t replicas, dist_numerics numerics, const std::array<double, 4> &terms) {
  double sum = 0;
  const dist::strategy strategy(replicas);
  strategy.run([&](dist::replica replica) {
    dist::collective_options options;
    options.contributions = terms.size() / static_cast<std::size_t>(replicas);
    options.numerics = numerics;
    const double *own = &terms[static_cast<std::size_t>(replica.id()) * options.contributions];
    std::vector<dist::const_tensor> in;
    for (std::size_t i = 0; i < options.contributions; i++) in.emplace_back(own + i, std::vector<int64_t>{});
    double result = 0;
    replica.all_reduce(dist::reduce_op::sum, in, dist::tensor(&result, {}), options);
    if (replica.id() == 0) sum = result;
  });
  return sum;
}

int main() {
  try {
    const std::array<double, 4> terms{1, 1e16, -1e16, 1}, moved{1e16, -1e16, 1, 1};
    const std::pair<const char *, dist_numerics> orders[] = {{"ORDERED", DIST_NUMERICS_ORDERED},
                                                             {"TREE", DIST_NUMERICS_TREE},
                                                             {"REPRODUCIBLE", DIST_NUMERICS_REPRODUCIBLE}};
    for (const auto &[name, numerics] : orders) {
      std::printf("%s: %g, %g, %g\n", name, add(4, numerics, terms), add(2, numerics, terms),
                  add(4, numerics, moved));
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "sums: %s\n", error.what());
    return 1;
  }
  return 0;
}
