// SPDX-License-Identifier: Apache-2.0
#include "capi/guard.hpp"

#include <algorithm>

namespace dist::capi {

Status is_null(const char* call, const char* name) noexcept {
  return invalid_argument("`%s()`: `%s` is `NULL`", call, name);
}

Status check_list(const void* list, std::size_t n, std::size_t most, const char* call, const char* name,
                  const char* count) noexcept {
  if (n > most) {
    return invalid_argument(
        "`%s()`: `%s` is %zu, which is more elements of %s than memory can hold. Was it a negative number?",
        call, count, n, name);
  }
  return n == 0 ? kOk : require(list, call, name);
}

Status read_other_options(const void* given, void* known, std::size_t known_bytes, std::size_t align,
                          const char* name) noexcept {
  uint32_t size;
  std::memcpy(&size, given, sizeof size);
  if (size < sizeof size) {
    return invalid_argument(
        "%s.`struct_size` is %u: initialize the struct with its INIT macro, or with its init function and "
        "sizeof(%s)",
        name, size, name);
  }
  if (size > kMostOptionBytes) {
    return invalid_argument(
        "%s.`struct_size` is %u, which is not a valid size: initialize the struct with its INIT macro, or "
        "with "
        "its init function and sizeof(%s)",
        name, size, name);
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known_bytes; i < size; ++i) {
    if (bytes[i] != 0) {
      return invalid_argument(
          "%s: byte %zu is set, but this version of libdist supports %zu bytes only. The option needs a "
          "newer library.",
          name, i, known_bytes);
    }
  }
  // No version has a size that is not a multiple of its alignment. Rounding down avoids copying half of a
  // pointer.
  std::memcpy(known, given, std::min<std::size_t>(size / align * align, known_bytes));
  static_cast<uint32_t*>(known)[0] = size;
  return kOk;
}

}  // namespace dist::capi
