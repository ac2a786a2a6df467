// SPDX-License-Identifier: Apache-2.0
// Area "variables": tf.Variable with every synchronization and aggregation: creating, assigning, reading,
// scattering.
#include <dist/tf.h>
#include <algorithm>
#include <array>
#include <utility>

#include "variables.hpp"

namespace golden {
namespace {

constexpr std::array<std::string_view, 4> kSynchronizations{"AUTO", "NONE", "ON_WRITE", "ON_READ"};
constexpr std::array<std::string_view, 4> kAggregations{"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
constexpr std::array<std::pair<std::string_view, dist_assign_op>, 3> kMethods{
    {{"assign", DIST_ASSIGN}, {"assign_add", DIST_ASSIGN_ADD}, {"assign_sub", DIST_ASSIGN_SUB}}};
constexpr std::array<std::pair<std::string_view, dist_scatter_op>, 8> kScatters{
    {{"scatter_add", DIST_SCATTER_ADD},
     {"scatter_sub", DIST_SCATTER_SUB},
     {"scatter_update", DIST_SCATTER_UPDATE},
     {"scatter_mul", DIST_SCATTER_MUL},
     {"scatter_div", DIST_SCATTER_DIV},
     {"scatter_min", DIST_SCATTER_MIN},
     {"scatter_max", DIST_SCATTER_MAX},
     {"batch_scatter_update", DIST_SCATTER_BATCH_UPDATE}}};

// Returns the mode for a name or for TensorFlow's number; C's constants count from `first` in the same order.
// A string in place of a mode, which no C compiler accepts, counts as the name.
// place of a mode, which no C compiler accepts, counts as the name.
template <class Mode>
Mode mode_of(const Replay& replay, const char* key, Mode first,
             const std::array<std::string_view, 4>& names) {
  if (!replay.has(key)) return {};
  if (replay.input(key).IsInt()) return static_cast<Mode>(first + replay.input(key).GetInt());
  const std::string_view name = replay.text(key);
  const auto at = std::find(names.begin(), names.end(), name.substr(0, name.find(" (a string)")));
  if (at == names.end()) replay.unknown(std::string(key) + " \"" + std::string(replay.text(key)) + "\"");
  return static_cast<Mode>(first + static_cast<int32_t>(at - names.begin()));
}

template <class Op, std::size_t N>
Op method_of(const Replay& replay, const std::array<std::pair<std::string_view, Op>, N>& methods) {
  const std::string_view name = replay.text("method");
  const auto at =
      std::find_if(methods.begin(), methods.end(), [&](const auto& method) { return method.first == name; });
  if (at == methods.end()) replay.unknown("method \"" + std::string(name) + "\"");
  return at->second;
}

// Plays one case.
class Case {
 public:
  explicit Case(Replay& replay) : replay_(replay), strategy_(replay.strategy()) {
    options_.synchronization =
        mode_of(replay, "synchronization", DIST_SYNCHRONIZATION_AUTO, kSynchronizations);
    options_.aggregation = mode_of(replay, "aggregation", DIST_AGGREGATION_NONE, kAggregations);
  }

  void created() {
    const Variable variable = make();
    if (replay_.has("trainable")) return replay_.record("variable", encode(variable));
    record_state(variable);
    replay_.record(
        "v_synchronization",
        mode(kSynchronizations, dist_variable_synchronization(variable.get()) - DIST_SYNCHRONIZATION_AUTO));
    replay_.record("v_aggregation",
                   mode(kAggregations, dist_variable_aggregation(variable.get()) - DIST_AGGREGATION_NONE));
    replay_.record("name", tensor_name(dist_variable_name(variable.get())));
    std::vector<Json> names;
    for (int32_t copy = 0; copy < dist_variable_num_copies(variable.get()); ++copy)
      names.push_back(tensor_name(dist_variable_copy_name(variable.get(), copy)));
    replay_.record("component_names", replay_.array(std::move(names)));
    int32_t in_scope = 0;
    check(dist_variable_created_in_scope(strategy_, value_of(variable).get(), &in_scope));
    replay_.record("created_in_scope", replay_.json(in_scope != 0));
    Value copies;
    check(dist_strategy_local_results(strategy_, value_of(variable).get(), copies.out()));
    replay_.record("num_components", replay_.json(static_cast<int64_t>(copies.size())));
  }

  // tf.Variable(1.0, ...)
  void created_of_one() {
    replay_.record("variable", encode(create(strategy_, replay_.scalar("float32", 1), &options_)));
  }

  // s.run(lambda: v.method(x)), with a tensor per replica or one Python number for all as x.
  void assigned_in_replicas(bool identity) {
    const Variable variable = make();
    const auto how = method_of(replay_, kMethods);
    const Value common = replay_.has("value") ? replay_.decode(replay_.input("value")) : Value();
    const Value result = run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
      if (common) {
        check(dist_replica_assign_value(replica, variable.get(), how, common.get(), nullptr));
      } else {
        assign(replica, variable, how, own(replica));
      }
      return identity ? read(replica, variable) : Value();
    });
    if (identity) return replay_.record("result", result);
    record_state(variable);
  }

