// SPDX-License-Identifier: Apache-2.0
// Area "run": arguments and results of strategy.run, local results, values from functions, losses. Scopes and
// contexts are in replay_contexts.cpp.
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "programs.hpp"
#include "tests/golden/harness/elements.hpp"

namespace golden {
namespace {

template <class Key, class Function, std::size_t N>
const Function* find_in(const std::pair<Key, Function> (&table)[N], std::string_view key) {
  for (const auto& [name, function] : table) {
    if (name == key) return &function;
  }
  return nullptr;
}

Value experimental_local_results(dist_strategy* strategy, const Value& value) {
  Value result;
  check(dist_strategy_local_results(strategy, value.get(), result.out()));
  return result;
}

Value dense(Replay& replay, double number) { return replay.scalar("float32", number); }

Value first_of(dist_value* args) {
  if (dist_value_size(args) == 0) raise(DIST_INVALID_ARGUMENT, "missing 1 required positional argument: 'x'");
  return Value::share(dist_value_item(args, 0));
}

// ---- returns

struct Returning {
  Replay& replay;
  int32_t id;
  double k;
};

using Return = Value (*)(const Returning&);
constexpr std::pair<std::string_view, Return> kReturns[] = {
    {"return None", [](const Returning& r) { return r.replay.none(); }},
    {"return 5", [](const Returning& r) { return r.replay.integer(5); }},
    {"return replica_id as a Python int", [](const Returning& r) { return r.replay.integer(r.id); }},
    {"return 'abc'", [](const Returning& r) { return r.replay.string("abc"); }},
    {"return 'r' + str(replica_id)",
     [](const Returning& r) { return r.replay.string(std::string(1, 'r').append(std::to_string(r.id))); }},
    {"return a new tensor, equal on all replicas", [](const Returning& r) { return dense(r.replay, r.k); }},
    {"return k + replica_id", [](const Returning& r) { return dense(r.replay, r.k + r.id); }},
    {"return (tensor replica_id, 7)",
     [](const Returning& r) {
       return r.replay.tuple({dense(r.replay, r.id), r.replay.integer(7)});
     }},
    {"return [tensor replica_id, [tensor 2.0]]",
     [](const Returning& r) {
       return r.replay.list({dense(r.replay, r.id), r.replay.list({dense(r.replay, 2)})});
     }},
    {"return []", [](const Returning& r) { return r.replay.list({}); }},
    {"return ()", [](const Returning& r) { return r.replay.tuple({}); }},
    {"return {}", [](const Returning& r) { return r.replay.dict({}); }},
    {"return {a: replica_id, b: {c: 'x', d: None}}",
     [](const Returning& r) {
       const Value inner = r.replay.dict({{"c", r.replay.string("x")}, {"d", r.replay.none()}});
       return r.replay.dict({{"a", r.replay.scalar("int32", r.id)}, {"b", inner}});
     }},
    {"return None on replica 0, else 1",
     [](const Returning& r) { return r.id == 0 ? r.replay.none() : r.replay.integer(1); }},
    {"return (1,) on replica 0, else (1, 2)",
     [](const Returning& r) {
       const Value one = r.replay.integer(1);
       return r.id == 0 ? r.replay.tuple({one}) : r.replay.tuple({one, r.replay.integer(2)});
     }},
    {"return {a: 1} on replica 0, else {b: 1}",
     [](const Returning& r) {
       return r.replay.dict({{r.id == 0 ? "a" : "b", r.replay.integer(1)}});
     }},
    {"return a tuple on replica 0, else a list",
     [](const Returning& r) {
       const Value one = r.replay.integer(1);
       return r.id == 0 ? r.replay.tuple({one}) : r.replay.list({one});
     }},
    {"return tensor 1 on replica 0, else Python 1",
     [](const Returning& r) { return r.id == 0 ? r.replay.scalar("int32", 1) : r.replay.integer(1); }},
    {"return float32 1 on replica 0, else int32 1",
     [](const Returning& r) { return r.replay.scalar(r.id == 0 ? "float32" : "int32", 1); }},
    {"return zeros([replica_id + 1])",
     [](const Returning& r) {
       const auto size = static_cast<std::size_t>(r.id) + 1;
       return r.replay.tensor("float32", {r.id + 1}, std::vector<double>(size, 0));
     }},
    {"return a new float nan",
     [](const Returning& r) { return r.replay.number(std::numeric_limits<double>::quiet_NaN()); }},
    {"return True", [](const Returning& r) { return r.replay.boolean(true); }},
};

void returns(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const std::string_view fn = replay.fn();
  if (const Return* const known = find_in(kReturns, fn)) {
    const double k = number_of(replay.input("k"));
    return replay.record("result", run(strategy, [&](dist_replica* replica, dist_value*, dist_value*) {
                           return (*known)({replay, dist_replica_id(replica), k});
                         }));
  }
  if (fn == "every replica returns the one tensor made outside") {
    const Value tensor = dense(replay, 0.5);  // the recording does not contain the number
    return replay.record("result",
                         run(strategy, [&](dist_replica*, dist_value*, dist_value*) { return tensor; }));
  }
  if (fn == "return the variable v") {
    const Variable variable = float_variable(strategy, 1);
    const Value handle = value_of(variable);
    const Value result = run(strategy, [&](dist_replica*, dist_value*, dist_value*) { return handle; });
    replay.record("result", result);
    return replay.record("is_v", replay.json(dist_value_variable(result.get()) == variable.get()));
  }
  if (fn != "return v.assign(replica_id), aggregation MEAN") replay.unknown("fn");
  const Variable variable = float_variable(strategy, 1, DIST_AGGREGATION_MEAN);
  replay.record("result", run(strategy, [&](dist_replica* replica, dist_value*, dist_value*) {
                  const Value id = dense(replay, dist_replica_id(replica));
                  check(dist_replica_assign_value(replica, variable.get(), DIST_ASSIGN, id.get(), nullptr));
                  Value written;
                  check(dist_replica_read(replica, variable.get(), written.out()));
                  return written;
                }));
}

// ---- args

Value plus(Replay& replay, dist_value* a, dist_value* b) {
  const std::vector<double> more = Replay::numbers(b);
  std::size_t next = 0;
  return replay.map(a, [&](double number) { return number + more.at(next++); });
}

Value times(Replay& replay, dist_value* x, double factor) {
  return replay.map(x, [factor](double number) { return number * factor; });
}

// x + replica_id, for a tensor or a Python number.
Value plus_id(Replay& replay, const Value& x, dist_replica* replica) {
  const int32_t id = dist_replica_id(replica);
  if (text_of(member(replay.input("value"), "kind")) == "py_int") {
    return replay.integer(static_cast<int64_t>(Replay::number_of(x.get())) + id);
  }
  return replay.map(x.get(), [id](double number) { return number + id; });
}

// Returns Python's name for a variable's type.
std::string type_name(const dist_variable* variable) {
  const std::string name = dist_variable_class(variable);
  return name == "Variable" ? "ResourceVariable" : name;
}

void variable_as_argument(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const Variable variable = float_variable(strategy, 1, DIST_AGGREGATION_SUM);
  const ReplicaFn fn = [&](dist_replica* replica, dist_value* args, dist_value*) {
    dist_variable* const x = dist_value_variable(dist_value_item(args, 0));
    const Value delta = replay.number(dist_replica_id(replica) + 1);
    check(dist_replica_assign_value(replica, x, DIST_ASSIGN_ADD, delta.get(), nullptr));
    return replay.tuple({replay.string(type_name(x)), replay.boolean(true)});
  };
  replay.record("result", run(strategy, fn, replay.tuple({value_of(variable)})));
  replay.record("variable", replay.encode(variable.get()));
}

Value nest_argument(Replay& replay) {
  const Value x = replay.per_replica(replay.input("per_replica"));
  const Value again = replay.per_replica(replay.input("per_replica"));
  const Value nest = replay.dict({{"a", x}, {"b", replay.list({again, replay.integer(3)})}});
  return run(
      replay.strategy(),
      [&](dist_replica*, dist_value* args, dist_value*) {
        dist_value* const d = dist_value_item(args, 0);
        dist_value* const b = dist_value_get(d, "b");
        const Value product = times(replay, dist_value_item(b, 0), Replay::number_of(dist_value_item(b, 1)));
        return plus(replay, dist_value_get(d, "a"), product.get());
      },
      replay.tuple({nest}));
}

Value result_of_args(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const std::string_view fn = replay.fn();
  const auto x = [&] { return replay.per_replica(replay.input("per_replica")); };
  const ReplicaFn twice = [&](dist_replica*, dist_value* args, dist_value*) {
    return times(replay, first_of(args).get(), 2);
  };
  const ReplicaFn same = [](dist_replica*, dist_value* args, dist_value*) { return first_of(args); };
  const ReplicaFn one = [&](dist_replica*, dist_value*, dist_value*) { return replay.integer(1); };
  if (fn == "return x * 2") return run(strategy, twice, replay.tuple({x()}));
  if (fn == "args given as a list; return x * 2") return run(strategy, twice, replay.list({x()}));
  if (fn == "f(d) with d = {a: x, b: [x, 3]}; return d.a + d.b[0] * d.b[1]") return nest_argument(replay);
  if (fn == "f(x, scale); return x * scale") {
    const Value scale = replay.number(number_of(member(replay.input("kwargs"), "scale")));
    const ReplicaFn scaled = [&](dist_replica*, dist_value* args, dist_value* kwargs) {
      return times(replay, first_of(args).get(), Replay::number_of(dist_value_get(kwargs, "scale")));
    };
    return run(strategy, scaled, replay.tuple({x()}), replay.dict({{"scale", scale}}));
  }
  if (fn == "f(*, x); return x + 1") {
    const ReplicaFn more = [&](dist_replica*, dist_value*, dist_value* kwargs) {
      return replay.map(dist_value_get(kwargs, "x"), [](double number) { return number + 1; });
    };
    return run(strategy, more, {}, replay.dict({{"x", x()}}));
  }
  if (fn == "return x + replica_id") {
    const ReplicaFn more = [&](dist_replica* replica, dist_value* args, dist_value*) {
      return plus_id(replay, first_of(args), replica);
    };
    return run(strategy, more, replay.tuple({replay.decode(replay.input("value"))}));
  }
  if (fn == "return type of x is tensor, x") {
    const ReplicaFn look = [&](dist_replica*, dist_value* args, dist_value*) {
      const Value given = first_of(args);
      const Value copy = replay.map(given.get(), [](double number) { return number; });
      return replay.tuple({replay.boolean(given.kind() == DIST_VALUE_TENSOR), copy});
    };
    return run(strategy, look, replay.tuple({replay.decode(replay.input("value"))}));
  }
  if (fn == "return x") return run(strategy, same, replay.tuple({replay.decode(replay.input("value"))}));
  if (fn == "run(f, args=None, kwargs=None); return 1")
    return run(strategy, one, replay.none(), replay.none());
  if (fn == "f(x) called with no args") return run(strategy, same);
  if (fn == "args=5") return run(strategy, same, replay.integer(5));
  if (fn == "kwargs=5") return run(strategy, one, {}, replay.integer(5));
  if (fn != "run(5)") replay.unknown("fn");
  Value result;  // In C, the only value that is not a function is NULL.
  check(dist_run_values(strategy, nullptr, nullptr, nullptr, nullptr, nullptr, result.out()));
  return result;
}

void args(Replay& replay) {
  if (replay.topic(1) == "variable") return variable_as_argument(replay);
  replay.record("result", result_of_args(replay));
}

// ---- raises, replica_order

void raises(Replay& replay) {
  const std::string_view fn = replay.fn();
  const std::string_view which = fn.substr(0, fn.find(' '));
  const bool each = fn == "replica i raises ValueError('boom i')";
  const bool known = fn == "all replica(s) raise(s) ValueError" ||
                     fn == "first replica(s) raise(s) ValueError" ||
                     fn == "last replica(s) raise(s) ValueError" || fn == "return replica_id";
  if (!known && !each) replay.unknown("fn");
  const ReplicaFn program = [&](dist_replica* replica, dist_value*, dist_value*) {
    const int32_t id = dist_replica_id(replica);
    const bool mine = each || which == "all" || (which == "first" && id == 0) ||
                      (which == "last" && id == dist_replica_num_replicas(replica) - 1);
    if (mine) raise(DIST_INVALID_ARGUMENT, "boom " + std::to_string(id));
    return replay.integer(which == "return" ? id : 1);
  };
  replay.record("result", run(replay.strategy(), program));
}

// A Python list that all replicas append to.
class Seen {
 public:
  void add(std::string what) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(what));
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  const std::vector<std::string>& items() const { return items_; }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> items_;
};

// Replicas run at the same time, so the program determines the order in which they append: here, replica 0
// waits for all others. A program may do this with threads. It would never end if replicas took turns.
void await(const Seen& seen, const dist_replica* replica, std::size_t before) {
  const auto others = static_cast<std::size_t>(dist_replica_num_replicas(replica)) - 1;
  while (dist_replica_id(replica) == 0 && seen.size() < before + others) std::this_thread::yield();
}

void replica_order(Replay& replay) {
  const std::string_view fn = replay.fn();
  const bool merges = fn == "append a<id>; merge_call appends m; append b<id>";
  if (!merges && fn != "append replica_id to a list") replay.unknown("fn");
  Seen seen;
  run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
    const std::string id = std::to_string(dist_replica_id(replica));
    await(seen, replica, 0);
    seen.add(std::string(merges ? "a" : "").append(id));
    if (!merges) return replay.integer(0);
    merge_call(replica, [&](dist_strategy*, dist_value*) {
      seen.add("m");
      return Value();
    });
    await(seen, replica, static_cast<std::size_t>(dist_replica_num_replicas(replica)) + 1);
    seen.add(std::string("b").append(id));
    return replay.integer(0);
  });
  std::vector<Json> order;
  for (const std::string& item : seen.items()) {
    order.push_back(merges ? replay.json(item) : replay.json(static_cast<int64_t>(std::stoll(item))));
  }
  replay.record("order", replay.array(std::move(order)));
}

