// SPDX-License-Identifier: Apache-2.0
// RowSource: rows of tensors in memory. Element i consists of row i of each tensor.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "core/input/source.hpp"

namespace dist {

class RowSource final : public Source {
 public:
  explicit RowSource(Memory& memory) noexcept : Source(memory), tensors_(&memory) {}
  // Copies the tensors.
  static Status create(Memory& memory, std::span<const dist_tensor> tensors, Ref<RowSource>* out);

  Status make_pass(const Recipe& recipe, Ref<Pass>* out) override;
  Status numbered(bool batches, int64_t limit, Ref<Source>* out) override;
  Status model(ValueRef* out, bool* fixed) override;
  void describe(char* text, std::size_t size) const noexcept override;

  int64_t rows() const noexcept { return tensors_[0]->tensor().shape[0]; }
  std::span<const ValueRef> tensors() const noexcept { return tensors_; }
  // Returns row `row` of every tensor as an element.
  Status element(int64_t row, ValueRef* out) const;

 private:
  // Checks that every row can be cut along its first dimension.
  Status check_rows_are_batches() const noexcept;

  std::pmr::vector<ValueRef> tensors_;  // row-major
};

}  // namespace dist
