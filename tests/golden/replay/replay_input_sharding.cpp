// SPDX-License-Identifier: Apache-2.0
// Area "input_sharding": input contexts, batch sizes of workers, rebatching, and sharding by each policy.
#include <cstring>

#include "input_program.hpp"

namespace golden {
namespace {

// These programs have no strategy: a single consumer reads a whole dataset.
Strategy one_consumer(int32_t replicas = 1) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = replicas == 1 ? DIST_STRATEGY_ONE_DEVICE : DIST_STRATEGY_MIRRORED;
  options.num_replicas = replicas;
  Strategy strategy;
  check(dist_strategy_create(&options, strategy.out()));
  return strategy;
}

int32_t small(const Replay& replay, std::string_view key) { return replay.input(key).GetInt(); }

// The batches of all replicas, one after another, as a flat array.
Json flat_batches(Replay& replay, dist_strategy* strategy, const Dataset& dataset) {
  std::vector<Json> batches;
  for (const Value& batch : take_steps(dataset, SIZE_MAX).batches) {
    for (const Value& one : local_results(strategy, batch)) batches.push_back(integers(replay, one));
  }
  return replay.array(std::move(batches));
}

// ---- Contexts

void per_replica_batch(Replay& replay) {
  const dist_input_context context{1, 0, small(replay, "num_replicas_in_sync")};
  int64_t size = 0;
  check(dist_input_context_per_replica_batch_size(&context, replay.input("global_batch_size").GetInt64(),
                                                  &size));
  replay.record("per_replica_batch_size", replay.json(size));
}

// Python's text for a context shows its fields.
void input_context_fields(Replay& replay) {
  dist_input_context context = DIST_INPUT_CONTEXT_INIT;
  const Json& args = replay.input("args");
  if (args.Size() > 0) context = {args[0].GetInt(), args[1].GetInt(), args[2].GetInt()};
  replay.record("num_input_pipelines", replay.json(context.num_input_pipelines));
  replay.record("input_pipeline_id", replay.json(context.input_pipeline_id));
  replay.record("num_replicas_in_sync", replay.json(context.num_replicas_in_sync));
  replay.record("str", replay.json(text_of_context(context)));
}

void value_context_fields(Replay& replay) {
  dist_value_context context{0, 1};
  const Json& args = replay.input("args");
  if (args.Size() > 0) context = {args[0].GetInt(), args[1].GetInt()};
  replay.record("replica_id_in_sync_group", replay.json(context.replica_id_in_sync_group));
  replay.record("num_replicas_in_sync", replay.json(context.num_replicas_in_sync));
  std::string text("tf.distribute.ValueContext(replica id ");
  text.append(std::to_string(context.replica_id_in_sync_group)).append(",  total replicas in sync: ");
  text.append(std::to_string(context.num_replicas_in_sync)).append(")");
  replay.record("str", replay.json(text));
}

void batch_sizes_for_worker(Replay& replay) {
  const int32_t workers = small(replay, "num_workers");
  const int32_t replicas = small(replay, "num_replicas_per_worker");
  std::vector<int64_t> sizes(static_cast<std::size_t>(workers) * static_cast<std::size_t>(replicas));
  check(dist_batch_sizes_for_worker(replay.input("global_batch").GetInt64(), workers, replicas,
                                    small(replay, "worker_index"), sizes.data(), sizes.size()));
  std::vector<Json> items;
  for (const int64_t size : sizes) items.push_back(replay.json(size));
  replay.record("batch_sizes", replay.array(std::move(items)));
}

// ---- Rebatching

// A source of batches of `gb` rows, like range(total).batch(gb).
SourceFn batches_of(Replay& replay, int64_t total, int64_t gb) {
  return [&replay, total, gb](int64_t index) {
    std::vector<double> numbers;
    for (int64_t i = index * gb; i < std::min(total, (index + 1) * gb); ++i)
      numbers.push_back(static_cast<double>(i));
    if (numbers.empty()) return Value();
    return replay.tensor("int64", {static_cast<int64_t>(numbers.size())}, numbers);
  };
}

// Rows in memory, which libdist batches itself. Batches without rows keep the rows' dtype.
void rebatch(Replay& replay) {
  std::vector<int64_t> sizes;
  for (const Json& size : replay.input("batch_sizes").GetArray()) sizes.push_back(size.GetInt64());
  dist_dataset_options options =
      batched(replay.input("gb").GetInt64(), replay.input("drop_remainder").GetBool());
  const int64_t nothing = 0;
  options.batch_sizes = sizes.empty() ? &nothing : sizes.data();
  options.num_batch_sizes = sizes.size();
  const Strategy strategy = one_consumer();
  const Dataset dataset = range_dataset(strategy.get(), 0, replay.input("total").GetInt64(), options);
  replay.record("batches", flat_batches(replay, strategy.get(), dataset));
}

// Each batch is divided among n consumers in turn, like with a strategy of n replicas.
void rebatch_legacy(Replay& replay) {
  const Strategy strategy = one_consumer(small(replay, "num_replicas"));
  const Dataset dataset = source_dataset(
      strategy.get(), batches_of(replay, replay.input("total").GetInt64(), replay.input("gb").GetInt64()),
      batched(0));
  replay.record("batches", flat_batches(replay, strategy.get(), dataset));
}

// ---- Sharding

dist_shard_policy policy_of(const Replay& replay) {
  dist_shard_policy policy{};
  read_enum(DIST_ENUM_SHARD_POLICY, std::string(replay.text("policy")).c_str(), &policy);
  return policy;
}

// File i contains the numbers 10*i + j with j = 0 .. i%3.
Dataset number_files(Replay& replay, dist_strategy* strategy, std::size_t files,
                     const dist_dataset_options& options) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < files; ++i) names.push_back(std::to_string(i).append(".txt"));
  const FileFn line = [&replay](std::size_t file, int64_t index) {
    const auto i = static_cast<int64_t>(file);
    return index <= i % 3 ? replay.scalar("float32", static_cast<double>(10 * i + index)) : Value();
  };
  return file_dataset(strategy, names, line, options);
}

