/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolvers of what starts the processes: the steps of Slurm, and the pods of Kubernetes. One thread, which may set
 * variables.
 */
#include "../resolver_support.h"

static void slurm_places_tasks_by_host(void **state) {
  (void)state;
  setenv("SLURM_PROCID", "2", 1);
  setenv("SLURM_STEP_NODELIST", "n[9-10],m1", 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "1(x2),2", 1);
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_slurm(NULL, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"m1:8888\",\"m1:8889\",\"n10:8888\",\"n9:8888\"]}");
  has_task(resolver, "worker", 2);
  has_master(resolver, NULL, DIST_TASK_UNSET, "grpc://n10:8888");
  char ids[16];
  assert_ok(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids));
  assert_string_equal(ids, "");
  explains(resolver, "resolver: Slurm");
  clear_environment(NULL);
  has_task(resolver, "worker", 2); /* it was read once */
  dist_cluster_resolver_destroy(resolver);
}

static void slurm_options_count_before_variables(void **state) {
  (void)state;
  const dist_cluster_job jobs[] = {{"worker", NULL, NULL, 3}, {"ps", NULL, NULL, 1}};
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.has_rank = 1;
  slurm.rank = 3;
  slurm.host_list = "a,b";
  slurm.tasks_on_each_host = 2;
  slurm.port_base = 100;
  slurm.gpus_per_host = 5;
  slurm.jobs = jobs;
  slurm.num_jobs = 2;
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
  has_spec(resolver, "{\"ps\":[\"a:100\"],\"worker\":[\"a:101\",\"b:100\",\"b:101\"]}");
  has_task(resolver, "worker", 2);
  char ids[16];
  int32_t n = 0;
  assert_ok(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids));
  assert_string_equal(ids, "2,3");
  assert_ok(dist_cluster_resolver_num_accelerators(resolver, NULL, DIST_TASK_UNSET, &n));
  assert_int_equal(n, 2);
  dist_cluster_resolver_destroy(resolver);
  slurm.rank = 4;
  assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
  has_task(resolver, NULL, DIST_TASK_UNSET);
  assert_fails(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids), DIST_INVALID_ARGUMENT, "rank");
  dist_cluster_resolver_destroy(resolver);
}

static void no_slurm(const dist_slurm_options *slurm, dist_status status, const char *words) {
  dist_cluster_resolver *resolver = NULL;
  assert_fails(dist_cluster_resolver_create_slurm(slurm, NULL, &resolver), status, words);
  assert_null(resolver);
}

static void what_is_no_slurm_step_is_refused(void **state) {
  (void)state;
  no_slurm(NULL, DIST_FAILED_PRECONDITION, "SLURM_PROCID");
  dist_slurm_options good = DIST_SLURM_OPTIONS_INIT, slurm;
  good.has_rank = 1;
  good.num_tasks = 4;
  good.host_list = "n[1-2]";
  good.tasks_per_node = "2(x2)";
  slurm = good, slurm.host_list = NULL, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "SLURM_STEP_NODELIST");
  slurm = good, slurm.num_tasks = 0, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "SLURM_STEP_NUM_TASKS");
  slurm = good, slurm.num_tasks = 3, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "3 tasks");
  slurm = good, slurm.num_tasks = 5, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "more tasks than the 4");
  slurm = good, slurm.host_list = "n[2-1]", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "no host");
  slurm = good, slurm.host_list = "n[", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "\"n[\"");
  slurm = good, slurm.tasks_per_node = "2(x", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "2(x");
  slurm = good, slurm.port_base = 65535, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "65535");
  slurm = good, slurm.port_base = -1, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "port_base");
  slurm = good, slurm.gpus_per_host = 1, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "too few");
  slurm = good, slurm.gpus_per_task = 1, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "GPUs");
  slurm = good, slurm.has_rank = -1, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "has_rank");
  slurm = good, slurm.host_list = "n[1-9]", slurm.tasks_on_each_host = DIST_MAX_CLUSTER_TASKS;
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "65536");
  setenv("SLURM_PROCID", "x", 1);
  slurm = good, slurm.has_rank = 0, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "SLURM_PROCID is \"x\"");
}

static void count_hosts(const char *text, size_t size, void *user_data) {
  (void)text, (void)size;
  ++*(size_t *)user_data;
}

