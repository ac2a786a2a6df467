// SPDX-License-Identifier: Apache-2.0
// The boundary of the C ABI, included by every source file here: handles are converted to objects and back,
// and arguments are checked before core sees them.
//
// Invariants:
// - No exception leaves a public function. The only exception that may pass is the forced unwind of
//   pthread_exit(), when a thread ends inside a callback.
// - Never read more of the caller's memory than it declares: options are read up to the caller's struct_size,
//   and a list with an impossible count is rejected without being read.
// - A NULL handle is not dereferenced: require() comes first.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/base/cancel.hpp"
#include "core/base/host_call.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/subgroups.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/value.hpp"
#include "core/value/variable.hpp"
#include "dist/dist.h"

namespace dist {
class RequestHandle;
class Work;
}  // namespace dist

namespace dist::capi {

// Core has signed sizes, and Go and Java give signed ones: the largest size_t is -1. `field` is for example
// "dist_cpu_options.stack_size_bytes".
inline Status read_size(std::size_t size, const char* field, int64_t* out) noexcept {
  *out = static_cast<int64_t>(size);
  if (*out >= 0) return kOk;
  return invalid_argument("`%s` is %lld, but must be 0 or more", field, static_cast<long long>(*out));
}

// A function's result, with the function's name if it is a failure.
inline dist_status named(Status status, const char* function) noexcept {
  return status.ok() ? DIST_OK : named_failure(status.code(), function);
}

// Runs the body of a public function and converts exceptions to a status. Only the forced unwind passes.
// Fails inside callbacks that must not call libdist. A failure gets the function's name.
template <class F>
dist_status guard(F&& body, const char* function = __builtin_FUNCTION()) {
  const dist_status status = guarded(nullptr, [&]() -> dist_status {
    const Status allowed = check_may_call();
    return allowed.ok() ? body().code() : allowed.code();
  });
  return named(Status(status), function);
}

inline Strategy& unwrap(dist_strategy* handle) noexcept { return *reinterpret_cast<Strategy*>(handle); }
inline const Strategy& unwrap(const dist_strategy* handle) noexcept {
  return *reinterpret_cast<const Strategy*>(handle);
}
inline dist_strategy* wrap(Strategy* strategy) noexcept { return reinterpret_cast<dist_strategy*>(strategy); }

inline Replica& unwrap(dist_replica* handle) noexcept { return *reinterpret_cast<Replica*>(handle); }
inline const Replica& unwrap(const dist_replica* handle) noexcept {
  return *reinterpret_cast<const Replica*>(handle);
}
inline dist_replica* wrap(Replica* replica) noexcept { return reinterpret_cast<dist_replica*>(replica); }

inline Budget* unwrap(dist_budget* handle) noexcept { return reinterpret_cast<Budget*>(handle); }
inline dist_budget* wrap(Budget* budget) noexcept { return reinterpret_cast<dist_budget*>(budget); }
inline Cancel* unwrap(dist_cancel* handle) noexcept { return reinterpret_cast<Cancel*>(handle); }
inline const Cancel* unwrap(const dist_cancel* handle) noexcept {
  return reinterpret_cast<const Cancel*>(handle);
}
inline dist_cancel* wrap(Cancel* cancel) noexcept { return reinterpret_cast<dist_cancel*>(cancel); }

// Groups, values and variables may be absent: NULL is converted to NULL.
inline Subgroup* unwrap(dist_group* handle) noexcept { return reinterpret_cast<Subgroup*>(handle); }
inline const Subgroup* unwrap(const dist_group* handle) noexcept {
  return reinterpret_cast<const Subgroup*>(handle);
}
inline dist_group* wrap(Subgroup* group) noexcept { return reinterpret_cast<dist_group*>(group); }
inline CrossDevice* unwrap(dist_cross_device* handle) noexcept {
  return reinterpret_cast<CrossDevice*>(handle);
}
inline const CrossDevice* unwrap(const dist_cross_device* handle) noexcept {
  return reinterpret_cast<const CrossDevice*>(handle);
}
inline dist_cross_device* wrap(CrossDevice* ops) noexcept {
  return reinterpret_cast<dist_cross_device*>(ops);
}
inline Work* unwrap(dist_work* handle) noexcept { return reinterpret_cast<Work*>(handle); }
inline dist_work* wrap(Work* work) noexcept { return reinterpret_cast<dist_work*>(work); }
inline RequestHandle* unwrap(dist_request* handle) noexcept {
  return reinterpret_cast<RequestHandle*>(handle);
}
inline const RequestHandle* unwrap(const dist_request* handle) noexcept {
  return reinterpret_cast<const RequestHandle*>(handle);
}
inline dist_request* wrap_request(RequestHandle* request) noexcept {
  return reinterpret_cast<dist_request*>(request);
}
inline Value* unwrap(dist_value* handle) noexcept { return reinterpret_cast<Value*>(handle); }
inline const Value* unwrap(const dist_value* handle) noexcept {
  return reinterpret_cast<const Value*>(handle);
}
inline dist_value* wrap(Value* value) noexcept { return reinterpret_cast<dist_value*>(value); }
inline Variable* unwrap(dist_variable* handle) noexcept { return reinterpret_cast<Variable*>(handle); }
inline const Variable* unwrap(const dist_variable* handle) noexcept {
  return reinterpret_cast<const Variable*>(handle);
}
inline dist_variable* wrap(Variable* variable) noexcept { return reinterpret_cast<dist_variable*>(variable); }

// Fails with "call: name is NULL" if a required pointer is missing.
Status is_null(const char* call, const char* name) noexcept;
inline Status require(const void* pointer, const char* call, const char* name) noexcept {
  return pointer != nullptr ? kOk : is_null(call, name);
}

// Checks a list from the caller. Fails with "call: n is 18446744073709551615 ..." if no memory could hold
// that many elements, and with "call: name is NULL" if there are elements but no list. `count` is the name of
// `n`.
Status check_list(const void* list, std::size_t n, std::size_t most, const char* call, const char* name,
                  const char* count) noexcept;
template <class T>
Status check_list(const T* list, std::size_t n, const char* call, const char* name,
                  const char* count = "n") noexcept {
  using Element = std::conditional_t<std::is_void_v<T>, char, T>;
  return check_list(list, n, most_of<Element>(), call, name, count);
}

// Reads options of another version: the caller's size or ours, whichever is smaller. If the caller's struct
// is longer, the rest must be zero, because otherwise it requests something that this version does not have.
Status read_other_options(const void* given, void* known, std::size_t known_bytes, std::size_t align,
                          const char* name) noexcept;

// Reads options of any version; NULL selects the defaults.
template <class Options>
Status read_options(const Options* given, Options* known, const char* name) noexcept {
  if (given != nullptr && given->struct_size == sizeof(Options)) [[likely]] {
    *known = *given;
    return kOk;
  }
  *known = Options{};
  known->struct_size = sizeof(Options);
  return given == nullptr ? kOk : read_other_options(given, known, sizeof(Options), alignof(Options), name);
}

// Reserved fields must be zero until a later version defines them. `field` is for example
// "dist_run_options.reserved".
inline Status require_zero(int32_t reserved, const char* field) noexcept {
  return reserved == 0 ? kOk : invalid_argument("`%s` is %d, but must be 0", field, reserved);
}

inline Status require_flag(int32_t flag, const char* field) noexcept {
  return flag == 0 || flag == 1 ? kOk : invalid_argument("`%s` is %d, but must be 0 or 1", field, flag);
}
// Checks a timeout in an option struct.
inline Status require_timeout(int64_t timeout_ns, const char* field) noexcept {
  if (timeout_ns >= DIST_NO_TIMEOUT) return kOk;
  return invalid_argument(
      "`%s` is %lld, but must be a number of nanoseconds, 0 (the default) or -1 (no timeout)", field,
      static_cast<long long>(timeout_ns));
}
// Checks a timeout that is a parameter of a function that waits.
inline Status require_wait(int64_t timeout_ns, const char* call) noexcept {
  if (timeout_ns >= DIST_NO_TIMEOUT) return kOk;
  return invalid_argument(
      "`%s()`: `timeout_ns` is %lld, but must be a number of nanoseconds, 0 (do not wait) or -1 (no timeout)",
      call, static_cast<long long>(timeout_ns));
}

// No version will have larger options or rows. A larger struct_size means that the struct was not
// initialized.
inline constexpr std::size_t kMostOptionBytes = 4096;

// `standard` is what the struct's INIT macro gives.
template <class Options>
void init_options(Options* options, uint32_t struct_size_bytes, const Options& standard = {}) noexcept {
  if (options == nullptr || struct_size_bytes < sizeof(uint32_t) || struct_size_bytes > kMostOptionBytes)
    return;
  std::memset(static_cast<void*>(options), 0, struct_size_bytes);
  std::memcpy(static_cast<void*>(options), &standard,
              std::min<std::size_t>(struct_size_bytes, sizeof standard));
  options->struct_size = struct_size_bytes;
}

}  // namespace dist::capi
