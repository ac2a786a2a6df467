// SPDX-License-Identifier: Apache-2.0
// Whether libdist's answer is the recorded one: dtypes, shapes, kinds and bits exactly, errors by kind.
//
// C has no Python numbers, so that a recorded one is the scalar of that value: an integer of any integer
// dtype, a float of f32 or f64 (rounded to it), a bool. Texts are texts, whether a Python string or a tensor;
// a tensor of several is a list of them. Not compared: the names of Python's classes (a variable's, an
// object's) and of a named tuple's fields; how long the calls and the processes of workers took.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace golden {

struct Difference {
  std::string part;   // the key of `expected` below which it is; "expected" itself where that is one value
  std::string where;  // "result.values[1]"
  std::string expected;
  std::string came;
};

// What an answer differs in, the first difference of each part: each is an object of recorded values, or one
// value.
std::vector<Difference> compare(const Json& expected, const Json& came);

}  // namespace golden