Dataset sharded_dataset(Replay& replay, dist_strategy* strategy, dist_dataset_options options) {
  const std::string_view name = replay.topic(0);
  const auto rows = [&](int64_t n) { return range_dataset(strategy, 0, n, options); };
  const auto batched_by = [&](int64_t size) { options.global_batch_size = size; };
  if (name == "range10") return rows(10);
  if (name == "range3") return rows(3);
  if (name == "empty") return rows(0);
  if (name == "range10_batch4") {
    batched_by(4);
    return rows(10);
  }
  if (name == "shard_hint") {
    options.shard_hint = 1;
    return rows(10);
  }
  if (name == "text_files") return number_files(replay, strategy, 5, options);
  if (name == "two_files") return number_files(replay, strategy, 2, options);
  if (name == "text_files_batch2") {
    batched_by(2);
    return number_files(replay, strategy, 5, options);
  }
  if (name == "interleave_files") {
    options.interleave = 2;
    return number_files(replay, strategy, 5, options);
  }
  if (name == "batch_shuffle_none") {
    return source_dataset(
        strategy,
        [&replay](int64_t i) {
          const auto first = static_cast<double>(100 + 2 * i);
          return i < 3 ? replay.tensor("int64", {2}, {first, first + 1}) : Value();
        },
        options);
  }
  if (name == "generator") {
    return source_dataset(
        strategy,
        [&replay](int64_t i) { return i < 5 ? replay.scalar("int64", static_cast<double>(i)) : Value(); },
        options);
  }
  replay.unknown("a source called " + std::string(name));
}

void auto_shard(Replay& replay) {
  dist_dataset_options options = batched(0);
  options.shard_policy = policy_of(replay);
  options.num_workers = small(replay, "num_workers");
  options.worker_index = small(replay, "index");
  options.worker_batches = 1;
  const Strategy strategy = one_consumer();
  const Dataset dataset = sharded_dataset(replay, strategy.get(), options);
  replay.record("elements", flat_batches(replay, strategy.get(), dataset));
}

// The rows that a worker reads if batches are divided for the replicas of all workers and then distributed to
// the workers.
Dataset dealt_out(Replay& replay, dist_strategy* strategy, int32_t worker) {
  dist_dataset_options options = batched(replay.input("gb").GetInt64());
  options.shard_policy = policy_of(replay);
  options.num_workers = small(replay, "num_workers");
  options.worker_index = worker;
  return range_dataset(strategy, 0, replay.input("total").GetInt64(), options);
}

// Without sharding, every worker divides all batches by its own sizes, one piece after another.
Dataset cut_to_own_sizes(Replay& replay, dist_strategy* strategy, int32_t worker) {
  const int32_t workers = small(replay, "num_workers");
  const int32_t replicas = small(replay, "num_replicas_per_worker");
  const int64_t gb = replay.input("gb").GetInt64();
  std::vector<int64_t> sizes(static_cast<std::size_t>(workers) * static_cast<std::size_t>(replicas));
  check(dist_batch_sizes_for_worker(gb, workers, replicas, worker, sizes.data(), sizes.size()));
  dist_dataset_options options = batched(gb);
  options.shard_policy = DIST_SHARD_OFF;
  options.num_workers = workers;
  options.worker_index = worker;
  options.batch_sizes = sizes.data();
  options.num_batch_sizes = sizes.size();
  return range_dataset(strategy, 0, replay.input("total").GetInt64(), options);
}

void rebatch_then_shard(Replay& replay) {
  const bool off = policy_of(replay) == DIST_SHARD_OFF;
  const Strategy strategy = one_consumer(off ? 1 : small(replay, "num_replicas_per_worker"));
  std::vector<Json> all;
  for (int32_t worker = 0; worker < small(replay, "num_workers"); ++worker) {
    const Dataset dataset =
        off ? cut_to_own_sizes(replay, strategy.get(), worker) : dealt_out(replay, strategy.get(), worker);
    all.push_back(flat_batches(replay, strategy.get(), dataset));
  }
  replay.record("per_worker_batches", replay.array(std::move(all)));
}

struct Program {
  std::string_view id;  // the beginning of the ids
  void (*play)(Replay& replay);
};
constexpr Program kPrograms[] = {
    {"input_context/per_replica_batch/", per_replica_batch},
    {"input_context/fields/", input_context_fields},
    {"value_context/fields/", value_context_fields},
    {"batch_sizes_for_worker/", batch_sizes_for_worker},
    {"rebatch/", rebatch},
    {"rebatch_legacy/", rebatch_legacy},
    {"auto_shard/", auto_shard},
    {"rebatch_then_shard/", rebatch_then_shard},
};

}  // namespace

void replay_input_sharding(Replay& replay) {
  for (const Program& program : kPrograms) {
    if (replay.id().starts_with(program.id)) return program.play(replay);
  }
  replay.unknown("program");
}

}  // namespace golden