// ---- experimental_local_results

void local_results_of(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const std::string_view topic = replay.topic(1);
  if (topic == "variable") {
    const Variable variable =
        float_variable(strategy, static_cast<float>(number_of(replay.input("initial"))));
    const Value results = experimental_local_results(strategy, value_of(variable));
    std::vector<Json> items;
    for (std::size_t i = 0; i < results.size(); ++i) items.push_back(replay.encode(results.item(i)));
    replay.record("count", replay.json(static_cast<int64_t>(results.size())));
    return replay.record("result", replay.array(std::move(items)));
  }
  if (topic == "in_replica_context") {
    const ReplicaFn fn = [&](dist_replica* replica, dist_value*, dist_value*) {
      return experimental_local_results(dist_replica_strategy(replica), dense(replay, 1));
    };
    return replay.record("result", run(strategy, fn));
  }
  Value value;
  if (topic == "per_replica") {
    value = replay.per_replica(replay.input("per_replica"));
  } else if (topic == "nest") {
    value = run(strategy, [&](dist_replica* replica, dist_value*, dist_value*) {
      const Value id = replay.scalar("int32", dist_replica_id(replica));
      return replay.tuple({id, replay.dict({{"a", dense(replay, 2)}})});
    });
  } else {
    value = replay.decode(replay.input("value"));
  }
  const Value results = experimental_local_results(strategy, value);
  replay.record("result", results);
  if (topic == "per_replica") {
    replay.record("python_type", replay.json(results.kind() == DIST_VALUE_TUPLE ? "tuple" : "list"));
  }
}

