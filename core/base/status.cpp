// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/base/collective_traits.hpp"
#include "core/base/text.hpp"

namespace dist {
namespace {

thread_local constinit uint64_t failures = 0;

Status record(dist_status code, const char* format, va_list arguments) noexcept {
  // The text may quote the record that it replaces (an inner failure's message), so format it separately. The
  // buffer is slightly larger than the record's, so that copy_shown() truncates it.
  char message[sizeof(ErrorRecord::message) + 8];
  std::vsnprintf(message, sizeof message, format, arguments);
  ++failures;
  ErrorRecord& error = last_error();
  error = ErrorRecord{};
  error.code = code;
  copy_shown(error.message, message, Breaks::kKept);
  return Status(code);
}

}  // namespace

ErrorRecord& last_error() noexcept {
  thread_local constinit ErrorRecord error;
  return error;
}

uint64_t failures_on_this_thread() noexcept { return failures; }

const uint64_t& failure_count_of_this_thread() noexcept { return failures; }

Status fail(dist_status code, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const Status status = record(code, format, arguments);
  va_end(arguments);
  return status;
}

Status fail(const ErrorRecord& error) noexcept {
  ++failures;
  ErrorRecord& latest = last_error();
  if (&error != &latest) latest = error;
  show_in_place(latest.message, Breaks::kKept);
  show_in_place(latest.tag, Breaks::kEscaped);
  show_in_place(latest.expected, Breaks::kEscaped);
  show_in_place(latest.received, Breaks::kEscaped);
  show_in_place(latest.hint, Breaks::kEscaped);
  return Status(latest.code);
}

Status reworded(const char* format, ...) noexcept {
  ErrorRecord error = last_error();
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error.message, sizeof error.message, format, arguments);
  va_end(arguments);
  return fail(error);
}

Status invalid_argument(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const Status status = record(DIST_INVALID_ARGUMENT, format, arguments);
  va_end(arguments);
  return status;
}

Status failed_precondition(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const Status status = record(DIST_FAILED_PRECONDITION, format, arguments);
  va_end(arguments);
  return status;
}

Status out_of_memory() noexcept {
  return fail(DIST_RESOURCE_EXHAUSTED, "out of memory: the allocator returned no block");
}

// @every status
const char* known_status_name(dist_status code) noexcept {
  switch (code) {
    case DIST_OK: return "OK";
    case DIST_CANCELLED: return "CANCELLED";
    case DIST_UNKNOWN: return "UNKNOWN";
    case DIST_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case DIST_DEADLINE_EXCEEDED: return "DEADLINE_EXCEEDED";
    case DIST_NOT_FOUND: return "NOT_FOUND";
    case DIST_ALREADY_EXISTS: return "ALREADY_EXISTS";
    case DIST_PERMISSION_DENIED: return "PERMISSION_DENIED";
    case DIST_RESOURCE_EXHAUSTED: return "RESOURCE_EXHAUSTED";
    case DIST_FAILED_PRECONDITION: return "FAILED_PRECONDITION";
    case DIST_ABORTED: return "ABORTED";
    case DIST_OUT_OF_RANGE: return "OUT_OF_RANGE";
    case DIST_UNIMPLEMENTED: return "UNIMPLEMENTED";
    case DIST_INTERNAL: return "INTERNAL";
    case DIST_UNAVAILABLE: return "UNAVAILABLE";
    case DIST_DATA_LOSS: return "DATA_LOSS";
    default: return nullptr;
  }
}

const char* status_name(dist_status code) noexcept {
  if (const char* const name = known_status_name(code); name != nullptr) return name;
  thread_local constinit char number[24] = "";
  std::snprintf(number, sizeof number, "status %d", code);
  return number;
}

const char* collective_name(int32_t collective) noexcept {
  return collective >= DIST_COLLECTIVE_ALL_REDUCE && collective <= static_cast<int32_t>(kLastCollective)
             ? traits_of(static_cast<Collective>(collective)).name
             : "no collective";
}

void copy_text(char* to, std::size_t size, const char* text) noexcept {
  if (text == nullptr) text = "";
  std::size_t length = strnlen(text, size);
  if (length == size) {
    length = size - 1;
    // Never end inside a UTF-8 sequence: step back over its continuation bytes.
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0u) == 0x80u) --length;
  }
  std::memmove(to, text, length);
  to[length] = '\0';
}

}  // namespace dist
