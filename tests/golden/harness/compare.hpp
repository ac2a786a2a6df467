// SPDX-License-Identifier: Apache-2.0
// Compares libdist's answer with the recorded one: dtypes, shapes, kinds and bits exactly, errors by kind.
//
// C has no Python numbers, so a recorded Python number matches a scalar of the same value: an integer of any
// integer dtype, a float of f32 or f64 (rounded to it), or a bool. Python strings and string tensors are both
// strings; a tensor of several strings is a list of them. The following are not compared: the names of Python
// classes (of variables and objects) and of named tuple fields, and the durations of calls and of worker
// processes.
#pragma once

#include <string>
#include <vector>

#include "json.hpp"

namespace golden {

struct Difference {
  std::string part;   // the key of `expected`, or "expected" if that is a single value
  std::string where;  // "result.values[1]"
  std::string expected;
  std::string came;
};

// Returns the first difference of each part. `expected` and the answer are each either an object of recorded
// values or a single value.
std::vector<Difference> compare(const Json& expected, const Json& came);

}  // namespace golden
