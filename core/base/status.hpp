// SPDX-License-Identifier: Apache-2.0
// Status: the result of a call. The message of a failure is stored in a thread-local record, so a Status is
// only a code.
//
// Invariant: creating, returning and copying a Status never allocates and never throws. The record describes
// the latest failure on its thread; it stays valid until the next failure there.
//
// The format of a message has each name of the C API in backquotes, because bindings to other languages
// replace it by a name of their own:
//
//     "`%s()`: `root` is %d, but must be 0 to %d. Leave it at 0 for the first one."
//
// A name is a function with its (), a parameter, a field, a constant, `NULL`, the verb `destroy`, or the
// caller's `thread`. The texts of a record have kNameBegin and kNameEnd in the place of the backquotes, also
// if they quote the message of another record. copy_plain() removes them from a text that leaves the library.
//
// "`NAME` is GIVEN, but must be EXPECTED", or ", but EXPECTED", or "; use EXPECTED", fills the parameter,
// what was received and what was expected. The sentences after the first are the hint.
#pragma once

#include <cstdarg>
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

// The marks around names in the texts of a record.
inline constexpr char kNameBegin = '\x0E';
inline constexpr char kNameEnd = '\x0F';

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
  const char* function = "";  // the function of the C API that failed, static
  char parameter[64] = "";    // without marks
  char message[1024] = "";
  char tag[DIST_MAX_TAG_BYTES] = "";
  char expected[160] = "";
  char received[160] = "";
  char hint[160] = "";
};

// Maximum size of the host's reason for a cancellation; longer ones are truncated.
inline constexpr std::size_t kReasonBytes = 256;

// This thread's latest failure, and the number of its failures. If the number has changed, the record is new.
ErrorRecord& last_error() noexcept;
uint64_t failures_on_this_thread() noexcept;
// The counter itself, for a thread that reads it often.
const uint64_t& failure_count_of_this_thread() noexcept;

// Write a text of a record: snprintf() with the names of the format marked.
[[gnu::format(printf, 3, 4)]] int write_marked(char* to, std::size_t size, const char* format, ...) noexcept;
int vwrite_marked(char* to, std::size_t size, const char* format, va_list arguments) noexcept;

// A literal with marked names, for texts that a format prints by %s: "Call `dist_run()` first."_m.
template <std::size_t N>
struct MarkedLiteral {
  consteval MarkedLiteral(const char (&literal)[N]) noexcept {  // NOLINT(google-explicit-constructor)
    bool in_name = false;
    for (std::size_t i = 0; i < N; ++i) {
      text[i] = literal[i] != '`' ? literal[i] : in_name ? kNameEnd : kNameBegin;
      if (literal[i] == '`') in_name = !in_name;
    }
  }
  char text[N]{};
};
template <MarkedLiteral kLiteral>
constexpr const char* operator""_m() noexcept {
  return kLiteral.text;
}

// Copies a text of a record without the marks. The buffers may be the same.
void copy_plain(char* to, std::size_t size, const char* text) noexcept;
template <std::size_t N>
void copy_plain(char (&to)[N], const char* text) noexcept {
  copy_plain(to, N, text);
}

// Records a failure on this thread and returns it.
[[gnu::format(printf, 2, 3)]] Status fail(dist_status code, const char* format, ...) noexcept;
Status fail(const ErrorRecord& record) noexcept;
// Returns this thread's latest failure with another message. The arguments may refer to the old message.
[[gnu::format(printf, 1, 2)]] Status reworded(const char* format, ...) noexcept;

// Names the function of the C API that failed, unless it is named already, and returns the code. The text
// must be static.
dist_status named_failure(dist_status code, const char* function) noexcept;

// Shorthands for the most common failures.
[[gnu::format(printf, 1, 2)]] Status invalid_argument(const char* format, ...) noexcept;
[[gnu::format(printf, 1, 2)]] Status failed_precondition(const char* format, ...) noexcept;
// The message contains the size of the block that the allocator has refused to this thread, if it has refused
// one.
Status out_of_memory() noexcept;
void block_refused(std::size_t bytes) noexcept;

// "INVALID_ARGUMENT"; NULL for an unknown code.
const char* known_status_name(dist_status code) noexcept;
// Like known_status_name(), for messages. An unknown code gives "status 99", which is valid until the
// thread's next call.
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
