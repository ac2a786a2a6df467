// SPDX-License-Identifier: Apache-2.0
#include "core/trace/text.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace dist {
namespace {

// Bytes of the character at `text`, which ends with a NUL; 0 where there is none. The shortest form only, no
// surrogates, nothing above U+10FFFF.
std::size_t character(const unsigned char* text) noexcept {
  const unsigned lead = text[0];
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  // The first continuation byte's range depends on the lead.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (text[1] < low || text[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((text[i] & 0xC0u) != 0x80u) return 0;
  }
  return length;
}

}  // namespace

void TextOut::flush() {
  const std::size_t size = used_;
  used_ = 0;
  if (size != 0) fn_(buffer_, size, user_data_);
}

void TextOut::put(const char* text) {
  for (; *text != '\0'; ++text) Put(*text);
}

void TextOut::add(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length > 0) put(line);
}

std::size_t to_utf8(const char* text, char* out) noexcept {
  const char* const begin = out;
  while (*text != '\0') {
    const std::size_t length = character(reinterpret_cast<const unsigned char*>(text));
    if (length == 0) {
      out = std::copy_n("\xEF\xBF\xBD", 3, out);
      ++text;
    } else {
      out = std::copy_n(text, length, out);
      text += length;
    }
  }
  *out = '\0';
  return static_cast<std::size_t>(out - begin);
}

}  // namespace dist
