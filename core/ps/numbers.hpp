// SPDX-License-Identifier: Apache-2.0
// The common format of messages between a coordinator, its workers and parameter servers: a tuple that starts
// with a tensor i64[n] of numbers, followed by the data that they describe (core/net/rpc/message.hpp encodes it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

inline Status make_numbers(Memory& memory, std::span<const int64_t> numbers, ValueRef* out) {
  const auto n = static_cast<int64_t>(numbers.size());
  const dist_tensor tensor{const_cast<int64_t*>(numbers.data()), DIST_I64, 1, &n, nullptr};
  return Value::copy_tensor(memory, tensor, out);
}

// A tuple of numbers and the items of `rest`, in which NULL means no value.
inline Status make_message(Memory& memory, std::span<const int64_t> numbers, std::span<Value* const> rest,
                           ValueRef* out) {
  std::pmr::vector<Value*> items(&memory);
  ValueRef head;
  DIST_TRY(make_numbers(memory, numbers, &head));
  const ValueRef none = Value::create_none(memory);
  items.push_back(head.get());
  for (Value* const each : rest) items.push_back(each != nullptr ? each : none.get());
  return Value::create(memory, DIST_VALUE_TUPLE, items, out);
}
inline Status make_message(Memory& memory, std::initializer_list<int64_t> numbers,
                           std::initializer_list<Value*> rest, ValueRef* out) {
  return make_message(memory, {numbers.begin(), numbers.size()}, {rest.begin(), rest.size()}, out);
}

// The numbers at the beginning of a received message, at least `least`, which must be followed by `rest`
// items. Otherwise INVALID_ARGUMENT.
inline Status read_numbers(const Value* message, std::size_t least, std::size_t rest,
                           std::span<const int64_t>* out) noexcept {
  if (message != nullptr && message->kind() == DIST_VALUE_TUPLE && message->items().size() == 1 + rest &&
      message->items()[0]->kind() == DIST_VALUE_TENSOR) {
    const dist_tensor numbers = message->items()[0]->tensor();
    if (numbers.dtype == DIST_I64 && numbers.ndim == 1 && numbers.strides == nullptr &&
        numbers.shape[0] >= static_cast<int64_t>(least)) {
      *out = {static_cast<const int64_t*>(numbers.data), static_cast<std::size_t>(numbers.shape[0])};
      return kOk;
    }
  }
  return invalid_argument(
      "the message has unexpected contents: the processes have different versions of libdist");
}

}  // namespace dist