// ---- experimental_distribute_values_from_function

void value_contexts(Replay& replay) {
  const double k = number_of(replay.input("k"));
  std::vector<Json> seen;
  const Value result = values_from_function(replay.strategy(), [&](const dist_value_context& context) {
    const int32_t id = context.replica_id_in_sync_group;
    const int32_t n = context.num_replicas_in_sync;
    const std::string text = "tf.distribute.ValueContext(replica id " + std::to_string(id) +
                             ",  total replicas in sync: " + std::to_string(n) + ")";
    seen.push_back(Members(replay)
                       .add("class", "ValueContext")
                       .add("replica_id_in_sync_group", id)
                       .add("num_replicas_in_sync", n)
                       .add("str", text)
                       .add("in_cross_replica_context", dist_in_cross_replica_context() != 0)
                       .take());
    return dense(replay, id * k);
  });
  replay.record("result", result);
  replay.record("value_contexts", replay.array(std::move(seen)));
}

void distribute_values(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const std::string_view topic = replay.topic(1);
  if (topic == "value_context") return value_contexts(replay);
  if (topic == "in_replica_context") {
    const ReplicaFn fn = [&](dist_replica* replica, dist_value*, dist_value*) {
      return values_from_function(dist_replica_strategy(replica),
                                  [&](const dist_value_context&) { return replay.scalar("int32", 1); });
    };
    return replay.record("result", run(strategy, fn));
  }
  const ValueFn fn = [&](const dist_value_context& context) -> Value {
    const int32_t id = context.replica_id_in_sync_group;
    if (topic == "nest") {
      const Value more = replay.dict({{"a", replay.scalar("int32", id + 1)}});
      return replay.tuple({replay.scalar("int32", id), more});
    }
    if (topic == "python_value") return replay.integer(id);
    if (topic == "python_same") return replay.integer(5);
    if (topic == "numpy")
      return replay.tensor("int64", {2}, {static_cast<double>(id), static_cast<double>(id)});
    if (topic == "none") return {};
    if (topic == "in_tf_function") return dense(replay, 1);
    if (topic != "raises") replay.unknown("topic");
    raise(DIST_INVALID_ARGUMENT, "boom");
  };
  replay.record("result", values_from_function(strategy, fn));
}