  // v.method(x) outside replicas, inside or outside the scope.
  void assigned_outside(bool in_scope) {
    const Variable variable = make();
    const auto how = method_of(replay_, kMethods);
    const Value given = replay_.has("value") ? replay_.decode(replay_.input("value"))
                                             : replay_.per_replica(replay_.input("per_replica"));
    const auto assigned = [&] { check(dist_variable_assign(strategy_, variable.get(), how, given.get())); };
    if (in_scope) {
      const InScope scope(strategy_);
      assigned();
    } else {
      assigned();
    }
    record_state(variable);
  }

  // strategy.extended.update(v, lambda copy, x: copy.method(x), args=(x,))
  void updated() {
    const Variable variable = make();
    const auto how = method_of(replay_, kMethods);
    const Value args = replay_.list({replay_.decode(replay_.input("value"))});
    {
      const InScope scope(strategy_);
      update(
          strategy_, variable.get(),
          [how](dist_tensor* copy, dist_value* given) {
            const auto x = static_cast<float>(Replay::number_of(dist_value_item(given, 0)));
            auto& number = *static_cast<float*>(copy->data);
            number = how == DIST_ASSIGN ? x : how == DIST_ASSIGN_ADD ? number + x : number - x;
          },
          args);
    }
    record_state(variable);
  }

