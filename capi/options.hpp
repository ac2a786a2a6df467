// SPDX-License-Identifier: Apache-2.0
// Shared by several headers: reading options, and writing structs and texts for the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capi/guard.hpp"
#include "core/cross_replica/communication.hpp"

namespace dist::capi {

// NULL selects the defaults. The result has been checked.
Status read_communication(const dist_communication_options* given, Communication* out) noexcept;

// The value of a field of an option struct, in which 0 selects the default.
template <class Enum>
constexpr Enum or_default(Enum given, Enum standard) noexcept {
  return given == Enum{} ? standard : given;
}

// The same where DIST_NUMERICS_DEFAULT selects `standard` too.
constexpr dist_numerics numerics_of(dist_numerics given, dist_numerics standard) noexcept {
  return given == DIST_NUMERICS_DEFAULT ? standard : or_default(given, standard);
}

// Writes `text` with its NUL; INVALID_ARGUMENT if there is not enough room.
Status write_text(const char* text, char* out, std::size_t size_bytes, const char* call) noexcept;

// Checks that an output struct has room for more than its size fields, and that its size was set.
template <class Struct>
Status check_room(const Struct& out, const char* name) noexcept {
  if (out.struct_size >= 2 * sizeof(uint32_t) && out.struct_size <= kMostOptionBytes) return kOk;
  return invalid_argument("%s.`struct_size` is %u: initialize the struct with its INIT macro", name,
                          out.struct_size);
}

// Writes as much of `all` as the caller's version of the struct has room for, and zeros where that is longer.
// Does not change its struct_size.
template <class Struct>
Status write_struct(const Struct& all, Struct* out, const char* name) noexcept {
  DIST_TRY(check_room(*out, name));
  const uint32_t size = out->struct_size;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(static_cast<void*>(out), &all, std::min<std::size_t>(size, sizeof all));
  out->struct_size = size;
  return kOk;
}

}  // namespace dist::capi
