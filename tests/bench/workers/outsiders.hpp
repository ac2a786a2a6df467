// SPDX-License-Identifier: Apache-2.0
// Peers that are separate programs, with one rank per worker. All workers wait during their turns.
#pragma once

#include <sys/types.h>

#include <vector>

#include "tests/bench/external.hpp"
#include "tests/bench/workers/results.hpp"

namespace bench {

class Outsiders {
 public:
  // From the list that the build made; starts them. Throws std::runtime_error where it cannot be read.
  Outsiders(const std::string& list, int ranks);

  // Their turns in all rounds of all sizes, each added to what there is of that size. `workers` are the processes that must
  // sleep meanwhile. Throws std::runtime_error where a worker has failed, does not sleep, or a sum is wrong.
  void take_turns(Page& page, const std::vector<pid_t>& workers, std::vector<SizeTimes>& all);

  // Why some take no part, or not to the end.
  const std::vector<std::string>& skipped() const { return peers_.skipped(); }

 private:
  struct Taking;
  std::vector<Taking> all_that_can(const Page& page, const Size& size);
  static void take_round(std::vector<Taking>& sides, int operations, bool counts);
  void take_size(Page& page, const std::vector<pid_t>& workers, SizeTimes& times);

  Peers peers_;
};

}  // namespace bench
