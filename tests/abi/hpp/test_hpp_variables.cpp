// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: variables in the cross-replica context and inside replicas, updates, scopes and drift.
#include <dist/tf.hpp>
#include "hpp_support.hpp"

namespace {

using dist::reduce_op;
using dist::replica;
using dist::tensor;
using dist::value;

dist_variable_options options_of(const char *name, dist_aggregation aggregation,
                                 dist_synchronization synchronization) {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = name;
  options.aggregation = aggregation;
  options.synchronization = synchronization;
  return options;
}

void what_it_is() {
  const dist::strategy strategy(2);
  const std::vector<double> initial{1, 2};
  const dist::variable weights(strategy, initial, "weights", DIST_AGGREGATION_SUM);
  assert_string_equal(weights.name(), "weights");
  assert_string_equal(weights.class_name(), "MirroredVariable");
  assert_int_equal(weights.aggregation(), DIST_AGGREGATION_SUM);
  assert_int_equal(weights.synchronization(), DIST_SYNCHRONIZATION_ON_WRITE);
  assert_int_equal(weights.num_copies(), 2);
  assert_string_equal(weights.copy_name(1), "weights/replica_1");
  assert_string_equal(strategy.variable_device(weights, 1), strategy.device(1));
  assert_string_equal(strategy.parameter_device(1), strategy.device(1));
  assert_true(weights.component(1).data<double>()[1] == 2);
  assert_string_equal(
      weights.describe().c_str(),
      "MirroredVariable: 0: \"weights\" f64[2] [1, 2], 1: \"weights/replica_1\" f64[2] [1, 2]");
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, weights.component(2));

  const value as_value = weights.as_value();
  assert_ptr_equal(as_value.variable().get(), weights.get());
  const value copies = strategy.local_results(as_value);
  assert_ptr_equal(dist::container_of(copies[1]).get(), weights.get());
  assert_true(dist::created_in_scope(strategy, as_value));
  const dist::strategy another(2);
  assert_false(dist::created_in_scope(another, as_value));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::created_in_scope(strategy, scalar(strategy, 1)));
  dist::variable moved(strategy, initial);
  moved = dist::variable(strategy, initial, "other");
  assert_string_equal(moved.name(), "other");
}

void first_values_of_functions() {
  const dist::strategy strategy(2);
  const dist::variable made(
      strategy, [&] { return scalar(strategy, 4.0F); },
      options_of("made", DIST_AGGREGATION_MEAN, DIST_SYNCHRONIZATION_ON_READ));
  assert_string_equal(made.class_name(), "SyncOnReadVariable");
  const auto throws = []() -> value { throw own_error("no first value"); };
  REQUIRE_OWN_ERROR("no first value",
                    dist::variable(strategy, throws, dist_variable_options(DIST_VARIABLE_OPTIONS_INIT)));
  int64_t zero = 0;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT,
                dist::variable(strategy, tensor(&zero, {}), nullptr, dist_aggregation{99}));
}

void from_outside() {
  const dist::strategy strategy(2);
  const std::vector<float> zeros(3);
  const dist::variable variable(strategy, zeros, "v");
  strategy.assign(variable, row<float>(strategy, {1, 2, 3}));
  strategy.assign(variable, row<float>(strategy, {1, 1, 1}), DIST_ASSIGN_ADD);
  assert_true(row_of<float>(strategy.read(variable)) == (std::vector<float>{2, 3, 4}));
  const value slices =
      value::composite(strategy, DIST_VALUE_INDEXED_SLICES,
                       {row<float>(strategy, {10}), row<int32_t>(strategy, {1}), value::none(strategy)});
  strategy.scatter(variable, DIST_SCATTER_ADD, slices);
  assert_true(row_of<float>(strategy.read(variable)) == (std::vector<float>{2, 13, 4}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.assign(variable, scalar(strategy, 1.0F)));

  strategy.check_drift(variable);
  assert_int_equal(strategy.drift(variable).replica, -1);
  variable.component(1).data<float>()[2] = 5;
  REQUIRE_ERROR(DIST_DATA_LOSS, strategy.check_drift(variable));
  const dist_drift drift = strategy.drift(variable);
  assert_int_equal(drift.replica, 1);
  assert_int_equal(drift.element, 2);
  const dist::strategy another(3);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, another.drift(variable));
}

