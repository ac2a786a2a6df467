// SPDX-License-Identifier: Apache-2.0
#include "core/value/from_function.hpp"

namespace dist {
namespace {

Status call(Memory& memory, const ComponentFunction& function, GlobalReplica replica, int32_t num_replicas,
            ValueRef* out) {
  const uint64_t before = failures_on_this_thread();
  Value* made = nullptr;
  const dist_status status = function.call(replica, num_replicas, &made, function.context);
  *out = ValueRef::adopt(made);
  if (status == DIST_OK) {
    if (!*out) *out = Value::create_none(memory);
    return kOk;
  }
  if (failures_on_this_thread() != before && last_error().code == status) return Status(status);
  return fail(
      status,
      "the function for replica %d's component returned %s without a reason. Use `dist_fail()` to report one",
      number(replica), status_name(status));
}

}  // namespace

Status values_from_function(Memory& memory, ReplicaCount replicas, bool distributed,
                            const ComponentFunction& function, ValueRef* out) {
  std::pmr::vector<ValueRef> made(static_cast<std::size_t>(replicas.local()), &memory);
  std::pmr::vector<Value*> components(&memory);
  components.reserve(made.size());
  for (int32_t r = 0; r < replicas.local(); ++r) {
    ValueRef& component = made[static_cast<std::size_t>(r)];
    DIST_TRY(call(memory, function, replicas.global_of(LocalReplica{r}), replicas.global(), &component));
    components.push_back(component.get());
  }
  if (distributed) return merge_leaves(memory, components, "value", out);
  *out = std::move(made[0]);
  return kOk;
}

}  // namespace dist
