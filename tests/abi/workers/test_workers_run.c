/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies with several workers in one process: their numbering, runs with collectives over all replicas,
 * and workers that disagree, leave, fail, are late or cannot be reached. Afterwards, they are usable again.
 */
#include <dist/tf.h>
#include "../mesh_support.h"
#include "../workers_support.h"

enum { SIZE = 1000 };

/* ---- Runs ---- */

typedef struct sums {
  float all[MOST][SIZE]; /* of each replica of all workers */
  int32_t counts[MOST];
} sums;

static float brought(int32_t rank, int i) { return (float)(rank + 1) / (float)(3 + i); }

static dist_status add_up(dist_replica *replica, void *user_data) {
  sums *out = user_data;
  const int32_t rank = dist_replica_id(replica);
  float mine[SIZE];
  int64_t shape[] = {SIZE};
  for (int i = 0; i < SIZE; ++i) mine[i] = brought(rank, i);
  const dist_tensor in = {mine, DIST_F32, 1, shape, NULL};
  dist_tensor sum = {out->all[rank], DIST_F32, 1, shape, NULL};
  out->counts[rank] = dist_replica_num_replicas(replica);
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &sum, 1, NULL, NULL);
}

static dist_status run_it(dist_strategy *strategy, int worker, void *user_data) {
  (void)worker;
  return dist_run(strategy, add_up, user_data, NULL);
}

static void every_layout_runs_as_one_process_does(void **state) {
  (void)state;
  static sums wanted;
  dist_strategy *alone = strategy_of(4, DIST_THREADS_CALLER);
  assert_ok(dist_run(alone, add_up, &wanted, NULL));
  assert_ok(dist_strategy_destroy(alone));
  const char *const layouts[] = {"4", "2+2", "1+1+1+1", "3+1", "1+2+1"};
  for (size_t k = 0; k < COUNT_OF(layouts); ++k) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; ++threads) {
      dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
      options.threads = threads;
      workers all = workers_of(layouts[k], options);
      static sums found;
      memset(&found, 0, sizeof found);
      for (int again = 0; again < 3; ++again) all_workers(&all, run_it, &found);
      assert_memory_equal(&found, &wanted, sizeof found);
      end_workers(&all);
    }
  }
}

typedef struct explanation {
  char text[8192];
  size_t size;
} explanation;

static void keep_text(const char *text, size_t size_bytes, void *user_data) {
  explanation *kept = user_data;
  if (size_bytes >= sizeof kept->text - kept->size) return;
  memcpy(kept->text + kept->size, text, size_bytes);
  kept->size += size_bytes;
}

static void a_worker_knows_its_place(void **state) {
  (void)state;
  workers all = workers_of("2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int w = 0; w < 2; ++w) {
    dist_strategy_properties p = DIST_STRATEGY_PROPERTIES_INIT;
    assert_ok(dist_strategy_query(all.strategies[w], &p));
    assert_int_equal(p.kind, DIST_STRATEGY_MULTI_WORKER_MIRRORED);
    assert_int_equal(p.num_replicas, 3);
    assert_int_equal(dist_strategy_num_replicas(all.strategies[w]), 3);
    assert_int_equal(p.num_workers, 2);
    assert_int_equal(p.in_multi_worker_mode, 1);
    assert_int_equal(p.worker, w);
    assert_int_equal(p.num_local_replicas, w == 0 ? 2 : 1);
    assert_int_equal(p.first_replica, w == 0 ? 0 : 2);
    assert_int_equal(p.should_checkpoint, w == 0);
    assert_int_equal(p.should_save_summary, w == 0);
    assert_int_equal(p.should_init, 1);
    const char *name = NULL;
    assert_ok(dist_strategy_device(all.strategies[w], w == 0 ? 0 : 2, &name));
    explanation text = {0};
    assert_ok(dist_strategy_explain(all.strategies[w], keep_text, &text));
    assert_has(text.text,
               w == 0
                   ? "workers: 2; this is worker 0 (task 0 of job worker, the chief) with replicas 0-1 of 3"
                   : "workers: 2; this is worker 1 (task 1 of job worker) with replica 2 of 3");
    assert_string_equal(name, w == 0 ? "/job:worker/replica:0/task:0/device:CPU:0"
                                     : "/job:worker/replica:0/task:1/device:CPU:0");
  }
  end_workers(&all);
}

/* ---- A single worker ---- */

