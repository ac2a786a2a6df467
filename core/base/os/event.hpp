// SPDX-License-Identifier: Apache-2.0
// EventDescriptor: a file descriptor that is readable while the event is set, for poll(), epoll and similar
// calls.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"

namespace dist {

class EventDescriptor {
 public:
  EventDescriptor() noexcept = default;
  ~EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  // Fails with RESOURCE_EXHAUSTED if the system has no more descriptors.
  Status open() noexcept;
  bool is_open() const noexcept { return descriptor_ >= 0; }
  int32_t number() const noexcept { return descriptor_; }
  void set() const noexcept;
  void clear() const noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace dist
