// SPDX-License-Identifier: Apache-2.0
#include "input_program.hpp"

#include <numeric>

namespace golden {
namespace {

// A function that libdist calls on any of its threads until it releases it.
template <class Fn>
void release(void* user_data) {
  delete static_cast<Fn*>(user_data);
}

dist_status hand_over(const std::function<Value()>& make, dist_value** out) {
  Value element;
  const dist_status status = guarded([&] { element = make(); });
  if (status != DIST_OK) return status;
  if (!element) return DIST_OUT_OF_RANGE;
  *out = element.release();
  return DIST_OK;
}

dist_status source_element(dist_strategy*, int64_t index, dist_value** out, void* user_data) {
  return hand_over([&] { return (*static_cast<SourceFn*>(user_data))(index); }, out);
}

dist_status file_element(dist_strategy*, std::size_t file, const char*, int64_t index, dist_value** out,
                         void* user_data) {
  return hand_over([&] { return (*static_cast<FileFn*>(user_data))(file, index); }, out);
}

dist_status make_dataset(dist_strategy*, const dist_input_context* context, dist_dataset** out,
                         void* user_data) {
  return guarded([&] { *out = (*static_cast<const DatasetFn*>(user_data))(*context).release(); });
}

}  // namespace

Dataset range_dataset(dist_strategy* strategy, int64_t begin, int64_t end,
                      const dist_dataset_options& options) {
  std::vector<int64_t> rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  const int64_t n = end - begin;
  const dist_tensor tensor{rows.data(), DIST_I64, 1, &n, nullptr};
  Dataset dataset;
  check(dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, dataset.out()));
  return dataset;
}

Dataset source_dataset(dist_strategy* strategy, SourceFn source, const dist_dataset_options& options) {
  auto kept = std::make_unique<SourceFn>(std::move(source));
  Dataset dataset;
  check(dist_dataset_create_from_callback(strategy, source_element, kept.get(), release<SourceFn>, &options,
                                          dataset.out()));
  static_cast<void>(kept.release());
  return dataset;
}

Dataset file_dataset(dist_strategy* strategy, const std::vector<std::string>& names, FileFn source,
                     const dist_dataset_options& options) {
  auto kept = std::make_unique<FileFn>(std::move(source));
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  Dataset dataset;
  check(dist_dataset_create_from_files(strategy, texts.data(), texts.size(), file_element, kept.get(),
                                       release<FileFn>, &options, dataset.out()));
  static_cast<void>(kept.release());
  return dataset;
}

Dataset function_dataset(dist_strategy* strategy, const DatasetFn& fn, const dist_dataset_options& options) {
  Dataset dataset;
  check(dist_dataset_create_from_function(strategy, make_dataset, const_cast<DatasetFn*>(&fn), &options,
                                          dataset.out()));
  return dataset;
}

Iterator iterate(const Dataset& dataset) {
  Iterator iterator;
  check(dist_iterator_create(dataset.get(), iterator.out()));
  return iterator;
}

Steps take_steps(const Dataset& dataset, std::size_t limit) {
  const Iterator iterator = iterate(dataset);
  Steps steps;
  while (steps.batches.size() < limit) {
    Value batch;
    check(dist_iterator_next(iterator.get(), batch.out()));
    if (!batch) {
      steps.end = DIST_OUT_OF_RANGE;  // TensorFlow raises an error
      break;
    }
    steps.batches.push_back(std::move(batch));
  }
  return steps;
}

std::vector<Value> local_results(dist_strategy* strategy, const Value& batch) {
  Value list;
  check(dist_strategy_local_results(strategy, batch.get(), list.out()));
  std::vector<Value> results;
  for (std::size_t i = 0; i < list.size(); ++i) results.push_back(list.item(i));
  return results;
}

Json integers(Replay& replay, const Value& tensor) {
  std::vector<Json> items;
  for (const double number : Replay::numbers(tensor.get()))
    items.push_back(replay.json(static_cast<int64_t>(number)));
  return replay.array(std::move(items));
}

Json integers_of_replicas(Replay& replay, dist_strategy* strategy, const Value& batch) {
  std::vector<Json> replicas;
  for (const Value& one : local_results(strategy, batch)) replicas.push_back(integers(replay, one));
  return replay.array(std::move(replicas));
}

Json integers_of_steps(Replay& replay, dist_strategy* strategy, const std::vector<Value>& batches) {
  std::vector<Json> steps;
  for (const Value& batch : batches) steps.push_back(integers_of_replicas(replay, strategy, batch));
  return replay.array(std::move(steps));
}

Json end_of(Replay& replay, const Steps& steps) {
  return steps.end ? replay.encode_error(*steps.end) : replay.null();
}

std::string text_of_context(const dist_input_context& context) {
  std::string text("tf.distribute.InputContext(input pipeline id ");
  text.append(std::to_string(context.input_pipeline_id));
  text.append(", total: ").append(std::to_string(context.num_input_pipelines)).append(")");
  return text;
}

}  // namespace golden
