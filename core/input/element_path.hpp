// SPDX-License-Identifier: Apache-2.0
// ElementPath: a position in the structure of an element as text, such as "[1]['x']", for messages. Long
// paths are truncated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "core/value/value.hpp"

namespace dist {

class ElementPath {
 public:
  const char* text() const noexcept { return text_; }
  std::size_t length() const noexcept { return length_; }
  void cut(std::size_t length) noexcept { text_[length_ = length] = '\0'; }
  // Appends item `index` of `nest`.
  void enter(const Value& nest, std::size_t index) noexcept {
    if (nest.kind() == DIST_VALUE_DICT) {
      append("['%s']", nest.key(index));
    } else {
      append("[%zu]", index);
    }
  }

 private:
  template <class T>
  void append(const char* format, T step) noexcept {
    const int wanted = std::snprintf(text_ + length_, sizeof text_ - length_, format, step);
    if (wanted > 0) length_ = std::min(length_ + static_cast<std::size_t>(wanted), sizeof text_ - 1);
  }

  char text_[128] = "";
  std::size_t length_ = 0;
};

}  // namespace dist
