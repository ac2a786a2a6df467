// SPDX-License-Identifier: Apache-2.0
// Area "input_misc": pipelines around batch(), input options, datasets from functions, iterators.
#include <map>

#include "input_pipelines.hpp"

namespace golden {
namespace {

// Encodes what each replica got. For a tensor of strings, libdist has a list of texts.
Json encode_steps(Replay& replay, dist_strategy* strategy, const std::vector<Value>& batches) {
  std::vector<Json> steps;
  for (const Value& batch : batches) {
    std::vector<Json> replicas;
    for (const Value& one : local_results(strategy, batch)) replicas.push_back(replay.encode(one));
    steps.push_back(replay.array(std::move(replicas)));
  }
  return replay.array(std::move(steps));
}

void record_steps(Replay& replay, const Dataset& dataset, std::size_t limit = 64) {
  const Steps steps = take_steps(dataset, limit);
  replay.record("steps", encode_steps(replay, replay.strategy(), steps.batches));
  replay.record("end", end_of(replay, steps));
}

// The distributed dataset range(n).batch(4).
Dataset numbers_in_fours(Replay& replay, int64_t n) {
  return range_dataset(replay.strategy(), 0, n, batched(4));
}

// ---- Pipelines

void play_pipeline(Replay& replay) {
  const std::size_t limit = replay.has("take_steps") ? replay.input("take_steps").GetUint64() : 64;
  record_steps(replay, pipeline(replay, replay.topic(1), batched(0)), limit);
}

// ---- Input options

// tf.distribute.InputOptions(...) with all arguments as text. Two of them have no effect, and only libdist.tf
// has them.
void set_input_options(const Json& given, dist_dataset_options* options) {
  for (const auto& member : given.GetObject()) {
    const std::string_view name = text_of(member.name);
    const std::string_view value = text_of(member.value);
    if (name == "experimental_fetch_to_device" || name == "experimental_place_dataset_on_device") continue;
    if (name == "experimental_per_replica_buffer_size") {
      const int buffered = std::stoi(std::string(value));
      options->prefetch = buffered == 0 ? -1 : buffered;
    } else if (name == "experimental_replication_mode") {
      const std::string mode(value.substr(value.find('.') + 1));
      read_enum(DIST_ENUM_INPUT_MODE, mode.c_str(), &options->replication_mode);
    } else {
      throw Unknown{"an input option called " + std::string(name)};
    }
  }
}

// lambda c: range(begin, end).batch(size, drop_remainder)
DatasetFn range_fn(dist_strategy* strategy, int64_t begin, int64_t end, const dist_dataset_options& options) {
  return [=](const dist_input_context&) { return range_dataset(strategy, begin, end, options); };
}

void play_sticky(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  dist_dataset_options per_replica = DIST_DATASET_OPTIONS_INIT;
  per_replica.replication_mode = DIST_INPUT_PER_REPLICA;
  const dist_dataset_options none = DIST_DATASET_OPTIONS_INIT;
  const std::pair<std::string_view, const dist_dataset_options*> calls[] = {
      {"before", &none},
      {"with_per_replica", &per_replica},
      {"after_without_options", &none},
      {"after_with_default_options", &none}};
  for (const auto& [key, options] : calls) {
    const Dataset dataset = function_dataset(strategy, range_fn(strategy, 0, 4, batched(2)), *options);
    replay.record(key, encode_steps(replay, strategy, take_steps(dataset).batches));
  }
}

void play_options(Replay& replay) {
  if (replay.topic(1) == "sticky") return play_sticky(replay);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  set_input_options(replay.input("options"), &options);
  dist_strategy* const strategy = replay.strategy();
  if (replay.topic(1) == "distribute_dataset") {
    options.global_batch_size = 4;
    return record_steps(replay, range_dataset(strategy, 0, 7, options));
  }
  if (replay.topic(1) != "from_function") replay.unknown("what is made with options");
  record_steps(replay, function_dataset(strategy, range_fn(strategy, 0, 7, batched(2)), options));
}

// ---- Datasets from functions

Json encode_context(Replay& replay, const dist_input_context& context) {
  return object(replay, "num_input_pipelines", replay.json(context.num_input_pipelines), "input_pipeline_id",
                replay.json(context.input_pipeline_id), "num_replicas_in_sync",
                replay.json(context.num_replicas_in_sync), "str", replay.json(text_of_context(context)));
}

// Does what the named functions do: one returns no dataset, another a different object.
Dataset odd_dataset(Replay& replay, std::string_view name, const Value& list) {
  if (name == "returns_none") return {};
  if (name == "returns_list") return Dataset(reinterpret_cast<dist_dataset*>(list.get()));
  if (name == "raises") raise(DIST_INVALID_ARGUMENT, "boom in dataset_fn");
  // A C function with another type does not compile, so this one ignores its argument.
  if (name == "takes_no_argument") return range_dataset(replay.strategy(), 0, 4, batched(2));
  replay.unknown("a dataset function called " + std::string(name));
}

void play_sized_function(Replay& replay) {
  dist_strategy* const strategy = replay.strategy();
  const int64_t base = replay.input("base").GetInt64();
  const DatasetFn fn =
      range_fn(strategy, base, base + replay.input("size").GetInt64(),
               batched(replay.input("b").GetInt64(), replay.input("drop_remainder").GetBool()));
  std::vector<Json> contexts;
  const DatasetFn seen = [&](const dist_input_context& context) {
    contexts.push_back(encode_context(replay, context));
    return fn(context);
  };
  const Dataset dataset = function_dataset(strategy, seen, batched(0));
  const Steps steps = take_steps(dataset);
  replay.record("input_contexts", replay.array(std::move(contexts)));
  replay.record("steps", integers_of_steps(replay, strategy, steps.batches));
  replay.record("end", end_of(replay, steps));
}

void play_default_function(Replay& replay) {
  std::vector<Json> contexts;
  const DatasetFn fn = [&](const dist_input_context& context) {
    std::vector<Json> fields;
    for (const int32_t field :
         {context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync}) {
      fields.push_back(replay.json(field));
    }
    contexts.push_back(replay.array(std::move(fields)));
    return range_dataset(replay.strategy(), 0, 5, batched(2));
  };
  const Dataset dataset = function_dataset(replay.strategy(), fn, batched(0));
  std::vector<Json> steps;
  for (const Value& batch : take_steps(dataset).batches) steps.push_back(integers(replay, batch));
  replay.record("input_contexts", replay.array(std::move(contexts)));
  replay.record("steps", replay.array(std::move(steps)));
}

void play_function(Replay& replay) {
  const std::string_view name = replay.topic(1);
  dist_strategy* const strategy = replay.strategy();
  if (name.empty()) return play_default_function(replay);
  if (name.starts_with("size")) return play_sized_function(replay);
  if (name == "unbatched") {
    return record_steps(replay, function_dataset(strategy, range_fn(strategy, 0, 5, batched(0)), batched(0)));
  }
  const Value list = replay.list({replay.integer(1), replay.integer(2)});
  const DatasetFn fn = [&](const dist_input_context&) { return odd_dataset(replay, name, list); };
  const Steps steps = take_steps(function_dataset(strategy, fn, batched(0)));
  replay.record("steps", integers_of_steps(replay, strategy, steps.batches));
}

// ---- Datasets

// Returns "i64[?, 4]" in the form of a TensorSpec.
std::string tensor_spec(Replay& replay, std::string_view text) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"i64", "tf.int64"}, {"i32", "tf.int32"}, {"f32", "tf.float32"}, {"f64", "tf.float64"}};
  const std::size_t open = text.find('[');
  const auto name = kNames.find(text.substr(0, open));
  if (name == kNames.end()) replay.unknown("a dtype in " + std::string(text));
  std::string sizes(text.substr(open + 1, text.size() - open - 2));
  for (std::size_t at = sizes.find('?'); at != sizes.npos; at = sizes.find('?', at))
    sizes.replace(at, 1, "None");
  const bool single = !sizes.empty() && sizes.find(',') == sizes.npos;
  return "TensorSpec(shape=(" + sizes + (single ? "," : "") + "), dtype=" + std::string(name->second) +
         ", name=None)";
}

