// SPDX-License-Identifier: Apache-2.0
// The rows of dist_bench_serve. Each measures a promise of serve.h or batch.h and states its limit.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace bench::serve {

struct Row {
  std::string name;
  std::string unit;
  std::vector<double> rounds;   // libdist's, one of each round
  std::vector<double> naive;    // the same by hand, in turns; none: nothing is beside it
  double limit = 0;             // what the median may come to; 0: it is not judged
  bool limit_is_least = false;  // it must reach the limit, instead of staying below it
};

struct Settings {
  bool quick = false;
  int rounds = 9;
};

Row dispatch(const Settings& settings, bool after_a_pause);
// Requests with deadlines and priorities, next to a pool with a mutex and a condition variable that spins
// (thread_pool.hpp): the ratio of the speeds. At most 256 requests are in progress, or one.
Row throughput(const Settings& settings, int producers);
Row back_to_back(const Settings& settings);
Row four_requests(const Settings& settings);
Row gang_of_four(const Settings& settings);
Row item_overhead(const Settings& settings);
Row batched_throughput(const Settings& settings);
// The p99 of accepted requests at twice the capacity, over that at the capacity.
Row overload(const Settings& settings);

}  // namespace bench::serve
