// SPDX-License-Identifier: Apache-2.0
// dist.h, section 9: reductions and updates from outside the replicas.
#include "core/cross_device/reduce.hpp"

#include <memory_resource>
#include <vector>

#include "capi/guard.hpp"
#include "core/cross_device/update.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Destination destination_of(const dist_destination& destination) noexcept {
  return {unwrap(destination.variable), unwrap(destination.value), destination.device};
}

struct HostUpdate {
  dist_update_fn function;
  void* user_data;
};

dist_status call_update(dist_tensor* copy, Value* args, const void* context) {
  const auto& host = *static_cast<const HostUpdate*>(context);
  return host.function(copy, wrap(args), host.user_data);
}

}  // namespace

dist_status dist_reduce(dist_strategy* strategy, dist_reduce_op op, dist_value* value, const int32_t* axes,
                        size_t num_axes, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_reduce", "strategy"));
    DIST_TRY(require(value, "dist_reduce", "value"));
    DIST_TRY(require(out_value, "dist_reduce", "out_value"));
    if (num_axes != 0) DIST_TRY(require(axes, "dist_reduce", "axes"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_reduce"));
    ValueRef result;
    DIST_TRY(reduce(unwrap(strategy).cross_replica(), op, *unwrap(value), axes, num_axes, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_reduce_to(dist_strategy* strategy, dist_reduce_op op, dist_value* value,
                           const dist_destination* destination, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_reduce_to", "strategy"));
    DIST_TRY(require(value, "dist_reduce_to", "value"));
    DIST_TRY(require(out_value, "dist_reduce_to", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_reduce_to"));
    Value* const values[] = {unwrap(value)};
    const Destination wanted = destination == nullptr ? Destination{} : destination_of(*destination);
    ValueRef results[1];
    DIST_TRY(batch_reduce_to(unwrap(strategy).cross_replica(), op, values, {&wanted, 1}, results));
    *out_value = wrap(results[0].take());
    return kOk;
  });
}

dist_status dist_batch_reduce_to(dist_strategy* strategy, dist_reduce_op op, dist_value* const* values,
                                 const dist_destination* destinations, size_t n, dist_value** out_values) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_batch_reduce_to", "strategy"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_batch_reduce_to"));
    if (n != 0) DIST_TRY(require(values, "dist_batch_reduce_to", "values"));
    if (n != 0) DIST_TRY(require(out_values, "dist_batch_reduce_to", "out_values"));
    const CrossReplica context = unwrap(strategy).cross_replica();
    std::pmr::vector<Value*> given(context.memory);
    std::pmr::vector<Destination> wanted(context.memory);
    given.reserve(n);
    for (size_t k = 0; k < n; ++k) {
      if (values[k] == nullptr) return invalid_argument("dist_batch_reduce_to(): values[%zu] is NULL", k);
      given.push_back(unwrap(values[k]));
      if (destinations != nullptr) wanted.push_back(destination_of(destinations[k]));
    }
    std::pmr::vector<ValueRef> results(n, context.memory);
    DIST_TRY(batch_reduce_to(context, op, given, wanted, results));
    for (size_t k = 0; k < n; ++k) out_values[k] = wrap(results[k].take());
    return kOk;
  });
}

dist_status dist_update(dist_strategy* strategy, dist_variable* variable, dist_update_fn fn, void* user_data,
                        dist_value* args) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_update", "strategy"));
    DIST_TRY(require(variable, "dist_update", "variable"));
    if (fn == nullptr) return invalid_argument("dist_update(): fn is NULL");
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_update"));
    const HostUpdate host{fn, user_data};
    return update(unwrap(strategy).cross_replica(), *unwrap(variable), {call_update, &host}, unwrap(args));
  });
}

dist_status dist_local_results(dist_strategy* strategy, dist_value* value, dist_value** out_list) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_local_results", "strategy"));
    DIST_TRY(require(value, "dist_local_results", "value"));
    DIST_TRY(require(out_list, "dist_local_results", "out_list"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_local_results"));
    ValueRef list;
    DIST_TRY(local_results(unwrap(strategy).cross_replica(), *unwrap(value), &list));
    *out_list = wrap(list.take());
    return kOk;
  });
}
