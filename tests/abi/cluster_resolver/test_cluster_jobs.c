/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolvers for launchers: Slurm steps and Kubernetes pods. Everything runs on one thread, so the tests can
 * set environment variables.
 */
#include "../resolver_support.h"

static void a_step(const char *rank, const char *hosts, const char *tasks_per_host, const char *tasks) {
  setenv("SLURM_PROCID", rank, 1);
  setenv("SLURM_STEP_NODELIST", hosts, 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", tasks_per_host, 1);
  setenv("SLURM_STEP_NUM_TASKS", tasks, 1);
}

static void slurm_places_tasks_by_host(void **state) {
  (void)state;
  a_step("2", "n[9-10],m1", "1(x2),2", "4");
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_slurm(NULL, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"n9:8888\",\"n10:8888\",\"m1:8888\",\"m1:8889\"]}");
  has_task(resolver, "worker", 2);
  has_master(resolver, NULL, DIST_TASK_UNSET, "grpc://m1:8888");
  char ids[16];
  assert_ok(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids));
  assert_string_equal(ids, "");
  explains(resolver, "resolver: Slurm");
  clear_environment(NULL);
  has_task(resolver, "worker", 2); /* the environment is read once */
  dist_cluster_resolver_destroy(resolver);
}

/* Two hosts with three and two tasks; the step has five GPUs on each host, one for each task. */
static void slurm_has(const char *distribution, const char *spec) {
  setenv("SLURM_DISTRIBUTION", distribution, 1);
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.gpus_per_host = 5;
  slurm.gpus_per_task = 1;
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
  has_spec(resolver, spec);
  dist_cluster_resolver_destroy(resolver);
}

static void ranks_follow_the_distribution_of_the_step(void **state) {
  (void)state;
  a_step("3", "b,a", "3,2", "5");
  const char *const block = "{\"worker\":[\"b:8888\",\"b:8889\",\"b:8890\",\"a:8888\",\"a:8889\"]}";
  const char *const cyclic = "{\"worker\":[\"b:8888\",\"a:8888\",\"b:8889\",\"a:8889\",\"b:8890\"]}";
  const char *const plane = "{\"worker\":[\"b:8888\",\"b:8889\",\"a:8888\",\"a:8889\",\"b:8890\"]}";
  const char *const blocks[] = {"",           "*",       "block",           "Block:cyclic", "block,NoPack",
                                "*:*:*,Pack", "plane=3", "plane=2147483647"};
  const char *const cyclics[] = {"cyclic", "CYCLIC", "cyclic:block", "cyclic:fcyclic:block,pack", "plane=1"};
  for (size_t i = 0; i < COUNT_OF(blocks); i++) slurm_has(blocks[i], block);
  for (size_t i = 0; i < COUNT_OF(cyclics); i++) slurm_has(cyclics[i], cyclic);
  slurm_has("plane=2", plane);
  slurm_has("plane=2:block", plane);
  setenv("SLURM_DIST_PLANESIZE", "2", 1);
  slurm_has("plane", plane);
  slurm_has("plane:cyclic", plane);
}

static void gpus_follow_the_distribution_of_the_step(void **state) {
  (void)state;
  a_step("3", "b,a", "3,2", "5");
  setenv("SLURM_DISTRIBUTION", "cyclic", 1);
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.gpus_per_host = 6;
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
  char ids[16];
  has_master(resolver, NULL, DIST_TASK_UNSET, "grpc://a:8889");
  assert_ok(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids));
  assert_string_equal(ids, "2,3"); /* it is the second task of its host */
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
  slurm = good, slurm.num_tasks = 1;
  no_slurm(&slurm, DIST_FAILED_PRECONDITION,
           "num_tasks asks for 1 task, but host_list and tasks_per_node give the Slurm step 4 tasks");
  slurm = good, slurm.num_tasks = 5, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "asks for 5 tasks");
  slurm = good, slurm.host_list = "n[2-1]", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "ascending range");
  slurm = good, slurm.host_list = ",", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "no host");
  slurm = good, slurm.host_list = "n[",
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "\"n[\", which cannot be read");
  slurm = good, slurm.host_list = "n[1-]", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "\"1-\" in brackets");
  slurm = good, slurm.tasks_per_node = "2(x", no_slurm(&slurm, DIST_INVALID_ARGUMENT, "2(x");
  slurm = good, slurm.port_base = 65535, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "65535");
  slurm = good, slurm.port_base = -1, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "port_base");
  slurm = good, slurm.gpus_per_host = 1,
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "gpus_per_host is 1, but a host has up to 2 tasks");
  slurm = good, slurm.gpus_per_task = 1, no_slurm(&slurm, DIST_FAILED_PRECONDITION, "gpus_per_host is 0");
  slurm = good, slurm.has_rank = -1, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "has_rank");
  slurm = good, slurm.host_list = "n[1-9]", slurm.tasks_on_each_host = DIST_MAX_CLUSTER_TASKS;
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "65536");
  setenv("SLURM_PROCID", "x", 1);
  slurm = good, slurm.has_rank = 0, no_slurm(&slurm, DIST_INVALID_ARGUMENT, "SLURM_PROCID is \"x\"");
}

