// SPDX-License-Identifier: Apache-2.0
// SourceCall: while a thread is in a dataset's source, a callback of the host's. A run may be waiting for the
// element that it makes, so that nothing there may wait for runs or for other elements: it could be for ever.
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

// FAILED_PRECONDITION where this thread is in a source. `call` is the function's name; NULL: whatever
// function reads an element.
Status check_not_in_source(const char* call) noexcept;

}  // namespace dist
