// SPDX-License-Identifier: Apache-2.0
// AheadChoice: whether a pass makes its next batch ahead, where the host leaves that open.
//
// A batch made ahead costs its maker's thread, which the replicas may want, and hands it from thread to thread; one made in
// place costs the time of who asks. Which is less follows from idle cores, from what a batch takes, and from whether a source
// waits for a disk: so it is measured, as the time from one batch to the next, which has all of that in it. Windows of either
// way take turns, and the way with the smaller median is kept for some hundred batches, for longer each time that it proves
// right. Neither changes what batches are, or their order.
#pragma once

#include <array>
#include <cstdint>

namespace dist {

class AheadChoice {
 public:
  // Of one way: batches that are not counted, as they belong to the way before, and batches that are.
  static constexpr int kSkipped = 2;
  static constexpr int kCounted = 8;
  static constexpr int kWindows = 4;  // of both ways in turn
  static constexpr int64_t kLeastKept = 512;
  static constexpr int64_t kMostKept = 8192;

  // Of the next batch.
  bool ahead() const noexcept { return ahead_; }
  // A pass begins: the time until its first batch says nothing.
  void begin_pass() noexcept { last_ns_ = kNone; }
  // The host gets a batch; the clock is read only where time counts. True: a choice has been made.
  template <class Clock>
  bool gave(Clock&& now_ns) noexcept {
    if (left_ > 0) [[likely]] {
      if (--left_ == 0) begin_measuring();
      return false;
    }
    return gave_at(now_ns());
  }

  bool chosen() const noexcept { return chosen_; }
  // What that choice was made by, the median time from batch to batch of each way; 0: nothing yet.
  int64_t ahead_ns() const noexcept { return median_ns_[1]; }
  int64_t in_place_ns() const noexcept { return median_ns_[0]; }

 private:
  static constexpr int64_t kNone = -1;
  static constexpr int kOfEach = kWindows / 2 * kCounted;

  void begin_measuring() noexcept;
  bool gave_at(int64_t now_ns) noexcept;
  void choose() noexcept;

  bool ahead_ = true;
  bool chosen_ = true;  // the latest choice
  int64_t keep_ = kLeastKept / 2;
  int64_t left_ = 0;         // batches for which it is kept yet; 0: it is measured now
  int64_t last_ns_ = kNone;  // when the batch before was given; kNone: unknown
  int window_ = 0;
  int in_window_ = 0;
  std::array<int, 2> count_{};  // of times
  std::array<std::array<int64_t, kOfEach>, 2> times_ns_{};
  std::array<int64_t, 2> median_ns_{};
};

}  // namespace dist
