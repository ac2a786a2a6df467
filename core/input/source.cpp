// SPDX-License-Identifier: Apache-2.0
#include "core/input/source.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/input/batch.hpp"
#include "core/input/leaf.hpp"
#include "core/input/shuffle.hpp"

namespace dist {
namespace {

Status pass_is_over() noexcept {
  return fail(DIST_OUT_OF_RANGE, "the pass over the dataset is over; dist_iterator_create() begins the next");
}

// Rows of tensors in memory, in their own order or a shuffled one.
class RowPass final : public Pass {
 public:
  RowPass(Memory& memory, Ref<RowSource> source, const BatchOptions& options) noexcept
      : Pass(memory), source_(std::move(source)), options_(options) {}

  Status next_batch(ValueRef* out) override {
    const int64_t wanted = std::max<int64_t>(options_.global_batch_size, 1);
    const int64_t count = std::min(wanted, source_->rows() - next_row_);
    if (count == 0 || (count < wanted && options_.drop_remainder)) return pass_is_over();
    if (options_.shuffle && !shuffle_) {
      shuffle_.emplace(memory(), options_.seed, number(), source_->rows());
    }
    const auto order = shuffle_ ? shuffle_->take(count) : std::span<const int64_t>();
    const std::size_t n = source_->tensors().size();
    if (n == 1) {
      DIST_TRY(gather(source_->tensors()[0]->tensor(), count, order, out));
    } else {
      std::pmr::vector<ValueRef> leaves(n, &memory());
      std::pmr::vector<Value*> items(n, &memory());
      for (std::size_t i = 0; i < n; ++i) {
        DIST_TRY(gather(source_->tensors()[i]->tensor(), count, order, &leaves[i]));
        items[i] = leaves[i].get();
      }
      DIST_TRY(Value::create(memory(), DIST_VALUE_LIST, items, out));
    }
    next_row_ += count;
    return kOk;
  }

 private:
  // `count` rows of a tensor from next_row_ on: those that `order` names, if the pass is shuffled.
  Status gather(const dist_tensor& tensor, int64_t count, std::span<const int64_t> order, ValueRef* out) {
    TensorSize size;
    DIST_TRY(check_tensor(tensor, "rows", &size));
    const std::size_t row_bytes = size.bytes / static_cast<std::size_t>(tensor.shape[0]);
    const auto* const rows = static_cast<const std::byte*>(tensor.data);
    if (options_.global_batch_size == 0) {
      // The row is a batch: what is split is its own first dimension.
      const int64_t row = order.empty() ? next_row_ : order[0];
      const std::byte* const batch = rows + static_cast<std::size_t>(row) * row_bytes;
      const dist_tensor part{nullptr, tensor.dtype, tensor.ndim - 2, tensor.shape + 2, nullptr};
      const std::size_t part_bytes =
          row_bytes / static_cast<std::size_t>(std::max<int64_t>(tensor.shape[1], 1));
      const auto write = [&](std::byte* to, int64_t first, int64_t n) {
        copy(to, batch + static_cast<std::size_t>(first) * part_bytes,
             static_cast<std::size_t>(n) * part_bytes);
      };
      return make_leaf(memory(), options_.num_replicas, tensor.shape[1], part, write, out);
    }
    const dist_tensor row{nullptr, tensor.dtype, tensor.ndim - 1, tensor.shape + 1, nullptr};
    const auto write = [&](std::byte* to, int64_t first, int64_t n) {
      if (order.empty()) {
        copy(to, rows + static_cast<std::size_t>(next_row_ + first) * row_bytes,
             static_cast<std::size_t>(n) * row_bytes);
        return;
      }
      for (int64_t i = first; i < first + n; ++i, to += row_bytes) {
        copy(to, rows + static_cast<std::size_t>(order[static_cast<std::size_t>(i)]) * row_bytes, row_bytes);
      }
    };
    return make_leaf(memory(), options_.num_replicas, count, row, write, out);
  }

  // Rows without elements have no address.
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }

  Ref<RowSource> source_;
  BatchOptions options_;
  int64_t next_row_ = 0;
  std::optional<Shuffle> shuffle_;
};

// What a callback makes, element by element.
class CallbackPass final : public Pass {
 public:
  CallbackPass(Memory& memory, Ref<CallbackSource> source, const BatchOptions& options) noexcept
      : Pass(memory), source_(std::move(source)), options_(options), elements_(&memory) {}

