// SPDX-License-Identifier: Apache-2.0
#include "core/cross_device/update.hpp"

#include <algorithm>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/cross_device/fold.hpp"

namespace dist {
namespace {

Status check_variable(const CrossReplica& context, const Variable& variable) noexcept {
  if (variable.num_replicas() == context.num_replicas) return kOk;
  return invalid_argument("variable \"%s\" has %d copies for %d replicas: it is another strategy's",
                          variable.name(), variable.num_replicas(), context.num_replicas);
}

// Whether any element of `tensor` lies in [begin, begin + bytes).
bool touches(const dist_tensor& tensor, const void* begin, std::size_t bytes) noexcept {
  auto low = reinterpret_cast<intptr_t>(tensor.data);
  const auto size = static_cast<int64_t>(dtype_size(tensor.dtype));
  auto high = low + size;
  int64_t dense = size;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return false;
    const int64_t reach =
        (tensor.shape[i] - 1) * (tensor.strides != nullptr ? tensor.strides[i] * size : dense);
    dense *= tensor.shape[i];
    (reach < 0 ? low : high) += static_cast<intptr_t>(reach);
  }
  const auto other = reinterpret_cast<intptr_t>(begin);
  return low < other + static_cast<intptr_t>(bytes) && other < high;
}

// Replica r's source, in `kept` where writing to the variable's copies would change it half-way.
Status source_of(const CrossReplica& context, const Variable& variable, Value& value, int32_t r,
                 ValueRef* kept, dist_tensor* out) {
  if (value.distributed() && static_cast<int32_t>(value.items().size()) != context.num_replicas) {
    return invalid_argument("value is %s of %zu components for %d replicas: it was made for another strategy",
                            Value::kind_name(value.kind()), value.items().size(), context.num_replicas);
  }
  const Value& own = value.distributed() ? *value.items()[static_cast<std::size_t>(r)] : value;
  if (!own.has_tensor()) {
    return invalid_argument(
        "value: %s cannot be assigned to variable \"%s\"; give a tensor, or one for each replica",
        Value::kind_name(own.kind()), variable.name());
  }
  if (own.variable() != nullptr) DIST_TRY(check_variable(context, *own.variable()));
  *out = own.variable() != nullptr ? own.variable()->component(r) : own.tensor();
  for (int32_t copy = 0; copy < variable.num_replicas(); ++copy) {
    const void* const data = variable.component(copy).data;
    const bool itself = copy == r && out->data == data && out->strides == nullptr;
    if (itself || !touches(*out, data, variable.bytes())) continue;
    DIST_TRY(Value::copy_tensor(*context.memory, *out, kept));
    *out = (*kept)->tensor();
    break;
  }
  return kOk;
}

// Runs body(r) for every replica, at the same time where a variable is large.
template <class Body>
Status for_each_copy(const CrossReplica& context, const Variable& variable, const Body& body) {
  const auto n = static_cast<std::size_t>(variable.num_replicas());
  const auto range = [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) body(static_cast<int32_t>(r));
  };
  if (variable.bytes() * n > FoldPlan::kSerialBytes) {
    return context.arena->parallel_for(0, static_cast<int64_t>(n), 1, range);
  }
  range(0, static_cast<int64_t>(n));
  return kOk;
}

// The failure of the lowest replica, brought over from the thread on which it happened.
class FirstFailure {
 public:
  void set(int32_t replica, dist_status code) noexcept {
    // A host that does not say why leaves this thread's older text behind: that is not its reason.
    if (last_error().code != code) (void)fail(code, "the update function returned %s", status_name(code));
    const std::scoped_lock lock(mutex_);
    if (replica_ >= 0 && replica_ < replica) return;
    replica_ = replica;
    record_ = last_error();
    if (record_.replica < 0) record_.replica = replica;
  }
  Status status() const noexcept { return replica_ < 0 ? kOk : fail(record_); }

 private:
  std::mutex mutex_;
  int32_t replica_ = -1;
  ErrorRecord record_;
};

}  // namespace

Status assign(const CrossReplica& context, Variable& variable, int32_t how, Value& value) {
  DIST_TRY(check_variable(context, variable));
  const auto n = static_cast<std::size_t>(context.num_replicas);
  std::pmr::vector<ValueRef> kept(n, context.memory);
  std::pmr::vector<dist_tensor> sources(n, context.memory);
  for (std::size_t r = 0; r < n; ++r) {
    DIST_TRY(source_of(context, variable, value, static_cast<int32_t>(r), &kept[r], &sources[r]));
    DIST_TRY(variable.check_assign(how, sources[r], "value"));
  }
  return for_each_copy(context, variable,
                       [&](int32_t r) { variable.assign(how, r, sources[static_cast<std::size_t>(r)]); });
}

Status update(const CrossReplica& context, Variable& variable, const UpdateFn& fn, Value* args) {
  DIST_TRY(check_variable(context, variable));
  if (args != nullptr && args->kind() != DIST_VALUE_LIST) {
    return invalid_argument("args is %s; give a list of the update function's arguments, or NULL",
                            Value::kind_name(args->kind()));
  }
  const auto n = static_cast<std::size_t>(context.num_replicas);
  std::pmr::vector<ValueRef> components(n, context.memory);
  for (std::size_t r = 0; r < n; ++r) {
    DIST_TRY(component_of(*context.memory, args, static_cast<int32_t>(r), &components[r]));
  }
  FirstFailure failure;
  const auto body = [&](int32_t r) {
    const dist_status before = last_error().code;
    last_error().code = DIST_OK;  // so that a failure without words is told from one with
    dist_tensor copy = variable.component(r);
    const dist_status code = fn.call(&copy, components[static_cast<std::size_t>(r)].get(), fn.context);
    if (code != DIST_OK) {
      failure.set(r, code);
    } else if (last_error().code == DIST_OK) {
      last_error().code = before;
    }
  };
  DIST_TRY(for_each_copy(context, variable, body));
  return failure.status();
}

Status local_results(const CrossReplica& context, Value& value, ValueRef* out) {
  Memory& memory = *context.memory;
  std::pmr::vector<Value*> items(&memory);
  std::pmr::vector<ValueRef> copies(&memory);
  if (value.distributed()) {
    for (const ValueRef& item : value.items()) items.push_back(item.get());
  } else if (Variable* const variable = value.variable(); variable != nullptr) {
    const auto release = [](void* held) { static_cast<Variable*>(held)->release(); };
    for (int32_t r = 0; r < variable->num_replicas(); ++r) {
      copies.emplace_back();
      items.reserve(copies.size());
      DIST_TRY(Value::wrap_tensor(memory, variable->component(r), release, variable, &copies.back()));
      variable->retain();
      items.push_back(copies.back().get());
    }
  } else {
    items.push_back(&value);
  }
  return Value::create(memory, DIST_VALUE_LIST, items, out);
}

}  // namespace dist
