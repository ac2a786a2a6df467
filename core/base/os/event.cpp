// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/event.hpp"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

namespace dist {

EventDescriptor::~EventDescriptor() {
  if (is_open()) ::close(descriptor_);
}

Status EventDescriptor::open() noexcept {
  descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (is_open()) return kOk;
  return fail(DIST_RESOURCE_EXHAUSTED,
              "cannot create an event descriptor: %s. Raise the limit on open files (ulimit -n).",
              strerrorname_np(errno));
}

void EventDescriptor::set() const noexcept {
  const uint64_t one = 1;
  while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void EventDescriptor::clear() const noexcept {
  uint64_t count = 0;
  while (::read(descriptor_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace dist