static void a_host_is_a_name_without_a_port(void **state) {
  (void)state;
  const char *const hosts[] = {"a:1", "n[1-2]:5", "http://a", "[::1]"};
  for (size_t i = 0; i < COUNT_OF(hosts); i++) {
    a_step("1", hosts[i], "1", "1");
    no_slurm(NULL, DIST_INVALID_ARGUMENT, "SLURM_STEP_NODELIST has \"");
  }
  a_step("1", "a:1", "1", "1");
  no_slurm(NULL, DIST_INVALID_ARGUMENT, "\"a:1\", but a host must be a name without a port");
  a_step("1", "n[1-2", "1", "1");
  no_slurm(NULL, DIST_INVALID_ARGUMENT, "SLURM_STEP_NODELIST has \"n[1-2\", which cannot be read");
  a_step("1", "a,b", "1 1", "2");
  no_slurm(NULL, DIST_INVALID_ARGUMENT, "SLURM_STEP_TASKS_PER_NODE is \"1 1\", but must list");
}

static void a_distribution_that_is_not_known_is_refused(void **state) {
  (void)state;
  a_step("1", "b,a", "1(x2)", "2");
  const char *const planes[] = {"plane=", "plane=0", "plane=-1", "plane=x", "plane=2x", "plane=2147483648"};
  for (size_t i = 0; i < COUNT_OF(planes); i++) {
    setenv("SLURM_DISTRIBUTION", planes[i], 1);
    char words[64];
    snprintf(words, sizeof words, "SLURM_DISTRIBUTION is \"%s\", but the size of a plane must be", planes[i]);
    no_slurm(NULL, DIST_INVALID_ARGUMENT, words);
  }
  setenv("SLURM_DISTRIBUTION", "plane", 1);
  no_slurm(NULL, DIST_FAILED_PRECONDITION, "SLURM_DIST_PLANESIZE is not set");
  setenv("SLURM_DIST_PLANESIZE", "", 1);
  no_slurm(NULL, DIST_INVALID_ARGUMENT,
           "SLURM_DIST_PLANESIZE is \"\", but the size of a plane must be a number");
  setenv("SLURM_DISTRIBUTION", "arbitrary", 1);
  no_slurm(NULL, DIST_FAILED_PRECONDITION, "\"arbitrary\", which does not tell libdist which ranks");
  /* Pack and NoPack only complete a method; srun(1) has no method of these names. */
  const char *const unknown[] = {"blocks", "Pack", "NoPack", "pAcK", "nopack", " ", "unknown", "**", ",Pack"};
  for (size_t i = 0; i < COUNT_OF(unknown); i++) {
    char words[64];
    snprintf(words, sizeof words, "SLURM_DISTRIBUTION is \"%s\", which does not tell", unknown[i]);
    setenv("SLURM_DISTRIBUTION", unknown[i], 1);
    no_slurm(NULL, DIST_FAILED_PRECONDITION, words);
  }
  a_step("1", "b", "2", "2");
  slurm_has("arbitrary", "{\"worker\":[\"b:8888\",\"b:8889\"]}"); /* one host has all ranks */
}

