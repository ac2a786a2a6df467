// SPDX-License-Identifier: Apache-2.0
// Puts a file's name before the message of what is wrong with it.
#pragma once

#include <cstring>

#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"

namespace dist {

// Passes `status` on. Of a long path the end is shown.
inline Status about_file(const char* path, Status status) noexcept {
  if (status.ok()) return status;
  constexpr std::size_t kMost = 100;
  const std::size_t length = std::strlen(path);
  const char* shown = length > kMost ? path + length - kMost : path;
  while ((static_cast<unsigned char>(*shown) & 0xC0u) == 0x80u) ++shown;  // not from inside a character
  return fail(status.code(), "\"%s%s\": %s", shown == path ? "" : "...", Shown(shown).c_str(),
              last_error().message);
}

}  // namespace dist
