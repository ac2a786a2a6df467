// SPDX-License-Identifier: Apache-2.0
// value.h: values.
#include "core/value/value.hpp"

#include <span>

#include "capi/guard.hpp"
#include "core/base/tensor.hpp"
#include "core/strategy/scope.hpp"
#include "core/strategy/values.hpp"
#include "core/value/composite.hpp"
#include "core/value/dlpack.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// Handles are the addresses of objects, so an array of handles is an array of pointers to objects.
Status unwrap_items(dist_value* const* items, size_t n, const char* call,
                    std::span<Value* const>* out) noexcept {
  DIST_TRY(check_list(items, n, call, "items"));
  *out = {reinterpret_cast<Value* const*>(items), n};
  return kOk;
}

struct HostComponents {
  dist_strategy* strategy;
  dist_value_fn function;
  void* user_data;
};

dist_status call_component(GlobalReplica replica, int32_t num_replicas, Value** out_value, void* context) {
  const auto& host = *static_cast<const HostComponents*>(context);
  const dist_value_context value_context{number(replica), num_replicas};
  dist_value* value = nullptr;
  const dist_status status = guarded("the value function", [&] {
    return host.function(host.strategy, &value_context, &value, host.user_data);
  });
  *out_value = unwrap(value);
  return status;
}

// The common part of all functions that create a value.
template <class Make>
dist_status create(dist_strategy* strategy, dist_value** out_value, const char* call, Make&& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(strategy, call, "strategy"));
        DIST_TRY(require(out_value, call, "out_value"));
        DIST_TRY(unwrap(strategy).check_process());
        ValueRef value;
        DIST_TRY(make(unwrap(strategy).memory(), &value));
        *out_value = wrap(value.take());
        return kOk;
      },
      call);
}

dist_status create_distributed(dist_strategy* strategy, dist_value_kind kind, dist_value* const* items,
                               size_t n, dist_value** out_value, const char* call) {
  return create(strategy, out_value, call, [&](Memory& memory, ValueRef* out) -> Status {
    std::span<Value* const> components;
    DIST_TRY(unwrap_items(items, n, call, &components));
    return Value::create_distributed(memory, kind, components, unwrap(strategy).replicas().local(), call,
                                     out);
  });
}

}  // namespace

dist_status dist_value_create_tensor(dist_strategy* strategy, const dist_tensor* tensor,
                                     dist_value** out_value) {
  return create(
      strategy, out_value, "dist_value_create_tensor", [&](Memory& memory, ValueRef* out) -> Status {
        DIST_TRY(require(tensor, "dist_value_create_tensor", "tensor"));
        TensorSize size;
        DIST_TRY(check_tensor(*tensor, "tensor", &size));  // data too; core allows it to be set later
        return Value::copy_tensor(memory, *tensor, out);
      });
}

dist_status dist_value_wrap_tensor(dist_strategy* strategy, const dist_tensor* tensor,
                                   dist_release_fn release, void* user_data, dist_value** out_value) {
  return create(strategy, out_value, "dist_value_wrap_tensor", [&](Memory& memory, ValueRef* out) -> Status {
    DIST_TRY(require(tensor, "dist_value_wrap_tensor", "tensor"));
    return Value::wrap_tensor(memory, *tensor, release, user_data, out);
  });
}

dist_status dist_value_create_per_replica(dist_strategy* strategy, dist_value* const* items, size_t n,
                                          dist_value** out_value) {
  return create_distributed(strategy, DIST_VALUE_PER_REPLICA, items, n, out_value,
                            "dist_value_create_per_replica");
}

dist_status dist_value_create_mirrored(dist_strategy* strategy, dist_value* const* items, size_t n,
                                       dist_value** out_value) {
  return create_distributed(strategy, DIST_VALUE_MIRRORED, items, n, out_value, "dist_value_create_mirrored");
}

dist_status dist_value_create_list(dist_strategy* strategy, dist_value* const* items, size_t n,
                                   dist_value** out_value) {
  return create(strategy, out_value, "dist_value_create_list", [&](Memory& memory, ValueRef* out) -> Status {
    std::span<Value* const> parts;
    DIST_TRY(unwrap_items(items, n, "dist_value_create_list", &parts));
    return Value::create(memory, DIST_VALUE_LIST, parts, out);
  });
}

dist_status dist_value_create_dict(dist_strategy* strategy, const char* const* keys, dist_value* const* items,
                                   size_t n, dist_value** out_value) {
  return create(strategy, out_value, "dist_value_create_dict", [&](Memory& memory, ValueRef* out) -> Status {
    std::span<Value* const> parts;
    DIST_TRY(unwrap_items(items, n, "dist_value_create_dict", &parts));
    DIST_TRY(check_list(keys, n, "dist_value_create_dict", "keys"));
    return Value::create_dict(memory, {keys, n}, parts, out);
  });
}

dist_status dist_value_create_tuple(dist_strategy* strategy, dist_value* const* items, size_t n,
                                    dist_value** out_value) {
  return create(strategy, out_value, "dist_value_create_tuple", [&](Memory& memory, ValueRef* out) -> Status {
    std::span<Value* const> parts;
    DIST_TRY(unwrap_items(items, n, "dist_value_create_tuple", &parts));
    return Value::create(memory, DIST_VALUE_TUPLE, parts, out);
  });
}

