// SPDX-License-Identifier: Apache-2.0
// The identity of a group that several workers create together. They compare it to detect that they disagree,
// and show it in the error message.
#pragma once

#include <cstdint>
#include <span>

#include "dist/types.h"

namespace dist {

class GroupTag {
 public:
  explicit GroupTag(std::span<const int32_t> ids) noexcept;
  // "group of replicas 0, 2-5". If the list is too long, the text has its beginning, the number of ids, and a
  // digest.
  const char* text() const noexcept { return text_; }
  uint64_t digest() const noexcept { return digest_; }

 private:
  char text_[DIST_MAX_TAG_BYTES];
  uint64_t digest_;
};

}  // namespace dist
