// SPDX-License-Identifier: Apache-2.0
//
// collectives.c in C++: a group, an asynchronous collective, and a plan.
//
//     c++ -std=c++17 collectives.cpp $(pkg-config --cflags --libs dist) -o collectives && ./collectives
#include <cstdio>
#include <dist/dist.hpp>

// Only the members of the group take part.
void sum_of_group(dist::replica replica, const dist::group &group) {
  if (group.rank(replica.id()) < 0) return;  // not a member
  double number = replica.id() + 1;
  dist::collective_options options;
  options.group = group;
  replica.all_reduce(dist::reduce_op::sum, dist::tensor(&number, {}), options);
  if (replica.id() == 0) std::printf("group: %g\n", number);
}

// The call returns immediately. The tensor must not be touched until the work has completed.
void asynchronous(dist::replica replica) {
  double number = replica.id() + 1;
  const dist::work work = replica.begin().all_reduce(dist::reduce_op::sum, dist::tensor(&number, {}));
  // ... compute something else here ...
  work.wait();
  if (replica.id() == 0) std::printf("asynchronous: %g\n", number);
}

// Planned once, then started in each step. A tensor can be reduced as soon as all replicas have declared it ready.
void planned(dist::replica replica) {
  std::array<double, 2> numbers{};
  dist::collective_options options;
  options.bytes_per_pack = 8;  // a pack for each tensor; real gradients need packs of about 4 MiB
  const std::vector<dist::tensor> tensors{dist::tensor(&numbers[0], {}), dist::tensor(&numbers[1], {})};
  const dist::plan plan = replica.plan().all_reduce(dist::reduce_op::sum, tensors, options);
  for (int step = 1; step <= 2; step++) {
    for (std::size_t t = 2; t-- > 0;) {  // the last tensor first, as in backpropagation
      numbers[t] = step * (static_cast<double>(t) + 1) * (replica.id() + 1);
      plan.ready(t);
    }
    plan.wait();
    if (replica.id() == 0) std::printf("step %d: %g %g\n", step, numbers[0], numbers[1]);
  }
}

int main() {
  try {
    const dist::strategy strategy(4);
    const dist::group even(strategy, {0, 2});
    strategy.run([&](dist::replica replica) {
      sum_of_group(replica, even);
      asynchronous(replica);
      planned(replica);
    });
  } catch (const std::exception &error) {
    std::fprintf(stderr, "collectives: %s\n", error.what());
    return 1;
  }
  return 0;
}