  void added_twice() {
    const Variable variable = make();
    const Value between = run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
      assign(replica, variable, DIST_ASSIGN_ADD, own(replica));
      Value read_between = read(replica, variable);
      assign(replica, variable, DIST_ASSIGN_ADD, replay_.scalar("float32", dist_replica_id(replica) + 1));
      return read_between;
    });
    record_state(variable);
    replay_.record("read_between", between);
  }

  // tf.Variable(1, dtype=...); s.run(lambda: v.assign(tf.constant(number(replica_id), dtype=...)))
  void assigned_numbers(double (*number)(int32_t replica_id)) {
    const std::string dtype(replay_.text("dtype"));
    const Variable variable =
        create(strategy_, replay_.scalar(dtype, replay_.input("initial").GetDouble()), &options_);
    assign_in_run(variable, [&](int32_t replica_id) { return replay_.scalar(dtype, number(replica_id)); });
    record_state(variable);
  }

  void assigned_wrong_shape() {
    const Variable variable = make();
    assign_in_run(variable, [&](int32_t replica_id) {
      return replay_.tensor("float32", {2}, {1.0 * (replica_id + 1), 2.0 * (replica_id + 1)});
    });
    record_state(variable);
  }

  void assigned_on_one_only() {
    const Variable variable = make();
    run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
      if (dist_replica_id(replica) == 0) assign(replica, variable, DIST_ASSIGN, replay_.scalar("float32", 4));
      return Value();
    });
    record_state(variable);
  }

  void begun_by_function() {
    struct Calls {
      Replay& replay;
      int32_t count;
    } calls{replay_, 0};
    options_.initial_user_data = &calls;
    options_.initial_fn = [](dist_strategy*, dist_value** out_value, void* user_data) {
      return guarded([&] {
        Calls& self = *static_cast<Calls*>(user_data);
        *out_value = self.replay.scalar("float32", ++self.count).release();
      });
    };
    Variable variable;
    check(dist_variable_create(strategy_, nullptr, &options_, variable.out()));
    record_state(variable);
    replay_.record("initializer_calls", replay_.json(calls.count));
  }

  void created_in_run() {
    Variable made;  // owns it, because the strategy would keep it for its next run
    const Value result = run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
      const Value number = replay_.scalar("float32", dist_replica_id(replica) + 1);
      const dist_tensor initial = view_of(number);
      dist_variable* variable = nullptr;
      check(dist_replica_variable(replica, "Variable", &initial, &options_, &variable));
      if (dist_replica_id(replica) == 0) *made.out() = variable;
      return read(replica, variable);
    });
    replay_.record("result", result);
    // Python's name for a plain variable.
    const std::string_view name = dist_variable_class(made.get());
    std::vector<Json> names;
    names.push_back(replay_.json(name == "Variable" ? "ResourceVariable" : name));
    replay_.record("created", replay_.array(std::move(names)));
  }

  // Saving is a read, and restoring is an assignment.
  void saved_and_restored() {
    const Variable variable = make();
    assign_in_run(variable, [&](int32_t replica_id) { return own(replica_id); });
    Value saved;
    check(dist_variable_read(strategy_, variable.get(), saved.out()));
    const Variable second = create(strategy_, replay_.scalar("float32", 0), &options_);
    check(dist_variable_assign(strategy_, second.get(), DIST_ASSIGN, saved.get()));
    replay_.record("before", encode(variable));
    replay_.record("saved", saved);
    replay_.record("restored", replay_.object(state(second)));
  }

  void scattered() {
    std::vector<double> initial;
    for (const Json& number : replay_.input("initial").GetArray()) initial.push_back(number.GetDouble());
    const auto size = static_cast<int64_t>(initial.size());
    const Variable variable = create(strategy_, replay_.tensor("float32", {size}, initial), &options_);
    const auto how = method_of(replay_, kScatters);
    run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
      const double times = dist_replica_id(replica) + 1;
      const Value slices = replay_.composite(DIST_VALUE_INDEXED_SLICES,
                                             {replay_.tensor("float32", {2}, {10 * times, 20 * times}),
                                              replay_.tensor("int32", {2}, {0, 2}), replay_.none()});
      check(dist_replica_scatter(replica, variable.get(), how, slices.get(), nullptr));
      return Value();
    });
    record_state(variable);
  }

 private:
  Variable make() { return create(strategy_, replay_.decode(replay_.input("initial")), &options_); }

  // tf.constant(per_replica[replica_id])
  Value own(int32_t replica_id) {
    return replay_.decode(replay_.input("per_replica")[static_cast<rapidjson::SizeType>(replica_id)]);
  }
  Value own(dist_replica* replica) { return own(dist_replica_id(replica)); }

  static void assign(dist_replica* replica, const Variable& variable, dist_assign_op how,
                     const Value& tensor) {
    const dist_tensor view = view_of(tensor);
    check(dist_replica_assign(replica, variable.get(), how, &view, nullptr));
  }

  template <class Make>
  void assign_in_run(const Variable& variable, const Make& tensor_of) {
    run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
      assign(replica, variable, DIST_ASSIGN, tensor_of(dist_replica_id(replica)));
      return Value();
    });
  }

  // tf.identity(v)
  static Value read(dist_replica* replica, dist_variable* variable) {
    Value value;
    check(dist_replica_read(replica, variable, value.out()));
    return value;
  }
  static Value read(dist_replica* replica, const Variable& variable) { return read(replica, variable.get()); }

  Value read_outside(const Variable& variable) {
    Value value;
    check(dist_variable_read(strategy_, variable.get(), value.out()));
    return value;
  }

  Json encode(const Variable& variable) { return replay_.encode(variable.get()); }

  Json mode(const std::array<std::string_view, 4>& names, int32_t number) {
    return replay_.json(names.at(static_cast<std::size_t>(number)));
  }

  // The name of a variable is that of the first output of its operation.
  Json tensor_name(std::string name) { return replay_.json(name.append(":0")); }

  template <class Read>
  Json outcome(const Read& read) {
    try {
      return replay_.encode(read());
    } catch (const Failed& failed) {
      return replay_.encode_error(failed.status);
    }
  }

  std::vector<std::pair<std::string, Json>> state(const Variable& variable) {
    const auto in_scope = [&] {
      const InScope scope(strategy_);
      return read_outside(variable);
    };
    std::vector<std::pair<std::string, Json>> state;
    state.emplace_back("variable", encode(variable));
    state.emplace_back("read_value", outcome([&] { return read_outside(variable); }));
    state.emplace_back("read_in_scope", outcome(in_scope));
    state.emplace_back("value_in_scope", outcome(in_scope));
    state.emplace_back("read_in_replica_context", outcome([&] {
                         return run(strategy_, [&](dist_replica* replica, dist_value*, dist_value*) {
                           return read(replica, variable);
                         });
                       }));
    return state;
  }

  void record_state(const Variable& variable) {
    for (auto& [key, json] : state(variable)) replay_.record(key, std::move(json));
  }

  Replay& replay_;
  dist_strategy* strategy_;
  dist_variable_options options_ = DIST_VARIABLE_OPTIONS_INIT;
};