std::string spec_text(Replay& replay, const Value& spec) {
  if (spec.kind() == DIST_VALUE_TEXT) return tensor_spec(replay, dist_value_text(spec.get()));
  std::string all;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (i != 0) all += ", ";
    all += spec_text(replay, spec.item(i));
  }
  return "PerReplicaSpec(" + all + ")";
}

// C has nothing like the Python classes of datasets and iterators. A batch's class is the kind of its value.
void play_classes(Replay& replay) {
  const Dataset dataset = numbers_in_fours(replay, 6);
  const Iterator iterator = iterate(dataset);
  Value batch;
  check(dist_iterator_next(iterator.get(), batch.out()));
  replay.record("value_class",
                replay.json(batch.kind() == DIST_VALUE_PER_REPLICA ? "PerReplica" : "EagerTensor"));
  Value spec;
  check(dist_dataset_element_spec(dataset.get(), spec.out()));
  replay.record("element_spec", replay.json(spec_text(replay, spec)));
  replay.record("iterator_element_spec", replay.json(spec_text(replay, spec)));
}

void play_distribute_dataset(Replay& replay) {
  const std::string_view name = replay.topic(1);
  dist_strategy* const strategy = replay.strategy();
  if (name == "in_replica_context") {
    const Value result = run(strategy, [&](dist_replica* replica, dist_value*, dist_value*) {
      return replay.boolean(!range_dataset(dist_replica_strategy(replica), 0, 4, batched(2)));
    });
    return replay.record("result", result);
  }
  if (name.empty()) {
    std::vector<Json> steps;
    for (const Value& batch : take_steps(range_dataset(strategy, 0, 5, batched(2))).batches) {
      steps.push_back(integers(replay, batch));
    }
    return replay.record("steps", replay.array(std::move(steps)));
  }
  Dataset dataset;
  float number = 5;
  const dist_tensor scalar{&number, DIST_F32, 0, nullptr, nullptr};
  if (name == "not_a_dataset_list") {
    const Value list = replay.list({replay.integer(1), replay.integer(2)});
    Iterator iterator;
    check(dist_iterator_create(reinterpret_cast<dist_dataset*>(list.get()), iterator.out()));
  } else if (name == "not_a_dataset_tensor") {
    check(dist_dataset_create_from_tensors(strategy, &scalar, 1, nullptr, dataset.out()));
  } else if (name == "not_a_dataset_none") {
    check(dist_dataset_create_from_tensors(strategy, nullptr, 1, nullptr, dataset.out()));
  } else {
    replay.unknown("what is distributed");
  }
}