// ---- Losses

// Converts plain JSON numbers to a tensor.
Elements floats_of(const Json& json) {
  if (!json.IsArray()) return elements_of(DIST_F32, {}, {number_of(json)});
  std::vector<double> numbers;
  for (const Json& number : json.GetArray()) numbers.push_back(number_of(number));
  return elements_of(DIST_F32, {static_cast<int64_t>(numbers.size())}, numbers);
}

Value average_loss(Replay& replay, dist_replica* replica) {
  Elements loss = floats_of(replay.input("per_example_loss"));
  const dist_tensor loss_view = loss.view();
  Elements weight;
  dist_tensor weight_view{};
  const bool weighted = replay.has("sample_weight");
  if (weighted) {
    weight = floats_of(replay.input("sample_weight"));
    weight_view = weight.view();
  }
  const bool given = replay.has("global_batch_size") && !replay.input("global_batch_size").IsNull();
  const int64_t batch = given ? replay.input("global_batch_size").GetInt64() : 0;
  float average = 0;
  dist_tensor out{&average, DIST_F32, 0, nullptr, nullptr};
  check(dist_average_loss(replica, &loss_view, weighted ? &weight_view : nullptr, batch, &out));
  return dense(replay, average);
}

Value regularization_loss(Replay& replay, dist_replica* replica) {
  Elements loss = floats_of(replay.input("loss"));
  const dist_tensor view = loss.view();
  float scaled = 0;
  dist_tensor out{&scaled, DIST_F32, 0, nullptr, nullptr};
  check(dist_scale_regularization_loss(replica, &view, &out));
  return dense(replay, scaled);
}

