// SPDX-License-Identifier: Apache-2.0
#include "core/value/value.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "core/base/host_call.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

constexpr std::size_t kDataAlign = 64;
// The size of the largest block that is allocated together with its value. With larger blocks, a second
// allocation takes little time compared with writing the elements.
constexpr std::size_t kMostBehind = 1024;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

}  // namespace

Value::Value(Memory& memory, dist_value_kind kind) : Counted(memory), kind_(kind), items_(&memory) {}

Value::~Value() {
  if (apart_bytes_ != 0) memory().free(block_, apart_bytes_, kDataAlign);
  if (release_ != nullptr) (void)survived([this] { release_(user_data_); });
}

// A small block follows the value in memory, so a leaf of a nest needs one allocation instead of two.
ValueRef Value::with_block(Memory& memory, dist_value_kind kind, std::size_t block_bytes) {
  if (block_bytes == 0) return make_counted<Value>(memory, kind);
  if (block_bytes <= kMostBehind) {
    ValueRef value = make_counted_with_room<Value>(memory, block_bytes + kDataAlign - alignof(Value), kind);
    const auto end = reinterpret_cast<std::uintptr_t>(value.get() + 1);
    value->block_ = reinterpret_cast<std::byte*>(rounded_up(end, kDataAlign));
    return value;
  }
  ValueRef value = make_counted<Value>(memory, kind);
  value->block_ = static_cast<std::byte*>(memory.allocate(block_bytes, kDataAlign));
  value->apart_bytes_ = block_bytes;
  return value;
}

// Creates a tensor value with `own_bytes` of room for elements. Copies shape and strides. The caller must set
// the data, and the strides unless they stay the same.
ValueRef Value::make_tensor(Memory& memory, const dist_tensor& tensor, std::size_t own_bytes) {
  const auto ndim = static_cast<std::size_t>(tensor.ndim);
  const std::size_t elements_end = rounded_up(own_bytes, alignof(int64_t));
  ValueRef value = with_block(memory, DIST_VALUE_TENSOR, elements_end + 2 * ndim * sizeof(int64_t));
  auto* const shape = reinterpret_cast<int64_t*>(value->block_ + elements_end);
  std::copy_n(tensor.shape, ndim, shape);
  if (tensor.strides != nullptr) std::copy_n(tensor.strides, ndim, shape + ndim);
  value->tensor_ = {nullptr, tensor.dtype, tensor.ndim, ndim != 0 ? shape : nullptr,
                    ndim != 0 && tensor.strides != nullptr ? shape + ndim : nullptr};
  return value;
}

Status Value::copy_tensor(Memory& memory, const dist_tensor& tensor, ValueRef* out) {
  std::byte unset;  // represents data that will be set later, so that the check accepts the tensor
  dist_tensor checked = tensor;
  if (tensor.data == nullptr) checked.data = &unset;
  TensorSize size;
  DIST_TRY(check_tensor(checked, "tensor", &size));
  ValueRef value = make_tensor(memory, tensor, size.bytes);
  value->tensor_.strides = nullptr;
  value->tensor_.data = size.bytes != 0 ? value->block_ : nullptr;
  if (tensor.data != nullptr && size.bytes != 0) {
    if (size.contiguous) {
      std::memcpy(value->block_, tensor.data, size.bytes);
    } else {
      copy_elements(tensor, value->tensor_);
    }
  }
  *out = std::move(value);
  return kOk;
}

Status Value::wrap_tensor(Memory& memory, const dist_tensor& tensor, dist_release_fn release, void* user_data,
                          ValueRef* out) {
  TensorSize size;
  DIST_TRY(check_tensor(tensor, "tensor", &size));
  ValueRef value = make_tensor(memory, tensor, 0);
  value->tensor_.data = tensor.data;
  value->release_ = release;
  value->user_data_ = user_data;
  *out = std::move(value);
  return kOk;
}

ValueRef Value::create_none(Memory& memory) { return make_counted<Value>(memory, DIST_VALUE_NONE); }

ValueRef Value::create_text(Memory& memory, const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  ValueRef value = with_block(memory, DIST_VALUE_TEXT, bytes);
  std::memcpy(value->block_, text, bytes);
  return value;
}

