// SPDX-License-Identifier: Apache-2.0
// Attendance: determines which worker arrives last at a collective, and how long the others wait for it. The
// clocks of workers differ, so workers exchange durations only, and each worker decides for itself:
//
//     Every worker reports which of its members arrived last, and how long its other members, all of which
//     had arrived, waited for that one.
//
//     For each peer, a worker measures the time from its own last arrival until the peer's message arrives;
//     0 if the message was there already. The worker with the longest such time is last; if all times are 0,
//     it is this worker itself.
//
//     The last member of the last worker is charged with the time in which only that member was missing:
//     since the second-last worker arrived or the second-last member of its own worker, whichever is later.
//     If it is a member of this worker, it is charged with the wait of this worker's other members, since
//     each worker accounts for its own waits.
//
// If workers arrive within the latency of a message, each may consider the other one last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class Attendance {
 public:
  static constexpr int kLooksAtOnce = 2;

  // A worker's report about its own members.
  struct Last {
    int member = 0;         // index of the last member
    int64_t alone_ns = -1;  // how long all others waited for it; -1: there are no others
  };
  // The result for one collective.
  struct Latest {
    int worker = -1;
    int32_t name = -1;  // global number of that worker's last member
    int64_t late_ns = 0;
  };

  // `members` is the number of members of this worker, `me`. Throws std::bad_alloc.
  Attendance(Memory& memory, int members, int workers, int me)
      : me_(me),
        came_ns_(static_cast<std::size_t>(members), &memory),
        peers_(static_cast<std::size_t>(workers), &memory) {}

  // Call this on any thread for each member of this worker, before its peers can see that it has arrived.
  void arrive(int member, int64_t now_ns) noexcept { came_ns_[static_cast<std::size_t>(member)] = now_ns; }

  // ---- On one thread, when all of them have arrived ----

  // Sets the recorder whose event shows which workers are missing; NULL: nothing is recorded or measured.
  void watch(Recorder* recorder) noexcept { recorder_ = recorder; }
  Last begin() noexcept;
  // Calls here(worker) for workers whose message may have arrived. Call look() kLooksAtOnce times before any
  // wait, the last time after a call of the transport's progress(), and later whenever something may have
  // arrived. now() is the time in ns, on the clock of arrive().
  template <class Here, class Now>
  void look(Here&& here, Now&& now) noexcept {
    const bool at_once = looks_ < kLooksAtOnce || recorder_ == nullptr;
    // Once an event shows that a worker is missing, the arrival of that worker is measured.
    const bool waits = looks_ >= kLooksAtOnce - 1;
    bool changed = looks_ == kLooksAtOnce - 1;
    for (int w = 0; w < num_workers(); ++w) {
      Peer& peer = peers_[static_cast<std::size_t>(w)];
      if (peer.here || !here(w)) continue;
      come(peer, at_once ? all_here_ns_ : now());
      changed = true;
    }
    if (looks_ < kLooksAtOnce) ++looks_;
    if (waits && changed && recorder_ != nullptr) record_missing();
  }
  // Records the report of a worker, which may be this one: its last member, and how long all others waited
  // for that member.
  void hear(int worker, int32_t name, int64_t alone_ns) noexcept;
  Latest latest() const noexcept;

 private:
  struct Peer {
    bool here = false;
    int64_t waited_ns = 0;
    int32_t name = -1;
    int64_t alone_ns = -1;
  };

  int num_workers() const noexcept { return static_cast<int>(peers_.size()); }
  void come(Peer& peer, int64_t now_ns) noexcept {
    peer.here = true;
    peer.waited_ns = now_ns - all_here_ns_;
  }
  void record_missing() noexcept;

  const int me_;
  std::pmr::vector<int64_t> came_ns_;
  std::pmr::vector<Peer> peers_;
  Recorder* recorder_ = nullptr;
  int64_t all_here_ns_ = 0;
  int looks_ = 0;  // up to kLooksAtOnce
};

}  // namespace dist
