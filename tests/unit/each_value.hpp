// SPDX-License-Identifier: Apache-2.0
// Loops over the values of an enum, and values that it does not have.
#pragma once

#include <type_traits>

template <class Enum>
requires std::is_enum_v<Enum> Enum& operator++(Enum& value) {
  return value = static_cast<Enum>(static_cast<std::underlying_type_t<Enum>>(value) + 1);
}
