// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/remote_value.hpp"

#include <algorithm>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"

namespace dist {

bool RemoteValue::settle(dist_status status, const char* text, ValueRef value) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (over()) return false;
    status_ = status;
    copy_text(text_, text);
    value_ = std::move(value);
    over_.store(1, std::memory_order_release);
  }
  unpark_all(over_);
  return true;
}

Status RemoteValue::read(ValueRef* out) {
  *out = Value::create_none(memory());
  return kOk;
}

bool RemoteValue::ready() noexcept {
  if (memory().forked()) return true;
  if (!over() && steady_now_ns() >= until_ns_) expire();
  return over();
}

Status RemoteValue::get(int64_t timeout_ns, ValueRef* out) {
  if (memory().forked()) {
    return failed_precondition(
        "this is a forked child, in which the client has no threads. Create another one in the child.");
  }
  const int64_t begin = steady_now_ns();
  const int64_t until =
      timeout_ns < 0 || timeout_ns > kNever - begin ? until_ns_ : std::min(until_ns_, begin + timeout_ns);
  char what[400];
  while (!over()) {
    const int64_t now = steady_now_ns();
    if (now >= until_ns_) {
      expire();
    } else if (now >= until) {
      describe(what, sizeof what);
      return fail(DIST_DEADLINE_EXCEEDED, "%s is not available yet. The %s continues to run.", what, kind());
    } else {
      park(over_, 0, until == kNever ? -1 : until - now);
    }
  }
  const std::scoped_lock lock(mutex_);
  if (status_ == DIST_OK && !value_) {
    const Status read_well = read(&value_);
    if (!read_well.ok()) {
      status_ = read_well.code();
      copy_text(text_, last_error().message);
    }
  }
  if (status_ != DIST_OK) {
    describe(what, sizeof what);
    return fail(status_, "%s: %s", what, text_);
  }
  *out = value_;
  return kOk;
}

}  // namespace dist
