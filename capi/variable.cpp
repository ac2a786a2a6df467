// SPDX-License-Identifier: Apache-2.0
// variable.h: variables, outside and inside replicas.
#include "core/value/variable.hpp"
#include <dist/tf.h>

#include "capi/collective.hpp"
#include "capi/options.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/cross_replica/assign.hpp"
#include "core/run/replica_assign.hpp"
#include "core/run/replica_variable.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/strategy/colocate.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// The initial value: a host function or a tensor.
class HostInitial {
 public:
  HostInitial(dist_strategy* strategy, const dist_tensor* tensor,
              const dist_variable_options& options) noexcept
      : strategy_(strategy), function_(options.initial_fn), user_data_(options.initial_user_data) {
    value_.tensor = tensor;
    value_.call = call;
    value_.context = this;
  }
  HostInitial(const HostInitial&) = delete;
  HostInitial& operator=(const HostInitial&) = delete;

  Status check(const char* name) const noexcept {
    if ((value_.tensor != nullptr) != (function_ != nullptr)) return kOk;
    return function_ == nullptr
               ? invalid_argument(
                     "`%s()`: initial and `options->initial_fn` are both `NULL`. Set one of them.", name)
               : invalid_argument("`%s()`: initial and `options->initial_fn` are both set. Set one of them.",
                                  name);
  }
  const InitialValue& value() const noexcept { return value_; }

 private:
  static dist_status call(const InitialValue& self, Value** out_value) {
    const auto& host = *static_cast<const HostInitial*>(self.context);
    dist_value* given = nullptr;
    const dist_status status =
        guarded("initial_fn", [&] { return host.function_(host.strategy_, &given, host.user_data_); });
    *out_value = unwrap(given);
    return status;
  }

  dist_strategy* strategy_;
  dist_initial_fn function_;
  void* user_data_;
  InitialValue value_;
};

Status read_variable_options(const dist_variable_options* given, dist_variable_options* known,
                             VariableOptions* out) noexcept {
  DIST_TRY(read_options(given, known, "dist_variable_options"));
  DIST_TRY(require_zero(known->reserved, "dist_variable_options.reserved"));
  *out = {or_default(known->synchronization, DIST_SYNCHRONIZATION_AUTO),
          or_default(known->aggregation, DIST_AGGREGATION_NONE), known->name};
  return kOk;
}

VariableHome home_of(Strategy& strategy) noexcept {
  return {strategy.layout(), Ref<ReplicaNumbers>::share(&strategy.numbers())};
}

// The common part of all functions that return a variable's value.
template <class Make>
dist_status give(dist_variable* variable, dist_value** out_value, const char* name, Make&& make) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(variable, name, "variable"));
        DIST_TRY(require(out_value, name, "out_value"));
        ValueRef value;
        DIST_TRY(make(&value));
        *out_value = wrap(value.take());
        return kOk;
      },
      name);
}

using OutsideFn = Status (*)(const CrossReplica&, Variable&, int32_t, Value&);

dist_status change(dist_strategy* strategy, dist_variable* variable, int32_t how, dist_value* value,
                   const char* name, const char* value_name, OutsideFn body) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(strategy, name, "strategy"));
        DIST_TRY(require(variable, name, "variable"));
        DIST_TRY(require(value, name, value_name));
        DIST_TRY(unwrap(strategy).check_cross_replica(name));
        BetweenRuns turn;
        DIST_TRY(turn.begin(unwrap(strategy), name));
        return body(unwrap(strategy).cross_replica(), *unwrap(variable), how, *unwrap(value));
      },
      name);
}

// Calls body(self, context, caller) inside a replica. The text in the options is used until it returns.
template <class Body>
dist_status inside(dist_replica* replica, dist_variable* variable, const dist_collective_options* options,
                   const char* name, Body&& body) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(replica, name, "replica"));
        DIST_TRY(require(variable, name, "variable"));
        Replica& self = unwrap(replica);
        DIST_TRY(self.check_whole(name));
        dist_collective_options given;
        DIST_TRY(read_options(options, &given, "dist_collective_options"));
        DIST_TRY(require_plain(given, name));
        DIST_TRY(require_timeout(given.timeout_ns, "dist_collective_options.timeout_ns"));
        CrossReplica context = unwrap(dist_replica_strategy(replica)).cross_replica();
        context.numerics = numerics_of(given.numerics, context.numerics);
        DIST_TRY(check_numerics(context.numerics));
        return body(self, context, self.member(given.tag, given.timeout_ns));
      },
      name);
}

}  // namespace