ValueRef Value::wrap_object(Memory& memory, void* object, dist_release_fn release) {
  ValueRef value = make_counted<Value>(memory, DIST_VALUE_OBJECT);
  value->release_ = release;
  value->user_data_ = object;
  return value;
}

// Takes references to the items, and computes the depth and whether there are distributed values inside.
Status Value::keep_items(std::span<Value* const> items) {
  items_.reserve(items.size());
  int depth = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Value* const item = items[i];
    if (item == nullptr) {
      return invalid_argument("items[%zu] of `%s` is `NULL`, but every item must be a value", i,
                              kind_name(kind_));
    }
    if (distributed() && item->holds_distributed_) {
      return invalid_argument(
          "items[%zu] of %s %s, but each component must be the value of one replica. Create a list of "
          "per-replica values instead of a per-replica value of lists.",
          i, kind_name(kind_), item->distributed() ? "is distributed itself" : "holds distributed values");
    }
    depth = std::max<int>(depth, item->depth_);
    holds_distributed_ = holds_distributed_ || item->holds_distributed_;
    items_.push_back(ValueRef::share(item));
  }
  if (is_nest()) ++depth;
  if (depth > kMaxNesting) {
    return invalid_argument(
        "%s is nested %d levels deep, but lists, tuples and dictionaries can be nested at most %d levels",
        kind_name(kind_), depth, kMaxNesting);
  }
  holds_distributed_ = holds_distributed_ || distributed();
  depth_ = static_cast<int16_t>(depth);
  return kOk;
}

Status Value::create(Memory& memory, dist_value_kind kind, std::span<Value* const> items, ValueRef* out) {
  ValueRef value = make_counted<Value>(memory, kind);
  DIST_TRY(value->keep_items(items));
  *out = std::move(value);
  return kOk;
}

Status Value::create_distributed(Memory& memory, dist_value_kind kind, std::span<Value* const> items,
                                 int32_t num_replicas, const char* call, ValueRef* out) {
  if (items.size() != static_cast<std::size_t>(num_replicas)) {
    return invalid_argument("`%s()`: %zu items for %d replicas. Pass one item for each replica.", call,
                            items.size(), num_replicas);
  }
  return create(memory, kind, items, out);
}

Status Value::create_dict(Memory& memory, std::span<const char* const> keys, std::span<Value* const> items,
                          ValueRef* out) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == nullptr)
      return invalid_argument("keys[%zu] of a dictionary is `NULL`, but a key must be text", i);
  }
  std::pmr::vector<std::size_t> order(keys.size(), &memory);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::strcmp(keys[a], keys[b]) < 0; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (std::strcmp(keys[order[i - 1]], keys[order[i]]) == 0) {
      return invalid_argument("a dictionary has the key \"%s\" twice, but keys must be unique",
                              keys[order[i]]);
    }
  }
  std::pmr::vector<Value*> sorted(&memory);
  sorted.reserve(order.size());
  ValueRef value = make_counted<Value>(memory, DIST_VALUE_DICT);
  Ref<Keys> kept = make_counted<Keys>(memory);
  kept->all.reserve(order.size());
  for (const std::size_t i : order) {
    kept->all.emplace_back(keys[i]);
    sorted.push_back(items[i]);
  }
  value->keys_ = std::move(kept);
  DIST_TRY(value->keep_items(sorted));
  *out = std::move(value);
  return kOk;
}

Status Value::create_like(Memory& memory, const Value& like, std::span<Value* const> items, ValueRef* out) {
  if (like.kind_ != DIST_VALUE_DICT) return create(memory, like.kind_, items, out);
  // The keys of a dictionary are already sorted and distinct.
  ValueRef value = make_counted<Value>(memory, DIST_VALUE_DICT);
  value->keys_ = like.keys_;
  DIST_TRY(value->keep_items(items));
  *out = std::move(value);
  return kOk;
}

ValueRef Value::of_variable(Variable& variable) {
  ValueRef value = make_counted<Value>(variable.memory(), DIST_VALUE_VARIABLE);
  value->variable_ = Ref<Variable>::share(&variable);
  return value;
}

