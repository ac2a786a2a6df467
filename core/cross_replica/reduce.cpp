// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/reduce.hpp"

#include <memory_resource>
#include <vector>

#include "core/cross_replica/cross_device.hpp"
#include "core/cross_replica/host_calls.hpp"
#include "core/value/path.hpp"
#include "core/value/variable.hpp"

namespace dist {

Status reduce(const CrossReplica& context, dist_reduce_op op, Value& value, std::span<const int32_t> axes,
              ValueRef* out) {
  DIST_TRY(check_reduction(op));
  Reducer reducer(context, ReduceRules::kReduce, op);
  reducer.set_axes(axes);
  ValueRef result;
  DIST_TRY(reducer.add(value, Path{"value"}, &result));
  DIST_TRY(reducer.run());
  *out = std::move(result);
  return kOk;
}

Status reduce_to(const CrossReplica& context, ReduceRules rules, dist_reduce_op op,
                 std::span<Value* const> values, std::span<const Destination> destinations,
                 std::span<ValueRef> outs) {
  DIST_TRY(check_reduction(op));
  Reducer reducer(context, rules, op);
  std::pmr::vector<ValueRef> results(values.size(), context.memory);
  const Path all{"values"};
  for (std::size_t k = 0; k < values.size(); ++k) {
    Destination everywhere;
    everywhere.everywhere = true;
    DIST_TRY(reducer.set_destination(destinations.empty() ? everywhere : destinations[k]));
    const Path path = values.size() == 1 ? Path{"value"} : Path::item(all, k);
    DIST_TRY(reducer.add(*values[k], path, &results[k]));
  }
  DIST_TRY(reducer.run());
  for (std::size_t k = 0; k < values.size(); ++k) outs[k] = std::move(results[k]);
  return kOk;
}

Status broadcast_to(const CrossReplica& context, Value& value, const Destination& destination,
                    ValueRef* out) {
  Place place;
  DIST_TRY(resolve(context, destination, &place));
  if (value.holds_distributed()) {
    return invalid_argument(
        "`value` is %s, but only a value that is the same for all replicas can be broadcast. Pass one "
        "tensor.",
        value.distributed() ? Value::kind_name(value.kind()) : "a nest of per-replica values");
  }
  const CrossDevice* const own = context.cross_device;
  const bool by_host = own != nullptr && own->host().broadcast != nullptr;
  if (by_host && place.mirrored && value.has_tensor()) {
    return broadcast_by_host(context, value.tensor(), out);
  }
  return put(context, place, ValueRef::share(&value), out);
}

int32_t replicas_of(std::span<Value* const> values, std::span<const Destination> destinations) noexcept {
  for (const Value* const value : values) {
    if (value->distributed()) return static_cast<int32_t>(value->items().size());
  }
  for (const Destination& destination : destinations) {
    if (destination.value != nullptr && destination.value->distributed()) {
      return static_cast<int32_t>(destination.value->items().size());
    }
    if (destination.variable != nullptr) return destination.variable->num_copies();
  }
  return 1;
}

}  // namespace dist
