/* SPDX-License-Identifier: Apache-2.0
 *
 * More workers, and more replicas of all workers, than fit into any fixed table: they compute the bits of one
 * process with all replicas, and reports name the worker at fault.
 */
#include "../processes_support.h"

enum { MOST_REPLICAS = 1200, ELEMENTS = 40, EACH = 300, PROCESSES = 4, WORKERS = 160 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

/* ---- The computation ---- */

typedef struct seen {
  uint64_t digest[MOST_REPLICAS]; /* digests of what each replica has received */
} seen;

static void see(uint64_t *digest, const void *data, size_t bytes) {
  const unsigned char *at = data;
  for (size_t i = 0; i < bytes; ++i) *digest = (*digest ^ at[i]) * 1099511628211U;
}

static dist_status compute(dist_replica *replica, void *user_data) {
  const int32_t me = dist_replica_id(replica), replicas = dist_replica_num_replicas(replica);
  uint64_t *digest = &((seen *)user_data)->digest[me];
  *digest = 14695981039346656037U;
  float in[ELEMENTS], out[ELEMENTS];
  for (int i = 0; i < ELEMENTS; ++i) in[i] = 1.0F / (float)(3 + me * 5 + i);
  const int64_t length = ELEMENTS, one = 1, all = replicas;
  const dist_tensor from = {in, DIST_F32, 1, &length, NULL};
  dist_tensor to = {out, DIST_F32, 1, &length, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  for (options.numerics = DIST_NUMERICS_ORDERED; options.numerics <= DIST_NUMERICS_TREE; ++options.numerics) {
    TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &to, 1, &options, NULL));
    see(digest, out, sizeof out);
  }
  options.numerics = DIST_NUMERICS_ORDERED;
  const double weight = 1 + me % 4;
  options.weights = &weight;
  TRY(dist_all_reduce(replica, DIST_REDUCE_MEAN, &from, &to, 1, &options, NULL));
  see(digest, out, sizeof out);
  options.weights = NULL;
  int32_t own = me * 3, ids[MOST_REPLICAS];
  const dist_tensor id = {&own, DIST_I32, 1, &one, NULL};
  dist_tensor gathered = {ids, DIST_I32, 1, &all, NULL}, other = {ids, DIST_I32, 1, &one, NULL};
  TRY(dist_all_gather(replica, &id, &gathered, 1, NULL, NULL));
  see(digest, ids, (size_t)replicas * sizeof *ids);
  TRY(dist_permute(replica, (me + 1) % replicas, (me + replicas - 1) % replicas, &id, &other, 1, NULL, NULL));
  see(digest, ids, sizeof *ids);
  TRY(dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_EXCLUSIVE, &from, &to, 1, NULL, NULL));
  see(digest, out, sizeof out);
  dist_work *work = NULL;
  TRY(dist_all_reduce(replica, DIST_REDUCE_MAX, &from, &to, 1, &options, &work));
  const dist_status status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  see(digest, out, sizeof out);
  return status;
}

