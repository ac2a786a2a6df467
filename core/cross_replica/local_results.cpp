// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/local_results.hpp"

#include <memory_resource>
#include <vector>

#include "core/value/variable.hpp"

namespace dist {
namespace {

// A variable's copy, as a tensor that remembers its variable.
Status copy_of(Memory& memory, Variable& variable, LocalReplica replica, ValueRef* out) {
  DIST_TRY(Value::wrap_tensor(memory, variable.component(replica), Variable::release_copy, &variable, out));
  variable.retain();
  return kOk;
}

// A replica's part of a value in a nest.
Status part_of(Memory& memory, Value& value, LocalReplica replica, ValueRef* out) {
  if (value.variable() != nullptr) return copy_of(memory, *value.variable(), replica, out);
  if (!value.is_nest()) return component_of(memory, &value, replica, out);
  const auto items = value.items();
  std::pmr::vector<ValueRef> parts(items.size(), &memory);
  std::pmr::vector<Value*> pointers(items.size(), &memory);
  for (std::size_t i = 0; i < items.size(); ++i) {
    DIST_TRY(part_of(memory, *items[i], replica, &parts[i]));
    pointers[i] = parts[i].get();
  }
  return Value::create_like(memory, value, pointers, out);
}

}  // namespace

Status local_results(const CrossReplica& context, Value& value, ValueRef* out) {
  Memory& memory = *context.memory;
  const int32_t n = value.distributed()           ? static_cast<int32_t>(value.items().size())
                    : value.is_nest()             ? context.replicas.local()
                    : value.variable() != nullptr ? value.variable()->num_copies()
                                                  : 1;
  std::pmr::vector<ValueRef> results(static_cast<std::size_t>(n), &memory);
  std::pmr::vector<Value*> items(&memory);
  items.reserve(results.size());
  for (int32_t r = 0; r < n; ++r) {
    ValueRef& result = results[static_cast<std::size_t>(r)];
    DIST_TRY(part_of(memory, value, LocalReplica{r}, &result));
    items.push_back(result.get());
  }
  return Value::create(memory, DIST_VALUE_TUPLE, items, out);
}

}  // namespace dist
