// SPDX-License-Identifier: Apache-2.0
// FunctionSource: whole batches from datasets that a host function has created, distributed to the replicas.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "core/input/source.hpp"

namespace dist {

class Dataset;

class FunctionSource final : public Source {
 public:
  // One dataset, whose batches go to all replicas in turn, or one dataset per replica. If `fills_up` is set,
  // a final step with too few batches is delivered even with static shapes, because other workers may have
  // all of their batches.
  FunctionSource(Memory& memory, std::span<const Ref<Dataset>> datasets, int32_t num_replicas, bool fills_up);

  Status make_pass(const Recipe& recipe, Ref<Pass>* out) override;
  Status numbered(bool batches, int64_t limit, Ref<Source>* out) override;
  Status model(ValueRef* out, bool* fixed) override;
  void describe(char* text, std::size_t size) const noexcept override;

  std::span<const Ref<Dataset>> datasets() const noexcept { return datasets_; }
  bool one_for_each() const noexcept { return datasets_.size() > 1; }
  bool fills_up() const noexcept { return fills_up_; }
  // Whether one of the datasets has static shapes. Unless `fills_up`, a step with an empty batch is then
  // marked by Pass::filled_up().
  bool has_static_shapes() const noexcept;

 private:
  ~FunctionSource() override;

  std::pmr::vector<Ref<Dataset>> datasets_;
  int32_t num_replicas_;
  bool fills_up_;
};

}  // namespace dist
