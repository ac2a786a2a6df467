// SPDX-License-Identifier: Apache-2.0
#include "core/cross_device/reduce.hpp"

#include <charconv>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/cross_device/axis_reduce.hpp"
#include "core/cross_device/fold.hpp"
#include "core/value/path.hpp"

namespace dist {
namespace {

constexpr int32_t kEveryReplica = -1;

Status check_reduction(dist_reduce_op op) noexcept {
  if (op == DIST_REDUCE_SUM || op == DIST_REDUCE_MEAN) return kOk;
  return invalid_argument(
      "op is %d (%s): from outside values are reduced by SUM or MEAN; the others are collectives, in the "
      "replica function",
      op, op_name(op));
}

// A device's name: "replica:2" is 2.
Status parse_device(const CrossReplica& context, const char* device, int32_t* out_replica) noexcept {
  constexpr char kPrefix[] = "replica:";
  constexpr std::size_t kLength = sizeof kPrefix - 1;
  if (std::strncmp(device, kPrefix, kLength) == 0) {
    const char* const digits = device + kLength;
    const char* const end = digits + std::strlen(digits);
    int32_t replica = -1;
    const auto [stop, error] = std::from_chars(digits, end, replica);
    if (error == std::errc{} && stop == end && replica >= 0 && replica < context.num_replicas) {
      *out_replica = replica;
      return kOk;
    }
  }
  return fail(DIST_NOT_FOUND, "device \"%s\": this strategy has \"replica:0\" to \"replica:%d\"", device,
              context.num_replicas - 1);
}

// Which replica a destination means.
Status resolve(const CrossReplica& context, const Destination& destination, int32_t* out_replica) noexcept {
  const int set =
      (destination.variable != nullptr) + (destination.value != nullptr) + (destination.device != nullptr);
  if (set > 1) {
    return invalid_argument(
        "a destination has %d fields set; set variable, value or device, or none for all replicas", set);
  }
  *out_replica = kEveryReplica;
  if (destination.variable != nullptr && destination.variable->num_replicas() != context.num_replicas) {
    return invalid_argument(
        "destination: variable \"%s\" has %d copies for %d replicas: it is another strategy's",
        destination.variable->name(), destination.variable->num_replicas(), context.num_replicas);
  }
  if (destination.value != nullptr && destination.value->is_list_or_dict()) {
    return invalid_argument("destination: %s has no one place; give one of its values",
                            Value::kind_name(destination.value->kind()));
  }
  if (destination.value != nullptr && destination.value->distributed() &&
      static_cast<int32_t>(destination.value->items().size()) != context.num_replicas) {
    return invalid_argument(
        "destination: %s of %zu components for %d replicas: it was made for another strategy",
        Value::kind_name(destination.value->kind()), destination.value->items().size(), context.num_replicas);
  }
  return destination.device == nullptr ? kOk : parse_device(context, destination.device, out_replica);
}

// Walks nests, states one fold for each leaf, and runs them all at the end.
class Reducer {
 public:
  Reducer(const CrossReplica& context, dist_reduce_op op)
      : context_(context), op_(op), plan_(*context.memory) {}

  // dist_reduce()'s rules from here on.
  void set_axes(std::span<const int32_t> axes) noexcept { axes_ = axes; }

  // dist_reduce_to()'s rules from here on.
  Status set_destination(const Destination& destination) noexcept {
    to_ = true;
    return resolve(context_, destination, &replica_);
  }

  // *out is complete after run().
  Status add(Value& value, const Path& path, ValueRef* out) {
    switch (value.kind()) {
      case DIST_VALUE_LIST:
      case DIST_VALUE_DICT: return add_items(value, path, out);
      case DIST_VALUE_PER_REPLICA: return add_components(value, path, out);
      case DIST_VALUE_MIRRORED:
        if (!axes_.empty()) return add_components(value, path, out);
        DIST_TRY(check_components(value, path));
        return add_equal(value, path, out);
      default: return add_plain(value, path, out);
    }
  }

  Status run() { return plan_.run(*context_.arena); }