// ---- Iterators

void play_iterated_twice(Replay& replay) {
  const Dataset dataset = numbers_in_fours(replay, 6);
  for (const std::string_view key : {"first_pass", "second_pass"}) {
    replay.record(key, integers_of_steps(replay, replay.strategy(), take_steps(dataset).batches));
  }
}

Json next_integers(Replay& replay, const Iterator& iterator) {
  Value batch;
  check(dist_iterator_next(iterator.get(), batch.out()));
  if (!batch) check(dist_fail(DIST_OUT_OF_RANGE, "the end of the pass"));  // TensorFlow raises an error
  return integers_of_replicas(replay, replay.strategy(), batch);
}

void play_two_iterators(Replay& replay) {
  const Dataset dataset = numbers_in_fours(replay, 8);
  const Iterator i = iterate(dataset);
  const Iterator j = iterate(dataset);
  replay.record("i0", next_integers(replay, i));
  replay.record("j0", next_integers(replay, j));
  replay.record("i1", next_integers(replay, i));
  replay.record("j1", next_integers(replay, j));
}

void play_next_after_end(Replay& replay) {
  const Dataset dataset = numbers_in_fours(replay, 3);
  const Iterator iterator = iterate(dataset);
  std::vector<Json> all;
  for (int i = 0; i < 3; ++i) {
    try {
      all.push_back(next_integers(replay, iterator));
    } catch (const Failed& failure) {
      all.push_back(replay.encode_error(failure.status));
    }
  }
  replay.record("next_x3", replay.array(std::move(all)));
}

void play_optional(Replay& replay) {
  const Dataset dataset = numbers_in_fours(replay, 5);
  const Iterator iterator = iterate(dataset);
  std::vector<Json> all;
  for (int i = 0; i < 4; ++i) {
    Value batch;
    check(dist_iterator_next_optional(iterator.get(), batch.out()));
    all.push_back(object(replay, "has_value", replay.json(static_cast<bool>(batch)), "value",
                         batch ? integers_of_replicas(replay, replay.strategy(), batch) : replay.null()));
  }
  replay.record("optionals", replay.array(std::move(all)));
}