dist_status dist_value_create_none(dist_strategy* strategy, dist_value** out_value) {
  return create(strategy, out_value, "dist_value_create_none", [](Memory& memory, ValueRef* out) -> Status {
    *out = Value::create_none(memory);
    return kOk;
  });
}

dist_status dist_value_create_text(dist_strategy* strategy, const char* text, dist_value** out_value) {
  return create(strategy, out_value, "dist_value_create_text", [&](Memory& memory, ValueRef* out) -> Status {
    DIST_TRY(require(text, "dist_value_create_text", "text"));
    *out = Value::create_text(memory, text);
    return kOk;
  });
}

dist_status dist_value_wrap_object(dist_strategy* strategy, void* object, dist_release_fn release,
                                   dist_value** out_value) {
  return create(strategy, out_value, "dist_value_wrap_object", [&](Memory& memory, ValueRef* out) -> Status {
    DIST_TRY(require(object, "dist_value_wrap_object", "object"));
    *out = Value::wrap_object(memory, object, release);
    return kOk;
  });
}

dist_status dist_value_create_composite(dist_strategy* strategy, dist_value_kind kind,
                                        dist_value* const* parts, size_t n, dist_value** out_value) {
  return create(strategy, out_value, "dist_value_create_composite",
                [&](Memory& memory, ValueRef* out) -> Status {
                  std::span<Value* const> values;
                  DIST_TRY(unwrap_items(parts, n, "dist_value_create_composite", &values));
                  return create_composite(memory, kind, values, out);
                });
}

dist_status dist_value_create_variable(dist_variable* variable, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(variable, "dist_value_create_variable", "variable"));
    DIST_TRY(require(out_value, "dist_value_create_variable", "out_value"));
    *out_value = wrap(Value::of_variable(*unwrap(variable)).take());
    return kOk;
  });
}

dist_status dist_values_from_function(dist_strategy* strategy, dist_value_fn fn, void* user_data,
                                      dist_value** out_value) {
  return create(strategy, out_value, "dist_values_from_function", [&](Memory&, ValueRef* out) -> Status {
    if (fn == nullptr) return invalid_argument("`dist_values_from_function()`: `fn` is `NULL`");
    const CallInProgress here(unwrap(strategy), "dist_values_from_function");
    HostComponents host{strategy, fn, user_data};
    return values_from_function(unwrap(strategy), {call_component, &host}, out);
  });
}

dist_value* dist_value_retain(dist_value* value) {
  if (value != nullptr) unwrap(value)->retain();
  return value;
}

void dist_value_release(dist_value* value) {
  if (value != nullptr) unwrap(value)->release();
}

dist_value_kind dist_value_kind_of(const dist_value* value) {
  return value == nullptr ? dist_value_kind{} : unwrap(value)->kind();
}

size_t dist_value_size(const dist_value* value) { return value == nullptr ? 0 : unwrap(value)->size(); }

dist_value* dist_value_item(const dist_value* value, size_t index) {
  return index < dist_value_size(value) ? wrap(unwrap(value)->items()[index].get()) : nullptr;
}

const char* dist_value_key(const dist_value* value, size_t index) {
  const bool there = dist_value_kind_of(value) == DIST_VALUE_DICT && index < dist_value_size(value);
  return there ? unwrap(value)->key(index) : nullptr;
}

dist_value* dist_value_get(const dist_value* value, const char* key) {
  return value == nullptr || key == nullptr ? nullptr : wrap(unwrap(value)->find(key));
}

dist_status dist_value_tensor(const dist_value* value, dist_tensor* out_tensor) {
  return guard([&]() -> Status {
    DIST_TRY(require(value, "dist_value_tensor", "value"));
    DIST_TRY(require(out_tensor, "dist_value_tensor", "out_tensor"));
    return unwrap(value)->tensor("dist_value_tensor", out_tensor);
  });
}

dist_variable* dist_value_variable(const dist_value* value) {
  return value == nullptr ? nullptr : wrap(unwrap(value)->variable());
}

const char* dist_value_text(const dist_value* value) {
  return value == nullptr ? nullptr : unwrap(value)->text();
}

void* dist_value_object(const dist_value* value) {
  return value == nullptr ? nullptr : unwrap(value)->object();
}

dist_status dist_value_from_dlpack(dist_strategy* strategy, DLManagedTensor* managed,
                                   dist_value** out_value) {
  return create(strategy, out_value, "dist_value_from_dlpack", [&](Memory& memory, ValueRef* out) -> Status {
    DIST_TRY(require(managed, "dist_value_from_dlpack", "managed"));
    return from_dlpack(memory, managed, out);
  });
}

dist_status dist_value_to_dlpack(dist_value* value, DLManagedTensor** out_managed) {
  return guard([&]() -> Status {
    DIST_TRY(require(value, "dist_value_to_dlpack", "value"));
    DIST_TRY(require(out_managed, "dist_value_to_dlpack", "out_managed"));
    return to_dlpack(*unwrap(value), out_managed);
  });
}

size_t dist_dtype_size(dist_dtype dtype) { return dtype_size(dtype); }

int64_t dist_tensor_num_elements(const dist_tensor* tensor) {
  if (tensor == nullptr || tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == nullptr)) return -1;
  int64_t elements = 1;
  bool empty = false;
  bool fits = true;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] < 0) return -1;
    empty = empty || tensor->shape[i] == 0;
    fits = fits && !__builtin_mul_overflow(elements, tensor->shape[i], &elements);
  }
  if (empty) return 0;
  return fits ? elements : -1;
}