static void a_worker_alone_needs_no_network(void **state) {
  (void)state;
  static const char *const configs[] = {
      NULL,
      "{}",
      "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
      "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"], \"evaluator\": [\"c:1\"]}, "
      "\"task\": {\"type\": \"evaluator\", \"index\": 0}}",
  };
  for (size_t k = 0; k < COUNT_OF(configs); ++k) {
    configs[k] == NULL ? unsetenv("TF_CONFIG") : setenv("TF_CONFIG", configs[k], 1);
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 2;
    dist_strategy *strategy = strategy_with(options);
    unsetenv("TF_CONFIG");
    dist_strategy_properties p = DIST_STRATEGY_PROPERTIES_INIT;
    assert_ok(dist_strategy_query(strategy, &p));
    assert_int_equal(p.num_workers, 1);
    assert_int_equal(p.num_replicas, 2);
    assert_int_equal(p.in_multi_worker_mode, k >= 2);
    assert_int_equal(p.should_checkpoint, 1);
    static sums found;
    assert_ok(dist_run(strategy, add_up, &found, NULL));
    assert_int_equal(found.counts[1], 2);
    dist_cluster_resolver *resolver = NULL;
    assert_ok(dist_strategy_cluster_resolver(strategy, &resolver));
    assert_non_null(resolver);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status return_at_once(dist_replica *replica, void *user_data) {
  (void)replica;
  (void)user_data;
  return DIST_OK;
}

static void what_nothing_leads_to_is_unavailable(void **state) {
  (void)state;
  setenv("TF_CONFIG",
         "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:1\"]}, \"task\": {\"type\": \"worker\", "
         "\"index\": 0}}",
         1);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 2;
  dist_strategy *strategy = strategy_with(options);
  unsetenv("TF_CONFIG");
  assert_int_equal(dist_strategy_num_replicas(strategy), 4);
  assert_ok(dist_run(strategy, return_at_once, NULL, NULL)); /* needs no other worker */
  static sums found;
  for (int again = 0; again < 2; ++again) {
    assert_fails(dist_run(strategy, add_up, &found, NULL), DIST_UNAVAILABLE,
                 "worker 1 cannot reach the other workers: the address of worker 0 is \"a:1\"");
    dist_error_info info = DIST_ERROR_INFO_INIT;
    assert_ok(dist_last_error_info(&info));
    assert_int_equal(info.worker, 1); /* the worker itself is at fault */
    assert_has(info.hint, "network");
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* Errors of this process, which are detected before any peer is contacted. */
static void wrong_settings_are_reported_at_creation(void **state) {
  (void)state;
  static const struct {
    const char *name, *value, *words;
  } kCases[] = {
      {"DIST_BIND_ADDRESS", "192.0.2.7:4000",
       "\", but this process cannot listen there: the address belongs to no interface"},
      {"DIST_BIND_ADDRESS", "nosuch.invalid:4000",
       "\", which is not a loopback address, so connections need TLS"},
      {"DIST_BIND_ADDRESS", "4000", "\", but must be host:port or [v6]:port"},
      {"DIST_BIND_ADDRESS", "::1:4000", "\", but must be host:port or [v6]:port"},
      {"DIST_BIND_ADDRESS", " 127.0.0.1:4000", "\", but must be host:port or [v6]:port"},
      {"DIST_BIND_ADDRESS", "127.0.0.1:-1", "\", but must be host:port or [v6]:port"},
      {"DIST_MODULE_FOLDER", "/nonexistent", "\", but libdist-grpc.so was not found at /nonexistent/"},
      {"DIST_TRANSPORT", "none", "\", but the cluster has 2 workers, which need a transport. Set it to auto"},
  };
  setenv("TF_CONFIG",
         "{\"cluster\": {\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}, \"task\": {\"type\": \"worker\", "
         "\"index\": 1}}",
         1);
  for (size_t i = 0; i < COUNT_OF(kCases); ++i) {
    setenv(kCases[i].name, kCases[i].value, 1);
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 1;
    dist_strategy *strategy = NULL;
    assert_int_not_equal(dist_strategy_create(&options, &strategy), DIST_OK);
    assert_null(strategy);
    char words[256];
    snprintf(words, sizeof words, "%s is \"%s%s", kCases[i].name, kCases[i].value, kCases[i].words);
    assert_has(dist_last_error(), words);
    unsetenv(kCases[i].name);
  }
  unsetenv("TF_CONFIG");
}

static void workers_off_loopback_need_protection(void **state) {
  (void)state;
  setenv("TF_CONFIG",
         "{\"cluster\": {\"worker\": [\"10.1.2.3:29511\", \"10.1.2.4:29512\"]}, \"task\": {\"type\": "
         "\"worker\", "
         "\"index\": 0}}",
         1);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_FAILED_PRECONDITION, "DIST_PLAINTEXT=1");
  assert_null(strategy);
  worker.transport = DIST_TRANSPORT_NONE;
  assert_ok(dist_strategy_create(&options, &strategy));
  unsetenv("TF_CONFIG");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Faults ---- */

typedef struct trouble {
  int worker; /* the worker at fault */
  dist_replica_fn fn;
} trouble;

static dist_status run_trouble(dist_strategy *strategy, int worker, void *user_data) {
  const trouble *given = user_data;
  static sums nowhere[MOST_WORKERS];
  return dist_run(strategy, worker == given->worker ? given->fn : add_up, &nowhere[worker], NULL);
}

static dist_status fail_here(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) % 2 == 0 ? DIST_OK : dist_fail(DIST_DATA_LOSS, "the disk is gone");
}

static dist_status find_largest(dist_replica *replica, void *user_data) {
  sums *out = user_data;
  int64_t shape[] = {SIZE};
  dist_tensor t = {out->all[dist_replica_id(replica)], DIST_F32, 1, shape, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_MAX, &t, &t, 1, NULL, NULL);
}

static void trouble_is_told_to_all_and_passes(void **state) {
  (void)state;
  const struct {
    dist_replica_fn fn;
    const char *words;
  } cases[] = {{fail_here, "the disk is gone"}, {return_at_once, "worker 1"}, {find_largest, "worker 1"}};
  const char *const layouts[] = {"2+2", "1+1+1", "2+2+2"};
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
    workers all = workers_of(layouts[l], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    for (size_t k = 0; k < COUNT_OF(cases); ++k) {
      if (cases[k].fn == fail_here && all.replicas[0] == 1) continue; /* ranks 1 and 3 are on other workers */
      trouble given = {1, cases[k].fn};
      worker_thread threads[MOST_WORKERS];
      on_workers(&all, run_trouble, &given, threads);
      for (int w = 0; w < all.n; ++w) {
        if (w == 1 && cases[k].fn == return_at_once) continue;
        assert_int_not_equal(threads[w].status, DIST_OK);
        assert_has(threads[w].error.message, cases[k].words);
      }
      static sums found;
      all_workers(&all, run_it, &found);
    }
    end_workers(&all);
  }
}

typedef struct lateness {
  atomic_int go;
  int64_t now_ns;
} lateness;

static dist_status run_with_deadline(dist_strategy *strategy, int worker, void *user_data) {
  static sums nowhere[MOST_WORKERS];
  if (worker == 1) {
    while (atomic_load((atomic_int *)user_data) == 0) sched_yield();
    return dist_run(strategy, add_up, &nowhere[worker], NULL);
  }
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 20000000;
  const dist_status status = dist_run(strategy, add_up, &nowhere[worker], &options);
  atomic_store((atomic_int *)user_data, 1);
  return status;
}

static void who_is_late_hears_of_it_and_is_in_step_again(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  atomic_int go = 0;
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, run_with_deadline, &go, threads);
  /* The culprit in the report depends on how far replica 0's peer had come. */
  assert_int_equal(threads[0].status, DIST_DEADLINE_EXCEEDED);
  assert_int_equal(threads[1].status, DIST_DEADLINE_EXCEEDED);
  static sums found;
  for (int again = 0; again < 3; ++again) all_workers(&all, run_it, &found);
  end_workers(&all);
}

/* A run that does not start on one worker is a run of all of them, which fails. */
static dist_status run_cancelled(dist_strategy *strategy, int worker, void *user_data) {
  if (worker != 1) return run_it(strategy, worker, user_data);
  dist_cancel *cancel = NULL;
  dist_status status = dist_cancel_create(NULL, &cancel);
  if (status == DIST_OK) status = dist_cancel_signal(cancel, "not now");
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = cancel;
  if (status == DIST_OK) status = dist_run(strategy, add_up, user_data, &options);
  dist_cancel_destroy(cancel);
  return status;
}

static void a_run_that_does_not_begin_counts(void **state) {
  (void)state;
  workers all = workers_of("2+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static sums found[2];
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, run_cancelled, &found[0], threads);
  assert_int_equal(threads[1].status, DIST_CANCELLED);
  for (int w = 0; w < 3; w += 2) {
    assert_int_equal(threads[w].status, DIST_ABORTED);
    assert_has(threads[w].error.message, "not now");
  }
  for (int again = 0; again < 3; ++again) all_workers(&all, run_it, &found[1]);
  for (int r = 1; r < 4; ++r) assert_memory_equal(found[1].all[r], found[1].all[0], sizeof found[1].all[0]);
  end_workers(&all);
}

static dist_status shut_down_or_run(dist_strategy *strategy, int worker, void *user_data) {
  if (worker == 1) return dist_strategy_shutdown(strategy, -1);
  return dist_run(strategy, add_up, user_data, NULL);
}

static void a_worker_that_ends_is_lost_to_the_others(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static sums found;
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, shut_down_or_run, &found, threads);
  assert_int_equal(threads[0].status, DIST_UNAVAILABLE);
  assert_has(threads[0].error.message, "worker 1 is lost");
  end_workers(&all);
}

