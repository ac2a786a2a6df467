// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: datasets of tensors, functions and files, passes and their positions, and exceptions from
// sources.
#include "hpp_support.hpp"

#include <numeric>

namespace {

using dist::tensor;
using dist::value;

dist_dataset_options options_of(int64_t global_batch_size, int32_t prefetch = -1) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = global_batch_size;
  options.prefetch = prefetch;
  return options;
}

std::vector<int32_t> numbers_of(const value &batch) {
  std::vector<int32_t> all;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    const std::vector<int32_t> part = row_of<int32_t>(batch[r]);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Returns 0 to n-1, and then the end.
auto counter(const dist::strategy &strategy, int32_t n) {
  return [&strategy, n](int64_t index) {
    return index < n ? scalar(strategy, static_cast<int32_t>(index)) : value();
  };
}

void passes_over_tensors() {
  const dist::strategy strategy(2);
  std::vector<int32_t> rows(10);
  std::iota(rows.begin(), rows.end(), 0);
  const dist::dataset dataset(strategy, {tensor(rows)}, options_of(4));
  std::vector<int32_t> all;
  for (const value &batch : dataset) {
    const std::vector<int32_t> numbers = numbers_of(batch);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  assert_true(all == rows);

  dist::dataset_iterator pass = dataset.iterate();
  assert_true(numbers_of(pass.next()) == (std::vector<int32_t>{0, 1, 2, 3}));
  const dist_position position = pass.position();
  assert_int_equal(position.pass, 1);
  assert_int_equal(position.batches, 1);
  assert_true(numbers_of(pass.next_optional()) == (std::vector<int32_t>{4, 5, 6, 7}));
  assert_true(static_cast<bool>(pass.next()));
  assert_false(static_cast<bool>(pass.next_optional()));
  assert_false(static_cast<bool>(pass.next()));
  assert_true(numbers_of(dataset.iterate_from(position).next()) == (std::vector<int32_t>{4, 5, 6, 7}));

  const dist::dataset::iterator third(dataset.get());
  assert_true(numbers_of(*third) == (std::vector<int32_t>{0, 1, 2, 3}));
  const value spec = dataset.element_spec();
  assert_string_equal(spec[1].text(), "i32[?]");
  assert_true(dataset.explain().find("10") != std::string::npos);
  dataset.check_shards();
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::dataset(strategy, {tensor(rows)}, options_of(-1)));
}

void passes_over_functions() {
  const dist::strategy strategy(2);
  for (const int32_t prefetch : {-1, 2}) {
    const auto dataset =
        dist::dataset::from_callback(strategy, counter(strategy, 6), options_of(4, prefetch));
    std::vector<int32_t> all;
    for (const value &batch : dataset) {
      for (const int32_t number : numbers_of(batch)) all.push_back(number);
    }
    assert_true(all == (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  }
  const auto files = dist::dataset::from_files(
      strategy, {"ab", "c"},
      [&](std::size_t file, const char *name, int64_t index) {
        return name[index] != '\0' ? scalar(strategy, static_cast<int32_t>(100 * file) + name[index])
                                   : value();
      },
      options_of(3));
  assert_true(numbers_of(files.iterate().next()) == (std::vector<int32_t>{'a', 'b', 100 + 'c'}));
}

// Exceptions arrive also if another thread prefetches, and in every pass.
void what_a_source_throws() {
  const dist::strategy strategy(2);
  const auto held = std::make_shared<int>(1);
  for (const int32_t prefetch : {-1, 3}) {
    const auto throws = [&strategy, held](int64_t index) {
      if (index == 3) throw own_error("element 3 is broken");
      return scalar(strategy, static_cast<int32_t>(index));
    };
    const auto dataset = dist::dataset::from_callback(strategy, throws, options_of(2, prefetch));
    for (int pass = 0; pass < 2; ++pass) {
      dist::dataset_iterator batches = dataset.iterate();
      assert_true(numbers_of(batches.next()) == (std::vector<int32_t>{0, 1}));
      REQUIRE_OWN_ERROR("element 3 is broken", batches.next());
    }
    int seen = 0;
    const auto all = [&] {
      for (const value &batch : dataset) seen += static_cast<int>(batch.size());
    };
    REQUIRE_OWN_ERROR("element 3 is broken", all());
    assert_int_equal(seen, 2);
    REQUIRE_OWN_ERROR("element 3 is broken",
                      dataset.reduce({}, [](const value &, const value &batch) { return batch; }));
    assert_true(held.use_count() > 2);
  }
  assert_int_equal(held.use_count(), 1);  // the sources have ended
  const auto shuffled = [&] {
    dist_dataset_options options = options_of(2);
    options.shuffle = 1;
    dist::dataset::from_callback(
        strategy, [held](int64_t) { return value(); }, options);
  };
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, shuffled());
  assert_int_equal(held.use_count(), 1);
}

void datasets_from_functions() {
  const dist::strategy strategy(2);
  int32_t pipelines = 0;
  const auto make = [&](const dist_input_context &context) {
    ++pipelines;
    const int64_t size = dist::per_replica_batch_size(context, 4);
    return dist::dataset::from_callback(strategy, counter(strategy, 4), options_of(size));
  };
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.prefetch = -1;
  const auto dataset = dist::dataset::from_function(strategy, make, options);
  assert_int_equal(pipelines, 1);
  assert_true(numbers_of(dataset.iterate().next()) == (std::vector<int32_t>{0, 1, 2, 3}));

  const auto none = [](const dist_input_context &) -> dist::dataset { throw own_error("no dataset"); };
  REQUIRE_OWN_ERROR("no dataset", dist::dataset::from_function(strategy, none, options));
  const auto broken = [&](const dist_input_context &) {
    return dist::dataset::from_callback(
        strategy, [](int64_t) -> value { throw own_error("the inner source"); }, options_of(1));
  };
  const auto outer = dist::dataset::from_function(strategy, broken, options);
  REQUIRE_OWN_ERROR("the inner source", outer.iterate().next());
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::per_replica_batch_size({1, 0, 2}, 3));
}

void one_value_of_a_whole_pass() {
  const dist::strategy strategy(2);
  const auto dataset = dist::dataset::from_callback(strategy, counter(strategy, 5), options_of(2));
  const value sum = dataset.reduce(scalar(strategy, 100), [&](const value &state, const value &batch) {
    int32_t total = scalar_of<int32_t>(state);
    for (const int32_t number : numbers_of(batch)) total += number;
    return scalar(strategy, total);
  });
  assert_int_equal(scalar_of<int32_t>(sum), 110);
  const auto throws = [](const value &, const value &) -> value { throw own_error("enough"); };
  REQUIRE_OWN_ERROR("enough", dataset.reduce({}, throws));
}

void sizes_for_workers() {
  assert_true(dist::batch_sizes_for_worker(5, 2, 2, 0) == (std::vector<int64_t>{2, 1, 1, 1}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::batch_sizes_for_worker(5, 0, 2, 0));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(passes_over_tensors),     HPP_TEST(passes_over_functions),     HPP_TEST(what_a_source_throws),
      HPP_TEST(datasets_from_functions), HPP_TEST(one_value_of_a_whole_pass), HPP_TEST(sizes_for_workers),
  };
  return cmocka_run_group_tests_name("dist.hpp: input", tests, nullptr, nullptr);
}
