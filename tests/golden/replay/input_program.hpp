// SPDX-License-Identifier: Apache-2.0
// Common parts of programs with datasets: host sources, iteration, and the recorded form of batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/golden/harness/replay.hpp"

namespace golden {

// The user's own pipeline (the result of map, filter, zip, ...): returns element `index`, or no value after
// the end.
using SourceFn = std::function<Value(int64_t index)>;
// The same for an element of a file.
using FileFn = std::function<Value(std::size_t file, int64_t index)>;
using DatasetFn = std::function<Dataset(const dist_input_context& context)>;

// tf.data.Dataset.range(begin, end) as rows in memory. The options specify its batches.
Dataset range_dataset(dist_strategy* strategy, int64_t begin, int64_t end,
                      const dist_dataset_options& options);
Dataset source_dataset(dist_strategy* strategy, SourceFn source, const dist_dataset_options& options);
Dataset file_dataset(dist_strategy* strategy, const std::vector<std::string>& names, FileFn source,
                     const dist_dataset_options& options);
Dataset function_dataset(dist_strategy* strategy, const DatasetFn& fn, const dist_dataset_options& options);

// .batch(size, drop_remainder)
inline dist_dataset_options batched(int64_t size, bool drop_remainder = false) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = size;
  options.drop_remainder = drop_remainder ? 1 : 0;
  return options;
}

// A pass: calls next() until it ends, or `limit` times.
struct Steps {
  std::vector<Value> batches;
  std::optional<dist_status> end;
};
Iterator iterate(const Dataset& dataset);
Steps take_steps(const Dataset& dataset, std::size_t limit = 64);

// Returns one value per replica.
std::vector<Value> local_results(dist_strategy* strategy, const Value& batch);
// Returns the integers of a tensor of any shape.
Json integers(Replay& replay, const Value& tensor);
// Returns the integers that each replica got.
Json integers_of_replicas(Replay& replay, dist_strategy* strategy, const Value& batch);
Json integers_of_steps(Replay& replay, dist_strategy* strategy, const std::vector<Value>& batches);
Json end_of(Replay& replay, const Steps& steps);

// str(context): Python's text with the fields of the context.
std::string text_of_context(const dist_input_context& context);

// {"key": value, ...}. Json must be moved, which initializer lists cannot do.
template <class... Rest>
void add_members(std::vector<std::pair<std::string, Json>>& to, std::string_view key, Json value,
                 Rest&&... rest) {
  to.emplace_back(std::string(key), std::move(value));
  if constexpr (sizeof...(rest) != 0) add_members(to, std::forward<Rest>(rest)...);
}
template <class... Members>
Json object(Replay& replay, Members&&... members) {
  std::vector<std::pair<std::string, Json>> all;
  add_members(all, std::forward<Members>(members)...);
  return replay.object(std::move(all));
}

}  // namespace golden