 private:
  std::size_t num_replicas() const noexcept { return static_cast<std::size_t>(context_.num_replicas); }

  Status add_items(Value& value, const Path& path, ValueRef* out) {
    Memory& memory = *context_.memory;
    const std::size_t n = value.items().size();
    const bool keyed = value.kind() == DIST_VALUE_DICT;
    std::pmr::vector<ValueRef> reduced(n, &memory);
    std::pmr::vector<Value*> items(n, &memory);
    std::pmr::vector<const char*> keys(keyed ? n : 0, &memory);
    for (std::size_t i = 0; i < n; ++i) {
      if (keyed) keys[i] = value.key(i);
      const Path here = keyed ? Path::item(path, keys[i]) : Path::item(path, i);
      DIST_TRY(add(*value.items()[i], here, &reduced[i]));
      items[i] = reduced[i].get();
    }
    return keyed ? Value::create_dict(memory, keys, items, out)
                 : Value::create(memory, DIST_VALUE_LIST, items, out);
  }

  Status check_components(const Value& value, const Path& path) const noexcept {
    if (value.items().size() == num_replicas()) return kOk;
    return invalid_argument("%s is %s of %zu components for %zu replicas: it was made for another strategy",
                            PathText(path).c_str(), Value::kind_name(value.kind()), value.items().size(),
                            num_replicas());
  }

  // A distributed value: a fold over its components, which may be nests.
  Status add_components(Value& value, const Path& path, ValueRef* out) {
    DIST_TRY(check_components(value, path));
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    tensors.reserve(num_replicas());
    for (const ValueRef& component : value.items()) {
      if (!component->has_tensor()) return add_nests(value, path, out);
      tensors.push_back(view(*component, static_cast<int32_t>(tensors.size())));
    }
    return add_fold(tensors, path, out);
  }

  Status add_nests(Value& value, const Path& path, ValueRef* out) {
    std::pmr::vector<Value*> components(context_.memory);
    components.reserve(num_replicas());
    for (const ValueRef& component : value.items()) components.push_back(component.get());
    ValueRef nest;
    DIST_TRY(merge_leaves(*context_.memory, components, PathText(path).c_str(), &nest));
    return add(*nest, path, out);
  }

  // A tensor or variable, which all replicas have in common.
  Status add_plain(Value& value, const Path& path, ValueRef* out) {
    const bool variable = value.variable() != nullptr;
    if (variable && value.variable()->num_replicas() != context_.num_replicas) {
      return invalid_argument("%s: variable \"%s\" has %d copies for %zu replicas: it is another strategy's",
                              PathText(path).c_str(), value.variable()->name(),
                              value.variable()->num_replicas(), num_replicas());
    }
    const bool contributions = !axes_.empty() || (to_ && op_ == DIST_REDUCE_SUM && !variable);
    if (!contributions) return add_equal(value, path, out);
    std::pmr::vector<dist_tensor> tensors(context_.memory);
    for (int32_t r = 0; r < context_.num_replicas; ++r) tensors.push_back(view(value, r));
    return add_fold(tensors, path, out);
  }

  // What is the same on every replica already: its mean is what it is, its sum most likely a mistake.
  Status add_equal(Value& value, const Path& path, ValueRef* out) {
    if (op_ == DIST_REDUCE_SUM && num_replicas() != 1) {
      return invalid_argument(
          "SUM of %s, which is %s and not per-replica: use MEAN, or give every replica's own part",
          PathText(path).c_str(), Value::kind_name(value.kind()));
    }
    const int32_t replica = replica_ == kEveryReplica ? 0 : replica_;
    if (!to_) {
      *out = value.distributed() ? value.items()[0] : ValueRef::share(&value);
    } else if (value.kind() == DIST_VALUE_TENSOR) {
      return place(ValueRef::share(&value), out);
    } else if (replica_ == kEveryReplica && num_replicas() != 1) {
      *out = ValueRef::share(&value);
    } else if (value.distributed()) {
      *out = value.items()[static_cast<std::size_t>(replica)];
    } else {
      return Value::copy_tensor(*context_.memory, view(value, replica), out);
    }
    return kOk;
  }

