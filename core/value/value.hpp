// SPDX-License-Identifier: Apache-2.0
// Values: the arguments and results of runs. A value is reference-counted, and a nest is a tree of values.
//
// Invariant: the structure of a value never changes after it has been created. Distributed values do not
// nest, and lists and dictionaries nest at most kMaxNesting deep, so every walk over a value may recurse. Two
// values are "the same object" if and only if they are the same Value. merge() depends on that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"

namespace dist {

struct Path;
class Value;
class Variable;
using ValueRef = Ref<Value>;

// Which part of a tensor each logical device of a replica has.
struct Sharding {
  dist_partition_kind kind = DIST_PARTITION_REPLICATE;
  int32_t num_logical_devices = 1;
  int32_t logical_device = 0;              // ASSIGN: the device that has the tensor
  int32_t ndim = 0;                        // of the tensor
  int64_t dimensions[DIST_MAX_NDIM] = {};  // SPLIT: number of parts of each dimension
};

// Limit for the nesting of lists and dictionaries. Distributed values do not nest and add no level, so a run
// can return everything that it accepts.
inline constexpr int kMaxNesting = 64;

class Value final : public Counted {
 public:
  // Creates a tensor that owns its data, row-major and aligned to 64 bytes. The data are copied from
  // tensor.data, or uninitialized if that is NULL.
  static Status copy_tensor(Memory& memory, const dist_tensor& tensor, ValueRef* out);
  // Borrows tensor.data until it calls release(user_data), which may be NULL. If this fails, release is never
  // called.
  static Status wrap_tensor(Memory& memory, const dist_tensor& tensor, dist_release_fn release,
                            void* user_data, ValueRef* out);
  // Creates a list or tuple, or a per-replica or mirrored value with items.size() components. For composites,
  // use create_composite() in composite.hpp, which validates the parts.
  static Status create(Memory& memory, dist_value_kind kind, std::span<Value* const> items, ValueRef* out);
  static Status create_dict(Memory& memory, std::span<const char* const> keys, std::span<Value* const> items,
                            ValueRef* out);
  // Creates a per-replica or mirrored value after checking that it has a component for each replica. `call`
  // is the function's name for messages.
  static Status create_distributed(Memory& memory, dist_value_kind kind, std::span<Value* const> items,
                                   int32_t num_replicas, const char* call, ValueRef* out);
  // Creates a nest of the same kind and with the same keys as `like`, with other items.
  static Status create_like(Memory& memory, const Value& like, std::span<Value* const> items, ValueRef* out);
  static ValueRef of_variable(Variable& variable);
  // Creates a sharded value of the tensor `whole` and a shard for each device, which is a tensor or nothing.
  // Shard d begins in `whole` at begins[d * ndim + i]; NULL: at 0.
  static Status create_sharded(Memory& memory, Value& whole, const Sharding& sharding,
                               std::span<Value* const> shards, const int64_t* begins, ValueRef* out);
  static ValueRef create_none(Memory& memory);
  static ValueRef create_text(Memory& memory, const char* text);
  // Keeps `object` unchanged and finally calls release(object). `release` may be NULL.
  static ValueRef wrap_object(Memory& memory, void* object, dist_release_fn release);

