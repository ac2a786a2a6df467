// SPDX-License-Identifier: Apache-2.0
// divide() turns a tensor into a sharded one; shard_of() returns a logical device's part of a value.
#include <algorithm>
#include <memory_resource>
#include <vector>

#include "core/layout/shards.hpp"
#include "core/value/nest.hpp"
#include "core/value/variable.hpp"

namespace dist {
namespace {

class Divider {
 public:
  Divider(Memory& memory, LocalReplica replica, const Partition& how) noexcept
      : memory_(memory), replica_(replica), how_(how) {}

  Status divide(Value& value, const Path& path, ValueRef* out) const {
    if (value.is_nest()) {
      return map_items(
          memory_, value, path,
          [&](Value& item, const Path& here, ValueRef* made) { return divide(item, here, made); }, out);
    }
    if (value.is_none()) {
      *out = ValueRef::share(&value);
      return kOk;
    }
    if (!value.has_tensor()) {
      return invalid_argument("%s is %s, but only tensors and nests of tensors can be split",
                              PathText(path).c_str(), Value::kind_name(value.kind()));
    }
    ValueRef whole;
    DIST_TRY(whole_of(value, &whole));
    return shard(*whole, out);
  }

 private:
  // Finds the plain tensor of a value. For a variable, this is a view of the replica's copy.
  Status whole_of(Value& value, ValueRef* out) const {
    if (value.sharding() != nullptr) {
      *out = ValueRef::share(&value.whole());
      return kOk;
    }
    Variable* const variable = value.variable();
    if (variable == nullptr) {
      *out = ValueRef::share(&value);
      return kOk;
    }
    DIST_TRY(
        Value::wrap_tensor(memory_, variable->component(replica_), Variable::release_copy, variable, out));
    variable->retain();
    return kOk;
  }

  Status shard(Value& whole, ValueRef* out) const {
    const dist_tensor tensor = whole.tensor();
    const auto ndim = static_cast<std::size_t>(tensor.ndim);
    const auto n = static_cast<std::size_t>(how_.num_logical_devices);
    Partition partition = how_;
    partition.shape = {tensor.shape, ndim};
    DIST_TRY(partition.check());
    Sharding sharding{how_.kind, how_.num_logical_devices, how_.logical_device, tensor.ndim, {}};
    if (how_.kind != DIST_PARTITION_SPLIT) return share(whole, sharding, out);
    std::copy_n(how_.dimensions.data(), ndim, sharding.dimensions);
    std::pmr::vector<int64_t> begins(n * ndim, 0, &memory_);
    std::pmr::vector<ValueRef> shards(n, &memory_);
    std::pmr::vector<Value*> pointers(n, &memory_);
    for (std::size_t d = 0; d < n; ++d) {
      int64_t size[DIST_MAX_NDIM];
      int64_t* const begin = begins.data() + d * ndim;
      DIST_TRY(partition.shard(static_cast<int32_t>(d), {nullptr, begin, size, nullptr}));
      DIST_TRY(view_of(memory_, whole, begin, size, &shards[d]));
      pointers[d] = shards[d].get();
    }
    return Value::create_sharded(memory_, whole, sharding, pointers, begins.data(), out);
  }

  // Gives the whole tensor to each device that has it, and nothing to the others.
  Status share(Value& whole, const Sharding& sharding, ValueRef* out) const {
    const ValueRef nothing = Value::create_none(memory_);
    std::pmr::vector<Value*> shards(static_cast<std::size_t>(sharding.num_logical_devices), &whole, &memory_);
    if (sharding.kind == DIST_PARTITION_ASSIGN) {
      std::fill(shards.begin(), shards.end(), nothing.get());
      shards[static_cast<std::size_t>(sharding.logical_device)] = &whole;
    }
    return Value::create_sharded(memory_, whole, sharding, shards, nullptr, out);
  }

  Memory& memory_;
  const LocalReplica replica_;
  const Partition& how_;
};

}  // namespace

Status view_of(Memory& memory, Value& whole, const int64_t* begin, const int64_t* size, ValueRef* out) {
  const dist_tensor tensor = whole.tensor();
  dist_tensor part{nullptr, tensor.dtype, tensor.ndim, size, nullptr};
  int64_t made[DIST_MAX_NDIM];
  if (std::find(size, size + tensor.ndim, 0) == size + tensor.ndim) {
    part.strides = strides_of(tensor, made);
    int64_t first = 0;
    for (int32_t i = 0; i < tensor.ndim; ++i) first += begin[i] * part.strides[i];
    part.data = static_cast<std::byte*>(tensor.data) + first * static_cast<int64_t>(dtype_size(tensor.dtype));
  }
  const auto let_go = [](void* of) { static_cast<Value*>(of)->release(); };
  DIST_TRY(Value::wrap_tensor(memory, part, let_go, &whole, out));
  whole.retain();
  return kOk;
}

Status divide(Memory& memory, Value& value, LocalReplica replica, const Partition& how, ValueRef* out) {
  ValueRef own;
  DIST_TRY(component_of(memory, &value, replica, &own));
  return Divider(memory, replica, how).divide(*own, Path{"value"}, out);
}

Status shard_of(Memory& memory, Value* value, int32_t logical_device, ValueRef* out) {
  if (value == nullptr || (value->sharding() == nullptr && !value->is_nest())) {
    *out = ValueRef::share(value);
    return kOk;
  }
  if (value->sharding() != nullptr) {
    if (logical_device >= value->sharding()->num_logical_devices) {
      return invalid_argument(
          "a sharded tensor has shards for %d logical devices, but not for device %d: it was created for "
          "another strategy",
          value->sharding()->num_logical_devices, logical_device);
    }
    *out = ValueRef::share(&value->shard(logical_device));
    return kOk;
  }
  bool changed = false;
  DIST_TRY(map_items(
      memory, *value, Path{"value"},
      [&](Value& item, const Path&, ValueRef* made) {
        const Status status = shard_of(memory, &item, logical_device, made);
        changed = changed || made->get() != &item;
        return status;
      },
      out));
  if (!changed) *out = ValueRef::share(value);
  return kOk;
}

const Sharding* find_split(const Value* value) noexcept {
  if (value == nullptr) return nullptr;
  const Sharding* const own = value->sharding();
  if (own != nullptr) return own->kind == DIST_PARTITION_SPLIT ? own : nullptr;
  for (std::size_t i = 0; value->is_nest() && i < value->items().size(); ++i) {
    if (const Sharding* found = find_split(value->items()[i].get()); found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace dist
