// SPDX-License-Identifier: Apache-2.0
// cross_replica.h: reductions, broadcasts and gathers from outside the replicas.
#include "core/cross_device/reduce.hpp"

#include <memory_resource>
#include <vector>

#include "capi/destinations.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "core/cross_device/gather.hpp"
#include "core/cross_device/reduce_to.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/strategy/destination_device.hpp"

using namespace dist;
using namespace dist::capi;

dist_status dist_reduce(dist_strategy* strategy, dist_reduce_op op, dist_value* value, const int32_t* axes,
                        size_t num_axes, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_reduce", "strategy"));
    DIST_TRY(require(value, "dist_reduce", "value"));
    DIST_TRY(require(out_value, "dist_reduce", "out_value"));
    DIST_TRY(check_list(axes, num_axes, "dist_reduce", "axes", "num_axes"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_reduce"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_reduce"));
    ValueRef result;
    DIST_TRY(reduce(unwrap(strategy).cross_replica(), op, *unwrap(value), axes, num_axes, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_reduce_to(dist_strategy* strategy, dist_reduce_op op, dist_value* value,
                           const dist_destination* destination, const dist_communication_options* options,
                           dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_reduce_to", "strategy"));
    DIST_TRY(require(value, "dist_reduce_to", "value"));
    DIST_TRY(require(out_value, "dist_reduce_to", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_reduce_to"));
    Communication communication;  // of no consequence
    DIST_TRY(read_communication(options, &communication));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_reduce_to"));
    Value* const values[] = {unwrap(value)};
    const Destination wanted = destination_of(destination);
    ValueRef results[1];
    DIST_TRY(reduce_to(unwrap(strategy).cross_replica(), ReduceRules::kReduceTo, op, values, {&wanted, 1},
                       results));
    *out_value = wrap(results[0].take());
    return kOk;
  });
}

dist_status dist_batch_reduce_to(dist_strategy* strategy, dist_reduce_op op, dist_value* const* values,
                                 const dist_destination* destinations, size_t n,
                                 const dist_communication_options* options, dist_value** out_values) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_batch_reduce_to", "strategy"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_batch_reduce_to"));
    Communication communication;  // of no consequence
    DIST_TRY(read_communication(options, &communication));
    const CrossReplica context = unwrap(strategy).cross_replica();
    Pairs pairs(*context.memory);
    DIST_TRY(pairs.read(values, destinations, n, out_values, "dist_batch_reduce_to"));
    BetweenRuns turn;
    for (const Value* value : pairs.values())
      DIST_TRY(turn.begin_for(value, unwrap(strategy), "dist_batch_reduce_to"));
    std::pmr::vector<ValueRef> results(n, context.memory);
    DIST_TRY(reduce_to(context, ReduceRules::kBatch, op, pairs.values(), pairs.destinations(), results));
    for (size_t k = 0; k < n; ++k) out_values[k] = wrap(results[k].take());
    return kOk;
  });
}

dist_status dist_broadcast_to(dist_strategy* strategy, dist_value* value, const dist_destination* destination,
                              dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_broadcast_to", "strategy"));
    DIST_TRY(require(value, "dist_broadcast_to", "value"));
    DIST_TRY(require(out_value, "dist_broadcast_to", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_broadcast_to"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_broadcast_to"));
    ValueRef result;
    DIST_TRY(
        broadcast_to(unwrap(strategy).cross_replica(), *unwrap(value), destination_of(destination), &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_gather(dist_strategy* strategy, dist_value* value, int32_t axis, dist_value** out_value) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_gather", "strategy"));
    DIST_TRY(require(value, "dist_gather", "value"));
    DIST_TRY(require(out_value, "dist_gather", "out_value"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_gather"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_for(unwrap(value), unwrap(strategy), "dist_gather"));
    ValueRef result;
    DIST_TRY(gather(unwrap(strategy).cross_replica(), *unwrap(value), axis, &result));
    *out_value = wrap(result.take());
    return kOk;
  });
}

dist_status dist_destination_device(dist_strategy* strategy, const dist_destination* destination,
                                    char* out_name, size_t size_bytes) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_destination_device", "strategy"));
    DIST_TRY(require(destination, "dist_destination_device", "destination"));
    DIST_TRY(require(out_name, "dist_destination_device", "out_name"));
    DeviceName device;
    DIST_TRY(device_of(unwrap(strategy), destination_of(destination), &device));
    return write_text(device.c_str(), out_name, size_bytes, "dist_destination_device");
  });
}
