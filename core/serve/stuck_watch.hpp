// SPDX-License-Identifier: Apache-2.0
// Decides when the function of an instance counts as stuck: `stuck_ns` after it should have ended, because its
// deadline expired or it was told to end.
//
// | Instance::stuck_at | Instance::told | the function |
// |---|---|---|
// | 0 | no | is not watched |
// | set | no | counts as stuck at that time |
// | any | yes | was told to end; next_stuck() sets the time |
//
// Invariant: all functions except the constructor must be called under the dispatcher's mutex. The alarm is rung
// when the next check must be earlier than planned.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/host.hpp"
#include "core/comm/word.hpp"
#include "core/serve/instance.hpp"

namespace dist {

class StuckWatch {
 public:
  StuckWatch(const Host& host, Word& alarm) noexcept : host_(host), alarm_(alarm) {}
  StuckWatch(const StuckWatch&) = delete;
  StuckWatch& operator=(const StuckWatch&) = delete;

  // 0: never. The instances must be closed.
  void set(int64_t stuck_ns) noexcept { stuck_ns_ = stuck_ns; }
  bool on() const noexcept { return stuck_ns_ != 0; }
  int64_t stuck_ns() const noexcept { return stuck_ns_; }
  // The instance has another request or none.
  void next(Instance& at) noexcept;
  // The current request was told to end. Does not record the time, because the host's clock must not be called in
  // a signal handler.
  void told(Instance& at) noexcept;
  // The function returned just now, or may not be replaced yet.
  void put_off(Instance& at) noexcept;
  // An instance whose function is stuck; NULL: none. Then *out_next_ns is when to check again; 0: when the alarm
  // rings.
  Instance* next_stuck(std::span<Instance> instances, int64_t* out_next_ns) noexcept;
  bool is_stuck(const Instance& at) const noexcept;

 private:
  const Host& host_;
  Word& alarm_;
  int64_t stuck_ns_ = 0;
  int64_t until_ns_ = 0;  // when the clock thread checks next; 0: when the alarm rings
};

}  // namespace dist
