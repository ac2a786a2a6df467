// SPDX-License-Identifier: Apache-2.0
// Path: a position in a nest. It is built on the stack during the descent, without allocation, and becomes
// text only in messages.
#pragma once

#include <cstddef>
#include <cstdio>

#include "core/base/text.hpp"

namespace dist {

struct Path {
  const char* root;  // "result"; NULL below the root
  const Path* above = nullptr;
  const char* key = nullptr;  // of a dictionary; NULL: `index` applies
  std::size_t index = 0;

  static Path item(const Path& above, std::size_t index) noexcept {
    return {nullptr, &above, nullptr, index};
  }
  static Path item(const Path& above, const char* key) noexcept { return {nullptr, &above, key, 0}; }

  // Writes `result["loss"][1]`, truncated to `size` (not 0), and returns its length.
  std::size_t write(char* text, std::size_t size) const noexcept {
    const std::size_t used = above != nullptr ? above->write(text, size) : 0;
    char* const here = text + used;
    const std::size_t room = size - used;
    const int length = above == nullptr ? std::snprintf(here, room, "%s", root)
                       : key != nullptr ? std::snprintf(here, room, "[\"%s\"]", Shown(key).c_str())
                                        : std::snprintf(here, room, "[%zu]", index);
    const std::size_t end = used + static_cast<std::size_t>(length < 0 ? 0 : length);
    return end < size ? end : size - 1;
  }
};

// A path as text, for use in one message.
class PathText {
 public:
  explicit PathText(const Path& path) noexcept { path.write(text_, sizeof text_); }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[256];
};

}  // namespace dist