double two_and_more(int32_t replica_id) { return replica_id + 2; }
double even(int32_t replica_id) { return replica_id % 2 == 0 ? 1 : 0; }

void play_fn(Replay& replay, Case& one) {
  const std::string_view fn = replay.fn();
  if (fn == "assign_add(x); a = read; assign_add(replica_id + 1); return a") return one.added_twice();
  if (fn == "assign(replica_id + 2)") return one.assigned_numbers(two_and_more);
  if (fn == "assign(replica_id % 2 == 0)") return one.assigned_numbers(even);
  if (fn == "assign of shape [2] to shape []") return one.assigned_wrong_shape();
  if (fn == "only replica 0 assigns 4.0") return one.assigned_on_one_only();
  if (fn == "initial value is a function returning the number of times it was called")
    return one.begun_by_function();
  if (fn == "Variable(replica_id + 1) created in run") return one.created_in_run();
  if (fn == "assign(x) in run; save; restore into a new variable") return one.saved_and_restored();
  if (fn == "IndexedSlices(values=[10,20]*(replica_id+1), indices=[0,2])") return one.scattered();
  replay.unknown("fn \"" + std::string(fn) + "\"");
}

void play_where(Replay& replay, Case& one) {
  const std::string_view where = replay.text("where");
  if (where == "inside run") return one.assigned_in_replicas(false);
  constexpr std::string_view kIdentity = "inside run; fn returns identity(v.";
  if (where.starts_with(kIdentity) && where.ends_with("(x))")) return one.assigned_in_replicas(true);
  if (where == "scope, cross-replica") return one.assigned_outside(true);
  if (where == "no scope") return one.assigned_outside(false);
  if (where == "extended.update") return one.updated();
  replay.unknown("where \"" + std::string(where) + "\"");
}

}  // namespace

void replay_variables(Replay& replay) {
  if (replay_variable_owners(replay)) return;
  Case one(replay);
  if (replay.topic(0) == "create") return one.created_of_one();
  if (replay.has("fn")) return play_fn(replay, one);
  if (replay.has("where")) return play_where(replay, one);
  if (replay.has("method")) return one.assigned_in_replicas(false);
  if (replay.topic(2) != "create") replay.unknown(replay.topics());
  one.created();
}

}  // namespace golden
