// SPDX-License-Identifier: Apache-2.0
// A barrier of processes in memory that they share. A waiting process sleeps and takes no CPU time from the
// process whose turn it is.
#pragma once

#include <atomic>
#include <cstdint>

namespace bench {

class Meeting {
 public:
  void expect(int processes) { expected_ = processes; }
  // Throws an empty std::runtime_error if a process has failed.
  void meet(const std::atomic<bool>& failed);
  // Wakes all waiting processes after one has failed.
  void go_on();

 private:
  int expected_ = 0;
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<int> there_{0};
};

}  // namespace bench