  // What replica `id` has of a tensor or variable.
  static dist_tensor view(const Value& value, int32_t id) noexcept {
    return value.variable() != nullptr ? value.variable()->component(id) : value.tensor();
  }

  Status add_fold(std::span<const dist_tensor> tensors, const Path& path, ValueRef* out) {
    uint32_t mask = 0;
    DIST_TRY(check_leaf(tensors, path, &mask));
    ValueRef result;
    if (axes_.empty()) {
      DIST_TRY(plan_.add(op_, tensors, &result));
    } else {
      DIST_TRY(reduce_axes(context_, op_, tensors, mask, &result));
    }
    return place(std::move(result), out);
  }

  Status check_leaf(std::span<const dist_tensor> tensors, const Path& path,
                    uint32_t* out_mask) const noexcept {
    const dist_tensor& first = tensors[0];
    const PathText where(path);
    if (!check_op(op_, first.dtype).ok())
      return invalid_argument("%s: %s", where.c_str(), last_error().message);
    DIST_TRY(check_axes(axes_, first.ndim, where.c_str(), out_mask));
    for (std::size_t r = 1; r < tensors.size(); ++r) {
      bool equal = tensors[r].dtype == first.dtype && tensors[r].ndim == first.ndim;
      for (int32_t i = 0; equal && i < first.ndim; ++i) {
        equal = (*out_mask >> i & 1u) != 0 || tensors[r].shape[i] == first.shape[i];
      }
      if (equal) continue;
      char one[160];
      char other[160];
      describe(first, one, sizeof one);
      describe(tensors[r], other, sizeof other);
      return invalid_argument("%s: replica 0 has %s, replica %zu %s; %s", where.c_str(), one, r, other,
                              axes_.empty() ? "without axes all have one dtype and shape"
                                            : "sizes may differ along the axes that are reduced only");
    }
    return kOk;
  }

  // To where it is wanted. Values do not change, so that replicas can share one tensor.
  Status place(ValueRef result, ValueRef* out) {
    if (!to_ || replica_ != kEveryReplica || num_replicas() == 1) {
      *out = std::move(result);
      return kOk;
    }
    const std::pmr::vector<Value*> components(num_replicas(), result.get(), context_.memory);
    return Value::create(*context_.memory, DIST_VALUE_MIRRORED, components, out);
  }

  const CrossReplica& context_;
  dist_reduce_op op_;
  FoldPlan plan_;
  std::span<const int32_t> axes_;
  bool to_ = false;
  int32_t replica_ = kEveryReplica;
};

}  // namespace

Status reduce(const CrossReplica& context, dist_reduce_op op, Value& value, const int32_t* axes,
              std::size_t num_axes, ValueRef* out) {
  DIST_TRY(check_reduction(op));
  Reducer reducer(context, op);
  if (axes != nullptr) reducer.set_axes({axes, num_axes});
  ValueRef result;
  DIST_TRY(reducer.add(value, Path{"value"}, &result));
  DIST_TRY(reducer.run());
  *out = std::move(result);
  return kOk;
}

Status batch_reduce_to(const CrossReplica& context, dist_reduce_op op, std::span<Value* const> values,
                       std::span<const Destination> destinations, std::span<ValueRef> outs) {
  DIST_TRY(check_reduction(op));
  Reducer reducer(context, op);
  std::pmr::vector<ValueRef> results(values.size(), context.memory);
  const Path all{"values"};
  for (std::size_t k = 0; k < values.size(); ++k) {
    DIST_TRY(reducer.set_destination(destinations.empty() ? Destination{} : destinations[k]));
    const Path path = values.size() == 1 ? Path{"value"} : Path::item(all, k);
    DIST_TRY(reducer.add(*values[k], path, &results[k]));
  }
  DIST_TRY(reducer.run());
  for (std::size_t k = 0; k < values.size(); ++k) outs[k] = std::move(results[k]);
  return kOk;
}

}  // namespace dist
