// SPDX-License-Identifier: Apache-2.0
// Variables: tensors that outlive runs, one copy for each replica. Who may write when is the caller's affair;
// a Variable only holds the copies and knows how an assignment changes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"

namespace dist {

class Variable final : public Counted {
 public:
  // R copies of `initial`. NULL is the name "Variable".
  static Status create(Memory& memory, int32_t num_replicas, const dist_tensor& initial, int32_t aggregation,
                       const char* name, Ref<Variable>* out);

  const char* name() const noexcept { return name_.c_str(); }
  int32_t aggregation() const noexcept { return aggregation_; }
  int32_t num_replicas() const noexcept { return static_cast<int32_t>(copies_.size()); }
  dist_dtype dtype() const noexcept { return dtype_; }
  int64_t elements() const noexcept { return size_.elements; }
  std::size_t bytes() const noexcept { return size_.bytes; }  // of one copy

  // A view of one copy, row-major; 0 <= replica < num_replicas().
  dist_tensor component(int32_t replica) const noexcept;

  // OK where `value` can be assigned to a copy: the same dtype and shape, a known `how`. `what` begins
  // messages.
  Status check_assign(int32_t how, const dist_tensor& value, const char* what) const noexcept;

  // copy = value, copy + value or copy - value, after check_assign(). `value` may be the copy itself and
  // overlaps it in no other way. Allocates nothing.
  void assign(int32_t how, int32_t replica, const dist_tensor& value) noexcept;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  Variable(Memory& memory, const char* name, int32_t aggregation, const dist_tensor& initial,
           const TensorSize& size);
  ~Variable() override;

  std::pmr::string name_;
  int32_t aggregation_;
  dist_dtype dtype_;
  TensorSize size_;
  std::pmr::vector<int64_t> shape_;
  std::pmr::vector<std::byte*> copies_;  // one allocation each, 64-byte aligned: replicas share no cache line
};

}  // namespace dist
