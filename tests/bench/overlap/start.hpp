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
  // Ends all processes that still run.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Runs `command` with the numbers of the side and the worker, once per worker. TF_CONFIG describes the
  // workers.
  void start(Page& page, int page_fd, int side, const std::vector<std::string>& command);
  // Watches the processes. If one ends before the turns of its side do, the side fails, and its other
  // processes are killed.
  void watch(Page& page);
  // Waits until all processes have ended.
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
