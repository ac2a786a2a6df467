// SPDX-License-Identifier: Apache-2.0
// Support for the replays of areas "extended" and "options".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/golden/harness/replay.hpp"

namespace golden {

// tf.Variable(numbers): f32, of one dimension unless `shape` says otherwise.
Variable variable_of(Replay& replay, const std::vector<double>& numbers);
Variable variable_of(Replay& replay, const std::vector<double>& numbers, const std::vector<int64_t>& shape,
                     const dist_variable_options* options = nullptr);

// copy.assign(value), copy.assign_add(value), of tensors of one f32 shape.
void assign(const dist_tensor& copy, dist_value* value);
void assign_add(const dist_tensor& copy, dist_value* value);

// A JSON object of these members.
using Member = std::pair<std::string, Json>;
template <class... Members>
Json object_of(Replay& replay, Members... members) {
  std::vector<Member> list;
  (list.push_back(std::move(members)), ...);
  return replay.object(std::move(list));
}

// Takes over n results.
Json encode_results(Replay& replay, const std::vector<dist_value*>& results, std::size_t n);

// strategy.extended.update(): in replay_update.cpp.
void replay_update(Replay& replay);

}  // namespace golden
