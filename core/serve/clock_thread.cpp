// SPDX-License-Identifier: Apache-2.0
#include "core/serve/clock_thread.hpp"

#include <algorithm>

namespace dist {

Status ClockThread::need() noexcept {
  if (runs()) [[likely]]
    return kOk;
  const std::lock_guard lock(starting_);
  if (runs_.load(std::memory_order_relaxed)) return kOk;
  DIST_TRY(thread_.start(run, this, 0, pool_.cpus()));
  thread_.name("dist-clock");
  runs_.store(true, std::memory_order_release);
  return kOk;
}

int64_t ClockThread::help_and_left(int64_t end_ns) noexcept {
  const int64_t next_ns = runs() ? 0 : withdrawals_.end_overdue();
  const int64_t now_ns = host_.now_ns();
  const int64_t left = end_ns == 0 ? -1 : std::max<int64_t>(end_ns - now_ns, 0);
  if (next_ns == 0) return left;
  const int64_t until_next = std::max<int64_t>(next_ns - now_ns, 0);
  return left < 0 ? until_next : std::min(left, until_next);
}

void ClockThread::stop() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  alarm_.advance();
  thread_.join();
}

void* ClockThread::run(void* self) {
  block_async_signals();
  static_cast<ClockThread*>(self)->watch();
  return nullptr;
}

void ClockThread::watch() noexcept {
  for (;;) {
    // The acquire keeps this load before the check, so a later deadline ends the sleep.
    const uint32_t seen = alarm_.value.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_seq_cst)) return;
    int64_t next_ns = withdrawals_.end_overdue();
    const int64_t stuck_ns = replacements_.replace_stuck();
    if (next_ns == 0 || (stuck_ns != 0 && stuck_ns < next_ns)) next_ns = stuck_ns;
    const int64_t left = next_ns == 0 ? -1 : std::max<int64_t>(next_ns - host_.now_ns(), 0);
    if (left == 0) continue;
    alarm_.sleep(seen, host_.slice_ns(left), WaitPolicy{}, [&] {
      return alarm_.value.load(std::memory_order_seq_cst) != seen ||
             stopping_.load(std::memory_order_seq_cst);
    });
  }
}

}  // namespace dist
