// SPDX-License-Identifier: Apache-2.0
// Status: the result of a call. The message of a failure is stored in a thread-local record, so a Status is
// only a code.
//
// Invariant: creating, returning and copying a Status never allocates and never throws. The record describes
// the latest failure on its thread; it stays valid until the next failure there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/replicas.hpp"
#include "dist/types.h"

namespace dist {

class [[nodiscard]] Status {
 public:
  constexpr Status() noexcept = default;
  constexpr explicit Status(dist_status code) noexcept : code_(code) {}
  constexpr bool ok() const noexcept { return code_ == DIST_OK; }
  constexpr dist_status code() const noexcept { return code_; }

 private:
  dist_status code_ = DIST_OK;
};

inline constexpr Status kOk{};

// One failure, as text and fields, as returned by dist_last_error() and dist_last_error_info(). fail() makes
// its texts follow the rule of text.hpp; the message may have several lines.
struct ErrorRecord {
  dist_status code = DIST_OK;
  MemberName culprit;  // kNoReplica: none
  int32_t collective = 0;
  int32_t group = 0;
  int32_t inside = 0;   // number of functions that a run past its deadline has left running
  bool of_all = false;  // all members get this report: a member that passes it on is not its culprit
  int64_t sequence = 0;
  char message[1024] = "";
  char tag[DIST_MAX_TAG_BYTES] = "";
  char expected[160] = "";
  char received[160] = "";
  char hint[160] = "";
};

// Maximum size of the host's reason for a cancellation; longer ones are truncated.
inline constexpr std::size_t kReasonBytes = 256;

// This thread's latest failure, and the number of its failures, which tells whether a record is new.
ErrorRecord& last_error() noexcept;
uint64_t failures_on_this_thread() noexcept;
// The counter itself, for a thread that reads it often.
const uint64_t& failure_count_of_this_thread() noexcept;

// Records a failure on this thread and returns it.
[[gnu::format(printf, 2, 3)]] Status fail(dist_status code, const char* format, ...) noexcept;
Status fail(const ErrorRecord& record) noexcept;
// Returns this thread's latest failure with another message. The arguments may refer to the old message.
[[gnu::format(printf, 1, 2)]] Status reworded(const char* format, ...) noexcept;

// Shorthands for the most common failures.
[[gnu::format(printf, 1, 2)]] Status invalid_argument(const char* format, ...) noexcept;
[[gnu::format(printf, 1, 2)]] Status failed_precondition(const char* format, ...) noexcept;
Status out_of_memory() noexcept;

// "INVALID_ARGUMENT"; NULL for an unknown code.
const char* known_status_name(dist_status code) noexcept;
// The same for messages. An unknown code gives "status 99", which is valid until the thread's next call.
const char* status_name(dist_status code) noexcept;

// The function's name for a DIST_COLLECTIVE_...: "all_reduce".
const char* collective_name(int32_t collective) noexcept;

// Copies `text` into `to`, truncated at a UTF-8 boundary and always terminated. NULL is copied as "".
void copy_text(char* to, std::size_t size, const char* text) noexcept;
template <std::size_t N>
void copy_text(char (&to)[N], const char* text) noexcept {
  copy_text(to, N, text);
}

#define DIST_TRY(expression)                                              \
  do {                                                                    \
    if (const ::dist::Status dist_try_ = (expression); !dist_try_.ok()) { \
      return dist_try_;                                                   \
    }                                                                     \
  } while (false)

}  // namespace dist
