// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: cluster specs, resolvers, the rules of a cluster, and partitioners.
#include <dist/experimental/rendezvous.hpp>
#include "hpp_support.hpp"

namespace {

using dist::cluster_resolver;
using dist::cluster_spec;
using dist::cluster_task;

cluster_task task(const char *type, int32_t id) { return {std::string(type), id}; }

void specs() {
  const auto made = cluster_spec::from_jobs({{"worker", {"a:1", "b:2"}, {}}, {"ps", {"c:3"}, {4}}});
  const auto read = cluster_spec::from_json(R"({"ps": {"4": "c:3"}, "worker": ["a:1", "b:2"]})");
  assert_true(made == read);
  assert_true(made != cluster_spec::from_json("{}"));
  assert_true(made.jobs() == (std::vector<std::string>{"worker", "ps"}));
  assert_int_equal(made.num_tasks("worker"), 2);
  assert_true(made.task_indices("ps") == std::vector<int32_t>{4});
  assert_string_equal(made.task_address("ps", 4), "c:3");
  assert_string_equal(made.json(), R"({"worker":["a:1","b:2"],"ps":{"4":"c:3"}})");
  const auto other = cluster_spec::from_json(R"({"worker": ["c:3"]})");
  assert_string_equal(cluster_spec::union_of({&other, &other}).json(), R"({"worker":["c:3","c:3"]})");
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_spec::from_json("no JSON"));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, made.task_address("ps", 0));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_spec::from_jobs({{"worker", {"a:1"}, {1, 2}}}));
}

void rules() {
  const auto spec = cluster_spec::from_json(R"({"chief": ["c"], "worker": ["a", "b"], "ps": ["p"]})");
  spec.validate(task("worker", 1));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, spec.validate(task("worker", 2)));
  assert_true(spec.is_chief(task("chief", 0)));
  assert_int_equal(spec.id_in_cluster(task("worker", 1)), 2);
  assert_int_equal(spec.worker_count("worker"), 3);
  assert_true(spec.should_save_checkpoint(task("chief", 0)));
  assert_false(spec.should_save_summary(task("worker", 0)));
  assert_true(spec.should_evaluate(task("chief", 0)));
  assert_string_equal(spec.collective_leader({}).c_str(), "/job:chief/replica:0/task:0");
  assert_string_equal(spec.coordination_leader().c_str(), "/job:ps/replica:0/task:0");
}

void texts_with_a_zero_inside() {
  const std::string cut("worker\0s", 8);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_spec::from_json(std::string("{}\0x", 4)));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_spec::from_jobs({{cut, {"a:1"}, {}}}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_spec::from_jobs({{"worker", {"a:1", cut}, {}}}));
  const auto spec = cluster_spec::from_json(R"({"worker": ["a:1"]})");
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, spec.is_chief({cut, 0}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, spec.validate({cut, 0}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, spec.collective_leader({cut, 0}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_resolver::simple(spec).master_address({cut, 0}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, cluster_resolver::simple(spec).num_accelerators({cut, 0}));
}

dist_status host_spec(dist_cluster_spec **out_spec, void *user_data) {
  *out_spec = static_cast<cluster_spec *>(user_data)->release();
  return DIST_OK;
}

void resolvers() {
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.tf_config = R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})";
  options.rpc_layer = "grpc";
  const auto tf_config = cluster_resolver::tf_config(&options);
  assert_true(*tf_config.task().type == "worker" && tf_config.task_id() == 1);
  assert_true(*tf_config.rpc_layer() == "grpc" && !tf_config.environment());
  assert_string_equal(tf_config.master_address().c_str(), "grpc://b:2");
  assert_string_equal(tf_config.master_address(task("worker", 0), "").c_str(), "a:1");
  assert_int_equal(tf_config.num_accelerators(), 0);
  assert_false(tf_config.explain().empty());

  dist_slurm_options step = DIST_SLURM_OPTIONS_INIT;
  step.has_rank = step.rank = 1;
  step.num_tasks = 2;
  step.host_list = "n[1-2]";
  step.tasks_per_node = "1(x2)";
  step.gpus_per_host = 2;
  const auto slurm = cluster_resolver::slurm(&step);
  assert_string_equal(slurm.gpu_ids().c_str(), "0,1");
  assert_true(slurm.spec() == cluster_spec::from_jobs({{"worker", {"n1:8888", "n2:8888"}, {}}}));
  assert_true(dist::slurm_hosts("n[1-2],m") == (std::vector<std::string>{"n1", "n2", "m"}));
  assert_true(dist::slurm_tasks_per_node("2(x2),1") == (std::vector<int32_t>{2, 2, 1}));

  dist_kubernetes_options pods = DIST_KUBERNETES_OPTIONS_INIT;
  pods.host_name = "t-0";
  pods.num_workers = 1;
  assert_int_equal(cluster_resolver::kubernetes(&pods).task_id(), 0);
  dist_rendezvous_options workers = DIST_RENDEZVOUS_OPTIONS_INIT;
  workers.has_rank = 1;
  workers.size = 1;
  assert_int_equal(dist::rendezvous(&workers).task_id(), 0);

  const auto ps = cluster_spec::from_jobs({{"ps", {"p:1"}, {}}});
  const auto both = cluster_resolver::union_of({tf_config, cluster_resolver::simple(ps)});
  assert_true(both.spec().jobs() == (std::vector<std::string>{"worker", "ps"}));

  cluster_spec own = cluster_spec::from_jobs({{"worker", {"o:1"}, {}}});
  dist_cluster_resolver_functions functions = DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT;
  functions.spec = host_spec;
  assert_string_equal(cluster_resolver::host(functions, &own).spec().json(), R"({"worker":["o:1"]})");

  dist_strategy_options of_strategy = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  of_strategy.worker = &worker;
  of_strategy.num_replicas = 1;
  worker.cluster_resolver = both.get();
  const dist::strategy strategy(of_strategy);
  assert_ptr_equal(strategy.cluster_resolver(), both.get());
}

