// SPDX-License-Identifier: Apache-2.0
// Values: the arguments and results of runs. A value is reference-counted, and a nest is a tree of values.
//
// Invariant: the structure of a value never changes after it has been created. Distributed values do not
// nest, and lists and dictionaries nest at most kMaxNesting deep, so every walk over a value may recurse. Two
// values are "the same object" if and only if they are the same Value; merging depends on that.
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
  int32_t kind = DIST_PARTITION_REPLICATE;
  int32_t num_logical_devices = 1;
  int32_t logical_device = 0;              // ASSIGN: the one that has it
  int32_t ndim = 0;                        // of the tensor
  int64_t dimensions[DIST_MAX_NDIM] = {};  // SPLIT: into how many parts each dimension is split
};

// The most levels of lists and dictionaries. Distributed values do not nest and add no level, so that a run
// can return whatever it takes.
inline constexpr int kMaxNesting = 64;

class Value final : public Counted {
 public:
  // A tensor with data of its own, 64-byte aligned and row-major: a copy of tensor.data, or not set yet where
  // that is NULL.
  static Status copy_tensor(Memory& memory, const dist_tensor& tensor, ValueRef* out);
  // Borrows tensor.data until release(user_data) (release may be NULL), which is never called on a failure.
  static Status wrap_tensor(Memory& memory, const dist_tensor& tensor, dist_release_fn release,
                            void* user_data, ValueRef* out);
  // A list or tuple, or a per-replica or mirrored value of items.size() components. For a composite's kind
  // see create_composite() in composite.hpp, which checks the parts.
  static Status create(Memory& memory, int32_t kind, std::span<Value* const> items, ValueRef* out);
  static Status create_dict(Memory& memory, std::span<const char* const> keys, std::span<Value* const> items,
                            ValueRef* out);
  // A per-replica or mirrored value, checked to have a component for each replica. `call` is the function's
  // name in messages.
  static Status create_distributed(Memory& memory, int32_t kind, std::span<Value* const> items,
                                   int32_t num_replicas, const char* call, ValueRef* out);
  // A nest of the same kind, and with the same keys, as `like`, of other items.
  static Status create_like(Memory& memory, const Value& like, std::span<Value* const> items, ValueRef* out);
  static ValueRef of_variable(Variable& variable);
  // The tensor `whole`, and for each device its shard: a tensor, or nothing. begins[d * ndim + i] is where in
  // `whole` shard d begins; NULL: all at 0.
  static Status create_sharded(Memory& memory, Value& whole, const Sharding& sharding,
                               std::span<Value* const> shards, const int64_t* begins, ValueRef* out);
  static ValueRef create_none(Memory& memory);
  static ValueRef create_text(Memory& memory, const char* text);
  // Passes `object` through until release(object) (release may be NULL).
  static ValueRef wrap_object(Memory& memory, void* object, dist_release_fn release);

