// SPDX-License-Identifier: Apache-2.0
// ClosureSpans: when the latest closures were scheduled, sent and over, and where they ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

struct ClosureSpan {
  int64_t id;
  int32_t worker;  // -1: none had it at its end
  dist_status status;
  int64_t scheduled_ns, sent_ns, ended_ns;  // the steady clock's; sent_ns 0: never
  char name[40];
};

class ClosureSpans {
 public:
  static constexpr std::size_t kMost = 16'384;

  explicit ClosureSpans(Memory& memory) : spans_(&memory) {}
  // Of more than kMost the oldest is forgotten, and without memory this one.
  void add(const ClosureSpan& span) noexcept {
    try {
      if (spans_.size() == kMost) spans_.pop_front();
      spans_.push_back(span);
    } catch (const std::bad_alloc&) {
    }
  }
  const std::pmr::deque<ClosureSpan>& all() const noexcept { return spans_; }

 private:
  std::pmr::deque<ClosureSpan> spans_;
};

}  // namespace dist