/* Slurm tells each process its host, which reveals a distribution that libdist does not know. */
static void a_place_other_than_slurms_is_refused(void **state) {
  (void)state;
  a_step("1", "b,a", "2(x2)", "4");
  setenv("SLURM_NODEID", "0", 1);
  setenv("SLURM_LOCALID", "1", 1);
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_slurm(NULL, NULL, &resolver));
  dist_cluster_resolver_destroy(resolver);
  setenv("SLURM_NODEID", "1", 1);
  no_slurm(
      NULL, DIST_FAILED_PRECONDITION,
      "SLURM_NODEID is 1, but with the distribution \"block\" the index of its host would be 0 for rank 1");
  setenv("SLURM_DISTRIBUTION", "cyclic", 1);
  no_slurm(NULL, DIST_FAILED_PRECONDITION, "SLURM_LOCALID is 1, but with the distribution \"cyclic\"");
  setenv("SLURM_LOCALID", "0", 1);
  assert_ok(dist_cluster_resolver_create_slurm(NULL, NULL, &resolver));
  dist_cluster_resolver_destroy(resolver);
  setenv("SLURM_NODEID", "x", 1);
  no_slurm(NULL, DIST_INVALID_ARGUMENT, "SLURM_NODEID is \"x\"");
  /* SLURM_NODEID is not checked if the caller passes hosts or a rank. */
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.host_list = "a,b";
  assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
  dist_cluster_resolver_destroy(resolver);
}

/* Using the shorter list would omit tasks of the step. */
static void slurm_lists_are_equally_long(void **state) {
  (void)state;
  dist_slurm_options good = DIST_SLURM_OPTIONS_INIT, slurm;
  good.has_rank = 1;
  good.num_tasks = 4;
  slurm = good, slurm.host_list = "t[1-3]", slurm.tasks_per_node = "2(x2)";
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "host_list has 3 hosts, and tasks_per_node has 2 numbers");
  slurm = good, slurm.host_list = "t1", slurm.tasks_per_node = "2(x3)";
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "host_list has 1 host, and tasks_per_node has 3 numbers");
  setenv("SLURM_STEP_NODELIST", "t[1-2]", 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "4", 1);
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  no_slurm(&good, DIST_INVALID_ARGUMENT,
           "SLURM_STEP_NODELIST has 2 hosts, and SLURM_STEP_TASKS_PER_NODE has 1 number");
  setenv("SLURM_STEP_TASKS_PER_NODE", "1(x2)", 1);
  slurm = good, slurm.num_tasks = 0;
  no_slurm(
      &slurm, DIST_FAILED_PRECONDITION,
      "SLURM_STEP_NUM_TASKS asks for 4 tasks, but SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE give");
  slurm = good, slurm.host_list = "a,a", slurm.tasks_per_node = "2,4";
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "host_list has the host \"a\" twice");
  slurm = good, slurm.host_list = "a,a", slurm.tasks_on_each_host = 4;
  no_slurm(&slurm, DIST_INVALID_ARGUMENT, "host_list has the host \"a\" twice");
}

/* If GPUs are not assigned, no rank has any, not even one beyond the step. */
static void a_rank_beyond_the_step_has_no_task(void **state) {
  (void)state;
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.has_rank = 1;
  slurm.host_list = "a";
  slurm.tasks_on_each_host = slurm.num_tasks = 2;
  const int32_t ranks[] = {-1, 2};
  for (size_t i = 0; i < COUNT_OF(ranks); i++) {
    dist_cluster_resolver *resolver = NULL;
    char ids[16] = "x";
    slurm.rank = ranks[i];
    slurm.gpus_per_host = 0;
    assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
    has_task(resolver, NULL, DIST_TASK_UNSET);
    has_master(resolver, NULL, DIST_TASK_UNSET, "");
    assert_ok(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids));
    assert_string_equal(ids, "");
    explains(resolver, "accelerators: 0 (default: devices are host CPUs)");
    dist_cluster_resolver_destroy(resolver);
    slurm.gpus_per_host = 2;
    assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
    assert_fails(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids), DIST_INVALID_ARGUMENT,
                 "has 2 tasks, with ranks from 0 on");
    explains(resolver, "accelerators: 1 (GPUs of a task");
    dist_cluster_resolver_destroy(resolver);
  }
}

