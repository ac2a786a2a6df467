// SPDX-License-Identifier: Apache-2.0
#include "core/run/group_tag.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "core/comm/signature.hpp"

namespace dist {
namespace {

// Lists as many ids as fit, as ranges. Returns whether these are all.
bool list(std::span<const int32_t> ids, char* text, std::size_t size) noexcept {
  std::size_t used = std::strlen(text);
  const char* separator = "";
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    char range[40];
    const int length = last == i ? std::snprintf(range, sizeof range, "%s%" PRId32, separator, ids[i])
                                 : std::snprintf(range, sizeof range, "%s%" PRId32 "-%" PRId32, separator,
                                                 ids[i], ids[last]);
    if (used + static_cast<std::size_t>(length) >= size) return false;
    std::memcpy(text + used, range, static_cast<std::size_t>(length) + 1);
    used += static_cast<std::size_t>(length);
    separator = ", ";
    i = last + 1;
  }
  return true;
}

}  // namespace

GroupTag::GroupTag(std::span<const int32_t> ids) noexcept : digest_(ids.size()) {
  for (const int32_t id : ids) digest_ = mix(digest_, static_cast<uint32_t>(id));
  std::snprintf(text_, sizeof text_, "group of replica%s ", ids.size() == 1 ? "" : "s");
  if (list(ids, text_, sizeof text_)) return;
  // ", ... #01234567"
  constexpr std::size_t kEnd = 15;
  std::snprintf(text_, sizeof text_, "group of %zu: ", ids.size());
  (void)list(ids, text_, sizeof text_ - kEnd);
  const std::size_t used = std::strlen(text_);
  std::snprintf(text_ + used, sizeof text_ - used, ", ... #%08" PRIx32, static_cast<uint32_t>(digest_));
}

}  // namespace dist
