// SPDX-License-Identifier: Apache-2.0
// Area "multi_worker": MultiWorkerMirroredStrategy with several workers.
#include <array>
#include <utility>

#include "input_program.hpp"
#include "programs.hpp"
#include "variables.hpp"
#include "worker_program.hpp"

namespace golden {
namespace {

constexpr int64_t kTimeoutNs = 20'000'000'000;

// Plays a case with one value per worker, from its "per_worker".
class Play {
 public:
  explicit Play(Replay& replay) : replay_(replay), workers_(replay, kTimeoutNs), results_(workers_.size()) {
    if (replay.has("per_worker")) given_ = given();
  }

  void properties() {
    workers_.record([&](Worker& worker) { return properties_of(worker); });
  }

  void replica_ids() {
    std::vector<std::pair<int32_t, int32_t>> seen(workers_.size());
    workers_.on_all([&](Worker& worker) {
      run(worker.strategy.get(), [&](dist_replica* replica, dist_value*, dist_value*) -> Value {
        seen[at(worker)] = {dist_replica_id(replica), dist_replica_num_replicas(replica)};
        return {};
      });
    });
    workers_.record([&](Worker& worker) {
      const auto& [id, all] = seen[at(worker)];
      return object(replay_, "replica_id", replay_.encode(replay_.scalar("int32", id)),
                    "num_replicas_in_sync", replay_.encode(replay_.integer(all)));
    });
  }

  // strategy.run(all_reduce, args=(value,)) and similar calls
  void in_replicas(const std::function<Value(dist_replica*, const Value&)>& fn) {
    each([&](Worker& worker) {
      return run(worker.strategy.get(), [&](dist_replica* replica, dist_value*, dist_value*) {
        return fn(replica, given_.at(at(worker)));
      });
    });
  }

  void outside(const std::function<Value(dist_strategy*, const Value&)>& fn) {
    each([&](Worker& worker) { return fn(worker.strategy.get(), value_of_worker(worker)); });
  }

  void distribute_values() {
    if (replay_.fn() != "return 10 * replica_id_in_sync_group") replay_.unknown("fn");
    std::vector<std::vector<Value>> values(workers_.size());
    workers_.on_all([&](Worker& worker) {
      const Value all = values_from_function(worker.strategy.get(), [&](const dist_value_context& context) {
        return replay_.scalar("int32", 10 * context.replica_id_in_sync_group);
      });
      values[at(worker)] = local_results(worker.strategy.get(), all);
    });
    // libdist returns a single component as it is, while TensorFlow wraps it in a PerReplica.
    workers_.record([&](Worker& worker) {
      std::vector<Json> components;
      for (const Value& one : values[at(worker)]) components.push_back(replay_.encode(one));
      return object(replay_, "result",
                    object(replay_, "kind", replay_.json("per_replica"), "values",
                           replay_.array(std::move(components))));
    });
  }

  void documented_example() {
    const float initial = replay_.input("initial").GetFloat();
    each("local_value", [&](Worker& worker) {
      const Variable variable = float_variable(worker.strategy.get(), initial, DIST_AGGREGATION_SUM);
      run(worker.strategy.get(), [&](dist_replica* replica, dist_value*, dist_value*) -> Value {
        const Value value = replay_.scalar("float32", replay_.input("value").GetDouble());
        check(dist_replica_assign_value(replica, variable.get(), DIST_ASSIGN_ADD, value.get(), nullptr));
        return {};
      });
      return copy_of(worker, variable);
    });
  }

  void variable() {
    if (replay_.topic(1) == "initial_value_differs") return initial_value_differs();
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    read_enum(DIST_ENUM_SYNCHRONIZATION, std::string(replay_.text("synchronization")).c_str(),
              &options.synchronization);
    read_enum(DIST_ENUM_AGGREGATION, std::string(replay_.text("aggregation")).c_str(), &options.aggregation);
    const std::string_view method = replay_.text("method");
    if (method != "assign" && method != "assign_add")
      replay_.unknown("a method called " + std::string(method));
    const dist_assign_op how = method == "assign" ? DIST_ASSIGN : DIST_ASSIGN_ADD;
    struct Seen {
      Value local;
      Value read;
      std::optional<dist_status> failed;
    };
    std::vector<Seen> seen(workers_.size());
    workers_.on_all([&](Worker& worker) {
      Seen& own = seen[at(worker)];
      dist_strategy* const strategy = worker.strategy.get();
      const Variable made =
          create(strategy, replay_.scalar("float32", replay_.input("initial").GetDouble()), &options);
      run(strategy, [&](dist_replica* replica, dist_value*, dist_value*) -> Value {
        check(dist_replica_assign_value(replica, made.get(), how, given_.at(at(worker)).get(), nullptr));
        return {};
      });
      own.local = copy_of(worker, made);
      const dist_status status = dist_variable_read(strategy, made.get(), own.read.out());
      if (status != DIST_OK) own.failed = status;
    });
    workers_.record([&](Worker& worker) {
      const Seen& own = seen[at(worker)];
      Json read = own.failed ? object(replay_, "error", replay_.encode_error(*own.failed))
                             : object(replay_, "value", replay_.encode(own.read));
      return object(replay_, "local_value", replay_.encode(own.local), "cross_replica_read", std::move(read));
    });
  }

