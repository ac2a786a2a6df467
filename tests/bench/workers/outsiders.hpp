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
  // Starts the peers in the list that the build made. Throws std::runtime_error if it cannot be read.
  Outsiders(const std::string& list, int ranks);

  // Takes the peers' turns in all rounds of all sizes, and adds them to the results of each size. `workers`
  // are the processes that must sleep meanwhile. Throws std::runtime_error if a worker has failed or does not
  // sleep, or if a sum is wrong.
  void take_turns(Page& page, const std::vector<pid_t>& workers, std::vector<SizeTimes>& all);

  // The reasons why some peers did not take part, or not until the end.
  const std::vector<std::string>& skipped() const { return peers_.skipped(); }

 private:
  struct Taking;
  std::vector<Taking> all_that_can(const Page& page, const Size& size);
  static void take_round(std::vector<Taking>& sides, int operations, bool counts);
  void take_size(Page& page, const std::vector<pid_t>& workers, SizeTimes& times);

  Peers peers_;
};

}  // namespace bench