static void a_list_of_gpus_has_an_end(void **state) {
  (void)state;
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.has_rank = 1;
  slurm.host_list = "a";
  slurm.tasks_on_each_host = slurm.num_tasks = 1;
  for (slurm.gpus_per_host = 150; slurm.gpus_per_host <= 160; slurm.gpus_per_host += 10) {
    dist_cluster_resolver *resolver = NULL;
    char ids[DIST_MAX_ADDRESS_BYTES];
    assert_ok(dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver));
    if (slurm.gpus_per_host == 150) assert_ok(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids));
    if (slurm.gpus_per_host == 160)
      assert_fails(dist_cluster_resolver_gpu_ids(resolver, ids, sizeof ids), DIST_INVALID_ARGUMENT,
                   "160 GPUs of this process has more than 511 bytes");
    dist_cluster_resolver_destroy(resolver);
  }
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
  assert_int_equal(n, 0); /* no host was reported before the failure */
  assert_fails(dist_slurm_expand_host_list("n[1-9999999999999999999]", count_hosts, &n),
               DIST_INVALID_ARGUMENT, "18 digits");
  assert_fails(dist_slurm_expand_host_list("n[1-256][1-257]", count_hosts, &n), DIST_INVALID_ARGUMENT,
               "65536 hosts");
  assert_ok(dist_slurm_expand_host_list("n[1-256][1-256]", count_hosts, &n));
  assert_int_equal(n, DIST_MAX_CLUSTER_TASKS);
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
  for (size_t i = 0; i < 3 * (size_t)DIST_MAX_ADDRESS_BYTES; i += 3) memcpy(text + i, "[1]", 4);
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
  pods.num_workers = 1;
  pods.port = 9;
  assert_ok(dist_cluster_resolver_create_kubernetes(&pods, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"my-trainer-0.trainers.ml.svc:9\"]}");
  dist_cluster_resolver_destroy(resolver);
  unsetenv("POD_NAMESPACE");
  assert_ok(dist_cluster_resolver_create_kubernetes(&pods, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"my-trainer-0.trainers:9\"]}");
  dist_cluster_resolver_destroy(resolver);
  pods.name_space = "ml";
  pods.domain = "cluster.local";
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
  pods = good, pods.host_name = "trainer", no_pods(&pods, DIST_INVALID_ARGUMENT, "pod's number");
  pods = good, pods.host_name = "t-005", no_pods(&pods, DIST_INVALID_ARGUMENT, "without leading zeros");
  pods = good, pods.name_space = "ml",
  no_pods(&pods, DIST_INVALID_ARGUMENT, "name_space is set, but service is not");
  pods = good, pods.domain = "d", no_pods(&pods, DIST_INVALID_ARGUMENT, "domain is set, but service is not");
  pods.service = "s", no_pods(&pods, DIST_INVALID_ARGUMENT, "the namespace is not known");
  pods = good, pods.host_name = "-5", no_pods(&pods, DIST_INVALID_ARGUMENT, "DNS name");
  pods = good, pods.host_name = "t_-5", no_pods(&pods, DIST_INVALID_ARGUMENT, "DNS name");
  pods = good, pods.host_name = "t-99999999999", no_pods(&pods, DIST_INVALID_ARGUMENT, "32 bits");
  pods = good, pods.service = "a..b", no_pods(&pods, DIST_INVALID_ARGUMENT, "service");
  pods = good, pods.port = 65536, no_pods(&pods, DIST_INVALID_ARGUMENT, "65535");
  char label[65], name[260] = "t-5";
  memset(label, 'a', 64), label[64] = '\0';
  pods = good, pods.service = label, no_pods(&pods, DIST_INVALID_ARGUMENT, "63 bytes");
  for (int i = 0; i < 64; i++) memcpy(name + 3 + 4 * i, ".aaa", sizeof ".aaa");
  pods = good, pods.host_name = name, no_pods(&pods, DIST_INVALID_ARGUMENT, "253");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cleared(slurm_places_tasks_by_host),
      cleared(ranks_follow_the_distribution_of_the_step),
      cleared(gpus_follow_the_distribution_of_the_step),
      cleared(a_distribution_that_is_not_known_is_refused),
      cleared(a_host_is_a_name_without_a_port),
      cleared(a_place_other_than_slurms_is_refused),
      cleared(slurm_options_count_before_variables),
      cleared(what_is_no_slurm_step_is_refused),
      cleared(slurm_lists_are_limited),
      cleared(slurm_lists_are_equally_long),
      cleared(a_rank_beyond_the_step_has_no_task),
      cleared(a_list_of_gpus_has_an_end),
      cleared(pods_are_named_by_their_number),
      cleared(what_are_no_pods_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
