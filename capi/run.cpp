// SPDX-License-Identifier: Apache-2.0
// run.h: running functions on replicas, the properties of a replica, and cancel objects.
#include <atomic>

#include "capi/collective.hpp"
#include "capi/guard.hpp"
#include "capi/run.hpp"
#include "core/base/cancel.hpp"
#include "core/run/merge_call.hpp"
#include "core/run/run_values.hpp"
#include "core/strategy/scope.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

dist_status call_host(Replica& replica, const Body& self) {
  return reinterpret_cast<dist_replica_fn>(self.function)(wrap(&replica), self.context);
}

dist_status call_values(const ValuesFunction& self, Replica& replica, Value* args, Value* kwargs,
                        Value** out_result) {
  const auto function = reinterpret_cast<dist_values_fn>(self.host_function);
  dist_value* result = nullptr;
  const dist_status status = function(wrap(&replica), wrap(args), wrap(kwargs), &result, self.user_data);
  *out_result = unwrap(result);
  return status;
}

struct HostMerge {
  dist_merge_fn function;
  void* user_data;
  dist_strategy* strategy;
};

dist_status call_merge(Value& args, Value* kwargs, Value** out_result, void* context) {
  const auto& host = *static_cast<const HostMerge*>(context);
  dist_value* result = nullptr;
  const dist_status status = guarded("the merge function", [&] {
    return host.function(host.strategy, wrap(&args), wrap(kwargs), &result, host.user_data);
  });
  *out_result = unwrap(result);
  return status;
}

// The parts of a dist_replica_parallel_for(), which several threads run.
class RangeParts {
 public:
  RangeParts(dist_range_fn function, void* user_data) noexcept : function_(function), user_data_(user_data) {}

  void call(int64_t first, int64_t last) {
    const HostCall inside("a part of `dist_replica_parallel_for()`"_m, HostCall::Refuses::kWaits);
    if (guarded_void("the range function", [&] { function_(first, last, user_data_); })) return;
    if (!failed_.exchange(true, std::memory_order_relaxed)) why_ = last_error();
  }
  // After the loop, which orders the parts before it.
  Status status() const noexcept { return failed_.load(std::memory_order_relaxed) ? fail(why_) : kOk; }

 private:
  const dist_range_fn function_;
  void* const user_data_;
  std::atomic<bool> failed_{false};
  ErrorRecord why_;
};

Status check_run(dist_strategy* strategy, bool has_function, const char* call, ReplicaPool** out_pool) {
  DIST_TRY(require(strategy, call, "strategy"));
  if (!has_function) return invalid_argument("`%s()`: `fn` is `NULL`", call);
  return pool_for_run(unwrap(strategy), call, out_pool);
}

// TensorFlow's options are flags, which libdist accepts but does not need.
Status check_flags(const dist_run_options& options) noexcept {
  const int32_t batch = options.enable_dynamic_batch_size;
  if (batch < -1 || batch > 1) {
    return invalid_argument("`dist_run_options.enable_dynamic_batch_size` is %d, but must be 0, 1 or -1",
                            batch);
  }
  return require_flag(options.bucketizing_dynamic_shape, "dist_run_options.bucketizing_dynamic_shape");
}

Status read_limits(const dist_run_options* options, const char* call, RunLimits* out) noexcept {
  dist_run_options given;
  DIST_TRY(read_options(options, &given, "dist_run_options"));
  DIST_TRY(require_zero(given.reserved, "dist_run_options.reserved"));
  DIST_TRY(require_timeout(given.timeout_ns, "dist_run_options.timeout_ns"));
  DIST_TRY(check_flags(given));
  *out = {given.timeout_ns, unwrap(given.cancel), call};
  return kOk;
}

inline Status run(const char* call, dist_strategy* strategy, dist_replica_fn fn, void* user_data,
                  const dist_run_options* options) {
  ReplicaPool* pool = nullptr;
  DIST_TRY(check_run(strategy, fn != nullptr, call, &pool));
  RunLimits limits;
  DIST_TRY(read_limits(options, call, &limits));
  const Body body{.call = call_host, .context = user_data, .function = reinterpret_cast<void (*)()>(fn)};
  return pool->run(body, limits);
}

}  // namespace

Status dist::capi::run_for(const char* call, dist_strategy* strategy, dist_replica_fn fn, void* user_data,
                           const dist_run_options* options) {
  return run(call, strategy, fn, user_data, options);
}

dist_status dist_run(dist_strategy* strategy, dist_replica_fn fn, void* user_data,
                     const dist_run_options* options) {
  return guard([&] { return run("dist_run", strategy, fn, user_data, options); });
}

