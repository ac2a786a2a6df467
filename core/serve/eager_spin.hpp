// SPDX-License-Identifier: Apache-2.0
// Waiting for something that usually happens within microseconds, such as the next request or the completion of
// the latest one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/os/clock.hpp"
#include "core/comm/word.hpp"

namespace dist {

// Spins until done() returns true or policy.spin_ns has elapsed; returns done(). Unlike spin_until(), it does not
// yield in the first 60 us: on a busy machine, a thread that yields may lose its CPU to another program for
// milliseconds. `eager`: whether the awaited thread has another CPU; otherwise this is spin_until().
template <class Done>
bool spin_eagerly(bool eager, const WaitPolicy& policy, Done&& done) noexcept {
  constexpr int64_t kEagerNs = 60'000;
  WaitPolicy rest = policy;
  if (eager && !policy.oversubscribed && policy.spin_ns > 0) {
    const int64_t eager_ns = std::min(policy.spin_ns, kEagerNs);
    const int64_t end_ns = steady_now_ns() + eager_ns;
    do {
      for (int i = 0; i < 32; ++i) {
        if (done()) return true;
        spin_pause();
      }
    } while (steady_now_ns() < end_ns);
    rest.spin_ns -= eager_ns;
    if (rest.spin_ns <= 0) return done();
  }
  return spin_until(rest, done);
}

}  // namespace dist
