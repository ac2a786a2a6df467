// SPDX-License-Identifier: Apache-2.0
// TextOut: passes text to the host's callback in chunks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/types.h"

namespace dist {

// The host's callback.
using TextFn = void (*)(const char* text, std::size_t size_bytes, void* user_data);

// Collects text and passes it on in chunks that never split a character. Also serves as an output stream for
// RapidJSON. Text that has not been flushed is lost when the object is destroyed: an error may be unwinding,
// and then the host's function must not be called.
class TextOut {
 public:
  using Ch = char;

  TextOut(TextFn fn, void* user_data) noexcept : fn_(fn), user_data_(user_data) {}
  TextOut(const TextOut&) = delete;
  TextOut& operator=(const TextOut&) = delete;

  void Put(char c) {  // NOLINT(readability-identifier-naming): RapidJSON's name
    if (used_ == sizeof buffer_) hand_on();
    buffer_[used_++] = c;
  }
  void Flush() {}  // NOLINT(readability-identifier-naming): RapidJSON's name, called after every value
  void put(const char* text);
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...);
  void flush();

 private:
  void hand_on();

  TextFn fn_;
  void* user_data_;
  std::size_t used_ = 0;
  char buffer_[4096];
};

}  // namespace dist
