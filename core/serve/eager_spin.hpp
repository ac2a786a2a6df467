// SPDX-License-Identifier: Apache-2.0
// Waiting for something that usually happens within microseconds, such as the next request or the completion of
// the latest one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/os/clock.hpp"
#include "core/comm/word.hpp"

namespace dist {

// Like spin_until(), but does not yield in the first microseconds. On a busy machine, a thread that yields may
// lose its CPU to another program for milliseconds.
template <class Done>
bool spin_eagerly(const WaitPolicy& policy, Done&& done) noexcept {
  constexpr int64_t kEagerNs = 60000;
  if (!policy.oversubscribed && policy.spin_ns > 0) {
    const int64_t end_ns = steady_now_ns() + std::min(policy.spin_ns, kEagerNs);
    do {
      for (int i = 0; i < 32; ++i) {
        if (done()) return true;
        spin_pause();
      }
    } while (steady_now_ns() < end_ns);
  }
  return spin_until(policy, done);
}

}  // namespace dist
