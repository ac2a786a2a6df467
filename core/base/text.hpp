// SPDX-License-Identifier: Apache-2.0
// Sanitizes text that leaves the library. Such text is valid UTF-8 without control characters, which could
// break a line or control a terminal. Offending bytes are replaced:
//
//     a byte that is not valid UTF-8    U+FFFD
//     a control character               \n, \t, or \x and two hexadecimal digits
//
// Texts that may span several lines, such as error messages, keep \n and \t.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"

namespace dist {

// Whether line ends and tabs stay.
enum class Breaks { kEscaped, kKept };

// Room for one character as show_character() writes it, its end included.
inline constexpr std::size_t kShownRoom = 5;

// Writes the first character of `text`, which is not empty, by the rule. Returns how many bytes of `text` it
// stands for.
std::size_t show_character(const char* text, Breaks breaks, char (&out)[kShownRoom]) noexcept;

// Whether the rule leaves a text as it is, line ends included: what names keep to.
bool is_line(const char* text) noexcept;

// Copies `text` by the rule, cut to `size` at a whole character, always ended. NULL is "". The two must not
// overlap.
void copy_shown(char* to, std::size_t size, const char* text, Breaks breaks = Breaks::kEscaped) noexcept;
template <std::size_t N>
void copy_shown(char (&to)[N], const char* text, Breaks breaks = Breaks::kEscaped) noexcept {
  copy_shown(to, N, text, breaks);
}

// The same in place. The rest of a character that was cut at the end is removed too.
void show_in_place(char* text, std::size_t size, Breaks breaks) noexcept;
template <std::size_t N>
void show_in_place(char (&text)[N], Breaks breaks) noexcept {
  show_in_place(text, N, breaks);
}

// A text of the host's, or out of a file, as messages quote it: by the rule, and not too long.
class Shown {
 public:
  explicit Shown(const char* text) noexcept { copy_shown(text_, text); }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[120];
};

// OK for a name: one line of UTF-8. `what` begins the message.
Status check_name(const char* name, const char* what) noexcept;

// A duration as people write it: "500 ns", "1.5 us", "20 ms", "1913 s".
struct DurationText {
  explicit DurationText(int64_t ns) noexcept;
  char text[32];
};

}  // namespace dist
