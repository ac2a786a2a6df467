// SPDX-License-Identifier: Apache-2.0
#include "input_pipelines.hpp"

#include <algorithm>
#include <numeric>

namespace golden {
namespace {

using Numbers = std::vector<double>;

Numbers range(int64_t begin, int64_t end) {
  Numbers numbers(static_cast<std::size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), static_cast<double>(begin));
  return numbers;
}

// Returns the batches that .batch(size) makes, for programs that process them further.
std::vector<Numbers> batches(const Numbers& numbers, std::size_t size) {
  std::vector<Numbers> all;
  for (std::size_t i = 0; i < numbers.size(); i += size) {
    const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(i);
    all.emplace_back(first, first + static_cast<std::ptrdiff_t>(std::min(size, numbers.size() - i)));
  }
  return all;
}

std::vector<Numbers> concatenated(std::vector<Numbers> a, const std::vector<Numbers>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Maker {
  Replay& replay;
  dist_dataset_options options;

  Dataset source(SourceFn fn) const { return source_dataset(replay.strategy(), std::move(fn), options); }
  Dataset source(SourceFn fn, int64_t batch) const {
    dist_dataset_options with = options;
    with.global_batch_size = batch;
    return source_dataset(replay.strategy(), std::move(fn), with);
  }
  Value vector(const Numbers& numbers) const {
    return replay.tensor("int64", {static_cast<int64_t>(numbers.size())}, numbers);
  }
  Dataset elements(std::vector<Value> all, int64_t batch) const {
    return source(
        [all = std::move(all)](int64_t i) {
          return static_cast<std::size_t>(i) < all.size() ? all[static_cast<std::size_t>(i)] : Value();
        },
        batch);
  }
  Dataset scalars(const Numbers& numbers, int64_t batch) const {
    std::vector<Value> all;
    for (const double number : numbers) all.push_back(replay.scalar("int64", number));
    return elements(std::move(all), batch);
  }
  // A dataset of batches that the program has already made.
  Dataset vectors(const std::vector<Numbers>& made, int64_t batch = 0) const {
    std::vector<Value> all;
    for (const Numbers& one : made) all.push_back(vector(one));
    return elements(std::move(all), batch);
  }
  // A dataset of rows in memory, like from_tensor_slices().
  Dataset rows(std::vector<float> numbers, int64_t in_row) const {
    const int64_t shape[] = {static_cast<int64_t>(numbers.size()) / in_row, in_row};
    const dist_tensor tensor{numbers.data(), DIST_F32, 2, shape, nullptr};
    Dataset dataset;
    check(dist_dataset_create_from_tensors(replay.strategy(), &tensor, 1, &options, dataset.out()));
    return dataset;
  }
};

std::vector<float> floats(std::size_t n) {
  std::vector<float> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

// Rows of different lengths, padded with 0 to the longest one.
Value padded(Replay& replay, int64_t first, int64_t end) {
  Numbers numbers;
  for (int64_t row = first; row < end; ++row) {
    for (int64_t i = 0; i < end - 1; ++i) numbers.push_back(i < row ? static_cast<double>(i) : 0);
  }
  return replay.tensor("int64", {end - first, end - 1}, numbers);
}

Value ragged(Replay& replay, int64_t first, int64_t end) {
  Numbers numbers;
  Numbers splits{0};
  for (int64_t row = first; row < end; ++row) {
    for (int64_t i = 0; i < row; ++i) numbers.push_back(static_cast<double>(i));
    splits.push_back(static_cast<double>(numbers.size()));
  }
  return replay.composite(DIST_VALUE_RAGGED,
                          {replay.tensor("int64", {static_cast<int64_t>(numbers.size())}, numbers),
                           replay.tensor("int64", {static_cast<int64_t>(splits.size())}, splits)});
}

Dataset unbatched(const Maker& make, std::string_view name) {
  Replay& replay = make.replay;
  if (name == "unbatched_scalars") return range_dataset(replay.strategy(), 0, 7, make.options);
  if (name == "unbatched_vectors") return make.rows(floats(24), 4);
  if (name == "unbatched_vectors_len3") return make.rows(floats(18), 3);
  if (name == "from_tensors_scalar") return make.elements({replay.scalar("float32", 5)}, 0);
  if (name == "from_tensors_vector6") return make.vectors({range(0, 6)});
  if (name == "from_tensors_repeat") return make.vectors({range(0, 6), range(0, 6), range(0, 6)});
  if (name == "batch_unbatch") return make.scalars(range(0, 8), 0);
  return {};
}

// The program processes batches further, so libdist gets finished batches.
Dataset after_batch(const Maker& make, std::string_view name) {
  const std::vector<Numbers> of_5 = batches(range(0, 5), 4);
  if (name == "batch_map") {
    std::vector<Numbers> all = batches(range(0, 10), 4);
    for (Numbers& one : all) {
      for (double& number : one) number *= 10;
    }
    return make.vectors(all);
  }
  if (name == "batch_take" || name == "batch_skip") {
    const std::vector<Numbers> all = batches(range(0, 20), 6);
    return name == "batch_take" ? make.vectors({all.begin(), all.begin() + 2})
                                : make.vectors({all.begin() + 1, all.end()});
  }
  if (name == "batch_repeat2") return make.vectors(concatenated(of_5, of_5));
  if (name == "batch_concatenate") return make.vectors(concatenated(of_5, batches(range(100, 107), 4)));
  if (name == "batch_concatenate_different")
    return make.vectors(concatenated(of_5, batches(range(100, 107), 2)));
  if (name == "batch_filter") {
    std::vector<Numbers> all = batches(range(0, 20), 4);
    std::erase_if(all, [](const Numbers& one) { return static_cast<int64_t>(one[0]) % 8 != 0; });
    return make.vectors(all);
  }
  if (name == "batch_of_batch") return make.vectors(batches(range(0, 20), 2), 3);
  if (name == "zip") {
    const std::vector<Numbers> left = batches(range(0, 6), 4);
    const std::vector<Numbers> right = batches(range(100, 106), 4);
    std::vector<Value> all;
    for (std::size_t i = 0; i < left.size(); ++i) {
      all.push_back(make.replay.tuple({make.vector(left[i]), make.vector(right[i])}));
    }
    return make.elements(std::move(all), 0);
  }
  if (name == "padded_batch") return make.elements({padded(make.replay, 0, 4), padded(make.replay, 4, 5)}, 0);
  if (name == "ragged_batch") return make.elements({ragged(make.replay, 0, 4), ragged(make.replay, 4, 5)}, 0);
  return {};
}

// batch() is the last step, so libdist makes the batches.
Dataset batched_last(const Maker& make, std::string_view name) {
  Replay& replay = make.replay;
  if (name == "repeat2_batch") {
    Numbers twice = range(0, 5);
    twice.insert(twice.end(), {0, 1, 2, 3, 4});
    return make.scalars(twice, 4);
  }
  if (name == "batch_prefetch") {
    dist_dataset_options options = make.options;
    options.global_batch_size = 4;
    options.prefetch = 2;
    return range_dataset(replay.strategy(), 0, 10, options);
  }
  if (name == "filter_batch") {
    Numbers numbers = range(0, 20);
    std::erase_if(numbers, [](double number) { return static_cast<int64_t>(number) % 3 != 0; });
    return make.scalars(numbers, 4);
  }
  if (name == "dict" || name == "tuple_2d") {
    std::vector<Value> all;
    for (int i = 0; i < 6; ++i) {
      all.push_back(name == "dict" ? replay.dict({{"x", replay.scalar("int64", i)},
                                                  {"y", replay.scalar("float32", i / 2.0)}})
                                   : replay.tuple({replay.tensor("float64", {2}, {2.0 * i, 2.0 * i + 1}),
                                                   replay.scalar("int64", i)}));
    }
    return make.elements(std::move(all), 4);
  }
  if (name == "string_batch") {
    return make.elements(
        {replay.string("a"), replay.string("b"), replay.string("c"), replay.string("d"), replay.string("e")},
        3);
  }
  if (name == "generator_batch") return make.scalars(range(0, 7), 4);
  if (name == "batch_larger_than_dataset") return make.scalars(range(0, 3), 8);
  if (name == "empty_tuple_dataset") return make.elements({}, 4);
  if (name == "infinite") {
    return make.source([&replay](int64_t i) { return replay.scalar("int64", static_cast<double>(i % 5)); },
                       4);
  }
  if (name == "shuffle_seeded_sorted") return make.scalars(range(0, 8), 4);
  if (name == "interleave_batch") {
    dist_dataset_options options = make.options;
    options.global_batch_size = 4;
    options.interleave = 2;
    const FileFn element = [&replay](std::size_t file, int64_t i) {
      return i < 3 ? replay.scalar("int64", static_cast<double>(10 * static_cast<int64_t>(file) + i))
                   : Value();
    };
    return file_dataset(replay.strategy(), {"0", "1", "2"}, element, options);
  }
  return {};
}

}  // namespace

Dataset pipeline(Replay& replay, std::string_view name, const dist_dataset_options& options) {
  const Maker make{replay, options};
  for (const auto of : {unbatched, after_batch, batched_last}) {
    if (Dataset dataset = of(make, name)) return dataset;
  }
  replay.unknown("a dataset called " + std::string(name));
}

}  // namespace golden
