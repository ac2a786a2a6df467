// SPDX-License-Identifier: Apache-2.0
// Calls of host callbacks: what a callback may call while it runs, and what happens if it throws.
//
// Invariant: no C++ exception of a callback passes through code of libdist. Every callback is called by
// guarded() or guarded_void(), or by survived() if it has no way to report a failure. Only the forced unwind
// of pthread_exit() passes.
#pragma once

#include <cxxabi.h>

#include "core/base/status.hpp"

namespace dist {

// While an object of this class exists, its thread is inside a host callback in which some calls of libdist
// cannot work.
class HostCall {
 public:
  enum class Refuses {
    kWaits,  // calls that wait for a run, a peer or an element, any of which may wait for the callback
    kCalls,  // every call, because libdist may be holding locks or be in the middle of an exchange
  };
  // `callback` completes "this thread is in ...", for messages.
  HostCall(const char* callback, Refuses refuses) noexcept;
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

 private:
  const char* const callback_;
  const Refuses refuses_;
  const HostCall* const before_;
  friend Status refused_call() noexcept;
  friend Status refused_wait(const char* call) noexcept;
};

// The innermost HostCall of this thread; NULL: none.
extern constinit thread_local const HostCall* host_call_here;
Status refused_call() noexcept;
Status refused_wait(const char* call) noexcept;

// Fails with FAILED_PRECONDITION if this thread is in a callback that must not call libdist.
inline Status check_may_call() noexcept {
  if (host_call_here == nullptr) [[likely]]
    return kOk;
  return refused_call();
}
// Like check_may_call(), but also fails in a callback that must not wait. `call` is the function's name;
// NULL: any function that reads an element.
inline Status check_may_wait(const char* call) noexcept {
  if (host_call_here == nullptr) [[likely]]
    return kOk;
  return refused_wait(call);
}

// Converts the exception that is being handled to a status: out of memory, an impossible count, a system
// error, or an exception of a callback. `who` is the callback; NULL: unknown.
Status status_of_exception(const char* who = nullptr) noexcept;

// Calls a callback, which returns a dist_status. `who` is its name for messages.
template <class Call>
dist_status guarded(const char* who, Call&& call) {
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return status_of_exception(who).code();
  }
}

// Calls a callback that returns nothing. Returns false, with the error recorded, if it has thrown.
template <class Call>
bool guarded_void(const char* who, Call&& call) {
  return guarded(who, [&] {
           call();
           return dist_status{DIST_OK};
         }) == DIST_OK;
}

// Calls a callback that has no way to report a failure. Records nothing. Returns false if the callback has
// thrown.
template <class Call>
bool survived(Call&& call) {
  try {
    call();
    return true;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return false;
  }
}

}  // namespace dist