static void slurm_lists_are_limited(void **state) {
  (void)state;
  size_t n = 0;
  assert_ok(dist_slurm_expand_host_list("n[1-65536]", count_hosts, &n));
  assert_int_equal(n, DIST_MAX_CLUSTER_TASKS);
  n = 0;
  assert_fails(dist_slurm_expand_host_list("n[0-65536]", count_hosts, &n), DIST_INVALID_ARGUMENT,
               "65536 hosts");
  assert_fails(dist_slurm_expand_host_list("n[1-2147483647]", count_hosts, &n), DIST_INVALID_ARGUMENT,
               "65536 hosts");
  assert_int_equal(n, 0); /* none came before the failure */
  assert_fails(dist_slurm_expand_host_list("n[1-2147483648]", count_hosts, &n), DIST_INVALID_ARGUMENT,
               "32 bits");
  assert_ok(dist_slurm_expand_tasks_per_node("1(x65536)", NULL, 0, &n));
  assert_int_equal(n, 65536);
  assert_fails(dist_slurm_expand_tasks_per_node("1(x65537)", NULL, 0, &n), DIST_INVALID_ARGUMENT, "65536");
  assert_fails(dist_slurm_expand_tasks_per_node("65537", NULL, 0, &n), DIST_INVALID_ARGUMENT, "65536");
  char *const text = calloc(1, DIST_MAX_CLUSTER_TEXT_BYTES + 1);
  memset(text, 'a', DIST_MAX_CLUSTER_TEXT_BYTES);
  assert_fails(dist_slurm_expand_host_list(text, count_hosts, &n), DIST_INVALID_ARGUMENT, "1048575 bytes");
  assert_fails(dist_slurm_expand_tasks_per_node(text, NULL, 0, &n), DIST_INVALID_ARGUMENT, "1048575 bytes");
  text[DIST_MAX_ADDRESS_BYTES] = '\0';
  assert_fails(dist_slurm_expand_host_list(text, count_hosts, &n), DIST_INVALID_ARGUMENT, "511 bytes");
  free(text);
}

static void pods_are_named_by_their_number(void **state) {
  (void)state;
  setenv("HOSTNAME", "my-trainer-2", 1);
  setenv("WORLD_SIZE", "3", 1);
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_kubernetes(NULL, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"my-trainer-0:8888\",\"my-trainer-1:8888\",\"my-trainer-2:8888\"]}");
  has_task(resolver, "worker", 2);
  dist_cluster_resolver_destroy(resolver);
  setenv("JOB_COMPLETION_INDEX", "0", 1);
  setenv("POD_NAMESPACE", "ml", 1);
  dist_kubernetes_options pods = DIST_KUBERNETES_OPTIONS_INIT;
  pods.service = "trainers";
  pods.domain = "cluster.local";
  pods.num_workers = 1;
  pods.port = 9;
  assert_ok(dist_cluster_resolver_create_kubernetes(&pods, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"my-trainer-0.trainers.ml.svc.cluster.local:9\"]}");
  has_task(resolver, "worker", 0);
  has_master(resolver, NULL, DIST_TASK_UNSET, "grpc://my-trainer-0.trainers.ml.svc.cluster.local:9");
  dist_cluster_resolver_destroy(resolver);
}

static void no_pods(const dist_kubernetes_options *pods, dist_status status, const char *words) {
  dist_cluster_resolver *resolver = NULL;
  assert_fails(dist_cluster_resolver_create_kubernetes(pods, NULL, &resolver), status, words);
  assert_null(resolver);
}

static void what_are_no_pods_is_refused(void **state) {
  (void)state;
  no_pods(NULL, DIST_FAILED_PRECONDITION, "HOSTNAME");
  dist_kubernetes_options good = DIST_KUBERNETES_OPTIONS_INIT, pods;
  good.host_name = "t-5";
  good.num_workers = 2;
  good.first_index = 4;
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_kubernetes(&good, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"t-4:8888\",\"t-5:8888\"]}");
  has_task(resolver, "worker", 1);
  dist_cluster_resolver_destroy(resolver);
  pods = good, pods.num_workers = 0, no_pods(&pods, DIST_FAILED_PRECONDITION, "WORLD_SIZE");
  pods = good, pods.num_workers = 1, no_pods(&pods, DIST_INVALID_ARGUMENT, "index of this pod is 5");
  pods = good, pods.num_workers = DIST_MAX_CLUSTER_TASKS + 1, no_pods(&pods, DIST_INVALID_ARGUMENT, "65536");
  pods = good, pods.host_name = "trainer", no_pods(&pods, DIST_INVALID_ARGUMENT, "number at the end");
  pods = good, pods.host_name = "-5", no_pods(&pods, DIST_INVALID_ARGUMENT, "name of DNS");
  pods = good, pods.host_name = "t_-5", no_pods(&pods, DIST_INVALID_ARGUMENT, "name of DNS");
  pods = good, pods.host_name = "t-99999999999", no_pods(&pods, DIST_INVALID_ARGUMENT, "32 bits");
  pods = good, pods.service = "a..b", no_pods(&pods, DIST_INVALID_ARGUMENT, "service");
  pods = good, pods.port = 65536, no_pods(&pods, DIST_INVALID_ARGUMENT, "65535");
  char label[65], name[260] = "t-5";
  memset(label, 'a', 64), label[64] = '\0';
  pods = good, pods.service = label, no_pods(&pods, DIST_INVALID_ARGUMENT, "63 bytes");
  for (int i = 0; i < 64; i++) strcat(name, ".aaa");
  pods = good, pods.host_name = name, no_pods(&pods, DIST_INVALID_ARGUMENT, "253");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cleared(slurm_places_tasks_by_host),       cleared(slurm_options_count_before_variables),
      cleared(what_is_no_slurm_step_is_refused), cleared(slurm_lists_are_limited),
      cleared(pods_are_named_by_their_number),   cleared(what_are_no_pods_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
