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
  std::vector<double> rounds;   // libdist's result of each round
  std::vector<double> naive;    // that of a hand-written alternative, in turns; may be empty
  double limit = 0;             // limit for the median; 0 = it is not judged
  bool limit_is_least = false;  // the limit is a minimum instead of a maximum
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
// The p99 of accepted requests at twice the capacity, divided by that at the capacity.
Row overload(const Settings& settings);

}  // namespace bench::serve
