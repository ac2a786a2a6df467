// SPDX-License-Identifier: Apache-2.0
// Prepends the file name to the message of an error about that file.
#pragma once

#include <cstring>

#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"

namespace dist {

// Returns `status`. Only the end of a long path is shown.
inline Status about_file(const char* path, Status status) noexcept {
  if (status.ok()) return status;
  constexpr std::size_t kMost = 100;
  const std::size_t length = std::strlen(path);
  const char* shown = length > kMost ? path + length - kMost : path;
  // Do not start inside a UTF-8 character.
  while ((static_cast<unsigned char>(*shown) & 0xC0u) == 0x80u) ++shown;
  return fail(status.code(), "\"%s%s\": %s", shown == path ? "" : "...", Shown(shown).c_str(),
              last_error().message);
}

}  // namespace dist
