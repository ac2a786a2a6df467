// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request.hpp"

#include "core/serve/instances.hpp"

namespace dist {

void Request::begin(const Submission& given, int64_t now_ns, int uses) noexcept {
  begin_promise(given, uses);
  keeps_home = uses > 1 || given.completions != nullptr || given.cancel != nullptr;
  wants = kAnyInstance;
  priority = given.priority;
  deadline_ns = given.timeout_ns > 0 ? deadline_after(now_ns, given.timeout_ns) : 0;
}

void Request::cancel() noexcept { home().cancel(*this); }

void Request::cancelled(const char* reason) noexcept { home().withdraw_cancelled(*this, reason); }

void Request::recycle() noexcept { home().recycle(*this); }

}  // namespace dist
