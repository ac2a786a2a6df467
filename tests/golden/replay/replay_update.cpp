// SPDX-License-Identifier: Apache-2.0
// Area "extended": strategy.extended.update() in all its forms, and parts that the whole area shares.
#include <utility>

#include "extended.hpp"
#include "tests/golden/harness/elements.hpp"

namespace golden {

Variable variable_of(Replay& replay, const std::vector<double>& numbers) {
  return variable_of(replay, numbers, {static_cast<int64_t>(numbers.size())});
}

Variable variable_of(Replay& replay, const std::vector<double>& numbers, const std::vector<int64_t>& shape,
                     const dist_variable_options* options) {
  Elements initial = elements_of(DIST_F32, shape, numbers);
  const dist_tensor view = initial.view();
  Variable variable;
  check(dist_variable_create(replay.strategy(), &view, options, variable.out()));
  return variable;
}

namespace {

void combine(const dist_tensor& copy, dist_value* value, float (*op)(float, float)) {
  const std::vector<double> numbers = Replay::numbers(value);
  auto* const to = static_cast<float*>(copy.data);
  for (std::size_t i = 0; i < numbers.size(); ++i) to[i] = op(to[i], static_cast<float>(numbers[i]));
}

}  // namespace

void assign(const dist_tensor& copy, dist_value* value) {
  combine(copy, value, [](float, float given) { return given; });
}

void assign_add(const dist_tensor& copy, dist_value* value) {
  combine(copy, value, [](float old, float given) { return old + given; });
}

Json encode_results(Replay& replay, const std::vector<dist_value*>& results, std::size_t n) {
  std::vector<Json> items;
  for (std::size_t k = 0; k < n; ++k) items.push_back(replay.encode(Value::adopt(results[k])));
  return replay.array(std::move(items));
}

namespace {

using ValuesUpdate =
    std::function<Value(const dist_update_place& place, dist_value* args, dist_value* kwargs)>;

dist_status call(dist_strategy*, const dist_update_place* place, dist_value* args, dist_value* kwargs,
                 dist_value** out_result, void* user_data) {
  return guarded(
      [&] { *out_result = (*static_cast<const ValuesUpdate*>(user_data))(*place, args, kwargs).release(); });
}

void* pointer_to(const ValuesUpdate& fn) { return const_cast<ValuesUpdate*>(&fn); }

Value update_values(dist_strategy* strategy, dist_variable* variable, const ValuesUpdate& fn, bool group,
                    const Value& args = {}, const Value& kwargs = {}) {
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.ungrouped = group ? 0 : 1;
  Value result;
  const dist_status status =
      dist_update(strategy, variable, call, pointer_to(fn), args.get(), kwargs.get(), &options, result.out());
  rethrow_kept();
  check(status);
  return result;
}

// The variable of a copy, like `v` in Python's update function: what v.assign() returns.
Value copy_at(Replay& replay, dist_variable* variable, const dist_update_place& place) {
  Value handle;
  Value copies;
  check(dist_value_create_variable(variable, handle.out()));
  check(dist_strategy_local_results(replay.strategy(), handle.get(), copies.out()));
  return copies.item(place.replica < 0 ? 0 : static_cast<std::size_t>(place.replica));
}

void assign_add_grouped_or_not(Replay& replay) {
  const bool group = replay.input("group").GetBool();
  const Json& initial = replay.input("initial");
  const Variable variable = variable_of(replay, {initial[0].GetDouble(), initial[1].GetDouble()});
  const ValuesUpdate fn = [&](const dist_update_place& place, dist_value* args, dist_value*) {
    assign_add(*place.copy, dist_value_item(args, 0));
    return copy_at(replay, variable.get(), place);
  };
  const Value args = replay.list(replay.decode_all(replay.input("args")));
  const Value result = update_values(replay.strategy(), variable.get(), fn, group, args);
  replay.record("variable", replay.encode(variable.get()));
  replay.record("result_is_none", replay.json(!result));
  replay.record("result", group ? replay.json("omitted") : replay.encode(result));
}

void per_replica_arg(Replay& replay) {
  if (replay.text("x") != "PerReplica, component i = [i+1, -i]") replay.unknown("x");
  const Json& initial = replay.input("initial");
  const Variable variable = variable_of(replay, {initial[0].GetDouble(), initial[1].GetDouble()});
  std::vector<Value> components;
  for (int32_t i = 0; i < replay.num_replicas(); ++i) {
    components.push_back(replay.tensor("float32", {2}, {i + 1.0, -1.0 * i}));
  }
  update(
      replay.strategy(), variable.get(),
      [](dist_tensor* copy, dist_value* args) { assign_add(*copy, dist_value_item(args, 0)); },
      replay.list({replay.distributed(components)}));
  replay.record("variable", replay.encode(variable.get()));
  Value read;
  check(dist_variable_read(replay.strategy(), variable.get(), read.out()));
  replay.record("read", read);
}

void kwargs_group_false(Replay& replay) {
  if (replay.fn() != "v.assign(x * scale); return scale") replay.unknown("fn");
  const Variable variable = variable_of(replay, {1, 2});
  const ValuesUpdate fn = [&](const dist_update_place& place, dist_value* args, dist_value* kwargs) {
    dist_value* const scale = dist_value_get(kwargs, "scale");
    const double factor = Replay::number_of(scale);
    assign(*place.copy,
           replay.map(dist_value_item(args, 0), [factor](double x) { return x * factor; }).get());
    return Value::share(scale);
  };
  const Value args = replay.list(replay.decode_all(replay.input("args")));
  const Value scale = replay.number(member(replay.input("kwargs"), "scale").GetDouble());
  const Value result = update_values(replay.strategy(), variable.get(), fn, replay.input("group").GetBool(),
                                     args, replay.dict({{"scale", scale}}));
  replay.record("variable", replay.encode(variable.get()));
  replay.record("result", replay.encode(result));
}

void context_inside(Replay& replay) {
  const Variable variable = variable_of(replay, {1, 2});
  std::vector<Json> seen;
  const ValuesUpdate fn = [&](const dist_update_place& place, dist_value*, dist_value*) {
    // The number of the replica, or the device if the copy does not belong to one replica.
    const std::string_view device = place.device;
    Json id =
        place.replica >= 0 ? replay.json(place.replica) : replay.json(device.substr(device.rfind('/') + 1));
    seen.push_back(object_of(
        replay, Member{"in_cross_replica_context", replay.json(dist_in_cross_replica_context() != 0)},
        Member{"replica_context_is_none", replay.json(dist_get_replica() == nullptr)},
        Member{"is_component", replay.json(place.copy != nullptr)},
        Member{"update_replica_id", std::move(id)}));
    return Value();
  };
  update_values(replay.strategy(), variable.get(), fn, true);
  replay.record("calls", replay.json(static_cast<int64_t>(seen.size())));
  replay.record("seen", replay.array(std::move(seen)));
}

// Records the encoded result as all of `expected`.
void record_result(Replay& replay, const Value& result) {
  const Json json = replay.encode(result);
  for (const auto& [name, value] : json.GetObject()) {
    replay.record(text_of(name), Json(value, replay.memory()));
  }
}

void reduce_inside(Replay& replay) {
  const Variable variable = variable_of(replay, {1, 2});
  const ValuesUpdate fn = [&](const dist_update_place&, dist_value*, dist_value*) {
    Value reduced;
    check(dist_reduce(replay.strategy(), DIST_REDUCE_SUM, replay.number(1).get(), nullptr, 0, reduced.out()));
    return reduced;
  };
  record_result(replay, update_values(replay.strategy(), variable.get(), fn, false));
}

void run_inside(Replay& replay) {
  const Variable variable = variable_of(replay, {1, 2});
  const ValuesUpdate fn = [&](const dist_update_place&, dist_value*, dist_value*) {
    return run(replay.strategy(), [&](dist_replica*, dist_value*, dist_value*) { return replay.integer(1); });
  };
  record_result(replay, update_values(replay.strategy(), variable.get(), fn, false));
}

// Passes a tensor in place of a variable.
void not_a_variable(Replay& replay) {
  const Value tensor = replay.scalar("float32", 1);
  const ValuesUpdate fn = [&](const dist_update_place&, dist_value*, dist_value*) { return tensor; };
  record_result(replay, update_values(replay.strategy(), dist_value_variable(tensor.get()), fn, false));
}

void raises(Replay& replay) {
  const Variable variable = variable_of(replay, {1, 2});
  update(replay.strategy(), variable.get(),
         [](dist_tensor*, dist_value*) { raise(DIST_INVALID_ARGUMENT, "boom in update"); });
}

void variable_of_default_strategy(Replay& replay) {
  Elements initial = elements_of(DIST_F32, {2}, {1, 2});
  const dist_tensor view = initial.view();
  Variable variable;
  check(dist_variable_create(dist_get_strategy(), &view, nullptr, variable.out()));
  const ValuesUpdate fn = [](const dist_update_place& place, dist_value* args, dist_value*) {
    assign_add(*place.copy, dist_value_item(args, 0));
    return Value();
  };
  update_values(replay.strategy(), variable.get(), fn, true,
                replay.list({replay.tensor("float32", {2}, {10, 20})}));
  dist_tensor copy;
  check(dist_variable_component(variable.get(), 0, &copy));
  std::vector<Json> copies;
  copies.push_back(replay.encode(copy));
  replay.record("variable", object_of(replay, Member{"kind", replay.json("variable")},
                                      Member{"values", replay.array(std::move(copies))}));
}

void in_replica_context(Replay& replay) {
  const Variable variable = variable_of(replay, {0, 0});
  const Value numbers = replay.tensor("float32", {2}, {1, 2});
  const ValuesUpdate fn = [&](const dist_update_place& place, dist_value*, dist_value*) {
    assign(*place.copy, numbers.get());
    return copy_at(replay, variable.get(), place);
  };
  const Value result = run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
    Value mine;
    const dist_status status = dist_replica_update(replica, variable.get(), call, pointer_to(fn), nullptr,
                                                   nullptr, nullptr, mine.out());
    rethrow_kept();
    check(status);
    return mine;
  });
  replay.record("result", replay.encode(result));
}

