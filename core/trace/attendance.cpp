// SPDX-License-Identifier: Apache-2.0
#include "core/trace/attendance.hpp"

#include <algorithm>

namespace dist {

Attendance::Last Attendance::begin() noexcept {
  Last last;
  int64_t before_ns = INT64_MIN;
  for (int m = 1; m < static_cast<int>(came_ns_.size()); ++m) {
    const int64_t came_ns = came_ns_[static_cast<std::size_t>(m)];
    const int64_t last_ns = came_ns_[static_cast<std::size_t>(last.member)];
    // If several members arrive at the same time, the highest one is last, as in a single process.
    before_ns = std::max(before_ns, std::min(came_ns, last_ns));
    if (came_ns >= last_ns) last.member = m;
  }
  all_here_ns_ = came_ns_[static_cast<std::size_t>(last.member)];
  if (came_ns_.size() > 1) last.alone_ns = all_here_ns_ - before_ns;
  std::fill(peers_.begin(), peers_.end(), Peer{});
  peers_[static_cast<std::size_t>(me_)].here = true;
  looks_ = 0;
  return last;
}

void Attendance::record_missing() noexcept {
  int first = -1;
  int missing = 0;
  for (int w = num_workers() - 1; w >= 0; --w) {
    if (peers_[static_cast<std::size_t>(w)].here) continue;
    first = w;
    ++missing;
  }
  recorder_->wait_for_workers(first, missing);
}

void Attendance::hear(int worker, int32_t name, int64_t alone_ns) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(worker)];
  peer.name = name;
  peer.alone_ns = alone_ns;
}

Attendance::Latest Attendance::latest() const noexcept {
  int last = me_;
  int64_t before_ns = 0;  // how long this worker waited for the second-last one
  for (int w = 0; w < num_workers(); ++w) {
    const int64_t waited_ns = peers_[static_cast<std::size_t>(w)].waited_ns;
    const int64_t last_ns = peers_[static_cast<std::size_t>(last)].waited_ns;
    before_ns = std::max(before_ns, std::min(waited_ns, last_ns));
    if (w != me_ && waited_ns > 0 && waited_ns >= last_ns) last = w;
  }
  const Peer& peer = peers_[static_cast<std::size_t>(last)];
  if (last == me_) return {me_, peer.name, std::max<int64_t>(peer.alone_ns, 0)};
  int64_t late_ns = peer.waited_ns - before_ns;
  if (peer.alone_ns >= 0) late_ns = std::min(late_ns, peer.alone_ns);
  return {last, peer.name, late_ns};
}

}  // namespace dist
