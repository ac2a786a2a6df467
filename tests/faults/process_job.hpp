// SPDX-License-Identifier: Apache-2.0
// The workers of a cell as processes: started, watched and terminated.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/faults/process_page.hpp"

namespace faults {

// How a process of a job is started: what goes before the program's own command, and into its environment.
struct ProcessSetup {
  std::vector<std::string> addresses;                        // of all workers, host:port; none: on loopback
  std::function<std::vector<std::string>(int)> environment;  // of a worker, NAME=value
  std::function<std::vector<std::string>(int)> prefix;       // of a worker's command, such as ip netns exec
  // What the player does when the guilty one is where it is to be cut off.
  std::function<void()> cut, mend;
};

inline constexpr int64_t kProcessLeaseNs = 2'000'000'000;

// Plays the cell; "" or what went wrong beside the reports: a worker that ended as it should not, or did not.
std::string play_processes(const WorkerCell& cell, const ProcessSetup& setup, WorkerOutcome& out);

}  // namespace faults
