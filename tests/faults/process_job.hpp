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

// How the processes of a job are started: the prefix of the command, and the environment.
struct ProcessSetup {
  std::vector<std::string> addresses;                        // host:port of each worker; empty = on loopback
  std::function<std::vector<std::string>(int)> environment;  // NAME=value, for one worker
  std::function<std::vector<std::string>(int)> prefix;       // of one worker's command, such as ip netns exec
  // Cuts the link of the guilty worker, and restores it.
  std::function<void()> cut, mend;
};

inline constexpr int64_t kProcessLeaseNs = 2'000'000'000;

// Plays the cell. Returns "", or what went wrong apart from the reports: a worker that ended wrongly or did
// not end.
std::string play_processes(const WorkerCell& cell, const ProcessSetup& setup, WorkerOutcome& out);

}  // namespace faults