Status Value::create_sharded(Memory& memory, Value& whole, const Sharding& sharding,
                             std::span<Value* const> shards, const int64_t* begins, ValueRef* out) {
  const std::size_t numbers = shards.size() * static_cast<std::size_t>(sharding.ndim);
  ValueRef value = with_block(memory, DIST_VALUE_SHARDED, sizeof(Sharding) + numbers * sizeof(int64_t));
  std::memcpy(value->block_, &sharding, sizeof sharding);
  auto* const kept = reinterpret_cast<int64_t*>(value->block_ + sizeof(Sharding));
  if (begins != nullptr) {
    std::copy_n(begins, numbers, kept);
  } else {
    std::fill_n(kept, numbers, 0);
  }
  std::pmr::vector<Value*> items(shards.begin(), shards.end(), &memory);
  items.push_back(&whole);
  DIST_TRY(value->keep_items(items));
  value->tensor_ = whole.tensor();
  *out = std::move(value);
  return kOk;
}

const int64_t* Value::shard_begin(int32_t logical_device) const noexcept {
  return reinterpret_cast<const int64_t*>(block_ + sizeof(Sharding)) +
         int64_t{logical_device} * sharding()->ndim;
}

Value* Value::find(const char* key) const noexcept {
  if (!keys_) return nullptr;
  const auto& keys = keys_->all;
  const auto at = std::lower_bound(keys.begin(), keys.end(), key,
                                   [](const std::pmr::string& a, const char* b) { return a.compare(b) < 0; });
  if (at == keys.end() || at->compare(key) != 0) return nullptr;
  return items_[static_cast<std::size_t>(at - keys.begin())].get();
}

const char* Value::text() const noexcept {
  return kind_ == DIST_VALUE_TEXT ? reinterpret_cast<const char*>(block_) : nullptr;
}

Variable* Value::copy_of() const noexcept {
  return release_ == Variable::release_copy ? static_cast<Variable*>(user_data_) : nullptr;
}

dist_tensor Value::tensor() const noexcept { return variable_ ? variable_->first_copy() : tensor_; }

Status Value::tensor(const char* call, dist_tensor* out) const noexcept {
  if (!has_tensor()) {
    char is[256];
    describe(this, is, sizeof is);
    return invalid_argument("`%s()`: `value` is %s, not a tensor. Use `dist_value_item()` to get its items.",
                            call, is);
  }
  *out = tensor();
  return kOk;
}

const char* Value::kind_name(dist_value_kind kind) noexcept {
  switch (kind) {
    case DIST_VALUE_TENSOR: return "a tensor";
    case DIST_VALUE_PER_REPLICA: return "a per-replica value";
    case DIST_VALUE_MIRRORED: return "a mirrored value";
    case DIST_VALUE_LIST: return "a list";
    case DIST_VALUE_DICT: return "a dictionary";
    case DIST_VALUE_VARIABLE: return "a variable";
    case DIST_VALUE_NONE: return "nothing";
    case DIST_VALUE_TUPLE: return "a tuple";
    case DIST_VALUE_TEXT: return "a text";
    case DIST_VALUE_OBJECT: return "a host object";
    case DIST_VALUE_INDEXED_SLICES: return "indexed slices";
    case DIST_VALUE_RAGGED: return "a ragged tensor";
    case DIST_VALUE_SPARSE: return "a sparse tensor";
    case DIST_VALUE_SHARDED: return "a sharded tensor";
    default: return "no value";
  }
}

void Value::describe(const Value* value, char* text, std::size_t size) noexcept {
  if (value == nullptr) {
    copy_text(text, size, "nothing");
  } else if (value->has_tensor()) {
    char tensor[160];
    dist::describe(value->tensor(), tensor, sizeof tensor);
    std::snprintf(text, size, "%s %s", kind_name(value->kind_), tensor);
  } else if (value->is_composite()) {
    char tensor[160];
    const std::size_t values = value->kind_ == DIST_VALUE_SPARSE ? 1 : 0;
    dist::describe(value->items_[values]->tensor(), tensor, sizeof tensor);
    std::snprintf(text, size, "%s with values %s", kind_name(value->kind_), tensor);
  } else if (value->is_nest() || value->distributed()) {
    std::snprintf(text, size, "%s of %zu", kind_name(value->kind_), value->items_.size());
  } else {
    std::snprintf(text, size, "%s", kind_name(value->kind_));
  }
}

}  // namespace dist
