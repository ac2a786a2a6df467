// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: names, properties and descriptions of strategies, metrics, losses, checkpoints, and preemption.
#include <dist/experimental/preemption.hpp>
#include <dist/tf.hpp>
#include "hpp_support.hpp"

#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

namespace {

using dist::reduce_op;
using dist::replica;
using dist::tensor;
using dist::value;

void names() {
  assert_int_equal(dist::version(),
                   DIST_VERSION_MAJOR * 10000 + DIST_VERSION_MINOR * 100 + DIST_VERSION_PATCH);
  assert_false(dist::has_feature("flying"));
  assert_string_equal(dist::status_name(DIST_ABORTED), "ABORTED");
  assert_string_equal(dist::reduce_op_name(reduce_op::mean), "MEAN");
  assert_string_equal(dist::reduce_op_name(DIST_REDUCE_USER), "USER");
  assert_string_equal(dist::cross_device_name(DIST_CROSS_DEVICE_HOST), "HOST");
  assert_string_equal(dist::synchronization_name(DIST_SYNCHRONIZATION_ON_READ), "ON_READ");
  assert_string_equal(dist::aggregation_name(DIST_AGGREGATION_SUM), "SUM");
  assert_string_equal(dist::input_mode_name(DIST_INPUT_PER_WORKER), "PER_WORKER");
  assert_string_equal(dist::shard_policy_name(DIST_SHARD_AUTO), "AUTO");
  assert_true(dist::reduce_op_from_name("mean") == reduce_op::mean);
  assert_true(dist::reduce_op_from_aggregation(DIST_AGGREGATION_SUM) == reduce_op::sum);
  assert_int_equal(dist::cross_device_from_name("host"), DIST_CROSS_DEVICE_HOST);
  assert_string_equal(dist::enum_name(DIST_ENUM_DTYPE, DIST_BF16), "bf16");
  assert_int_equal(dist::enum_from_name(DIST_ENUM_STATUS, "data_loss"), DIST_DATA_LOSS);
  assert_int_equal(dist::synchronization_from_name("ON_READ"), DIST_SYNCHRONIZATION_ON_READ);
  assert_int_equal(dist::aggregation_from_name("sum"), DIST_AGGREGATION_SUM);
  assert_int_equal(dist::input_mode_from_name("PER_REPLICA"), DIST_INPUT_PER_REPLICA);
  assert_int_equal(dist::shard_policy_from_name("off"), DIST_SHARD_OFF);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::reduce_op_from_name("median"));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::reduce_op_from_aggregation(DIST_AGGREGATION_NONE));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::canonical_device("the moon"));

  dist::communication_options base, over;
  base.bytes_per_pack = 64;
  over.timeout_ns = DIST_NO_TIMEOUT;
  assert_int_equal(base.merge(over).bytes_per_pack, 64);
  assert_int_equal(base.merge(over).timeout_ns, DIST_NO_TIMEOUT);
  base.bytes_per_pack = -1;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, base.merge(over));
}

void what_a_strategy_is() {
  dist::strategy strategy(2);
  assert_int_equal(strategy.kind(), DIST_STRATEGY_MIRRORED);
  assert_int_equal(strategy.num_logical_devices(), 1);
  assert_int_equal(strategy.query().num_replicas, 2);
  assert_null(strategy.cluster_resolver());
  assert_false(static_cast<bool>(strategy.device_assignment()));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.device(2));
  {
    const dist::group group(strategy, {0});
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, strategy.destroy());
    assert_int_equal(strategy.num_replicas(), 2);
  }
  strategy.destroy();
  assert_false(static_cast<bool>(strategy));
}

// Exceptions of the log callback are ignored. A host clock makes the log line appear without waiting.
void the_log() {
  static std::atomic<int64_t> now_ns{0};
  std::atomic<int> lines{0};
  dist::strategy_functions functions;
  functions.log = [&](int32_t level, const char *message) {
    if (level == DIST_LOG_WARNING && std::strstr(message, "still waiting") != nullptr) ++lines;
    throw own_error("no log");
  };
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  options.timeout_ns = -1;
  host.clock = [](void *) -> int64_t { return now_ns; };
  const dist::strategy strategy(options, functions);
  strategy.run([&](replica replica) {
    while (replica.id() == 1 && lines == 0) {
      now_ns += 1'000'000'000;
      std::this_thread::yield();
    }
    replica.barrier();
  });
  assert_true(lines > 0);
}

