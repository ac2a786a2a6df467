// SPDX-License-Identifier: Apache-2.0
// GroupTag: what workers compare when they make a group together, and show where they do not agree.
#pragma once

#include <cstdint>
#include <span>

#include "dist/types.h"

namespace dist {

class GroupTag {
 public:
  explicit GroupTag(std::span<const int32_t> ids) noexcept;
  // "group of replicas 0, 2-5". Of a list that is too long its beginning, how many there are, and its digest.
  const char* text() const noexcept { return text_; }
  uint64_t digest() const noexcept { return digest_; }

 private:
  char text_[DIST_MAX_TAG_BYTES];
  uint64_t digest_;
};

}  // namespace dist
