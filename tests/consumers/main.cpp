// SPDX-License-Identifier: Apache-2.0
//
// A downstream C++ program that uses only the installed files: it performs a run and catches an exception
// from a replica.
#include <cstdio>
#include <dist/dist.hpp>
#include <stdexcept>
#include <vector>

int main() {
  dist::strategy strategy(2);
  std::vector<double> sums(2);
  strategy.run([&](dist::replica replica) {
    std::vector<double> mine{replica.id() + 1.0};
    replica.all_reduce(dist::reduce_op::sum, mine);
    sums[static_cast<std::size_t>(replica.id())] = mine[0];
  });
  bool caught = false;
  try {
    strategy.run([](dist::replica replica) {
      if (replica.id() == 1) throw std::out_of_range("row 7");
      replica.barrier();
    });
  } catch (const std::out_of_range &) {
    caught = true;
  }
  std::printf("libdist %d: %g %g, %s\n", static_cast<int>(dist_version()), sums[0], sums[1],
              caught ? "caught" : "lost");
  return sums[0] == 3 && sums[1] == 3 && caught ? 0 : 1;
}
