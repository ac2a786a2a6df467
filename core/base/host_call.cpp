// SPDX-License-Identifier: Apache-2.0
#include "core/base/host_call.hpp"

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace dist {

constinit thread_local const HostCall* host_call_here = nullptr;

HostCall::HostCall(const char* callback, Refuses refuses) noexcept
    : callback_(callback), refuses_(refuses), before_(host_call_here) {
  host_call_here = this;
}
HostCall::~HostCall() { host_call_here = before_; }

Status refused_call() noexcept {
  const HostCall* at = host_call_here;
  while (at != nullptr && at->refuses_ != HostCall::Refuses::kCalls) at = at->before_;
  if (at == nullptr) return kOk;
  return failed_precondition("this `thread` is in %s, which must not call libdist", at->callback_);
}

Status refused_wait(const char* call) noexcept {
  DIST_TRY(refused_call());
  return failed_precondition(
      "`%s%s`: this `thread` is in %s, which a run may be waiting for. Start runs, call collectives, and use "
      "variables and iterators outside the callback.",
      call != nullptr ? call : "a dataset's element", call != nullptr ? "()" : "", host_call_here->callback_);
}

Status status_of_exception(const char* who) noexcept {
  const char* const subject = who != nullptr ? who : "a callback";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {
    return fail(DIST_RESOURCE_EXHAUSTED, "out of memory: a list would exceed its maximum length");
  } catch (const std::system_error& error) {
    return fail(DIST_RESOURCE_EXHAUSTED, "a system call failed: %s", error.what());
  } catch (const std::exception& error) {
    return fail(DIST_UNKNOWN, "%s threw a C++ exception: %s. Callbacks must return a status instead.",
                subject, error.what());
  } catch (...) {
    return fail(DIST_UNKNOWN, "%s threw a C++ exception. Callbacks must return a status instead.", subject);
  }
}

}  // namespace dist
