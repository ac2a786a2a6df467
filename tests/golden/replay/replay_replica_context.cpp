// SPDX-License-Identifier: Apache-2.0
// Area "replica_context": operations of a replica function (all_reduce, all_gather, merge_call), and
// operations that it must not use.
#include <algorithm>
#include <string>
#include <utility>

#include "programs.hpp"

namespace golden {
namespace {

Value in_run(Replay& replay, const std::function<Value(dist_replica* replica)>& body) {
  return run(replay.strategy(),
             [&](dist_replica* replica, dist_value*, dist_value*) { return body(replica); });
}

Value dense(Replay& replay, double number) { return replay.scalar("float32", number); }

// Returns the replica's own input.
const Json& mine(const Replay& replay, const dist_replica* replica) {
  return replay.input("per_replica")[static_cast<rapidjson::SizeType>(dist_replica_id(replica))];
}

// ---- Ids and devices

void ids(Replay& replay) {
  replay.record("replica_id_in_sync_group", in_run(replay, [&](dist_replica* replica) {
                  return replay.scalar("int32", dist_replica_id(replica));
                }));
  replay.record("num_replicas_in_sync", in_run(replay, [&](dist_replica* replica) {
                  return replay.scalar("int32", dist_replica_num_replicas(replica));
                }));
  replay.record("strategy_num_replicas_in_sync", replay.json(dist_strategy_num_replicas(replay.strategy())));
}

// The replica's device as its context lists it: in a list of its own if there are several replicas.
Json devices_of(Replay& replay, const dist_replica* replica) {
  dist_strategy* const strategy = dist_replica_strategy(replica);
  const char* name = "";
  if (dist_strategy_kind_of(strategy) != DIST_STRATEGY_DEFAULT) {
    check(dist_strategy_device(strategy, dist_replica_id(replica), &name));
  }
  Json names = replay.array({});
  names.PushBack(replay.json(name), replay.memory());
  const int32_t kind = dist_strategy_kind_of(strategy);
  if (kind == DIST_STRATEGY_ONE_DEVICE || kind == DIST_STRATEGY_DEFAULT) return names;
  Json devices = replay.array({});
  devices.PushBack(names, replay.memory());
  return devices;
}

void context_properties(Replay& replay) {
  in_run(replay, [&](dist_replica* replica) {
    if (dist_replica_id(replica) != 0) return Value();
    replay.record("type", replay.json("tensor"));
    replay.record("class", replay.json(context_class(dist_get_replica(), replica)));
    replay.record("has_strategy", replay.json(dist_replica_strategy(replica) == replay.strategy()));
    replay.record("in_cross_replica_context", replay.json(dist_in_cross_replica_context() != 0));
    replay.record("get_strategy_is_s", replay.json(dist_get_strategy() == replay.strategy()));
    replay.record("devices", devices_of(replay, replica));
    return Value();
  });
}

// ---- all_reduce

// The replica's slices, with the dense shape that the program specifies once.
Value slices_of(Replay& replay, const Json& json) {
  std::vector<double> sizes;
  for (const Json& size : replay.input("dense_shape").GetArray()) sizes.push_back(size.GetDouble());
  const auto rank = static_cast<int64_t>(sizes.size());
  return replay.composite(DIST_VALUE_INDEXED_SLICES,
                          {replay.decode(member(json, "values")), replay.decode(member(json, "indices")),
                           replay.tensor("int64", {rank}, sizes)});
}

void reduce_given(Replay& replay) {
  const bool shared = replay.has("value");  // a literal of the program, so all replicas use one object
  const Value literal = shared ? replay.decode(replay.input("value")) : Value();
  replay.record("result", in_run(replay, [&](dist_replica* replica) {
                  const Value value = shared ? literal
                                      : replay.has("dense_shape")
                                          ? slices_of(replay, mine(replay, replica))
                                          : replay.decode_numpy(mine(replay, replica));
                  return all_reduce(replica, op_of(replay.text("op")), value);
                }));
}

// The gradient of all_reduce is the all_reduce of the gradient with the same op: d (x * x) / dx is 2 x times
// that.
void gradient(Replay& replay, dist_reduce_op op) {
  replay.record("result", in_run(replay, [&](dist_replica* replica) {
                  const double x = dist_replica_id(replica) + 1;
                  all_reduce(replica, op, dense(replay, x * x));
                  const Value upstream = all_reduce(replica, op, dense(replay, 1));
                  return dense(replay, Replay::number_of(upstream.get()) * 2 * x);
                }));
}

void chained(Replay& replay) {
  replay.record("result", in_run(replay, [&](dist_replica* replica) {
                  const Value a =
                      all_reduce(replica, DIST_REDUCE_SUM, replay.decode_numpy(mine(replay, replica)));
                  const int32_t factor = dist_replica_id(replica) + 1;
                  const Value scaled = replay.map(a.get(), [=](double number) { return number * factor; });
                  return replay.tuple({a, all_reduce(replica, DIST_REDUCE_MEAN, scaled)});
                }));
}

// "replica 0 calls all_reduce, the others return their value"
Value only_replica_0(Replay& replay, dist_replica* replica) {
  const Value x = replay.decode_numpy(mine(replay, replica));
  return dist_replica_id(replica) == 0 ? all_reduce(replica, op_of(replay.text("op")), x) : x;
}

// "replica 0: (all_reduce(SUM,x), all_reduce(MEAN,2x)); the others: (MEAN, SUM)"
Value different_order(Replay& replay, dist_replica* replica) {
  const Value x = replay.decode_numpy(mine(replay, replica));
  const Value twice = replay.map(x.get(), [](double number) { return number * 2; });
  const bool first = dist_replica_id(replica) == 0;
  const Value a = all_reduce(replica, first ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN, x);
  return replay.tuple({a, all_reduce(replica, first ? DIST_REDUCE_MEAN : DIST_REDUCE_SUM, twice)});
}

// "the last replica raises ValueError('boom in replica'), the others all_reduce"
Value last_raises(Replay& replay, dist_replica* replica) {
  if (dist_replica_id(replica) == dist_replica_num_replicas(replica) - 1) {
    raise(DIST_INVALID_ARGUMENT, "boom in replica");
  }
  return all_reduce(
      replica, DIST_REDUCE_SUM,
      replay.has("per_replica") ? replay.decode_numpy(mine(replay, replica)) : dense(replay, 1));
}

Value reduce_one(Replay& replay, dist_replica* replica) {
  return all_reduce(replica, DIST_REDUCE_SUM, dense(replay, 1));
}

void reduce_in_cross_replica_context(Replay& replay) {
  const InScope scope(replay.strategy());
  replay.record_whole(reduce_one(replay, dist_get_replica()));
}

// ---- all_gather, gather

// [[1, 0], [0, 2]]
Value sparse(Replay& replay) {
  return replay.composite(
      DIST_VALUE_SPARSE, {replay.tensor("int64", {2, 2}, {0, 0, 1, 1}), replay.tensor("float32", {2}, {1, 2}),
                          replay.tensor("int64", {2}, {2, 2})});
}

Value given_to_gather(Replay& replay, const dist_replica* replica) {
  const std::string_view what = replay.topic(replay.num_topics() - 1);
  if (what == "sparse") return sparse(replay);
  if (what != "indexed_slices") return replay.decode_numpy(mine(replay, replica));
  return replay.composite(DIST_VALUE_INDEXED_SLICES, {replay.tensor("float32", {1, 2}, {1, 0}),
                                                      replay.tensor("int32", {1}, {0}), replay.none()});
}

void all_gathers(Replay& replay) {
  const int32_t axis = replay.input("axis").GetInt();
  replay.record("result", in_run(replay, [&](dist_replica* replica) {
                  return all_gather(replica, given_to_gather(replay, replica), axis);
                }));
}

void gathers(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const int32_t axis = replay.input("axis").GetInt();
  const std::string_view what = replay.topic(replay.num_topics() - 1);
  if (what == "in_replica_context") {
    return replay.record("result", in_run(replay, [&](dist_replica*) {
                           return gather(strategy, replay.tensor("float32", {1}, {1}), axis);
                         }));
  }
  Value value;
  if (what == "sparse") {
    value = in_run(replay, [&](dist_replica*) { return sparse(replay); });
  } else if (replay.has("value")) {
    value = replay.decode(replay.input("value"));
  } else {
    value = replay.per_replica(replay.input("per_replica"));
  }
  replay.record("result", gather(strategy, value, axis));
}

// ---- merge_call

void merge_and_reduce(Replay& replay) {
  const Value scale = replay.number(2);  // a literal
  int64_t calls = 0;
  Json seen;
  const MergeFn merge = [&](dist_strategy* strategy, dist_value* args) {
    seen = Members(replay)
               .add("calls", ++calls)
               .add("x", replay.encode(dist_value_item(args, 0)))
               .add("scale", replay.encode(dist_value_item(args, 1)))
               .add("k", replay.encode(dist_value_get(dist_value_item(args, 2), "k")))
               .add("strategy_is_s", strategy == replay.strategy())
               .add("in_cross_replica_context", dist_in_cross_replica_context() != 0)
               .add("replica_context_is_none", dist_get_replica() == nullptr)
               .take();
    return reduce(strategy, DIST_REDUCE_SUM, Value::share(dist_value_item(args, 0)));
  };
  replay.record("result", in_run(replay, [&](dist_replica* replica) {
                  const Value named = replay.dict({{"k", replay.integer(dist_replica_id(replica))}});
                  return merge_call(replica, merge,
                                    replay.tuple({replay.decode_numpy(mine(replay, replica)), scale, named}));
                }));
  replay.record("seen_in_merge_fn", std::move(seen));
}

// m returns (x, 5.0, {c: x}), of args=(replica_id*10,)
Value merge_to_nest(Replay& replay, dist_replica* replica) {
  const MergeFn merge = [&](dist_strategy*, dist_value* args) {
    const Value x = Value::share(dist_value_item(args, 0));
    return replay.tuple({x, replay.number(5), replay.dict({{"c", x}})});
  };
  const Value x = replay.scalar("int32", dist_replica_id(replica) * 10);
  return merge_call(replica, merge, replay.tuple({x}));
}

// m returns (x,), of args=({a: id, b: [id+1, 't']},)
Value merge_of_nest(Replay& replay, dist_replica* replica) {
  const int32_t id = dist_replica_id(replica);
  const Value list = replay.list({replay.scalar("int32", id + 1), replay.string("t")});
  const Value nest = replay.dict({{"a", replay.scalar("int32", id)}, {"b", list}});
  const MergeFn merge = [&](dist_strategy*, dist_value* args) {
    return replay.tuple({Value::share(dist_value_item(args, 0))});
  };
  return merge_call(replica, merge, replay.tuple({nest}));
}

Value merge_to(Replay& replay, dist_replica* replica, int64_t number) {
  return merge_call(replica, [&](dist_strategy*, dist_value*) { return replay.integer(number); });
}

Value merge_of(Replay& replay, dist_replica* replica) {
  const std::string_view topic = replay.topic(1);
  const int32_t id = dist_replica_id(replica);
  if (topic == "returns_nest") return merge_to_nest(replay, replica);
  if (topic == "arg_nest") return merge_of_nest(replay, replica);
  if (topic == "different_fns") return merge_to(replay, replica, id);
  if (topic == "only_replica_0") return id == 0 ? merge_to(replay, replica, 1) : replay.integer(2);
  if (topic == "last_replica_calls_twice") {
    merge_to(replay, replica, 1);
    if (id == dist_replica_num_replicas(replica) - 1) merge_to(replay, replica, 1);
    return replay.integer(2);
  }
  return merge_call(replica, [&](dist_strategy* strategy, dist_value*) -> Value {
    if (topic == "returns_none") return replay.none();
    if (topic == "raises") raise(DIST_INVALID_ARGUMENT, "boom in merge_fn");
    if (topic == "nested_in_merge_fn") return merge_to(replay, dist_get_replica(), 1);
    if (topic != "run_in_merge_fn") replay.unknown("topic");
    return run(strategy, [&](dist_replica*, dist_value*, dist_value*) { return replay.scalar("int32", 3); });
  });
}

// ---- Runs

Value run_inside_run(Replay& replay, dist_replica*) {
  return run(replay.strategy(),
             [&](dist_replica*, dist_value*, dist_value*) { return replay.scalar("int32", 1); });
}

void assign_add_in_run(Replay& replay) {
  const Variable variable = float_variable(replay.strategy(), 1, DIST_AGGREGATION_SUM);
  in_run(replay, [&](dist_replica* replica) {
    const Value delta = dense(replay, dist_replica_id(replica) + 1);
    check(dist_replica_assign_value(replica, variable.get(), DIST_ASSIGN_ADD, delta.get(), nullptr));
    return Value();
  });
  replay.record("variable", replay.encode(variable.get()));
}

void context_in_scope(Replay& replay) {
  const InScope scope(replay.strategy());
  replay.record("is_none", replay.json(dist_get_replica() == nullptr));
}

// Runs a replica function and records its result.
template <Value (*kFunction)(Replay&, dist_replica*)>
void record_run(Replay& replay) {
  replay.record("result", in_run(replay, [&](dist_replica* replica) { return kFunction(replay, replica); }));
}

using Program = void (*)(Replay& replay);

// Programs by the complete topics of an id, without "isolated/".
constexpr std::pair<std::string_view, Program> kPrograms[] = {
    {"ids", ids},
    {"context_properties", context_properties},
    {"get_replica_context_in_scope", context_in_scope},
    {"all_reduce/chained", chained},
    {"all_reduce/gradient_SUM", [](Replay& replay) { gradient(replay, DIST_REDUCE_SUM); }},
    {"all_reduce/gradient_MEAN", [](Replay& replay) { gradient(replay, DIST_REDUCE_MEAN); }},
    {"all_reduce/in_cross_replica_context", reduce_in_cross_replica_context},
    {"all_reduce/only_replica_0_calls", record_run<only_replica_0>},
    {"all_reduce/ops_in_different_order", record_run<different_order>},
    {"all_reduce/last_replica_raises", record_run<last_raises>},
    {"merge_call/reduce_sum", merge_and_reduce},
    {"replica_raises_while_others_all_reduce", record_run<last_raises>},
    {"strategy_usable_after_errors", record_run<reduce_one>},
    {"run_inside_run", record_run<run_inside_run>},
    {"assign_add_SUM_in_run", assign_add_in_run},
};

// Programs by the first topic, for all other ids.
constexpr std::pair<std::string_view, Program> kTopics[] = {
    {"all_reduce", reduce_given},
    {"all_gather", all_gathers},
    {"gather", gathers},
    {"merge_call", record_run<merge_of>},
};

}  // namespace

void replay_replica_context(Replay& replay) {
  std::string_view topics = replay.topics();
  constexpr std::string_view kIsolated = "isolated/";  // in a separate process, as every case is here
  if (topics.starts_with(kIsolated)) topics.remove_prefix(kIsolated.size());
  for (const auto& [name, program] : kPrograms) {
    if (name == topics) return program(replay);
  }
  for (const auto& [name, program] : kTopics) {
    if (topics.starts_with(std::string(name) + "/")) return program(replay);
  }
  replay.unknown("topic");
}

}  // namespace golden
