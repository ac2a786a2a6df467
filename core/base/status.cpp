// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.hpp"

#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/collective_traits.hpp"
#include "core/base/text.hpp"

namespace dist {
namespace {

thread_local constinit uint64_t failures = 0;

// Characters that mark the parts of a message in a format. The written message no longer contains them.
constexpr char kGiven = '\1';     // before what was given
constexpr char kExpected = '\2';  // before and after the words that precede what was expected
constexpr char kHint = '\3';      // before and after the words that precede the hint

bool begins_with(const char* text, const char* prefix) noexcept {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// A printf() format in which marks replace the backquotes, and the parts are marked.
class Format {
 public:
  explicit Format(const char* format, bool parts) noexcept {
    bool in_name = false;
    bool given = !parts;
    bool expected = true;
    bool hint = !parts;
    for (const char* at = format; *at != '\0';) {
      if (*at == '`') {
        put(in_name ? kNameEnd : kNameBegin);
        in_name = !in_name;
        ++at;
        const bool parameter =
            at - format > 1 && at[-2] != ')' && !(at - format > 8 && begins_with(at - 8, "`thread`"));
        if (!in_name && parameter && !given && begins_with(at, " is ")) {
          put(at, 4);
          put(kGiven);
          at += 4;
          given = true;
          expected = false;
        }
      } else if (const std::size_t words = expected ? 0 : before_expected(at); words > 0) {
        put_between(at, words, kExpected);
        at += words;
        expected = true;
      } else if (!hint && begins_with(at, ". ") &&
                 (at[2] == '`' || at[2] == '%' || std::isupper(at[2]) != 0)) {
        put_between(at, 2, kHint);
        at += 2;
        hint = expected = given = true;
      } else {
        put(*at++);
      }
    }
    text_[used_] = '\0';
  }
  const char* c_str() const noexcept { return text_; }

 private:
  static std::size_t before_expected(const char* at) noexcept {
    for (const char* const words : {", but must be ", ", but ", "; use ", ": use "}) {
      if (begins_with(at, words)) return std::strlen(words);
    }
    return 0;
  }
  void put(char each) noexcept {
    if (used_ + 1 < sizeof text_) text_[used_++] = each;
  }
  void put(const char* text, std::size_t length) noexcept {
    for (std::size_t i = 0; i < length; ++i) put(text[i]);
  }
  void put_between(const char* text, std::size_t length, char mark) noexcept {
    put(mark);
    put(text, length);
    put(mark);
  }

  std::size_t used_ = 0;
  char text_[sizeof(ErrorRecord::message)];
};

// A text that is appended to character by character. Characters that do not fit are dropped.
class Growing {
 public:
  Growing() noexcept = default;
  template <std::size_t N>
  explicit Growing(char (&text)[N]) noexcept : text_(text), size_(N) {}
  void put(char each) noexcept {
    if (used_ + 1 >= size_) return;
    text_[used_++] = each;
    text_[used_] = '\0';
  }
  void clear() noexcept { used_ = 0; }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

// Splits a message, written with a Format that has parts, into the fields of the record.
void divide(const char* text, ErrorRecord& error) noexcept {
  Growing message(error.message);
  Growing name(error.parameter);
  Growing part;
  bool in_name = false;
  bool named = false;
  bool words = false;  // between two parts
  for (; *text != '\0'; ++text) {
    switch (*text) {
      case kGiven:
        named = true;
        part = Growing(error.received);
        continue;
      case kExpected:
      case kHint:
        words = !words;
        part = words ? Growing() : *text == kHint ? Growing(error.hint) : Growing(error.expected);
        continue;
      case kNameBegin:
        in_name = true;
        if (!named) name.clear();
        break;
      case kNameEnd: in_name = false; break;
      default:
        if (in_name && !named) name.put(*text);
    }
    message.put(*text);
    part.put(*text);
  }
  if (!named) error.parameter[0] = '\0';
}

Status record(dist_status code, const char* format, va_list arguments) noexcept {
  // The text may quote the record that it replaces (the message of an inner failure), so it is formatted
  // separately.
  char text[sizeof(ErrorRecord::message) + 8];
  std::vsnprintf(text, sizeof text, Format(format, true).c_str(), arguments);
  ErrorRecord& error = last_error();
  error = ErrorRecord{};
  error.code = code;
  divide(text, error);
  return fail(error);
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
  show_in_place(latest.parameter, Keep::kNothing);
  show_in_place(latest.message, Keep::kBreaksAndMarks);
  show_in_place(latest.tag, Keep::kNothing);
  show_in_place(latest.expected, Keep::kMarks);
  show_in_place(latest.received, Keep::kMarks);
  show_in_place(latest.hint, Keep::kMarks);
  return Status(latest.code);
}

Status reworded(const char* format, ...) noexcept {
  ErrorRecord error = last_error();
  va_list arguments;
  va_start(arguments, format);
  (void)vwrite_marked(error.message, sizeof error.message, format, arguments);
  va_end(arguments);
  return fail(error);
}

int write_marked(char* to, std::size_t size, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  const int length = vwrite_marked(to, size, format, arguments);
  va_end(arguments);
  return length;
}

int vwrite_marked(char* to, std::size_t size, const char* format, va_list arguments) noexcept {
  return std::vsnprintf(to, size, Format(format, false).c_str(), arguments);
}

void copy_plain(char* to, std::size_t size, const char* text) noexcept {
  std::size_t used = 0;
  for (; *text != '\0' && used + 1 < size; ++text) {
    if (*text != kNameBegin && *text != kNameEnd) to[used++] = *text;
  }
  to[used] = '\0';
}

dist_status named_failure(dist_status code, const char* function) noexcept {
  ErrorRecord& error = last_error();
  if (error.code == code && *error.function == '\0') error.function = function;
  return code;
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

// The size of the block that the allocator refused to this thread; 0: none since the last report.
static constinit thread_local std::size_t refused_bytes = 0;

void block_refused(std::size_t bytes) noexcept { refused_bytes = bytes; }

Status out_of_memory() noexcept {
  const std::size_t bytes = std::exchange(refused_bytes, 0);
  if (bytes == 0) return fail(DIST_RESOURCE_EXHAUSTED, "out of memory");
  return fail(DIST_RESOURCE_EXHAUSTED, "out of memory: the allocator has no block of %zu bytes", bytes);
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