void outside_scope(Replay& replay) {
  const Variable variable = variable_of(replay, {0, 0});
  // The program passes a tensor with the numbers that the recording shows as a list.
  std::vector<double> numbers;
  for (const Json& item : member(replay.input("value"), "items").GetArray()) {
    numbers.push_back(member(item, "value").GetDouble());
  }
  update(
      replay.strategy(), variable.get(),
      [](dist_tensor* copy, dist_value* args) { assign(*copy, dist_value_item(args, 0)); },
      replay.list({replay.tensor("float32", {2}, numbers)}));
  replay.record("variable", replay.encode(variable.get()));
}

}  // namespace

void replay_update(Replay& replay) {
  constexpr std::pair<std::string_view, void (*)(Replay&)> kTopics[] = {
      {"assign_add", assign_add_grouped_or_not},
      {"per_replica_arg", per_replica_arg},
      {"kwargs_group_false", kwargs_group_false},
      {"context_inside", context_inside},
      {"reduce_inside", reduce_inside},
      {"run_inside", run_inside},
      {"not_a_variable", not_a_variable},
      {"raises", raises},
      {"variable_of_default_strategy", variable_of_default_strategy},
      {"in_replica_context", in_replica_context},
      {"outside_scope", outside_scope}};
  for (const auto& [topic, play] : kTopics) {
    if (topic == replay.topic(1)) return play(replay);
  }
  replay.unknown("topic " + replay.topics());
}

}  // namespace golden
