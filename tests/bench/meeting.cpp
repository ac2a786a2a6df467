// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/meeting.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <stdexcept>

namespace bench {

void Meeting::meet(const std::atomic<bool>& failed) {
  const std::uint32_t now = turn_.load();
  if (failed.load()) throw std::runtime_error("");
  if (there_.fetch_add(1) + 1 == expected_) {
    there_.store(0);
    go_on();
  } else {
    while (turn_.load() == now && !failed.load())
      syscall(SYS_futex, &turn_, FUTEX_WAIT, now, nullptr, nullptr, 0);
  }
  if (failed.load()) throw std::runtime_error("");
}

void Meeting::go_on() {
  turn_.fetch_add(1);
  syscall(SYS_futex, &turn_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace bench