void dist_variable_options_init(dist_variable_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes, DIST_VARIABLE_OPTIONS_INIT);
}

dist_status dist_variable_create(dist_strategy* strategy, const dist_tensor* initial,
                                 const dist_variable_options* options, dist_variable** out_variable) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_create", "strategy"));
    DIST_TRY(require(out_variable, "dist_variable_create", "out_variable"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_variable_create"));
    dist_variable_options given;
    VariableOptions wanted;
    DIST_TRY(read_variable_options(options, &given, &wanted));
    const HostInitial first(strategy, initial, given);
    DIST_TRY(first.check("dist_variable_create"));
    BetweenRuns turn;
    DIST_TRY(turn.begin_among_workers(unwrap(strategy), "dist_variable_create"));
    Ref<Variable> variable;
    DIST_TRY(create_variable(unwrap(strategy).cross_replica(), home_of(unwrap(strategy)), wanted,
                             first.value(), &variable));
    variable->handle().open(unwrap(strategy).handles(), LiveHandles::kVariable, variable->name());
    *out_variable = wrap(variable.take());
    return kOk;
  });
}

dist_status dist_replica_variable(dist_replica* replica, const char* name, const dist_tensor* initial,
                                  const dist_variable_options* options, dist_variable** out_variable) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_variable", "replica"));
    DIST_TRY(require(name, "dist_replica_variable", "name"));
    DIST_TRY(require(out_variable, "dist_replica_variable", "out_variable"));
    Replica& self = unwrap(replica);
    DIST_TRY(self.check_whole("dist_replica_variable"));
    dist_variable_options given;
    VariableOptions wanted;
    DIST_TRY(read_variable_options(options, &given, &wanted));
    DIST_TRY(check_name(name, "`dist_replica_variable()`: `name`"_m));
    wanted.name = name;
    const HostInitial first(dist_replica_strategy(replica), initial, given);
    DIST_TRY(first.check("dist_replica_variable"));
    Strategy& strategy = unwrap(dist_replica_strategy(replica));
    Variable* variable = nullptr;
    DIST_TRY(replica_variable(self, strategy.cross_replica(), home_of(strategy), strategy.variables(),
                              self.member(nullptr, 0), wanted, first.value(), &variable));
    *out_variable = wrap(variable);
    return kOk;
  });
}

void dist_variable_destroy(dist_variable* variable) {
  if (variable != nullptr) Variable::close(unwrap(variable));
}

const char* dist_variable_name(const dist_variable* variable) {
  return variable == nullptr ? "" : unwrap(variable)->name();
}

const char* dist_variable_class(const dist_variable* variable) {
  return variable == nullptr ? "" : unwrap(variable)->class_name();
}

dist_synchronization dist_variable_synchronization(const dist_variable* variable) {
  return variable == nullptr ? dist_synchronization{} : unwrap(variable)->synchronization();
}

dist_aggregation dist_variable_aggregation(const dist_variable* variable) {
  return variable == nullptr ? dist_aggregation{} : unwrap(variable)->aggregation();
}

int32_t dist_variable_num_copies(const dist_variable* variable) {
  return variable == nullptr ? 0 : unwrap(variable)->num_copies();
}

const char* dist_variable_copy_name(const dist_variable* variable, int32_t copy) {
  const bool there = variable != nullptr && copy >= 0 && copy < unwrap(variable)->num_copies();
  return there ? unwrap(variable)->copy_name(copy) : "";
}

dist_status dist_variable_device(const dist_strategy* strategy, const dist_variable* variable, int32_t copy,
                                 const char** out_name) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_device", "strategy"));
    DIST_TRY(require(variable, "dist_variable_device", "variable"));
    DIST_TRY(require(out_name, "dist_variable_device", "out_name"));
    return device_of(unwrap(strategy), *unwrap(variable), copy, out_name);
  });
}