void dist_run_options_init(dist_run_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_run_values(dist_strategy* strategy, dist_values_fn fn, void* user_data, dist_value* args,
                            dist_value* kwargs, const dist_run_options* options, dist_value** out_result) {
  return guard([&]() -> Status {
    ReplicaPool* pool = nullptr;
    DIST_TRY(check_run(strategy, fn != nullptr, "dist_run_values", &pool));
    RunLimits limits;
    DIST_TRY(read_limits(options, "dist_run_values", &limits));
    const ValuesFunction function{call_values, reinterpret_cast<void (*)()>(fn), user_data};
    ValueRef result;
    DIST_TRY(run_values(*pool, unwrap(strategy).memory(), function, unwrap(args), unwrap(kwargs), limits,
                        &result));
    if (out_result != nullptr) *out_result = wrap(result.take());
    return kOk;
  });
}

dist_status dist_replica_enter(dist_strategy* strategy, int32_t replica_id, dist_replica** out_replica) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_replica_enter", "strategy"));
    DIST_TRY(require(out_replica, "dist_replica_enter", "out_replica"));
    DIST_TRY(check_enter(unwrap(strategy)));
    Replica* replica = nullptr;
    DIST_TRY(unwrap(strategy).pool().enter(GlobalReplica{replica_id}, &replica));
    *out_replica = wrap(replica);
    return kOk;
  });
}

dist_status dist_replica_leave(dist_replica* replica, dist_status status) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_leave", "replica"));
    return unwrap(replica).pool().leave(unwrap(replica), Status(status));
  });
}

dist_status dist_replica_detach(dist_replica* replica) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_detach", "replica"));
    return unwrap(replica).detach();
  });
}

dist_status dist_replica_attach(dist_replica* replica) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_attach", "replica"));
    return unwrap(replica).attach();
  });
}

int32_t dist_replica_id(const dist_replica* replica) {
  return replica == nullptr ? -1 : unwrap(replica).name().number();
}

int32_t dist_replica_num_replicas(const dist_replica* replica) {
  return replica == nullptr ? 0 : unwrap(replica).replicas().global();
}

dist_strategy* dist_replica_strategy(const dist_replica* replica) {
  return replica == nullptr ? nullptr : wrap(&strategy_of(unwrap(replica)));
}

dist_status dist_replica_parallel_for(dist_replica* replica, int64_t begin, int64_t end, int64_t grain,
                                      dist_range_fn fn, void* user_data) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_parallel_for", "replica"));
    if (fn == nullptr) return invalid_argument("`dist_replica_parallel_for()`: `fn` is `NULL`");
    RangeParts parts{fn, user_data};
    DIST_TRY(unwrap(replica).parallel_for(begin, end, grain,
                                          [&](int64_t first, int64_t last) { parts.call(first, last); }));
    return parts.status();
  });
}

dist_status dist_merge_call(dist_replica* replica, dist_merge_fn fn, void* user_data, dist_value* args,
                            dist_value* kwargs, const dist_collective_options* options,
                            dist_value** out_result) {
  return with_member(
      replica, options, "dist_merge_call",
      [&](const Member& member, const dist_collective_options& given) -> Status {
        DIST_TRY(unwrap(replica).check_whole("dist_merge_call"));
        DIST_TRY(require_plain(given, "dist_merge_call"));
        if (fn == nullptr) return invalid_argument("`dist_merge_call()`: `fn` is `NULL`");
        dist_strategy* strategy = dist_replica_strategy(replica);
        HostMerge host{fn, user_data, strategy};
        const MergeFunction function{call_merge, &host, reinterpret_cast<const void*>(fn)};
        ValueRef result;
        DIST_TRY(merge_call(unwrap(replica), unwrap(strategy).memory(), function,
                            {unwrap(args), unwrap(kwargs)}, member.tag, member.timeout_ns, &result));
        if (out_result != nullptr) *out_result = wrap(result.take());
        return kOk;
      });
}

namespace {

Status check_process(const Cancel& cancel, const char* call) noexcept {
  if (!cancel.forked()) return kOk;
  return failed_precondition(
      "`%s()`: this is a forked child of the process that created the cancel object. Create another one in "
      "the "
      "child.",
      call);
}

}  // namespace

dist_status dist_cancel_create(const dist_allocator* allocator, dist_cancel** out_cancel) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_cancel, "dist_cancel_create", "out_cancel"));
    const dist_allocator chosen = allocator == nullptr ? dist_allocator{} : *allocator;
    Ref<Memory> memory;
    DIST_TRY(create_memory(chosen, "dist_cancel_create()", &memory));
    *out_cancel = wrap(make_counted<Cancel>(*memory).take());
    return kOk;
  });
}

dist_status dist_cancel_signal(dist_cancel* cancel, const char* reason) {
  return guard([&]() -> Status {
    DIST_TRY(require(cancel, "dist_cancel_signal", "cancel"));
    DIST_TRY(check_process(*unwrap(cancel), "dist_cancel_signal"));
    const auto held = Ref<Cancel>::share(unwrap(cancel));
    held->signal(reason);
    return kOk;
  });
}

int32_t dist_cancel_signalled(const dist_cancel* cancel) {
  return cancel != nullptr && unwrap(cancel)->signalled() ? 1 : 0;
}

void dist_cancel_destroy(dist_cancel* cancel) {
  if (cancel != nullptr) unwrap(cancel)->release();
}
