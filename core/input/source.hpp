// SPDX-License-Identifier: Apache-2.0
// Sources: where a dataset's elements come from, and passes, which make batches of them one after another.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

struct dist_value;  // what a host's source hands over: a Value

namespace dist {

// How batches are made; checked by Dataset.
struct BatchOptions {
  int32_t num_replicas = 1;
  int64_t global_batch_size = 0;  // 0: each element is a batch
  bool drop_remainder = false;
  bool shuffle = false;
  uint64_t seed = 0;
};

// One pass over a source. Used from one thread at a time.
class Pass : public Counted {
 public:
  // Comes first. Apart from the making, which can fail, so that a failure uses up no number.
  void start(uint64_t number) noexcept { number_ = number; }
  // OUT_OF_RANGE where there is none. Not called again after a failure.
  virtual Status next_batch(ValueRef* out) = 0;

 protected:
  using Counted::Counted;
  uint64_t number() const noexcept { return number_; }

 private:
  uint64_t number_ = 0;
};

class Source : public Counted {
 public:
  virtual Ref<Pass> make_pass(const BatchOptions& options) = 0;

 protected:
  using Counted::Counted;
};

// Rows of tensors in memory; element i is row i of each.
class RowSource final : public Source {
 public:
  explicit RowSource(Memory& memory) noexcept : Source(memory), tensors_(&memory) {}
  // Copies the tensors.
  static Status create(Memory& memory, std::span<const dist_tensor> tensors, int64_t global_batch_size,
                       Ref<RowSource>* out);
  Ref<Pass> make_pass(const BatchOptions& options) override;

  int64_t rows() const noexcept { return tensors_[0]->tensor().shape[0]; }
  std::span<const ValueRef> tensors() const noexcept { return tensors_; }

 private:
  std::pmr::vector<ValueRef> tensors_;  // row-major
};

// Elements that a callback of the host's makes.
class CallbackSource final : public Source {
 public:
  using Fn = dist_status (*)(int64_t index, dist_value** out_element, void* user_data);
  using Release = void (*)(void* user_data);

  // Calls `on_end` in the end, unless it is NULL.
  CallbackSource(Memory& memory, Fn fn, void* user_data, Release on_end) noexcept
      : Source(memory), fn_(fn), user_data_(user_data), on_end_(on_end) {}
  Ref<Pass> make_pass(const BatchOptions& options) override;

  // Element `index`. A failure has the callback's own words where it had some.
  Status element(int64_t index, ValueRef* out);

 private:
  ~CallbackSource() override {
    if (on_end_ != nullptr) on_end_(user_data_);
  }

  std::mutex one_at_a_time_;  // the host is promised that passes do not call it side by side
  Fn fn_;
  void* user_data_;
  Release on_end_;
};

}  // namespace dist
