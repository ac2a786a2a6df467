// SPDX-License-Identifier: Apache-2.0
// Host services besides memory: a log function, and the clock that deadlines are measured with.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "core/base/host_call.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "dist/types.h"

namespace dist {

struct Host {
  dist_log_fn log_fn = nullptr;
  void* log_user_data = nullptr;
  dist_clock_fn clock_fn = nullptr;
  void* clock_user_data = nullptr;

  int64_t now_ns() const noexcept { return clock_fn == nullptr ? steady_now_ns() : ask_clock(); }

  // The longest allowed sleep if `left_ns` are left on this clock (< 0: no limit). A host's own clock may
  // jump, so sleeps are short.
  int64_t slice_ns(int64_t left_ns) const noexcept {
    constexpr int64_t kSliceNs = 10'000'000;
    return clock_fn == nullptr || (left_ns >= 0 && left_ns < kSliceNs) ? left_ns : kSliceNs;
  }

  [[gnu::format(printf, 3, 4)]] void log(dist_log_level level, const char* format, ...) const noexcept {
    if (log_fn == nullptr) return;
    char given[520];  // slightly longer than the line, so that copy_shown() truncates it
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(given, sizeof given, format, arguments);
    va_end(arguments);
    copy_plain(given, given);
    char line[512];
    copy_shown(line, given);
    const HostCall inside("a log function", HostCall::Refuses::kCalls);
    (void)survived([&] { log_fn(level, line, log_user_data); });
  }

 private:
  // If the host's clock throws, this reads the system's clock instead.
  int64_t ask_clock() const noexcept {
    const HostCall inside("a clock function", HostCall::Refuses::kCalls);
    int64_t now = 0;
    return survived([&] { now = clock_fn(clock_user_data); }) ? now : steady_now_ns();
  }
};

}  // namespace dist
