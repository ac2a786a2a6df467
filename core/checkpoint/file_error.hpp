// SPDX-License-Identifier: Apache-2.0
// Adds to the message of an error, for example the name of the file concerned. The error keeps everything
// else, such as the worker at fault.
#pragma once

#include <cstdio>
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
  char prefix[kMost * 5];
  std::snprintf(prefix, sizeof prefix, "\"%s%s\": ", shown == path ? "" : "...", Shown(shown).c_str());
  // Another worker's report may already name the file.
  if (std::strncmp(last_error().message, prefix, std::strlen(prefix)) == 0) return status;
  return reworded("%s%s", prefix, last_error().message);
}

}  // namespace dist
