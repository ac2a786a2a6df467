// SPDX-License-Identifier: Apache-2.0
// Values: what goes into a run and comes out. A value is immutable in structure and counted; a nest is a tree
// of them. "The same object", where merging depends on it, means the same Value.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"

namespace dist {

class Value;
class Variable;
using ValueRef = Ref<Value>;

inline constexpr int kMaxNesting = 64;

class Value final : public Counted {
 public:
  // A tensor with data of its own, not set yet where tensor.data is NULL; else a copy.
  static Status copy_tensor(Memory& memory, const dist_tensor& tensor, ValueRef* out);
  static Status wrap_tensor(Memory& memory, const dist_tensor& tensor, dist_release_fn release,
                            void* user_data, ValueRef* out);
  // A list, or a per-replica or mirrored value of items.size() components.
  static Status create(Memory& memory, int32_t kind, std::span<Value* const> items, ValueRef* out);
  static Status create_dict(Memory& memory, std::span<const char* const> keys,
                            std::span<Value* const> items, ValueRef* out);
  static ValueRef of_variable(Variable& variable);

  int32_t kind() const noexcept { return kind_; }
  // Per-replica or mirrored: one component for each replica.
  bool distributed() const noexcept {
    return kind_ == DIST_VALUE_PER_REPLICA || kind_ == DIST_VALUE_MIRRORED;
  }
  std::span<const ValueRef> items() const noexcept { return items_; }
  const char* key(std::size_t index) const noexcept { return keys_[index].c_str(); }
  Value* find(const char* key) const noexcept;
  // Of a tensor: its view; of a variable: the view of replica 0's copy.
  dist_tensor tensor() const noexcept;
  Variable* variable() const noexcept { return variable_.get(); }
  int depth() const noexcept { return depth_; }
  // "a list", "a per-replica value": for messages.
  static const char* kind_name(int32_t kind) noexcept;

 private:
  // ... implementation's own
};

// What replica `id` sees of a value: wherever a distributed value stands, its component `id`; parts without
// one are the same objects. NULL stays NULL.
Status component_of(Memory& memory, Value* value, int32_t id, ValueRef* out);

// The results of R replicas as one value (DESIGN: same object everywhere stays itself; equal structures merge
// leaf by leaf; leaves become per-replica values). All NULL gives NULL. `what` begins messages: "result".
Status merge(Memory& memory, std::span<Value* const> results, const char* what, ValueRef* out);

}  // namespace dist
