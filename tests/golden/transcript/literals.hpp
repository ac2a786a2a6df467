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

// Maps objects to names: the recorder creates names, and the player looks them up.
class Names {
 public:
  virtual ~Names() = default;
  // Returns the name of an object that is passed or mentioned.
  virtual std::string known(char kind, const void* object) = 0;
  // Returns the name of an object that appears under `key`, possibly for the first time. With `fresh`, it is
  // always new.
  virtual std::string comes(char kind, const void* object, std::string_view key, bool fresh) = 0;

 protected:
  Names() = default;
  Names(const Names&) = default;
  Names& operator=(const Names&) = default;
};

// "f32:2,3:0000803f...", with every NaN as the quiet NaN of its dtype. shape_of() omits the elements:
// "f32:2,3".
std::string literal_of(const dist_tensor& tensor);
std::string shape_of(const dist_tensor& tensor);
// The inverse. Missing elements are 0.
Elements tensor_of(std::string_view literal);

// Returns the content of a value.
std::string tree_of(const dist_value* value, Names& names);

}  // namespace golden::transcript