/* ---- Host threads ---- */

static void threads_of_the_host_are_replicas_of_workers_too(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.threads = DIST_THREADS_HOST;
  workers all = workers_of("2+1", options);
  static sums found;
  for (int again = 0; again < 3; ++again) {
    host_thread threads[3];
    pthread_t ids[3];
    for (int r = 0; r < 3; ++r) {
      threads[r] =
          (host_thread){.strategy = all.strategies[r / 2], .id = r, .fn = add_up, .user_data = &found};
      assert_int_equal(pthread_create(&ids[r], NULL, host_thread_main, &threads[r]), 0);
    }
    for (int r = 0; r < 3; ++r) {
      assert_int_equal(pthread_join(ids[r], NULL), 0);
      assert_int_equal(threads[r].status, DIST_OK);
      assert_int_equal(found.counts[r], 3);
    }
  }
  end_workers(&all);
}

/* ---- Options ---- */

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  dist_network *network = NULL;
  assert_fails(dist_network_create(0, NULL, &network), DIST_INVALID_ARGUMENT, "num_workers is 0");
  assert_fails(dist_network_create(-1, NULL, &network), DIST_INVALID_ARGUMENT, "num_workers is -1");
  assert_int_equal(dist_network_create(INT32_MAX, NULL, &network), DIST_RESOURCE_EXHAUSTED);
  dist_network_options small = DIST_NETWORK_OPTIONS_INIT;
  small.credit_bytes = 100;
  assert_fails(dist_network_create(2, &small, &network), DIST_INVALID_ARGUMENT, "credit_bytes is 100");
  assert_ok(dist_network_create(2, NULL, &network));

  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &options_worker;
  options_worker.network = network;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "MULTI_WORKER_MIRRORED");

  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  dist_cluster_resolver *resolver = resolver_of_worker(3, 0);
  options_worker.cluster_resolver = resolver;
  options.num_replicas = 2;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "network is for 2 workers");
  dist_cluster_resolver_destroy(resolver);

  resolver = resolver_of_worker(2, 1);
  options_worker.cluster_resolver = resolver;
  const struct {
    int32_t replicas[3];
    size_t n;
    const char *words;
  } cases[] = {
      {{2, 2, 2}, 3, "num_workers is 3"},
      {{2, 3, 0}, 2, "replicas_of_workers[1] is 3"},
      {{0, 2, 0}, 2, "replicas_of_workers[0] is 0"},
      {{-1, 2, 0}, 2, "replicas_of_workers[0] is -1"},
      {{INT32_MAX, 2, 0}, 2, "2147483649 replicas together"},
  };
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    options_worker.replicas_of_workers = cases[k].replicas;
    options_worker.num_workers = cases[k].n;
    assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, cases[k].words);
  }
  options_worker.replicas_of_workers = NULL;
  options_worker.num_workers = 0;
  options_worker.staging_bytes = -1;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "staging_bytes is -1");
  options_worker.staging_bytes = 0;
  options_worker.num_workers = 2;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
               "replicas_of_workers is NULL");
  options_worker.num_workers = 0;
  assert_ok(dist_strategy_create(&options, &strategy));
  dist_strategy *twin = NULL;
  assert_fails(dist_strategy_create(&options, &twin), DIST_FAILED_PRECONDITION,
               "worker 1 has already joined");
  assert_ok(dist_strategy_destroy(strategy));
  dist_cluster_resolver_destroy(resolver);
  dist_network_destroy(network);
}

