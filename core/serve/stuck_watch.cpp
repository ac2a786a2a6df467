// SPDX-License-Identifier: Apache-2.0
#include "core/serve/stuck_watch.hpp"

#include <utility>

namespace dist {

void StuckWatch::next(Instance& at) noexcept {
  at.stuck_at = 0;
  at.told = false;
  if (at.current == nullptr || stuck_ns_ == 0 || at.current->deadline_ns == 0) return;
  at.stuck_at = deadline_after(at.current->deadline_ns, stuck_ns_);
  // Rare: later requests usually have later deadlines.
  if (until_ns_ != 0 && until_ns_ <= at.stuck_at) return;
  until_ns_ = at.stuck_at;
  alarm_.advance();
}

void StuckWatch::told(Instance& at) noexcept {
  if (stuck_ns_ == 0) return;
  at.told = true;
  alarm_.advance();
}

void StuckWatch::put_off(Instance& at) noexcept { at.stuck_at = deadline_after(host_.now_ns(), stuck_ns_); }

Instance* StuckWatch::next_stuck(std::span<Instance> instances, int64_t* out_next_ns) noexcept {
  const int64_t now_ns = stuck_ns_ == 0 ? 0 : host_.now_ns();
  int64_t next_ns = 0;
  for (Instance& at : instances) {
    const int64_t told_ns = std::exchange(at.told, false) ? deadline_after(now_ns, stuck_ns_) : 0;
    if (told_ns != 0 && (at.stuck_at == 0 || told_ns < at.stuck_at)) at.stuck_at = told_ns;
    const int64_t at_ns = at.stuck_at;
    if (at_ns != 0 && at_ns <= now_ns) return &at;
    if (at_ns != 0 && (next_ns == 0 || at_ns < next_ns)) next_ns = at_ns;
  }
  *out_next_ns = until_ns_ = next_ns;
  return nullptr;
}

bool StuckWatch::is_stuck(const Instance& at) const noexcept {
  return at.current != nullptr && at.stuck_at != 0 && at.stuck_at <= host_.now_ns();
}

}  // namespace dist