void what_it_tells() {
  const dist::strategy strategy(2);
  for (int i = 0; i < 3; ++i) {
    strategy.run([](replica replica) {
      replica.barrier({"first"});
      replica.barrier({"second"});
    });
  }
  assert_true(strategy.explain().find("replicas") != std::string::npos);
  assert_true(strategy.write_trace().find("\"second\"") != std::string::npos);
  assert_true(strategy.write_metrics().find("dist_runs_total") != std::string::npos);
  assert_true(strategy.write_metrics("mine").find("strategy=\"mine\"") != std::string::npos);
  int64_t meetings = 0;
  const std::vector<dist_straggler> rows = strategy.stragglers();
  for (const dist_straggler &row : rows) meetings += row.times_last;
  assert_true(!rows.empty() && meetings >= 6);
}

void metrics_and_losses() {
  const dist::strategy strategy(2);
  const dist::metric mean(strategy, DIST_METRIC_MEAN, "loss");
  const dist::metric accuracy(strategy, DIST_METRIC_ACCURACY);
  assert_string_equal(mean.name(), "loss");
  assert_int_equal(accuracy.kind(), DIST_METRIC_ACCURACY);
  strategy.run([&](replica replica) {
    const std::vector<float> losses{static_cast<float>(replica.id()), 4};
    const std::vector<double> weights{1, 3};
    mean.update(replica, losses, dist::nothing, weights);
    const std::vector<int32_t> predicted{1, 2}, labels{1, replica.id()};
    accuracy.update(replica, predicted, labels);
    REQUIRE(dist::average_loss<float>(replica, losses, 8) == (4.0F + static_cast<float>(replica.id())) / 8);
    REQUIRE(dist::average_loss<float>(replica, losses, 0, weights) ==
            (12.0F + static_cast<float>(replica.id())) / 4);
    REQUIRE(dist::scale_regularization_loss<float>(replica, losses) ==
            (4.0F + static_cast<float>(replica.id())) / 2);
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, accuracy.update(replica, predicted));
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::average_loss<double>(replica, losses));
  });
  assert_true(mean.result() == 25.0 / 8);
  assert_true(accuracy.result() == 0.5);
  assert_int_equal(mean.variable().synchronization(), DIST_SYNCHRONIZATION_ON_READ);
  mean.reset();
  assert_true(mean.result() == 0);
  const std::vector<float> losses{1, 2};
  assert_true(dist::average_loss<float>(replica(nullptr), losses, 3) == 1);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::metric(strategy, dist_metric_kind{99}));
}

void checkpoints() {
  std::string name = (std::filesystem::temp_directory_path() / "test_hpp_XXXXXX").string();
  const int file = mkstemp(name.data());
  assert_true(file >= 0);
  close(file);
  const char *const path = name.c_str();
  const std::vector<float> kernel{1, 2};
  const std::vector<double> bias{3};
  {
    const dist::strategy strategy(2);
    const dist::variable w(strategy, kernel, "w"), b(strategy, bias, "b");
    dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
    dist_position position = DIST_POSITION_INIT;
    position.batches = 7;
    const char *keys[] = {"who"}, *texts[] = {"a test"};
    options.position = &position;
    options.metadata_keys = keys;
    options.metadata_texts = texts;
    options.num_metadata = 1;
    dist::checkpoint::save(strategy, path, {w, b}, options);
  }
  const dist::strategy strategy(3);
  const std::vector<float> zeros(2);
  const std::vector<double> zero(1);
  const dist::variable w(strategy, zeros, "w"), b(strategy, zero, "b");
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  dist_position position = DIST_POSITION_INIT;
  options.position = &position;
  dist::checkpoint::load(strategy, path, {w, b}, options);
  assert_int_equal(position.batches, 7);
  assert_true(w.component(2).data<float>()[1] == 2 && *b.component(1).data<double>() == 3);

  const dist::checkpoint opened(strategy, path);
  assert_int_equal(opened.size(), 2);
  assert_string_equal(opened.name(0), "b");  // the wider elements come first
  assert_int_equal(opened.spec("b").dtype, DIST_F64);
  assert_true(row_of<float>(opened.read("w")) == kernel);
  assert_true(row_of<float>(opened.map("w", true)) == kernel);
  assert_true(row_of<float>(opened.map_all(true)["w"]) == kernel);
  REQUIRE_ERROR(DIST_NOT_FOUND, opened.map("v"));
  assert_string_equal(opened.metadata("who"), "a test");
  assert_null(opened.metadata("why"));
  bool found = false;
  for (std::size_t i = 0; i < opened.num_metadata(); ++i)
    found = found || std::string(opened.metadata_key(i)) == "who";
  assert_true(found);
  REQUIRE_ERROR(DIST_NOT_FOUND, opened.read("v"));
  REQUIRE_ERROR(DIST_NOT_FOUND, opened.spec("v"));
  const dist::variable other(strategy, zeros, "other");
  REQUIRE_ERROR(DIST_NOT_FOUND, dist::checkpoint::load(strategy, path, {w, other}));
  dist::checkpoint::save(strategy, path, {b});
  assert_int_equal(dist::checkpoint(strategy, path).size(), 1);
  assert_int_equal(std::remove(path), 0);
  REQUIRE_ERROR(DIST_NOT_FOUND, dist::checkpoint(strategy, path));
}