  int32_t kind() const noexcept { return kind_; }
  // Per-replica or mirrored: one component for each replica.
  bool distributed() const noexcept {
    return kind_ == DIST_VALUE_PER_REPLICA || kind_ == DIST_VALUE_MIRRORED;
  }
  // Whether it is distributed, or has a distributed value inside.
  bool holds_distributed() const noexcept { return holds_distributed_; }
  // A list, tuple or dictionary, into which merge() and component_of() look. All else is a leaf.
  bool is_nest() const noexcept {
    return kind_ == DIST_VALUE_LIST || kind_ == DIST_VALUE_TUPLE || kind_ == DIST_VALUE_DICT;
  }
  // A list or tuple, as positional arguments are.
  bool is_sequence() const noexcept { return kind_ == DIST_VALUE_LIST || kind_ == DIST_VALUE_TUPLE; }
  // One thing made of several tensors: a leaf, although it has items.
  bool is_composite() const noexcept {
    return kind_ == DIST_VALUE_INDEXED_SLICES || kind_ == DIST_VALUE_RAGGED || kind_ == DIST_VALUE_SPARSE;
  }
  bool is_none() const noexcept { return kind_ == DIST_VALUE_NONE; }
  // Whether tensor() can be called: it is a tensor, sharded or not, or a variable.
  bool has_tensor() const noexcept {
    return kind_ == DIST_VALUE_TENSOR || kind_ == DIST_VALUE_VARIABLE || kind_ == DIST_VALUE_SHARDED;
  }
  // NULL of other kinds.
  const Sharding* sharding() const noexcept {
    return kind_ == DIST_VALUE_SHARDED ? reinterpret_cast<const Sharding*>(block_) : nullptr;
  }
  // Of a sharded value, device by device: its items but for the last, which is the whole.
  Value& shard(int32_t logical_device) const noexcept {
    return *items_[static_cast<std::size_t>(logical_device)];
  }
  Value& whole() const noexcept { return *items_.back(); }
  const int64_t* shard_begin(int32_t logical_device) const noexcept;
  std::span<const ValueRef> items() const noexcept { return items_; }
  // How many parts it has for its holder: items, or of a sharded value, shards.
  std::size_t size() const noexcept {
    return kind_ == DIST_VALUE_SHARDED ? items_.size() - 1 : items_.size();
  }
  const char* key(std::size_t index) const noexcept { return keys_->all[index].c_str(); }
  // The item under `key`, or NULL.
  Value* find(const char* key) const noexcept;
  // Of a tensor: its view; of a variable: the view of replica 0's copy.
  dist_tensor tensor() const noexcept;
  // The same, where it has one. `call` is the function's name in messages.
  Status tensor(const char* call, dist_tensor* out) const noexcept;
  // Of a tensor: whether its elements lie where they do as long as the value is there, whatever its holder does with memory
  // of his own. Not of memory that was lent without a word of when it is given back.
  bool keeps_elements() const noexcept {
    return kind_ == DIST_VALUE_TENSOR &&
           (release_ != nullptr || (block_ != nullptr && tensor_.data == block_));
  }
  Variable* variable() const noexcept { return variable_.get(); }
  // Of a tensor that shows a variable's copy (one of local results): the variable. NULL of all else.
  Variable* copy_of() const noexcept;
  // The variable that the value is or shows a copy of. NULL of all else.
  Variable* container() const noexcept { return variable_ ? variable_.get() : copy_of(); }
  // NULL of other kinds.
  const char* text() const noexcept;
  void* object() const noexcept { return kind_ == DIST_VALUE_OBJECT ? user_data_ : nullptr; }
  int depth() const noexcept { return depth_; }

  // "a list", "a per-replica value": for messages.
  static const char* kind_name(int32_t kind) noexcept;
  // "a list of 2", "a tensor f32[4]"; "nothing" for NULL.
  static void describe(const Value* value, char* text, std::size_t size) noexcept;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);
  template <class T, class... Arguments>
  friend Ref<T> make_counted_with_room(Memory& memory, std::size_t room_bytes, Arguments&&... arguments);

  Value(Memory& memory, int32_t kind);
  ~Value() override;

  // A dictionary's, which those that are made like it share.
  struct Keys final : Counted {
    explicit Keys(Memory& memory) : Counted(memory), all(&memory) {}
    std::pmr::vector<std::pmr::string> all;  // sorted, key i of item i
  };

  // With a block of so many bytes, which nothing is in yet.
  static ValueRef with_block(Memory& memory, int32_t kind, std::size_t block_bytes);
  static ValueRef make_tensor(Memory& memory, const dist_tensor& tensor, std::size_t own_bytes);
  Status keep_items(std::span<Value* const> items);

  int32_t kind_;
  bool holds_distributed_ = false;
  int16_t depth_ = 0;
  std::pmr::vector<ValueRef> items_;
  Ref<Keys> keys_;  // a dictionary's
  Ref<Variable> variable_;
  dist_tensor tensor_{};
  std::byte* block_ = nullptr;   // own elements, then shape and strides; or a text; or Sharding, then begins
  std::size_t apart_bytes_ = 0;  // of a block that does not lie behind the value itself
  dist_release_fn release_ = nullptr;
  void* user_data_ = nullptr;  // of release_; an object's address
};

// What replica `id` sees of a value: the component `id` of each distributed value in it. Parts without one
// are the same objects. NULL stays NULL.
Status component_of(Memory& memory, Value* value, LocalReplica replica, ValueRef* out);

// Makes one value of the results of R replicas. An object that all of them gave stays itself, equal
// structures are merged leaf by leaf, and other leaves become per-replica values. All nothings are the same
// object. One result, or NULL from all replicas, is returned as it is; where only some gave NULL, it counts
// as nothing. `what` begins messages ("result"), and `source` says in them who gave a result.
Status merge(Memory& memory, std::span<Value* const> results, const char* what, ValueRef* out,
             const char* source = "replica");

// OK where merge_leaves() can merge them: nests are of one structure, and nothing is distributed.
Status check_alike(Memory& memory, std::span<Value* const> components, const Path& path);

// As merge(), but a leaf becomes a per-replica value even where all hold the same object: a per-replica value
// of nests becomes a nest of per-replica values.
Status merge_leaves(Memory& memory, std::span<Value* const> components, const char* what, ValueRef* out);

}  // namespace dist
