// SPDX-License-Identifier: Apache-2.0
// SourceCall marks a thread that is inside a dataset source, which is a host callback. A run may be waiting
// for the element that the callback produces. Therefore calls that wait for runs or for other elements fail
// there instead of deadlocking.
#pragma once

#include "core/base/status.hpp"

namespace dist {

class SourceCall {
 public:
  SourceCall() noexcept;
  ~SourceCall();
  SourceCall(const SourceCall&) = delete;
  SourceCall& operator=(const SourceCall&) = delete;
};

// Fails with FAILED_PRECONDITION if this thread is in a source. `call` is the function's name; NULL: any
// function that reads an element.
Status check_not_in_source(const char* call) noexcept;

}  // namespace dist
