// SPDX-License-Identifier: Apache-2.0
#include "core/input/row_source.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/input/cutter.hpp"
#include "core/input/leaf.hpp"
#include "core/input/shuffle.hpp"

namespace dist {
namespace {

using Cut = Division::Cut;

// Makes an element of all tensors: a single tensor, or a list if there are several.
Status together(Memory& memory, std::span<const ValueRef> parts, ValueRef* out) {
  if (parts.size() == 1) {
    *out = parts[0];
    return kOk;
  }
  std::pmr::vector<Value*> items(&memory);
  items.reserve(parts.size());
  for (const ValueRef& part : parts) items.push_back(part.get());
  return Value::create(memory, DIST_VALUE_LIST, items, out);
}

// The examples of the tensors, in the order of the rows or shuffled. A row is one example. If rows are
// batches, it is several.
class RowPass final : public Pass {
 public:
  RowPass(Memory& memory, Ref<RowSource> source, const Recipe& recipe)
      : Pass(memory),
        source_(std::move(source)),
        recipe_(recipe),
        rows_(recipe_.division.elements.of(source_->rows())),
        in_row_(recipe_.division.batch == 0 && recipe_.division.cut != Cut::kWhole
                    ? source_->tensors()[0]->tensor().shape[1]
                    : 1),
        cutter_(memory, recipe_.division) {
    cutter_.set_batch_examples(in_row_);
  }

  Status seek(const Position& position) override {
    const bool inside = position.elements >= 0 && position.elements <= rows_ && position.examples >= 0 &&
                        position.examples < std::max<int64_t>(in_row_, 1) && position.batches >= 0 &&
                        (position.elements < rows_ || position.examples == 0);
    if (!inside) {
      return invalid_argument(
          "the position is at element %lld, example %lld, but the dataset has %lld elements of %lld",
          static_cast<long long>(position.elements), static_cast<long long>(position.examples),
          static_cast<long long>(rows_), static_cast<long long>(in_row_));
    }
    row_ = position.elements;
    example_ = position.examples;
    cutter_.skip(position.batches);
    return kOk;
  }

  Position position() const noexcept override { return {0, row_, example_, cutter_.batches()}; }

  Status next_batch(ValueRef* out) override {
    if (recipe_.shuffle && !shuffle_) shuffle_.emplace(memory(), recipe_.seed, number(), source_->rows());
    const Division& division = recipe_.division;
    while (!division.batches.takes(cutter_.batches())) {
      if (row_ == rows_) return pass_is_over();
      row_ += std::min(rows_ - row_, std::max<int64_t>(division.batch, 1));
      cutter_.skip(1);
    }
    if (division.cut == Cut::kWhole || (division.cut == Cut::kEven && division.batch == 0))
      return next_row(out);
    const int64_t found = std::min(cutter_.wanted(), left());
    if (!cutter_.cut(found)) return pass_is_over();
    DIST_TRY(gather_all(out));
    advance(found);
    return kOk;
  }

 private:
  static constexpr int64_t kRowsAhead = 16;
  static constexpr std::size_t kNearBytes = std::size_t{1} << 20;  // so many bytes stay in a cache

  // The number of examples that no batch has taken yet.
  int64_t left() const noexcept { return in_row_ == 0 ? 0 : (rows_ - row_) * in_row_ - example_; }

  void advance(int64_t examples) noexcept {
    if (in_row_ == 0) return;
    const int64_t to = example_ + examples;
    row_ += to / in_row_;
    example_ = to % in_row_;
  }

  // The row of the tensors that corresponds to row `index` of the pass.
  int64_t source_row(int64_t index) noexcept {
    const int64_t at = recipe_.division.elements.first + index * recipe_.division.elements.step;
    return shuffle_ ? shuffle_->at(at) : at;
  }

  // Fetches the beginning of a row that a shuffled pass will read soon; the CPU fetches the rest on its own.
  // Otherwise the pass would wait for memory at each row.
  void fetch_row(int64_t index, const std::byte* rows, std::size_t row_bytes) noexcept {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kMost = 4 * kLine;
    if (index >= rows_) return;
    const std::byte* const row = rows + static_cast<std::size_t>(source_row(index)) * row_bytes;
    for (std::size_t at = 0; at < std::min(row_bytes, kMost); at += kLine) __builtin_prefetch(row + at);
  }