void partitioners() {
  assert_true(dist::fixed_shards({10, 4}, 0, 3) == (std::vector<int64_t>{3, 1}));
  assert_true(dist::min_size_shards({10, 4}, 0, 4) == (std::vector<int64_t>{1, 1}));
  assert_true(dist::max_size_shards({10, 4}, 0, 4, 16) == (std::vector<int64_t>{10, 1}));
  const auto rows = dist::rows_of_part(10, 3, 1);
  assert_true(rows.begin == 4 && rows.size == 3);
  const auto place = dist::part_of_row(10, 3, 7);
  assert_true(place.part == 2 && place.offset == 0);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::fixed_shards({}, 0, 1));
}

cluster_resolver resolver_of_worker(int32_t id) {
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "worker";
  options.has_task_id = 1;
  options.task_id = id;
  return cluster_resolver::simple(cluster_spec::from_json(R"({"worker": ["a:1", "b:2"]})"), &options);
}

// Two workers. One may destroy its strategy while the other is still in the last collective.
void networks() {
  dist_network_options credit = DIST_NETWORK_OPTIONS_INIT;
  credit.credit_bytes = 1 << 16;
  dist::network other(2);
  other = dist::network(2, credit);
  const dist::network network(std::move(other));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::network(0));
  const auto worker = [&](int32_t id, int32_t *sum) {
    const cluster_resolver resolver = resolver_of_worker(id);
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 1;
    worker.cluster_resolver = resolver.get();
    worker.network = network.get();
    const dist::strategy strategy(options);
    strategy.run([&](const dist::replica &replica) {
      const int32_t mine = replica.id() + 1;
      replica.all_reduce(dist::reduce_op::sum, dist::const_tensor(&mine, {}), dist::tensor(sum, {}));
    });
  };
  int32_t sums[2] = {0, 0};
  std::thread second(worker, 1, &sums[1]);
  worker(0, &sums[0]);
  second.join();
  assert_int_equal(sums[0], 3);
  assert_int_equal(sums[1], 3);
}

void reforms() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.num_replicas = 2;
  const dist::strategy alone(options);
  REQUIRE_ERROR(DIST_FAILED_PRECONDITION, alone.reform());
  assert_false(alone.reform_due());
  assert_int_equal(alone.query().generation, 0);
  worker.reform = DIST_REFORM_AT_NEXT_RUN;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::strategy(options));

  const cluster_resolver resolver = resolver_of_worker(0);
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  worker.transport = DIST_TRANSPORT_NONE;
  worker.cluster_resolver = resolver.get();
  const dist::strategy first(options);
  dist_reform_options too_many = DIST_REFORM_OPTIONS_INIT;
  too_many.min_workers = 3;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, first.reform(too_many));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(specs),     HPP_TEST(rules),        HPP_TEST(texts_with_a_zero_inside),
      HPP_TEST(resolvers), HPP_TEST(partitioners), HPP_TEST(networks),
      HPP_TEST(reforms),
  };
  return cmocka_run_group_tests_name("dist.hpp: clusters", tests, nullptr, nullptr);
}
