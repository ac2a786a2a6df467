// SPDX-License-Identifier: Apache-2.0
//
// The functions that test_hpp_parts.cpp calls: the same program in translation units that see different parts
// of dist.hpp.
#pragma once

namespace parts {

struct outcome {
  float sum;    // of two replicas' tensors
  float read;   // of a variable
  int batches;  // of a dataset
};

outcome of_the_baseline();      // hpp_baseline.cpp never defines DIST_EXPERIMENTAL
outcome with_the_rest_first();  // hpp_rest_first.cpp defines it, and then no longer

}  // namespace parts
