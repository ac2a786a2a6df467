// SPDX-License-Identifier: Apache-2.0
// dist.h, section 6: collectives, and section 8's assignment inside replicas.
#include "core/cross_device/collectives.hpp"

#include "capi/guard.hpp"
#include "core/run/merge_call.hpp"
#include "core/run/replica_assign.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// Checks what every collective needs and makes its caller. The options' text is used until the call returns.
template <class Call>
dist_status collective(dist_replica* replica, const dist_collective_options* options, const char* name,
                       Call&& call) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, name, "replica"));
    DIST_TRY(unwrap(replica).check(name));
    if (options == nullptr) return call(unwrap(replica).caller(nullptr, 0));
    dist_collective_options given;
    DIST_TRY(read_options(options, &given, "dist_collective_options"));
    DIST_TRY(require_zero(given.reserved, "dist_collective_options"));
    return call(unwrap(replica).caller(given.tag, given.timeout_ns));
  });
}

struct HostMerge {
  dist_merge_fn function;
  void* user_data;
  dist_strategy* strategy;
};

dist_status call_merge(Value& args, Value** out_result, void* context) {
  const auto& host = *static_cast<const HostMerge*>(context);
  dist_value* result = nullptr;
  const dist_status status = host.function(host.strategy, wrap(&args), &result, host.user_data);
  *out_result = unwrap(result);
  return status;
}

}  // namespace

void dist_collective_options_init(dist_collective_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_all_reduce(dist_replica* replica, dist_reduce_op op, const dist_tensor* in, dist_tensor* out,
                            size_t n, const dist_collective_options* options) {
  return collective(replica, options, "dist_all_reduce",
                    [&](const Caller& caller) { return all_reduce(caller, op, in, out, n); });
}

dist_status dist_broadcast(dist_replica* replica, int32_t root, const dist_tensor* in, dist_tensor* out,
                           size_t n, const dist_collective_options* options) {
  return collective(replica, options, "dist_broadcast",
                    [&](const Caller& caller) { return broadcast(caller, root, in, out, n); });
}

dist_status dist_barrier(dist_replica* replica, const dist_collective_options* options) {
  return collective(replica, options, "dist_barrier", [&](const Caller& caller) { return barrier(caller); });
}

dist_status dist_merge_call(dist_replica* replica, dist_merge_fn fn, void* user_data, dist_value* args,
                            const dist_collective_options* options, dist_value** out_result) {
  return collective(replica, options, "dist_merge_call", [&](const Caller& caller) -> Status {
    if (fn == nullptr) return invalid_argument("dist_merge_call(): fn is NULL");
    dist_strategy* strategy = dist_replica_strategy(replica);
    HostMerge host{fn, user_data, strategy};
    const MergeFunction function{call_merge, &host, reinterpret_cast<const void*>(fn)};
    ValueRef result;
    DIST_TRY(merge_call(unwrap(replica), unwrap(strategy).memory(), function, unwrap(args), caller.tag,
                        caller.timeout_ns, &result));
    if (out_result != nullptr) *out_result = wrap(result.take());
    return kOk;
  });
}

dist_status dist_replica_assign(dist_replica* replica, dist_variable* variable, int32_t how,
                                const dist_tensor* value, const dist_collective_options* options) {
  return collective(replica, options, "dist_replica_assign", [&](const Caller& caller) -> Status {
    DIST_TRY(require(variable, "dist_replica_assign", "variable"));
    DIST_TRY(require(value, "dist_replica_assign", "value"));
    return replica_assign(unwrap(replica), caller, *unwrap(variable), how, *value);
  });
}