dist_status dist_variable_created_in_scope(dist_strategy* strategy, const dist_value* variable,
                                           int32_t* out_created) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_variable_created_in_scope", "strategy"));
    DIST_TRY(require(variable, "dist_variable_created_in_scope", "variable"));
    DIST_TRY(require(out_created, "dist_variable_created_in_scope", "out_created"));
    bool created = false;
    DIST_TRY(created_by(unwrap(strategy), *unwrap(variable), &created));
    *out_created = created ? 1 : 0;
    return kOk;
  });
}

dist_status dist_variable_component(const dist_variable* variable, int32_t replica_id,
                                    dist_tensor* out_tensor) {
  return guard([&]() -> Status {
    DIST_TRY(require(variable, "dist_variable_component", "variable"));
    DIST_TRY(require(out_tensor, "dist_variable_component", "out_tensor"));
    return unwrap(variable)->component(GlobalReplica{replica_id}, "dist_variable_component", out_tensor);
  });
}

dist_status dist_variable_read(dist_strategy* strategy, dist_variable* variable, dist_value** out_value) {
  return give(variable, out_value, "dist_variable_read", [&](ValueRef* out) -> Status {
    DIST_TRY(require(strategy, "dist_variable_read", "strategy"));
    DIST_TRY(unwrap(strategy).check_cross_replica("dist_variable_read"));
    BetweenRuns turn;
    DIST_TRY(turn.begin(unwrap(strategy), "dist_variable_read"));
    return read(unwrap(strategy).cross_replica(), *unwrap(variable), out);
  });
}

dist_status dist_variable_assign(dist_strategy* strategy, dist_variable* variable, dist_assign_op how,
                                 dist_value* value) {
  return change(strategy, variable, how, value, "dist_variable_assign", "value", assign);
}

dist_status dist_variable_scatter(dist_strategy* strategy, dist_variable* variable, dist_scatter_op how,
                                  dist_value* slices) {
  return change(strategy, variable, how, slices, "dist_variable_scatter", "slices", scatter);
}

dist_status dist_replica_read(dist_replica* replica, dist_variable* variable, dist_value** out_value) {
  return give(variable, out_value, "dist_replica_read", [&](ValueRef* out) -> Status {
    DIST_TRY(require(replica, "dist_replica_read", "replica"));
    DIST_TRY(unwrap(replica).check_own("dist_replica_read"));
    return replica_read(unwrap(replica), *unwrap(variable), out);
  });
}

dist_status dist_replica_assign(dist_replica* replica, dist_variable* variable, dist_assign_op how,
                                const dist_tensor* value, const dist_collective_options* options) {
  return inside(replica, variable, options, "dist_replica_assign",
                [&](Replica& self, const CrossReplica& context, const Member& member) -> Status {
                  DIST_TRY(require(value, "dist_replica_assign", "value"));
                  return replica_assign(self, context, member, *unwrap(variable), how, *value);
                });
}

dist_status dist_replica_assign_value(dist_replica* replica, dist_variable* variable, dist_assign_op how,
                                      dist_value* value, const dist_collective_options* options) {
  return inside(replica, variable, options, "dist_replica_assign_value",
                [&](Replica& self, const CrossReplica& context, const Member& member) -> Status {
                  DIST_TRY(require(value, "dist_replica_assign_value", "value"));
                  return replica_assign_value(self, context, member, *unwrap(variable), how, *unwrap(value));
                });
}

dist_status dist_replica_scatter(dist_replica* replica, dist_variable* variable, dist_scatter_op how,
                                 dist_value* slices, const dist_collective_options* options) {
  return inside(replica, variable, options, "dist_replica_scatter",
                [&](Replica& self, const CrossReplica& context, const Member& member) -> Status {
                  DIST_TRY(require(slices, "dist_replica_scatter", "slices"));
                  return replica_scatter(self, context, member, *unwrap(variable), how, *unwrap(slices));
                });
}