  void dataset() {
    if (replay_.text("dataset") != "range(total).batch(gb)") replay_.unknown("dataset");
    dist_dataset_options options = batched(replay_.input("gb").GetInt64());
    read_enum(DIST_ENUM_SHARD_POLICY, std::string(replay_.text("policy")).c_str(), &options.shard_policy);
    steps([&](Worker& worker) {
      return range_dataset(worker.strategy.get(), 0, replay_.input("total").GetInt64(), options);
    });
  }

  void from_function() {
    const std::string_view fn = replay_.text("dataset_fn");
    const bool sharded = fn == "range(6).shard(num_input_pipelines, input_pipeline_id).batch(2)";
    if (!sharded && fn != "range(2 + 3 * input_pipeline_id).batch(1)") replay_.unknown("dataset_fn");
    contexts_.resize(workers_.size());
    steps([&](Worker& worker) {
      dist_strategy* const strategy = worker.strategy.get();
      const dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
      return function_dataset(
          strategy,
          [&, strategy](const dist_input_context& context) {
            if (sharded) contexts_[at(worker)].push_back(context);
            const int64_t first = sharded ? context.input_pipeline_id : 0;
            const int64_t step = sharded ? context.num_input_pipelines : 1;
            const int64_t end = sharded ? 6 : 2 + 3 * context.input_pipeline_id;
            const SourceFn source = [this, first, step, end](int64_t index) {
              const int64_t number = first + index * step;
              return number < end ? replay_.scalar("int64", static_cast<double>(number)) : Value();
            };
            return source_dataset(strategy, source, batched(sharded ? 2 : 1));
          },
          options);
    });
  }

  void end() {
    results_.clear();
    workers_.end();
  }

 private:
  static std::size_t at(const Worker& worker) noexcept { return static_cast<std::size_t>(worker.id); }

  Value given(const Json& json) {
    if (json.IsNumber()) return replay_.scalar("float32", json.GetDouble());
    if (find(json, "kind") != nullptr) return replay_.decode(json);
    std::vector<std::pair<std::string, Value>> items;
    for (const auto& [name, value] : json.GetObject()) items.emplace_back(text_of(name), given(value));
    return replay_.dict(items);
  }
  std::vector<Value> given() {
    const Json& json = replay_.input("per_worker");
    std::vector<Value> values;
    for (const Json& one : json.GetArray()) values.push_back(given(one));
    return values;
  }

  // The value that the program reduces or gathers outside replicas.
  Value value_of_worker(Worker& worker) {
    dist_strategy* const strategy = worker.strategy.get();
    if (replay_.has("value")) return replay_.number(replay_.input("value").GetDouble());
    if (!replay_.has("fn")) {
      return values_from_function(strategy, [&](const dist_value_context&) { return given_.at(at(worker)); });
    }
    if (replay_.fn() != "run returns Python 7.0 + rank") replay_.unknown("fn");
    return run(strategy,
               [&](dist_replica*, dist_value*, dist_value*) { return replay_.number(7.0 + worker.id); });
  }

  void each(const std::function<Value(Worker&)>& fn) { each("result", fn); }
  void each(std::string_view key, const std::function<Value(Worker&)>& fn) {
    workers_.on_all([&](Worker& worker) { results_[at(worker)] = fn(worker); });
    workers_.record(
        [&](Worker& worker) { return object(replay_, key, replay_.encode(results_[at(worker)])); });
  }

  // The content of this worker's copy.
  static Value copy_of(Worker& worker, const Variable& variable) {
    dist_tensor copy;
    check(dist_variable_component(variable.get(), worker.id, &copy));
    Value value;
    check(dist_value_create_tensor(worker.strategy.get(), &copy, value.out()));
    return value;
  }

  void initial_value_differs() {
    if (replay_.fn() != "Variable(10 + rank) created in scope on every worker") replay_.unknown("fn");
    std::vector<std::string> classes(workers_.size());
    workers_.on_all([&](Worker& worker) {
      const Variable variable = float_variable(worker.strategy.get(), 10.F + static_cast<float>(worker.id));
      classes[at(worker)] = dist_variable_class(variable.get());
      results_[at(worker)] = copy_of(worker, variable);
    });
    workers_.record([&](Worker& worker) {
      return object(replay_, "value", replay_.encode(results_[at(worker)]), "class",
                    replay_.json(std::string_view(classes[at(worker)])));
    });
  }

  void steps(const std::function<Dataset(Worker&)>& make) {
    std::vector<Steps> taken(workers_.size());
    workers_.on_all([&](Worker& worker) { taken[at(worker)] = take_steps(make(worker)); });
    workers_.record([&](Worker& worker) {
      std::vector<Json> all;
      for (const Value& batch : taken[at(worker)].batches) all.push_back(integers(replay_, batch));
      Json found = replay_.array(std::move(all));
      if (contexts_.empty() || contexts_[at(worker)].empty())
        return object(replay_, "steps", std::move(found));
      std::vector<Json> contexts;
      for (const dist_input_context& context : contexts_[at(worker)]) contexts.push_back(json_of(context));
      return object(replay_, "input_contexts", replay_.array(std::move(contexts)), "steps", std::move(found));
    });
  }