  // For rows that are batches.
  Status next_row(ValueRef* out) {
    if (row_ == rows_) return pass_is_over();
    cutter_.cut(in_row_);
    if (recipe_.division.cut == Cut::kWhole) {
      DIST_TRY(source_->element(source_row(row_), out));
    } else {
      DIST_TRY(gather_all(out));
    }
    ++row_;
    return kOk;
  }

  Status gather_all(ValueRef* out) {
    std::pmr::vector<ValueRef> leaves(source_->tensors().size(), &memory());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      DIST_TRY(gather(source_->tensors()[i]->tensor(), &leaves[i]));
    }
    return together(memory(), leaves, out);
  }

  Status gather(const dist_tensor& tensor, ValueRef* out) {
    TensorSize size;
    DIST_TRY(check_tensor(tensor, "rows", &size));
    const int32_t outer = recipe_.division.batch == 0 ? 2 : 1;
    const dist_tensor example{nullptr, tensor.dtype, tensor.ndim - outer, tensor.shape + outer, nullptr};
    if (size.bytes == 0)
      return make_leaf(
          memory(), cutter_.parts(), example, [](std::byte*, Part) {}, out);
    const std::size_t row_bytes = size.bytes / static_cast<std::size_t>(tensor.shape[0]);
    const std::size_t example_bytes = row_bytes / static_cast<std::size_t>(in_row_);
    const auto* const rows = static_cast<const std::byte*>(tensor.data);
    const bool in_order = !shuffle_ && recipe_.division.elements.step == 1;
    const bool fetches = shuffle_ && size.bytes > kNearBytes;
    const auto write = [&](std::byte* to, Part part) {
      const int64_t end = example_ + part.first + part.count;
      for (int64_t at = example_ + part.first; at < end;) {
        const int64_t inside = at % in_row_;
        const int64_t count = in_order ? end - at : std::min(in_row_ - inside, end - at);
        if (fetches) fetch_row(row_ + at / in_row_ + kRowsAhead, rows, row_bytes);
        const std::byte* const row =
            rows + static_cast<std::size_t>(source_row(row_ + at / in_row_)) * row_bytes;
        const std::size_t bytes = static_cast<std::size_t>(count) * example_bytes;
        std::memcpy(to, row + static_cast<std::size_t>(inside) * example_bytes, bytes);
        to += bytes;
        at += count;
      }
    };
    return make_leaf(memory(), cutter_.parts(), example, write, out);
  }

  const Ref<RowSource> source_;
  const Recipe recipe_;
  const int64_t rows_;    // of this pass
  const int64_t in_row_;  // number of examples in a row
  Cutter cutter_;
  int64_t row_ = 0;  // rows used so far
  int64_t example_ = 0;
  std::optional<Shuffle> shuffle_;
};

Status check_tensor_of_rows(std::span<const dist_tensor> tensors, std::size_t index) noexcept {
  const dist_tensor& tensor = tensors[index];
  char what[32];
  std::snprintf(what, sizeof what, "tensors[%zu]", index);
  TensorSize size;
  DIST_TRY(check_tensor(tensor, what, &size));
  if (tensor.ndim == 0) {
    return invalid_argument(
        "%s is a scalar, but the elements of a dataset are the rows of its tensors. Pass tensors with at "
        "least one dimension.",
        what);
  }
  if (tensor.shape[0] == tensors[0].shape[0]) return kOk;
  return invalid_argument(
      "%s has %lld rows, but tensors[0] has %lld. All tensors must have the same number of rows.", what,
      static_cast<long long>(tensor.shape[0]), static_cast<long long>(tensors[0].shape[0]));
}

}  // namespace

