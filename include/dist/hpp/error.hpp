// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/error.hpp: the version, and errors as exceptions (error.h). Also how an exception of a callback reaches the
// caller of libdist.
//
//     try {
//       strategy.run(step);
//     } catch (const dist::error &failed) {
//       std::cerr << "replica " << failed.replica() << ": " << failed.what() << " (" << failed.hint() << ")\n";
//     }

#ifndef DIST_HPP_ERROR_HPP
#define DIST_HPP_ERROR_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "../dist.h"

namespace dist {

// The version of the loaded library, whether this process can use a feature, and the name of a status.
inline int32_t version() noexcept { return dist_version(); }
inline bool has_feature(const char *name) noexcept { return dist_has_feature(name) != 0; }
inline const char *status_name(dist_status status) noexcept { return dist_status_name(status); }

// Status, message and fields of a failed call.
class error : public std::runtime_error {
 public:
  // Takes over this thread's latest error.
  explicit error(dist_status code) : std::runtime_error(dist_last_error()), code_(code) {
    dist_error_info info = DIST_ERROR_INFO_INIT;
    if (dist_last_error_info(&info) != DIST_OK) return;
    worker_ = info.worker;
    replica_ = info.replica;
    logical_device_ = info.logical_device;
    collective_ = info.collective;
    group_ = info.group;
    sequence_ = info.sequence;
    tag_ = info.tag;
    expected_ = info.expected;
    received_ = info.received;
    hint_ = info.hint;
    inside_ = info.inside;
    function_ = info.function;
    parameter_ = info.parameter;
  }
  error(dist_status code, const std::string &message) : std::runtime_error(message), code_(code) {}

  dist_status code() const noexcept { return code_; }
  int32_t worker() const noexcept { return worker_; }    // worker at fault
  int32_t replica() const noexcept { return replica_; }  // replica at fault; -1 = none
  int32_t logical_device() const noexcept {
    return logical_device_;
  }  // of the replica at fault; -1 = the whole replica
  dist_collective collective() const noexcept { return collective_; }
  int32_t group() const noexcept { return group_; }  // 0 = all replicas
  int64_t sequence() const noexcept { return sequence_; }
  const std::string &tag() const noexcept { return tag_; }
  const std::string &expected() const noexcept { return expected_; }
  const std::string &received() const noexcept { return received_; }
  const std::string &hint() const noexcept { return hint_; }
  const std::string &function() const noexcept { return function_; }    // of the C API: "dist_run"
  const std::string &parameter() const noexcept { return parameter_; }  // argument or field at fault
  int32_t inside() const noexcept {
    return inside_;
  }  // functions still running when the run's deadline expired

 private:
  dist_status code_;
  int32_t worker_ = 0;
  int32_t replica_ = -1;
  int32_t logical_device_ = -1;
  dist_collective collective_ = DIST_COLLECTIVE_NONE;
  int32_t group_ = 0;
  int32_t inside_ = 0;
  int64_t sequence_ = 0;
  std::string tag_, expected_, received_, hint_, function_, parameter_;
};

inline void check(dist_status status) {
  if (status != DIST_OK) throw error(status);
}

// ---- Texts -----------------------------------------------------------------------------------------------

namespace detail {
// Converts a text for C, which treats a zero as the end; throws if there is a zero inside. Used for every std::string
// argument.
inline const char *for_c(const std::string &text) {
  if (text.find('\0') != std::string::npos) throw error(DIST_INVALID_ARGUMENT, "a text has a zero inside");
  return text.c_str();
}
}  // namespace detail

// ---- Callbacks -------------------------------------------------------------------------------------------

namespace detail {

// Reports a text of the program, which has no marks (dist_last_error_marked()), whatever it is.
inline dist_status fail(dist_status status, const char *text) noexcept {
  try {
    std::string own;
    for (; *text != '\0'; ++text) {
      if (*text == '\x0E' || *text == '\x0F') {
        own += *text == '\x0E' ? "\\x0e" : "\\x0f";
      } else {
        own += *text;
      }
    }
    return dist_fail(status, own.c_str());
  } catch (const std::bad_alloc &) {
    return dist_fail(status, "");
  }
}

// Converts the current exception to a status, and makes its message this thread's error.
inline dist_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const error &failure) {
    // A peer's failure stays ABORTED, and its report is unchanged.
    const bool reported = std::string_view(dist_last_error()) == failure.what();
    return reported ? failure.code() : fail(failure.code(), failure.what());
  } catch (const std::bad_alloc &failure) {
    return fail(DIST_RESOURCE_EXHAUSTED, failure.what());
  } catch (const std::exception &failure) {
    return fail(DIST_UNKNOWN, failure.what());
  } catch (...) {
    return dist_fail(DIST_UNKNOWN, "the host's function threw something that is no std::exception");
  }
}

// Exceptions thrown by callbacks, kept until the call that invoked the callbacks rethrows them.
class failures {
 public:
  // Stores the current exception; `who` threw it: a replica or a logical device.
  dist_status add(int32_t who = -1) noexcept {
    const dist_status status = status_of_exception();
    try {
      std::string text = dist_last_error();
      const std::lock_guard<std::mutex> lock(mutex_);
      for (entry &each : all_) {
        if (each.who != who || each.text != text) continue;
        each.thrown =
            std::current_exception();  // the same error again, from a source that is asked repeatedly
        return status;
      }
      all_.push_back({who, status, std::move(text), std::current_exception()});
    } catch (const std::bad_alloc &) {  // only the status and the message are kept
    }
    return status;
  }
  // Rethrows the exception of `who`, if there is one.
  void rethrow_of(int32_t who) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const entry &each : all_) {
      if (who >= 0 && each.who == who) std::rethrow_exception(each.thrown);
    }
  }
  [[noreturn]] void raise_of(int32_t who, const error &report) {
    rethrow_of(who);
    throw report;
  }
  // Rethrows the exception that caused the report, if there is one.
  void rethrow_like(const error &report) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const entry &each : all_) {
      if (each.status == report.code() && each.text == report.what()) std::rethrow_exception(each.thrown);
    }
  }
  void check(dist_status status) {
    if (status == DIST_OK) return;
    const error report(status);
    rethrow_like(report);
    throw report;
  }

 private:
  struct entry {
    int32_t who;
    dist_status status;
    std::string text;
    std::exception_ptr thrown;
  };
  std::mutex mutex_;
  std::vector<entry> all_;
};

// Calls a callback for libdist; no exception crosses the C interface.
template <class Call>
dist_status shielded(failures &thrown, int32_t who, Call &&call) {
  try {
    call();
    return DIST_OK;
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind &) {  // the thread is being cancelled; must not be caught
    throw;
#endif
  } catch (...) {
    return thrown.add(who);
  }
}

// A callback and its exceptions, for a call that returns only when the callback is no longer used.
template <class Fn>
struct callback {
  Fn *fn;
  failures thrown;

  explicit callback(Fn &given) noexcept : fn(std::addressof(given)) {}
  static callback &of(void *user_data) noexcept { return *static_cast<callback *>(user_data); }
};

// The address of a function object, passed to libdist as user_data.
template <class Fn>
void *address_of(Fn &fn) noexcept {
  return const_cast<void *>(static_cast<const void *>(std::addressof(fn)));
}

}  // namespace detail
}  // namespace dist
#endif  // DIST_HPP_ERROR_HPP