/* ---- Features of one process only ---- */

static dist_status reduce_nothing(dist_reduce_op op, const dist_tensor *components, size_t n,
                                  dist_tensor *out, void *user_data) {
  (void)op, (void)components, (void)n, (void)out, (void)user_data;
  return dist_fail(DIST_INTERNAL, "nobody may ask");
}

static void what_one_process_alone_has_is_refused(void **state) {
  (void)state;
  workers all = {.n = 2, .replicas = {2, 2}};
  assert_ok(dist_network_create(2, NULL, &all.network));
  dist_cluster_resolver *resolver = resolver_of_worker(2, 0);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &options_worker;
  dist_mesh_options options_mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &options_mesh;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options_worker.cluster_resolver = resolver;
  options_worker.network = all.network;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;

  /* Logical devices, by either of the two options. */
  const int32_t mesh[] = {2, 2, 1, 1};
  const int32_t block[] = {1, 2, 1, 1};
  dist_device_assignment *assignment = block_assignment(mesh, block, 2);
  options_mesh.device_assignment = assignment;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_UNIMPLEMENTED,
               "replicas of several workers cannot have logical devices");
  options.kind = DIST_STRATEGY_MESH;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_UNIMPLEMENTED,
               "replicas of several workers cannot have logical devices");
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options_mesh.device_assignment = NULL;
  dist_device_assignment_destroy(assignment);

  /* Host functions. */
  dist_strategy_functions functions = DIST_STRATEGY_FUNCTIONS_INIT;
  functions.reduce = reduce_nothing;
  options.functions = &functions;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_UNIMPLEMENTED, "host functions");
  options.functions = NULL;
  dist_cross_device_functions calls = DIST_CROSS_DEVICE_FUNCTIONS_INIT;
  calls.reduce = reduce_nothing;
  dist_cross_device_options of_host = DIST_CROSS_DEVICE_OPTIONS_INIT;
  of_host.kind = DIST_CROSS_DEVICE_HOST;
  of_host.functions = &calls;
  assert_ok(dist_cross_device_create(&of_host, &options.cross_device));
  assert_fails(dist_strategy_create(&options, &strategy), DIST_UNIMPLEMENTED, "host functions");
  dist_cross_device_destroy(options.cross_device);
  options.cross_device = NULL;

  /* Re-forming with workers that share a network of this process. */
  options_worker.reform = DIST_REFORM_AT_NEXT_RUN;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_UNIMPLEMENTED, "re-form");
  options_worker.reform = DIST_REFORM_EXPLICIT;

  /* None of these attempts has taken the worker's place. */
  assert_ok(dist_strategy_create(&options, &strategy));
  assert_fails(dist_strategy_reform(strategy, NULL), DIST_UNIMPLEMENTED, "re-form");
  assert_ok(dist_strategy_destroy(strategy));
  dist_cluster_resolver_destroy(resolver);
  dist_network_destroy(all.network);
}

