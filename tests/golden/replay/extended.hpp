// SPDX-License-Identifier: Apache-2.0
// Support for the replays of areas "extended" and "options".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/golden/harness/replay.hpp"

namespace golden {

// tf.Variable(numbers): f32, with one dimension unless `shape` is given.
Variable variable_of(Replay& replay, const std::vector<double>& numbers);
Variable variable_of(Replay& replay, const std::vector<double>& numbers, const std::vector<int64_t>& shape,
                     const dist_variable_options* options = nullptr);

// copy.assign(value) and copy.assign_add(value) for f32 tensors of equal shape.
void assign(const dist_tensor& copy, dist_value* value);
void assign_add(const dist_tensor& copy, dist_value* value);

// A JSON object with these members.
using Member = std::pair<std::string, Json>;
template <class... Members>
Json object_of(Replay& replay, Members... members) {
  std::vector<Member> list;
  (list.push_back(std::move(members)), ...);
  return replay.object(std::move(list));
}

// Encodes n results and takes over their references.
Json encode_results(Replay& replay, const std::vector<dist_value*>& results, std::size_t n);

// strategy.extended.update(): in replay_update.cpp.
void replay_update(Replay& replay);

}  // namespace golden