  Status next_batch(ValueRef* out) override {
    const auto wanted = static_cast<std::size_t>(std::max<int64_t>(options_.global_batch_size, 1));
    const int64_t first = next_index_;
    elements_.clear();
    while (elements_.size() < wanted && !over_) {
      ValueRef element;
      const Status status = source_->element(next_index_, &element);
      over_ = status.code() == DIST_OUT_OF_RANGE;
      if (over_) break;
      DIST_TRY(status);
      elements_.push_back(std::move(element));
      ++next_index_;
    }
    if (elements_.empty() || (elements_.size() < wanted && options_.drop_remainder)) return pass_is_over();
    const Status status = options_.global_batch_size == 0
                              ? split_element(memory(), options_.num_replicas, elements_[0], first, out)
                              : stack_elements(memory(), options_.num_replicas, elements_, first, out);
    elements_.clear();  // the host's memory may be behind them
    return status;
  }

 private:
  Ref<CallbackSource> source_;
  BatchOptions options_;
  std::pmr::vector<ValueRef> elements_;  // of one batch; kept for its capacity
  int64_t next_index_ = 0;
  bool over_ = false;
};

Status check_rows(std::span<const dist_tensor> tensors, std::size_t index,
                  int64_t global_batch_size) noexcept {
  const dist_tensor& tensor = tensors[index];
  char what[32];
  std::snprintf(what, sizeof what, "tensors[%zu]", index);
  TensorSize size;
  DIST_TRY(check_tensor(tensor, what, &size));
  if (tensor.ndim == 0) {
    return invalid_argument(
        "%s is a scalar: a dataset's elements are the rows of its tensors, and a scalar has none", what);
  }
  if (tensor.shape[0] != tensors[0].shape[0]) {
    return invalid_argument("%s has %lld rows but tensors[0] has %lld; element i is row i of every tensor",
                            what, static_cast<long long>(tensor.shape[0]),
                            static_cast<long long>(tensors[0].shape[0]));
  }
  if (global_batch_size != 0) return kOk;
  if (tensor.ndim == 1) {
    return invalid_argument(
        "global_batch_size is 0, so that every row is a batch, but the rows of %s are scalars, "
        "which cannot be split; set global_batch_size to 1 or more",
        what);
  }
  if (tensor.shape[1] != tensors[0].shape[1]) {
    return invalid_argument(
        "global_batch_size is 0, so that every row is a batch, but rows of %s hold %lld examples "
        "and those of tensors[0] %lld",
        what, static_cast<long long>(tensor.shape[1]), static_cast<long long>(tensors[0].shape[1]));
  }
  return kOk;
}

}  // namespace

Status RowSource::create(Memory& memory, std::span<const dist_tensor> tensors, int64_t global_batch_size,
                         Ref<RowSource>* out) {
  if (tensors.empty()) return invalid_argument("n is 0: a dataset is made of one tensor or more");
  for (std::size_t i = 0; i < tensors.size(); ++i) DIST_TRY(check_rows(tensors, i, global_batch_size));
  Ref<RowSource> source = make_counted<RowSource>(memory);
  source->tensors_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    DIST_TRY(Value::copy_tensor(memory, tensors[i], &source->tensors_[i]));
  }
  *out = std::move(source);
  return kOk;
}

Ref<Pass> RowSource::make_pass(const BatchOptions& options) {
  return Ref<Pass>::adopt(make_counted<RowPass>(memory(), Ref<RowSource>::share(this), options).take());
}

Ref<Pass> CallbackSource::make_pass(const BatchOptions& options) {
  return Ref<Pass>::adopt(
      make_counted<CallbackPass>(memory(), Ref<CallbackSource>::share(this), options).take());
}

Status CallbackSource::element(int64_t index, ValueRef* out) {
  const std::lock_guard lock(one_at_a_time_);
  dist_value* element = nullptr;
  // Whether the callback says why it fails is told by the code of this thread's error record, cleared for the
  // while.
  ErrorRecord& error = last_error();
  const dist_status before = std::exchange(error.code, DIST_OK);
  const dist_status code = fn_(index, &element, user_data_);
  const bool has_words = error.code != DIST_OK;
  if (!has_words) error.code = before;
  if (code == DIST_OK) {
    if (element == nullptr) {
      return invalid_argument("the source returned DIST_OK for element %lld but set no element",
                              static_cast<long long>(index));
    }
    *out = ValueRef::adopt(reinterpret_cast<Value*>(element));
    return kOk;
  }
  if (code == DIST_OUT_OF_RANGE) return Status(code);
  if (!has_words) {
    return fail(code,
                "the source returned %s for element %lld and did not say why; dist_fail() takes the reason",
                status_name(code), static_cast<long long>(index));
  }
  error.code = code;
  return Status(code);
}

}  // namespace dist