static dist_status run_again(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)user_data, (void)kwargs;
  return dist_run(strategy, return_at_once, NULL, NULL);
}

static dist_status merge_a_run(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_again, user_data, NULL, NULL, NULL, NULL);
}

static dist_status run_a_merge(dist_strategy *strategy, int worker, void *user_data) {
  (void)worker;
  return dist_run(strategy, merge_a_run, user_data, NULL);
}

static void a_run_inside_a_merge_function_is_refused(void **state) {
  (void)state;
  workers all = workers_of("2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int again = 0; again < 2; ++again) {
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, run_a_merge, NULL, threads);
    for (int w = 0; w < all.n; ++w) {
      assert_int_equal(threads[w].status, DIST_UNIMPLEMENTED);
      assert_has(threads[w].error.message, "a run inside a merge function");
    }
    static sums found;
    all_workers(&all, run_it, &found);
  }
  end_workers(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layout_runs_as_one_process_does),
      cmocka_unit_test(a_worker_knows_its_place),
      cmocka_unit_test(a_worker_alone_needs_no_network),
      cmocka_unit_test(what_nothing_leads_to_is_unavailable),
      cmocka_unit_test(wrong_settings_are_reported_at_creation),
      cmocka_unit_test(workers_off_loopback_need_protection),
      cmocka_unit_test(trouble_is_told_to_all_and_passes),
      cmocka_unit_test(who_is_late_hears_of_it_and_is_in_step_again),
      cmocka_unit_test(a_run_that_does_not_begin_counts),
      cmocka_unit_test(a_worker_that_ends_is_lost_to_the_others),
      cmocka_unit_test(threads_of_the_host_are_replicas_of_workers_too),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(what_one_process_alone_has_is_refused),
      cmocka_unit_test(a_run_inside_a_merge_function_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
