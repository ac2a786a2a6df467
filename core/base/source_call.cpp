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
      "%s%s: this thread is in a dataset's source, for whose element a run may be waiting: begin runs, use "
      "variables and ask iterators before it or after it",
      call != nullptr ? call : "a dataset's element", call != nullptr ? "()" : "");
}

}  // namespace dist
