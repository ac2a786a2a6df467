// SPDX-License-Identifier: Apache-2.0
//
// observing.c in C++: the late replica, metrics, a trace, and copies of a variable that differ.
//
//     c++ -std=c++17 observing.cpp $(pkg-config --cflags --libs dist) -o observing && ./observing trace.json
#include <cstdio>
#include <dist/dist.hpp>
#include <fstream>
#include <optional>

// Replica 0 begins the all-reduce before the barrier, replica 1 after it: so replica 1 is late.
void step(dist::replica replica) {
  float gradient = 1;
  dist::collective_options options;
  options.tag = "gradients";  // the name in reports, traces and tables
  std::optional<dist::work> work;
  const auto begin = [&] {
    work = replica.begin().all_reduce(dist::reduce_op::sum, dist::tensor(&gradient, {}), options);
  };
  if (replica.id() == 0) begin();
  replica.barrier();
  if (replica.id() == 1) begin();
  work->wait();
}

void print_stragglers(const dist::strategy &strategy) {
  for (const dist_straggler &row : strategy.stragglers()) {
    if (std::string(row.tag) != "gradients") continue;  // only this one is the same in every run
    std::printf("replica %d was last in %d of %d rounds of \"%s\"\n", row.replica,
                static_cast<int>(row.times_last), static_cast<int>(row.rounds), row.tag);
  }
}

void find_drift(const dist::strategy &strategy) {
  const std::array<double, 3> zeros{};
  const dist::variable w(strategy, zeros, "w");
  w.component(1).data<double>()[2] = 5;  // a mistake: only one copy changes
  try {
    strategy.check_drift(w);
  } catch (const dist::error &error) {
    if (error.code() != DIST_DATA_LOSS) throw;
    std::printf("replica %d has %s instead of %s\n", error.replica(), error.received().c_str(),
                error.expected().c_str());
  }
}

int main(int argc, char **argv) {
  try {
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    host.log = [](dist_log_level, const char *message, void *) {
      std::fprintf(stderr, "libdist: %s\n", message);
    };
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    options.host = &host;
    const dist::strategy strategy(options);
    for (int i = 0; i < 3; i++) strategy.run(step);
    print_stragglers(strategy);
    find_drift(strategy);
    std::fprintf(stderr, "%s%s", strategy.explain().c_str(), strategy.write_metrics("train").c_str());
    if (argc > 1) std::ofstream(argv[1]) << strategy.write_trace();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "observing: %s\n", error.what());
    return 1;
  }
  return 0;
}