  dist_value_kind kind() const noexcept { return kind_; }
  // Whether it is per-replica or mirrored, with one component for each replica.
  bool distributed() const noexcept {
    return kind_ == DIST_VALUE_PER_REPLICA || kind_ == DIST_VALUE_MIRRORED;
  }
  // Whether it is distributed or contains a distributed value.
  bool holds_distributed() const noexcept { return holds_distributed_; }
  // Whether it is a list, tuple or dictionary. merge() and component_of() process the items of these.
  // Everything else is a leaf.
  bool is_nest() const noexcept {
    return kind_ == DIST_VALUE_LIST || kind_ == DIST_VALUE_TUPLE || kind_ == DIST_VALUE_DICT;
  }
  // Whether it is a list or tuple, like positional arguments.
  bool is_sequence() const noexcept { return kind_ == DIST_VALUE_LIST || kind_ == DIST_VALUE_TUPLE; }
  // Whether it is one object made of several tensors: a leaf, although it has items.
  bool is_composite() const noexcept {
    return kind_ == DIST_VALUE_INDEXED_SLICES || kind_ == DIST_VALUE_RAGGED || kind_ == DIST_VALUE_SPARSE;
  }
  bool is_none() const noexcept { return kind_ == DIST_VALUE_NONE; }
  // Whether tensor() may be called: it is a tensor, sharded or not, or a variable.
  bool has_tensor() const noexcept {
    return kind_ == DIST_VALUE_TENSOR || kind_ == DIST_VALUE_VARIABLE || kind_ == DIST_VALUE_SHARDED;
  }
  // NULL for other kinds.
  const Sharding* sharding() const noexcept {
    return kind_ == DIST_VALUE_SHARDED ? reinterpret_cast<const Sharding*>(block_) : nullptr;
  }
  // The shards of a sharded value, by device. They are its items except the last one, which is the whole.
  Value& shard(int32_t logical_device) const noexcept {
    return *items_[static_cast<std::size_t>(logical_device)];
  }
  Value& whole() const noexcept { return *items_.back(); }
  const int64_t* shard_begin(int32_t logical_device) const noexcept;
  std::span<const ValueRef> items() const noexcept { return items_; }
  // Number of parts that a caller sees: the items, or the shards of a sharded value.
  std::size_t size() const noexcept {
    return kind_ == DIST_VALUE_SHARDED ? items_.size() - 1 : items_.size();
  }
  const char* key(std::size_t index) const noexcept { return keys_->all[index].c_str(); }
  // Returns the item with this key, or NULL.
  Value* find(const char* key) const noexcept;
  // The view of a tensor, or of replica 0's copy of a variable.
  dist_tensor tensor() const noexcept;
  // The same, but fails if the value has no tensor. `call` is the function's name for messages.
  Status tensor(const char* call, dist_tensor* out) const noexcept;
  // Whether a tensor's elements stay in place as long as the value exists, even if the caller that created it
  // frees its memory. False for memory that was lent without a release callback.
  bool keeps_elements() const noexcept {
    return kind_ == DIST_VALUE_TENSOR &&
           (release_ != nullptr || (block_ != nullptr && tensor_.data == block_));
  }
  Variable* variable() const noexcept { return variable_.get(); }
  // If the value is a tensor that shows a variable's copy (a local result), that variable; otherwise NULL.
  Variable* copy_of() const noexcept;
  // The variable that the value is, or whose copy it shows; otherwise NULL.
  Variable* container() const noexcept { return variable_ ? variable_.get() : copy_of(); }
  // NULL for other kinds.
  const char* text() const noexcept;
  void* object() const noexcept { return kind_ == DIST_VALUE_OBJECT ? user_data_ : nullptr; }
  int depth() const noexcept { return depth_; }

  // "a list", "a per-replica value"; for messages.
  static const char* kind_name(dist_value_kind kind) noexcept;
  // "a list of 2", "a tensor f32[4]"; "nothing" for NULL.
  static void describe(const Value* value, char* text, std::size_t size) noexcept;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);
  template <class T, class... Arguments>
  friend Ref<T> make_counted_with_room(Memory& memory, std::size_t room_bytes, Arguments&&... arguments);

  Value(Memory& memory, dist_value_kind kind);
  ~Value() override;

  // The keys of a dictionary. Dictionaries made by create_like() share them.
  struct Keys final : Counted {
    explicit Keys(Memory& memory) : Counted(memory), all(&memory) {}
    std::pmr::vector<std::pmr::string> all;  // sorted, key i of item i
  };

  // A value with an uninitialized block of this size.
  static ValueRef with_block(Memory& memory, dist_value_kind kind, std::size_t block_bytes);
  static ValueRef make_tensor(Memory& memory, const dist_tensor& tensor, std::size_t own_bytes);
  Status keep_items(std::span<Value* const> items);

  dist_value_kind kind_;
  bool holds_distributed_ = false;
  int16_t depth_ = 0;
  std::pmr::vector<ValueRef> items_;
  Ref<Keys> keys_;  // of a dictionary
  Ref<Variable> variable_;
  dist_tensor tensor_{};
  std::byte* block_ = nullptr;   // own elements, then shape and strides; or a text; or Sharding, then begins
  std::size_t apart_bytes_ = 0;  // size of a block that was allocated separately from the value
  dist_release_fn release_ = nullptr;
  void* user_data_ = nullptr;  // for release_; or the address of an object
};

// Returns replica `replica`'s view of a value: the replica's component of each distributed value inside.
// Parts without distributed values stay the same objects. NULL stays NULL.
Status component_of(Memory& memory, Value* value, LocalReplica replica, ValueRef* out);

// Combines the results of R replicas into one value. If all replicas returned the same object, the result is
// that object. Nests of equal structure are merged leaf by leaf, and other leaves become per-replica values.
// All "nothing" values count as the same object. A single result, or NULL from all replicas, is returned
// unchanged. If only some replicas returned NULL, NULL counts as "nothing". In messages, `what` names a
// result ("result") and `source` names what returned it.
Status merge(Memory& memory, std::span<Value* const> results, const char* what, ValueRef* out,
             const char* source = "replica");

// Returns OK if merge_leaves() can merge the components: their nests have the same structure, and they
// contain no distributed value.
Status check_alike(Memory& memory, std::span<Value* const> components, const Path& path);

// Like merge(), except that a leaf becomes a per-replica value even if all components are the same object: a
// per-replica value of nests becomes a nest of per-replica values.
Status merge_leaves(Memory& memory, std::span<Value* const> components, const char* what, ValueRef* out);

}  // namespace dist