void losses(Replay& replay) {
  const auto loss = replay.topic(0) == "compute_average_loss" ? average_loss : regularization_loss;
  if (replay.topic(1) == "cross_replica") {
    const InScope scope(replay.strategy());
    return replay.record("result", loss(replay, dist_get_replica()));
  }
  replay.record("result", run(replay.strategy(), [&](dist_replica* replica, dist_value*, dist_value*) {
                  return loss(replay, replica);
                }));
}

void in_tf_function(Replay& replay) {
  if (replay.fn() != "tf.function(run(lambda x: x + replica_id))") replay.unknown("fn");
  const Value x = replay.per_replica(replay.input("per_replica"));
  const ReplicaFn fn = [&](dist_replica* replica, dist_value* args, dist_value*) {
    const int32_t id = dist_replica_id(replica);
    return replay.map(first_of(args).get(), [id](double number) { return number + id; });
  };
  replay.record("result", run(replay.strategy(), fn, replay.tuple({x})));
}

using Program = void (*)(Replay& replay);
constexpr std::pair<std::string_view, Program> kPrograms[] = {
    {"returns", returns},
    {"args", args},
    {"raises", raises},
    {"replica_order", replica_order},
    {"experimental_local_results", local_results_of},
    {"distribute_values", distribute_values},
    {"context", replay_context},
    {"set_strategy", replay_set_strategy},
    {"compute_average_loss", losses},
    {"scale_regularization_loss", losses},
    {"tf_function", in_tf_function},
};

}  // namespace

void replay_run(Replay& replay) {
  const Program* const program = find_in(kPrograms, replay.topic(0));
  if (program == nullptr) replay.unknown("topic");
  (*program)(replay);
}

}  // namespace golden