// Runs a loop with a limit of runs. The notice comes after the first run. Returns the count of the handler at
// the end.
int64_t preempted_loop(const char *path, int64_t grace_ns, float *value) {
  const dist::strategy strategy(2);
  const std::vector<float> zero(1);
  dist_variable_options summed = DIST_VARIABLE_OPTIONS_INIT;
  summed.name = "steps";
  summed.aggregation = DIST_AGGREGATION_SUM;
  const dist::variable steps(strategy, zero, summed);
  dist_variable *const variables[] = {steps.get()};
  dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  options.path = path;
  options.variables = variables;
  options.num_variables = 1;
  options.grace_ns = grace_ns;
  dist::preemption_handler other(strategy, options);
  const dist::preemption_handler handler(std::move(other));
  assert_null(other.get());
  const auto step = [&](const replica &here) {
    const std::vector<float> one{1};
    here.assign(steps, one, DIST_ASSIGN_ADD);
  };
  const int64_t before = handler.total_run_calls();
  handler.run(step);
  assert_int_equal(handler.save_if_preempted(), DIST_PREEMPTION_NONE);
  handler.notify();
  if (grace_ns != 0) {
    handler.run(step, DIST_RUN_OPTIONS_INIT);
    assert_int_equal(handler.save_if_preempted(), DIST_PREEMPTION_SAVED);
    handler.count_run();
    assert_int_equal(handler.total_run_calls(), before + 3);
  } else {
    const std::string words = REQUIRE_ERROR(DIST_CANCELLED, handler.run(step));
    assert_non_null(std::strstr(words.c_str(), "the job is preempted"));
    assert_int_equal(handler.save_if_preempted(), DIST_PREEMPTION_OVER);
  }
  *value = steps.component(1).data<float>()[0];
  return handler.total_run_calls();
}

void preemption() {
  std::string name = (std::filesystem::temp_directory_path() / "test_hpp_XXXXXX").string();
  const int file = mkstemp(name.data());
  assert_true(file >= 0);
  close(file);
  const char *const path = name.c_str();
  assert_int_equal(std::remove(path), 0);
  float value = 0;
  assert_int_equal(preempted_loop(path, 0, &value), 1);
  assert_true(value == 2);
  {
    const dist::strategy strategy(1);
    const dist::checkpoint opened(strategy, path);
    assert_true(row_of<float>(opened.read("steps")) == std::vector<float>{2});
    assert_string_equal(opened.metadata("preemption.total_run_calls"), "1");
  }
  // The next start continues; only the last run was counted.
  assert_int_equal(preempted_loop(path, int64_t{1} << 62, &value), 4);
  assert_true(value == 6);
  assert_int_equal(std::remove(path), 0);
  const dist::strategy strategy(1);
  dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  options.grace_ns = -1;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::preemption_handler(strategy, options));
  options.grace_ns = 0;
  dist::preemption_handler one(strategy, options), two(strategy, options);
  one.notify();
  two = std::move(one);
  assert_int_equal(two.save_if_preempted(), DIST_PREEMPTION_OVER);
  REQUIRE_OWN_ERROR("mine", dist::preemption_handler(strategy, options).run([](const replica &) {
    throw own_error("mine");
  }));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(names),         HPP_TEST(what_a_strategy_is), HPP_TEST(the_log),
      HPP_TEST(what_it_tells), HPP_TEST(metrics_and_losses), HPP_TEST(checkpoints),
      HPP_TEST(preemption),
  };
  return cmocka_run_group_tests_name("dist.hpp: names, metrics, checkpoints", tests, nullptr, nullptr);
}