  Json json_of(const dist_input_context& context) {
    int64_t size = 0;
    check(dist_input_context_per_replica_batch_size(&context, 12, &size));
    return object(replay_, "num_input_pipelines", replay_.json(context.num_input_pipelines),
                  "input_pipeline_id", replay_.json(context.input_pipeline_id), "num_replicas_in_sync",
                  replay_.json(context.num_replicas_in_sync), "per_replica_batch_size_12",
                  replay_.json(size));
  }

  Json properties_of(Worker& worker) {
    dist_strategy* const strategy = worker.strategy.get();
    dist_strategy_properties all = DIST_STRATEGY_PROPERTIES_INIT;
    check(dist_strategy_query(strategy, &all));
    std::vector<Json> workers;
    std::vector<Json> parameters;
    const char* name = nullptr;
    for (int32_t r = 0; r < all.num_local_replicas; ++r) {
      check(dist_strategy_device(strategy, all.first_replica + r, &name));
      workers.push_back(replay_.json(name));
    }
    for (int32_t i = 0; i < all.num_parameter_devices; ++i) {
      check(dist_strategy_parameter_device(strategy, i, &name));
      parameters.push_back(replay_.json(name));
    }
    Json tasks = replay_.object({});
    const Json spec = spec_of(replay_, worker.resolver);
    for (const auto& [job, addresses] : spec.GetObject()) {
      tasks.AddMember(replay_.json(text_of(job)), Json(addresses.Size()), replay_.memory());
    }
    ClusterSpec cluster;
    int32_t is_chief = 0;
    check(dist_cluster_resolver_spec(worker.resolver.get(), cluster.out()));
    check(dist_cluster_is_chief(cluster.get(), worker.task_type.c_str(), worker.task_id, &is_chief));
    return object(replay_, "num_replicas_in_sync", replay_.json(all.num_replicas), "task_type",
                  task_type(replay_, worker.resolver), "task_id", task_id(replay_, worker.resolver),
                  "num_tasks", std::move(tasks), "rpc_layer", rpc_layer(replay_, worker.resolver),
                  "in_multi_worker_mode", replay_.json(all.in_multi_worker_mode != 0), "worker_devices",
                  replay_.array(std::move(workers)), "parameter_devices",
                  replay_.array(std::move(parameters)), "should_checkpoint",
                  replay_.json(all.should_checkpoint != 0), "should_save_summary",
                  replay_.json(all.should_save_summary != 0), "experimental_between_graph",
                  replay_.json(all.between_graph != 0), "experimental_should_init",
                  replay_.json(all.should_init != 0), "is_chief", replay_.json(is_chief != 0));
  }

  Replay& replay_;
  Workers workers_;
  std::vector<Value> given_;
  std::vector<Value> results_;
  std::vector<std::vector<dist_input_context>> contexts_;
};

}  // namespace

void replay_multi_worker(Replay& replay) {
  if (replay.id().starts_with("failure/")) return replay_worker_failure(replay);
  const std::string_view topic = replay.topic(0);
  const auto axis = [&] { return replay.axes().at(0); };
  Play play(replay);
  if (topic == "properties") {
    play.properties();
  } else if (topic == "replica_ids") {
    play.replica_ids();
  } else if (topic == "all_reduce") {
    play.in_replicas([&](dist_replica* replica, const Value& value) {
      return all_reduce(replica, op_of(replay.text("op")), value);
    });
  } else if (topic == "reduce" || topic == "reduce_axis0" || topic == "reduce_axis0_uneven") {
    play.outside([&](dist_strategy* strategy, const Value& value) {
      const std::vector<int32_t> axes = replay.has("axis") ? replay.axes() : std::vector<int32_t>();
      Value result;
      check(dist_reduce(strategy, op_of(replay.text("op")), value.get(), axes.data(), axes.size(),
                        result.out()));
      return result;
    });
  } else if (topic == "gather_axis0_uneven" || topic == "gather_axis1_uneven") {
    play.outside(
        [&](dist_strategy* strategy, const Value& value) { return gather(strategy, value, axis()); });
  } else if (topic == "all_gather_axis0_uneven" || topic == "all_gather_axis1_uneven") {
    play.in_replicas(
        [&](dist_replica* replica, const Value& value) { return all_gather(replica, value, axis()); });
  } else if (topic == "variable") {
    play.variable();
  } else if (topic == "documented_example") {
    play.documented_example();
  } else if (topic == "dataset") {
    play.dataset();
  } else if (topic == "from_function" || topic == "from_function_uneven") {
    play.from_function();
  } else if (topic == "distribute_values") {
    play.distribute_values();
  } else {
    replay.unknown("topic " + replay.topics());
  }
  play.end();
}

}  // namespace golden