static void compute_alone(int32_t replicas, seen *all) {
  dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_LIBRARY);
  memset(all, 0, sizeof *all);
  assert_ok(dist_run(strategy, compute, all, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Workers of one process ---- */

typedef struct worker {
  dist_strategy *strategy;
  pthread_t thread;
  dist_replica_fn fn;
  void *user_data;
  dist_status status;
  char message[1024];
} worker;

static worker workers[WORKERS];
static int32_t replicas_of[WORKERS];

static void start_workers(int n, int32_t replicas, dist_network **network) {
  assert_ok(dist_network_create(n, NULL, network));
  const size_t room = (size_t)n * 16 + 64;
  char *const json = malloc(room);
  assert_non_null(json);
  size_t used = (size_t)snprintf(json, room, "{\"worker\": [");
  for (int w = 0; w < n; ++w)
    used += (size_t)snprintf(json + used, room - used, "%s\"w%d:1\"", w == 0 ? "" : ", ", w);
  snprintf(json + used, room - used, "]}");
  dist_cluster_spec *spec = NULL;
  assert_ok(dist_cluster_spec_from_json(json, NULL, &spec));
  free(json);
  for (int w = 0; w < n; ++w) replicas_of[w] = replicas;
  for (int w = 0; w < n; ++w) {
    dist_cluster_resolver_options of = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
    of.task_type = "worker";
    of.has_task_id = 1;
    of.task_id = w;
    dist_cluster_resolver *resolver = NULL;
    assert_ok(dist_cluster_resolver_create_simple(spec, &of, &resolver));
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &options_worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options_worker.cluster_resolver = resolver;
    options_worker.network = *network;
    options_worker.replicas_of_workers = replicas_of;
    options_worker.num_workers = (size_t)n;
    workers[w] = (worker){.strategy = strategy_with(options)};
    dist_cluster_resolver_destroy(resolver);
  }
  dist_cluster_spec_destroy(spec);
}

static void *worker_main(void *argument) {
  worker *self = argument;
  self->status = dist_run(self->strategy, self->fn, self->user_data, NULL);
  snprintf(self->message, sizeof self->message, "%s", dist_last_error());
  return NULL;
}

static void run_workers(int n, dist_replica_fn fn, void *user_data) {
  for (int w = 0; w < n; ++w) {
    workers[w].fn = fn;
    workers[w].user_data = user_data;
    assert_int_equal(pthread_create(&workers[w].thread, NULL, worker_main, &workers[w]), 0);
  }
  for (int w = 0; w < n; ++w) assert_int_equal(pthread_join(workers[w].thread, NULL), 0);
}

static void end_workers(int n, dist_network *network) {
  for (int w = 0; w < n; ++w) assert_ok(dist_strategy_destroy(workers[w].strategy));
  dist_network_destroy(network);
}

static void in_one_process(int n, int32_t replicas) {
  static seen expected, all;
  compute_alone(n * replicas, &expected);
  dist_network *network = NULL;
  start_workers(n, replicas, &network);
  memset(&all, 0, sizeof all);
  run_workers(n, compute, &all);
  for (int w = 0; w < n; ++w) {
    if (workers[w].status != DIST_OK) fail_msg("worker %d: %s", w, workers[w].message);
  }
  for (int r = 0; r < n * replicas; ++r) {
    if (all.digest[r] != expected.digest[r]) fail_msg("replica %d of %d differs", r, n * replicas);
  }
  end_workers(n, network);
}

static void many_workers_have_the_bits_of_one_process(void **state) {
  (void)state;
  in_one_process(WORKERS, 1);
}

static void workers_with_many_replicas_have_the_bits_of_one_process(void **state) {
  (void)state;
  in_one_process(4, EACH);
}

static dist_status fail_on_one(dist_replica *replica, void *user_data) {
  (void)user_data;
  float value = 1;
  dist_tensor t = {&value, DIST_F32, 0, NULL, NULL};
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL, NULL));
  if (dist_replica_id(replica) == WORKERS - 3) return dist_fail(DIST_DATA_LOSS, "no more rows");
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL, NULL);
}

static void all_of_many_workers_name_the_one_that_fails(void **state) {
  (void)state;
  dist_network *network = NULL;
  start_workers(WORKERS, 1, &network);
  run_workers(WORKERS, fail_on_one, NULL);
  char words[64];
  snprintf(words, sizeof words, "worker %d failed with DATA_LOSS", WORKERS - 3);
  for (int w = 0; w < WORKERS; ++w) {
    assert_int_equal(workers[w].status, w == WORKERS - 3 ? DIST_DATA_LOSS : DIST_ABORTED);
    if (w != WORKERS - 3) assert_has(workers[w].message, words);
  }
  end_workers(WORKERS, network);
}

/* ---- Processes ---- */

static int play(int number) {
  static seen all;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, compute, &all, NULL);
  uint64_t digest = 14695981039346656037U;
  see(&digest, all.digest + (size_t)number * EACH, EACH * sizeof *all.digest);
  printf("digest %016llx\n", (unsigned long long)digest);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) == DIST_OK ? code : 2;
}

static void processes_with_many_replicas_have_the_bits_of_one(void **state) {
  (void)state;
  static seen expected;
  compute_alone(PROCESSES * EACH, &expected);
  static job all;
  all = job_of(PROCESSES);
  const char *const environment[] = {"DIST_REPLICAS=300", NULL};
  start(&all, "compute", environment);
  for (int w = 0; w < PROCESSES; ++w) {
    ends_well(&all.processes[w]);
    uint64_t digest = 14695981039346656037U;
    see(&digest, expected.digest + (size_t)w * EACH, EACH * sizeof *expected.digest);
    char line[64];
    snprintf(line, sizeof line, "digest %016llx\n", (unsigned long long)digest);
    assert_has(all.processes[w].text, line);
  }
}

int main(int argc, char **argv) {
  if (argc == 3) return play((int)strtol(argv[2], NULL, 10));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_workers_have_the_bits_of_one_process),
      cmocka_unit_test(workers_with_many_replicas_have_the_bits_of_one_process),
      cmocka_unit_test(all_of_many_workers_name_the_one_that_fails),
      cmocka_unit_test(processes_with_many_replicas_have_the_bits_of_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
