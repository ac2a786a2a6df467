// SPDX-License-Identifier: Apache-2.0
// Memory for an error report. Most objects never fail, so it is allocated on the first failure and then kept.
#pragma once

#include <new>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

// Allocates the memory unless it exists. On failure it stays NULL, and only the status is kept.
inline void need_error_room(Memory& memory, ErrorRecord*& room) noexcept {
  if (room != nullptr) return;
  void* const place = memory.try_allocate(sizeof(ErrorRecord), alignof(ErrorRecord));
  if (place != nullptr) room = new (place) ErrorRecord;
}

inline void free_error_room(Memory& memory, ErrorRecord*& room) noexcept {
  if (room != nullptr) memory.free(room, sizeof(ErrorRecord), alignof(ErrorRecord));
  room = nullptr;
}

}  // namespace dist