Status RowSource::create(Memory& memory, std::span<const dist_tensor> tensors, Ref<RowSource>* out) {
  if (tensors.empty()) return invalid_argument("there are no tensors, but a dataset needs at least one");
  for (std::size_t i = 0; i < tensors.size(); ++i) DIST_TRY(check_tensor_of_rows(tensors, i));
  Ref<RowSource> source = make_counted<RowSource>(memory);
  source->tensors_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    DIST_TRY(Value::copy_tensor(memory, tensors[i], &source->tensors_[i]));
  }
  *out = std::move(source);
  return kOk;
}

Status RowSource::check_rows_are_batches() const noexcept {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const dist_tensor tensor = tensors_[i]->tensor();
    if (tensor.ndim == 1) {
      return invalid_argument(
          "`global_batch_size` is 0, so every row is a batch, but the rows of tensors[%zu] are scalars, "
          "which cannot be split. Set `global_batch_size` to 1 or more.",
          i);
    }
    const dist_tensor first = tensors_[0]->tensor();
    if (tensor.shape[1] == first.shape[1]) continue;
    return invalid_argument(
        "`global_batch_size` is 0, so every row is a batch, but rows of tensors[%zu] have %lld examples and "
        "rows of tensors[0] have %lld",
        i, static_cast<long long>(tensor.shape[1]), static_cast<long long>(first.shape[1]));
  }
  return kOk;
}

Status RowSource::make_pass(const Recipe& recipe, Ref<Pass>* out) {
  if (recipe.division.batch == 0 && recipe.division.cut != Cut::kWhole) DIST_TRY(check_rows_are_batches());
  *out = Ref<Pass>::adopt(make_counted<RowPass>(memory(), Ref<RowSource>::share(this), recipe).take());
  return kOk;
}

Status RowSource::element(int64_t row, ValueRef* out) const {
  std::pmr::vector<ValueRef> parts(tensors_.size(), &memory());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const dist_tensor all = tensors_[i]->tensor();
    TensorSize size;
    DIST_TRY(check_tensor(all, "rows", &size));
    auto* data = static_cast<std::byte*>(all.data);
    if (size.bytes != 0)
      data += static_cast<std::size_t>(row) * (size.bytes / static_cast<std::size_t>(all.shape[0]));
    const dist_tensor one{data, all.dtype, all.ndim - 1, all.shape + 1, nullptr};
    DIST_TRY(Value::copy_tensor(memory(), one, &parts[i]));
  }
  return together(memory(), parts, out);
}

Status RowSource::model(ValueRef* out, bool* fixed) {
  *fixed = true;
  if (rows() > 0) return element(0, out);
  std::pmr::vector<ValueRef> parts(tensors_.size(), &memory());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const dist_tensor all = tensors_[i]->tensor();
    const dist_tensor one{nullptr, all.dtype, all.ndim - 1, all.shape + 1, nullptr};
    DIST_TRY(Value::copy_tensor(memory(), one, &parts[i]));
  }
  return together(memory(), parts, out);
}

Status RowSource::numbered(bool batches, int64_t limit, Ref<Source>* out) {
  const dist_tensor model = tensors_[0]->tensor();
  const int64_t n = limit > 0 ? std::min(limit, rows()) : rows();
  const int64_t in_row = batches && model.ndim > 1 ? model.shape[1] : 1;
  const int64_t shape[] = {n, batches ? in_row : 3, 3};
  const dist_tensor numbers{nullptr, DIST_I64, batches ? 3 : 2, shape, nullptr};
  Ref<RowSource> source = make_counted<RowSource>(memory());
  source->tensors_.resize(1);
  DIST_TRY(Value::copy_tensor(memory(), numbers, &source->tensors_[0]));
  auto* to = static_cast<int64_t*>(source->tensors_[0]->tensor().data);
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t example = 0; example < in_row; ++example, to += 3) {
      to[0] = 0;
      to[1] = row;
      to[2] = example;
    }
  }
  *out = Ref<Source>::adopt(source.take());
  return kOk;
}

void RowSource::describe(char* text, std::size_t size) const noexcept {
  std::snprintf(text, size, "%lld rows of %zu tensor%s in memory", static_cast<long long>(rows()),
                tensors_.size(), tensors_.size() == 1 ? "" : "s");
}

}  // namespace dist
