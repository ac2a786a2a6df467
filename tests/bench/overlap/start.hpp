// SPDX-License-Identifier: Apache-2.0
// Starts the processes of the sides, gives them turns, and ends them.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/overlap/page.hpp"

namespace bench::overlap {

class Processes {
 public:
  Processes() = default;
  // Ends all that still run.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // `command` with the numbers of the side and of the worker, one process for each worker. TF_CONFIG describes the workers.
  void start(Page& page, int page_fd, int side, const std::vector<std::string>& command);
  // Notices when processes end. A side fails if one of its processes ends before its turns do; then its others are killed.
  void watch(Page& page);
  // Waits until all have ended.
  void await() {
    if (watch_.joinable()) watch_.join();
  }
  std::vector<pid_t> running();

 private:
  struct Process {
    pid_t pid;
    int side;
  };

  void ended(Page& page, pid_t pid, int status);

  std::mutex mutex_;
  std::vector<Process> running_;
  std::thread watch_;
};

}  // namespace bench::overlap
