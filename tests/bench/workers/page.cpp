// SPDX-License-Identifier: Apache-2.0
// Barriers on a futex. A waiting process sleeps and takes no CPU time from the process whose turn it is.
#include "tests/bench/workers/page.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <stdexcept>

namespace bench {

int operations_for(double us, int most) {
  return static_cast<int>(
      std::clamp(kMostTurnUs / us, std::min<double>(kFewest, most), static_cast<double>(most)));
}

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

void Page::begin() {
  inside_.expect(workers);
  outside_.expect(workers + 1);
}

void Page::fail(const std::string& what) {
  if (!failed.exchange(true)) std::snprintf(why.data(), why.size(), "%s", what.c_str());
  inside_.go_on();
  outside_.go_on();
}

}  // namespace bench