void inside_replicas() {
  const dist::strategy strategy(2);
  const std::vector<float> zeros(2);
  const dist::variable sums(strategy, zeros, "sums", DIST_AGGREGATION_SUM);
  const dist::variable own(strategy, zeros,
                           options_of("own", DIST_AGGREGATION_SUM, DIST_SYNCHRONIZATION_ON_READ));
  for (int run = 0; run < 2; ++run) {
    strategy.run([&](replica replica) {
      const dist::strategy_ref owner = replica.strategy();
      const std::vector<float> mine{static_cast<float>(replica.id() + 1), 1};
      replica.assign(sums, mine, DIST_ASSIGN_ADD, {"step"});
      replica.assign(own, mine);
      REQUIRE(row_of<float>(replica.read(own)) == mine);
      REQUIRE(replica.read(sums).tensor().data<float>()[1] == static_cast<float>(2 * (run + 1)));

      // A variable of the strategy, which the second run finds again.
      const dist::variable_ref counter = replica.variable("counter", mine);
      REQUIRE(std::string(counter.name()) == "counter");
      REQUIRE(row_of<float>(replica.read(counter))[0] == static_cast<float>(1 + run));
      replica.assign(counter, mine, DIST_ASSIGN_ADD);
      counter.component(replica.id()).data<float>()[0] = 2;

      replica.assign_value(own, row<float>(owner, {5, 6}));
      REQUIRE(replica.read(own).tensor().data<float>()[1] == 6);
      const value slices =
          value::composite(owner, DIST_VALUE_INDEXED_SLICES,
                           {row<float>(owner, {1}), row<int32_t>(owner, {0}), value::none(owner)});
      replica.scatter(sums, DIST_SCATTER_SUB, slices);
      REQUIRE_ERROR(DIST_INVALID_ARGUMENT, replica.assign_value(own, row<float>(owner, {1})));
    });
  }
  assert_true(row_of<float>(strategy.read(own)) == (std::vector<float>{10, 12}));
  assert_true(row_of<float>(strategy.read(sums)) == (std::vector<float>{6 - 4, 4}));
}

void updates() {
  const dist::strategy strategy(2);
  const std::vector<float> ones(2, 1);
  const dist::variable variable(strategy, ones, "u");
  const value args =
      value::list(strategy, {value::per_replica(strategy, {scalar(strategy, 1.0F), scalar(strategy, 2.0F)})});
  const auto add = [](const tensor &copy, const value &given) {
    const float change = scalar_of<float>(given[0]);
    for (int64_t i = 0; i < copy.elements(); ++i) copy.data<float>()[i] += change;
  };
  strategy.update(variable, add, args);
  assert_true(*variable.component(0).data<float>() == 2 && *variable.component(1).data<float>() == 3);
  const auto throws = [](const tensor &copy, const value &) {
    if (*copy.data<float>() == 3) throw own_error("not this copy");
  };
  REQUIRE_OWN_ERROR("not this copy", strategy.update(variable, throws, args));

  const value kwargs = value::dict(strategy, {{"to", scalar(strategy, 7.0F)}});
  const value replicas = strategy.update(
      variable,
      [&](const dist_update_place &place, const value &, const value &named) {
        *tensor(*place.copy).data<float>() = scalar_of<float>(named["to"]);
        return scalar(strategy, place.replica);
      },
      args, kwargs);
  assert_int_equal(replicas.kind(), DIST_VALUE_MIRRORED);
  assert_int_equal(scalar_of<int32_t>(replicas[1]), 1);
  assert_true(*variable.component(1).data<float>() == 7);
  const value devices = strategy.update_non_slot(
      [&](const dist_update_place &place, const value &) { return value::text(strategy, place.device); }, {},
      {}, true);
  assert_int_equal(devices.kind(), DIST_VALUE_TUPLE);
  assert_string_equal(devices[1].text(), strategy.device(1));
  const auto fails = [](const dist_update_place &, const value &) { throw own_error("nowhere"); };
  REQUIRE_OWN_ERROR("nowhere", strategy.update_non_slot(fails, {}, {}));
  REQUIRE_OWN_ERROR("nowhere", strategy.update(variable, fails, {}, {}));

  strategy.run([&](replica replica) {
    const value mine =
        value::list(replica.strategy(), {scalar(replica.strategy(), static_cast<float>(replica.id()))});
    const value done = replica.update(
        variable,
        [](const dist_update_place &place, const value &given) {
          *tensor(*place.copy).data<float>() = scalar_of<float>(given[0]);
        },
        mine);
    REQUIRE(!done && *variable.component(replica.id()).data<float>() == static_cast<float>(replica.id()));
  });
  REQUIRE_OWN_ERROR("nowhere", strategy.run([&](replica replica) { replica.update(variable, fails, {}); }));
}

void scopes() {
  const dist::strategy strategy(2);
  assert_false(dist::has_strategy());
  assert_int_equal(dist::get_strategy().kind(), DIST_STRATEGY_DEFAULT);
  assert_int_equal(dist::get_replica().id(), 0);
  const std::vector<float> zeros(2);
  {
    const auto scope = strategy.scope();
    assert_true(dist::has_strategy() && dist::in_cross_replica_context());
    assert_ptr_equal(dist::get_strategy().get(), strategy.get());
    assert_false(static_cast<bool>(dist::get_replica()));
    const dist::variable first(dist::get_strategy(), zeros, "first");
    const auto beside = dist::colocate(strategy, first.as_value());
    const dist::variable second(strategy, zeros, "second");
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::colocate(strategy, value()));
    const dist::strategy another(2);
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, another.scope());
  }
  assert_false(dist::has_strategy());
  dist::set_strategy(strategy);
  assert_true(dist::has_strategy());
  dist::set_strategy({});
  assert_false(dist::has_strategy());
  strategy.run([&](replica replica) {
    REQUIRE(dist::get_replica().get() == replica.get() && !dist::in_cross_replica_context());
  });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(what_it_is),   HPP_TEST(first_values_of_functions),
      HPP_TEST(from_outside), HPP_TEST(inside_replicas),
      HPP_TEST(updates),      HPP_TEST(scopes),
  };
  return cmocka_run_group_tests_name("dist.hpp: variables", tests, nullptr, nullptr);
}