void play_until_end(Replay& replay) {
  const Dataset dataset = numbers_in_fours(replay, 5);
  const Iterator iterator = iterate(dataset);
  std::vector<Json> values;
  for (int i = 0; i < 2; ++i) values.push_back(next_integers(replay, iterator));
  replay.record("values", replay.array(std::move(values)));
  Value batch;
  check(dist_iterator_next(iterator.get(), batch.out()));
  replay.record("then", batch ? replay.null() : replay.encode_error(DIST_OUT_OF_RANGE));
}

// ---- Batches in a program

// strategy.reduce(op, strategy.run(fn, (batch,)), axis)
Value reduce_run(dist_strategy* strategy, const Value& batch, const std::function<Value(dist_value*)>& fn,
                 dist_reduce_op op, const std::vector<int32_t>& axes) {
  dist_value* const only[] = {batch.get()};
  Value args;
  check(dist_value_create_list(strategy, only, 1, args.out()));
  const Value result = run(
      strategy, [&](dist_replica*, dist_value* given, dist_value*) { return fn(dist_value_item(given, 0)); },
      args);
  Value reduced;
  check(dist_reduce(strategy, op, result.get(), axes.empty() ? nullptr : axes.data(), axes.size(),
                    reduced.out()));
  return reduced;
}

// t += reduce(SUM, run(reduce_sum(x))) over all steps
void play_sum_of_everything(Replay& replay) {
  if (replay.fn() != "sum of everything") replay.unknown("fn");
  double total = 0;
  for (const Value& batch : take_steps(numbers_in_fours(replay, 7)).batches) {
    const auto sum = [&](dist_value* x) {
      double own = 0;
      for (const double number : Replay::numbers(x)) own += number;
      return replay.scalar("int64", own);
    };
    total += Replay::number_of(reduce_run(replay.strategy(), batch, sum, DIST_REDUCE_SUM, {}).get());
  }
  replay.record("result", replay.scalar("int64", total));
}

void play_run_over_values(Replay& replay) {
  if (replay.fn() != "reduce(MEAN, run(x * 2), axis=0) of every step") replay.unknown("fn");
  std::vector<Json> results;
  for (const Value& batch : take_steps(numbers_in_fours(replay, 5)).batches) {
    const auto twice = [&](dist_value* x) {
      std::vector<double> numbers = Replay::numbers(x);
      for (double& number : numbers) number *= 2;
      const auto n = static_cast<int64_t>(numbers.size());
      return replay.tensor("float32", {n}, numbers);
    };
    results.push_back(replay.encode(reduce_run(replay.strategy(), batch, twice, DIST_REDUCE_MEAN, {0})));
  }
  replay.record("result", replay.array(std::move(results)));
}

// CentralStorageStrategy<n>/size<s>/gb4
void play_central(Replay& replay) {
  const Dataset dataset = range_dataset(replay.strategy(), 0, replay.input("size").GetInt64(),
                                        batched(replay.input("global_batch").GetInt64()));
  const Steps steps = take_steps(dataset);
  replay.record("steps", integers_of_steps(replay, replay.strategy(), steps.batches));
  replay.record("end", end_of(replay, steps));
}

struct Program {
  std::string_view topic;
  void (*play)(Replay& replay);
};
constexpr Program kPrograms[] = {
    {"pipeline", play_pipeline},
    {"options", play_options},
    {"from_function", play_function},
    {"classes", play_classes},
    {"distribute_dataset", play_distribute_dataset},
    {"iterated_twice", play_iterated_twice},
    {"two_iterators", play_two_iterators},
    {"next_after_end", play_next_after_end},
    {"get_next_as_optional", play_optional},
    {"get_next_until_end", play_until_end},
    {"for_loop_in_tf_function", play_sum_of_everything},
    {"run_over_values", play_run_over_values},
};

}  // namespace

void replay_input_misc(Replay& replay) {
  if (replay.is_central()) return play_central(replay);
  for (const Program& program : kPrograms) {
    if (replay.topic(0) == program.topic) return program.play(replay);
  }
  replay.unknown("program");
}

}  // namespace golden
