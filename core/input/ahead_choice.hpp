// SPDX-License-Identifier: Apache-2.0
// Decides whether a pass prefetches its next batch, if the host leaves the choice to libdist.
//
// Prefetching occupies a thread that the replicas may need, and moves the batch between caches. Preparing a
// batch in place takes the caller's time. Which of them is faster depends on idle cores, on the work per
// batch, and on whether the source waits for a disk. Therefore the time from one batch to the next is
// measured. Measurement windows alternate between both modes, and the mode with the smaller median is used
// for some hundred batches, for longer each time the choice is confirmed. The choice never affects the
// batches or their order.
#pragma once

#include <array>
#include <cstdint>

namespace dist {

class AheadChoice {
 public:
  // In each window: batches that are not counted because they were still prepared in the previous mode, and
  // batches that are counted.
  static constexpr int kSkipped = 2;
  static constexpr int kCounted = 8;
  static constexpr int kWindows = 4;  // in total, alternating between the modes
  static constexpr int64_t kLeastKept = 512;
  static constexpr int64_t kMostKept = 8192;

  // Whether to prefetch the next batch.
  bool ahead() const noexcept { return ahead_; }
  // Begins a pass. The time until its first batch is not counted.
  void begin_pass() noexcept { last_ns_ = kNone; }
  // Records that the host receives a batch. Reads the clock only while measuring. Returns true if a choice
  // was made.
  template <class Clock>
  bool gave(Clock&& now_ns) noexcept {
    if (left_ > 0) [[likely]] {
      if (--left_ == 0) begin_measuring();
      return false;
    }
    return gave_at(now_ns());
  }

  bool chosen() const noexcept { return chosen_; }
  // The medians on which the choice is based, as time from batch to batch; 0: not measured yet.
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
  int64_t left_ = 0;         // batches before the next measurement; 0: measuring now
  int64_t last_ns_ = kNone;  // when the previous batch was delivered; kNone: unknown
  int window_ = 0;
  int in_window_ = 0;
  std::array<int, 2> count_{};  // number of measured times
  std::array<std::array<int64_t, kOfEach>, 2> times_ns_{};
  std::array<int64_t, 2> median_ns_{};
};

}  // namespace dist
