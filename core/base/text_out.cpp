// SPDX-License-Identifier: Apache-2.0
#include "core/base/text_out.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"

namespace dist {

void TextOut::flush() {
  const std::size_t size = used_;
  used_ = 0;
  if (size != 0) fn_(buffer_, size, user_data_);
}

// Called when the buffer is full. Passes on everything except the last character, which may be incomplete.
void TextOut::hand_on() {
  std::size_t whole = used_ - 1;
  while (whole > 0 && used_ - whole < 4 && (static_cast<unsigned char>(buffer_[whole]) & 0xC0u) == 0x80u)
    --whole;
  const std::size_t rest = used_ - whole;
  fn_(buffer_, whole, user_data_);
  std::memmove(buffer_, buffer_ + whole, rest);
  used_ = rest;
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
  if (length <= 0) return;
  copy_plain(line, line);
  show_in_place(line, Keep::kBreaks);
  put(line);
}

}  // namespace dist
