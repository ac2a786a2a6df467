// SPDX-License-Identifier: Apache-2.0
// Sanitizes text that leaves the library. Such text is valid UTF-8 without control characters, which could
// break a line or control a terminal. Offending bytes are replaced:
//
//     a byte that is not valid UTF-8    U+FFFD
//     a control character               \n, \t, or \x and two hexadecimal digits
//
// Texts that may span several lines, such as error messages, keep \n and \t. The texts of an error keep the
// marks around names, too (status.hpp), until they leave the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/status.hpp"

namespace dist {

// Which control characters stay: newlines and tabs, and the marks around names.
enum class Keep : unsigned { kNothing = 0, kBreaks = 1, kMarks = 2, kBreaksAndMarks = 3 };

// Room for one character written by show_character(), including the terminator.
inline constexpr std::size_t kShownRoom = 5;

// Writes the first character of the nonempty `text` in its sanitized form. Returns the number of bytes of
// `text` that it represents.
std::size_t show_character(const char* text, Keep keep, char (&out)[kShownRoom]) noexcept;

// Whether the text is one line that sanitizing leaves unchanged. Names must be like that.
bool is_line(const char* text) noexcept;

// Copies `text` in its sanitized form, truncated to `size` at a character boundary and always terminated.
// NULL is copied as "". The buffers must not overlap.
void copy_shown(char* to, std::size_t size, const char* text, Keep keep = Keep::kNothing) noexcept;
template <std::size_t N>
void copy_shown(char (&to)[N], const char* text, Keep keep = Keep::kNothing) noexcept {
  copy_shown(to, N, text, keep);
}

// Sanitizes a text in place. Also removes an incomplete character at the end.
void show_in_place(char* text, std::size_t size, Keep keep) noexcept;
template <std::size_t N>
void show_in_place(char (&text)[N], Keep keep) noexcept {
  show_in_place(text, N, keep);
}

// Quotes text from the host or from a file in a message, in its sanitized form. A long text is cut and ends
// with "…", so that the rest of the message has room.
class Shown {
 public:
  explicit Shown(const char* text) noexcept;
  explicit Shown(std::string_view text) noexcept;  // must not contain a NUL
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[120];
};

// A count in a message: "1 replica", "2 replicas". The plural of the noun must be formed with -s.
struct CountText {
  CountText(int64_t number, const char* noun) noexcept;
  char text[64];
};

// Validates a name: one line of UTF-8. `what` begins the message.
Status check_name(const char* name, const char* what) noexcept;

// A duration in human-readable form: "500 ns", "1.5 us", "20 ms", "1913 s".
struct DurationText {
  explicit DurationText(int64_t ns) noexcept;
  char text[32];
};

}  // namespace dist
