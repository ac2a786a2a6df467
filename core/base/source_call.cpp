// SPDX-License-Identifier: Apache-2.0
#include "core/base/source_call.hpp"

namespace dist {
namespace {

thread_local bool in_source = false;

}  // namespace

SourceCall::SourceCall() noexcept { in_source = true; }
SourceCall::~SourceCall() { in_source = false; }

Status check_not_in_source(const char* call) noexcept {
  if (!in_source) [[likely]]
    return kOk;
  return failed_precondition(
      "%s%s: this thread is inside a dataset's source callback, which a run may be waiting for. Start runs "
      "and use variables and iterators outside the callback.",
      call != nullptr ? call : "a dataset's element", call != nullptr ? "()" : "");
}

}  // namespace dist
