// SPDX-License-Identifier: Apache-2.0
// Tensors and values as literals (TRANSCRIPTS.md).
#pragma once

#include <dist/dist.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "tests/golden/harness/elements.hpp"

namespace golden::transcript {

// Types whose values are written as integers.
template <class T>
concept Number = std::is_integral_v<T> || std::is_enum_v<T>;

// Says by which name an object goes: the recorder gives names, the player looks them up.
class Names {
 public:
  virtual ~Names() = default;
  // Of an object that is given or mentioned.
  virtual std::string known(char kind, const void* object) = 0;
  // Of an object that comes under `key`: maybe for the first time. `fresh`: it certainly does.
  virtual std::string comes(char kind, const void* object, std::string_view key, bool fresh) = 0;

 protected:
  Names() = default;
  Names(const Names&) = default;
  Names& operator=(const Names&) = default;
};

// "f32:2,3:0000803f..."; every NaN is its dtype's quiet one. Without elements: "f32:2,3".
std::string literal_of(const dist_tensor& tensor);
std::string shape_of(const dist_tensor& tensor);
// The other way; elements that are not there are 0.
Elements tensor_of(std::string_view literal);

// What a value is.
std::string tree_of(const dist_value* value, Names& names);

}  // namespace golden::transcript
