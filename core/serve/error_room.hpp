// SPDX-License-Identifier: Apache-2.0
// Room for why something failed, which most things never need: made at the first failure, and used again.
#pragma once

#include <new>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

// Where there is none yet. It stays NULL where there is no memory for it: then the status alone is kept.
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
