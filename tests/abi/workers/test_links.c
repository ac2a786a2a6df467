/* SPDX-License-Identifier: Apache-2.0
 *
 * experimental/links.h: a program that contains a link module and registers it. The module is that of
 * examples/link_module. For some tests it also knows the workers of the job, through files.
 */
#include "../processes_support.h"

#include <dist/experimental/links.h>
#include <dist/experimental/rendezvous.h>

enum { OF_OTHER_TESTS = 2 }; /* modules that other tests register in this process */

const dist_link_functions *dist_link_module(void);

static dist_status add(dist_replica *replica, void *user_data) {
  float *const value = user_data;
  dist_tensor tensor = {value, DIST_F32, 0, NULL, NULL};
  *value = (float)(1 + dist_replica_id(replica));
  for (int i = 0; i < 200; ++i) {
    const dist_status status = dist_all_reduce(replica, DIST_REDUCE_MEAN, &tensor, &tensor, 1, NULL, NULL);
    if (status != DIST_OK) return status;
  }
  static float many[300000];
  const int64_t shape[] = {300000};
  dist_tensor large = {many, DIST_F32, 1, shape, NULL};
  for (int i = 0; i < 300000; ++i) many[i] = *value;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &large, &large, 1, NULL, NULL);
}

static void print(const char *text, size_t size, void *user_data) {
  (void)user_data;
  printf("%.*s\n", (int)size, text);
}

/* ---- A module that knows the job ---- */

/* The results of its `meet`. */
static int own_rank = -1;
static int job_size = 2;
static int calls_until_known;
static const char *meeting_folder = "";
static const char *meeting_error;
static int64_t rounds;

static dist_status meet(dist_link_meeting *meeting, char *error, size_t error_size) {
  if (meeting->struct_size != sizeof *meeting) return DIST_INTERNAL;
  if (meeting_error != NULL) {
    snprintf(error, error_size, "%s", meeting_error);
    return DIST_UNAVAILABLE;
  }
  meeting->rank = calls_until_known-- > 0 ? -1 : own_rank;
  if (meeting->rank < 0) return DIST_OK;
  meeting->size = job_size;
  snprintf(meeting->host, sizeof meeting->host, "127.0.0.1");
  if (meeting->round == 0) meeting->round = ++rounds;
  char path[256];
  char draft[256];
  snprintf(path, sizeof path, "%s/%d", meeting_folder, (int)meeting->round);
  snprintf(draft, sizeof draft, "%s/draft", meeting_folder);
  FILE *file = NULL;
  if (own_rank == 0 && meeting->has_text == 1) {
    file = fopen(draft, "w");
    if (file == NULL || fputs(meeting->text, file) < 0 || fclose(file) != 0 || rename(draft, path) != 0)
      return DIST_INTERNAL;
  } else if (own_rank != 0 && (file = fopen(path, "r")) != NULL) {
    meeting->has_text = fgets(meeting->text, sizeof meeting->text, file) != NULL ? 1 : 0;
    fclose(file);
  }
  return DIST_OK;
}

static dist_status register_meeting(int32_t *out_transport) {
  static dist_link_functions functions;
  if (functions.meet == NULL) functions = *dist_link_module();
  functions.name = "tcp-job";
  functions.meet = meet;
  return dist_link_register(&functions, out_transport);
}

/* Creates two strategies, one after the other, which call `meet` twice. */
static int play_meeting(int number) {
  unsetenv("TF_CONFIG");
  own_rank = number;
  calls_until_known = 3;
  meeting_folder = getenv("TEST_FOLDER");
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  dist_status status = register_meeting(&worker.transport);
  for (int i = 0; i < 2 && status == DIST_OK; ++i) {
    dist_strategy *strategy = NULL;
    float value = 0;
    status = dist_strategy_create(&options, &strategy);
    if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
    if (status == DIST_OK) status = dist_strategy_destroy(strategy);
    printf("value %g in round %d\n", (double)value, (int)rounds);
  }
  return say_how_it_went(status);
}

static int play(const char *part) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  if (dist_link_register(dist_link_module(), strcmp(part, "option") == 0 ? &worker.transport : NULL) !=
      DIST_OK) {
    return 3;
  }
  dist_strategy *strategy = NULL;
  float value = 0;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
  if (status != DIST_OK) return say_how_it_went(status);
  status = dist_strategy_explain(strategy, print, NULL);
  printf("value %g\n", (double)value);
  if (dist_strategy_destroy(strategy) != DIST_OK) return 2;
  return say_how_it_went(status);
}

static void workers_use_a_registered_module(void **state) {
  (void)state;
  const char *const by_name[] = {"DIST_TRANSPORT=tcp", NULL};
  for (int i = 0; i < 2; ++i) {
    job all = job_of(2);
    start(&all, i == 0 ? "option" : "environment", i == 0 ? NULL : by_name);
    for (int w = 0; w < 2; ++w) {
      ends_well(&all.processes[w]);
      const char *const words[] = {"with data over plain TCP", "value 1.5"};
      for (int k = 0; k < 2; ++k) {
        if (strstr(all.processes[w].text, words[k]) == NULL)
          fail_msg("%s is not in %s", words[k], all.processes[w].text);
      }
    }
  }
}

static void workers_meet_through_a_module(void **state) {
  (void)state;
  char folder[] = "/tmp/dist-links-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char variable[64];
  snprintf(variable, sizeof variable, "TEST_FOLDER=%s", folder);
  const char *const environment[] = {variable, NULL};
  job all = job_of(2);
  start(&all, "meets", environment);
  for (int w = 0; w < 2; ++w) {
    ends_well(&all.processes[w]);
    const char *const words[] = {"value 1.5 in round 1", "value 1.5 in round 2"};
    for (int k = 0; k < 2; ++k) assert_non_null(strstr(all.processes[w].text, words[k]));
  }
  for (int round = 1; round <= 2; ++round) {
    char path[64];
    snprintf(path, sizeof path, "%s/%d", folder, round);
    assert_int_equal(unlink(path), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void does_not_meet(int32_t transport, dist_status expected, const char *words) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  options.timeout_ns = 20000000;
  worker.transport = transport;
  dist_strategy *strategy = NULL;
  const dist_status status = dist_strategy_create(&options, &strategy);
  if (status != expected || strstr(dist_last_error(), words) == NULL)
    fail_msg("%s: %s, but not %s", dist_status_name(status), dist_last_error(), words);
  assert_null(strategy);
}

static void a_meeting_through_a_module_can_fail(void **state) {
  (void)state;
  int32_t transport = 0;
  assert_ok(register_meeting(&transport));
  meeting_error = "the job has another kind of network";
  does_not_meet(transport, DIST_UNAVAILABLE,
                "\"tcp-job\" cannot be used: the job has another kind of network");
  meeting_error = NULL;
  calls_until_known = 1000000;
  does_not_meet(transport, DIST_DEADLINE_EXCEEDED,
                "some processes of the job have not initialized the link module");
  calls_until_known = 0;
  own_rank = 1;
  does_not_meet(transport, DIST_DEADLINE_EXCEEDED, "worker 0 has not begun to wait for the others");
  own_rank = 0;
  char folder[] = "/tmp/dist-links-XXXXXX";
  meeting_folder = mkdtemp(folder);
  assert_non_null(meeting_folder);
  does_not_meet(transport, DIST_DEADLINE_EXCEEDED, "rank 1 of 2 has not registered at 127.0.0.1:");
  char path[64];
  snprintf(path, sizeof path, "%s/%d", folder, (int)rounds);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
  /* Each call is a separate round, whatever the result of the previous one. */
  assert_int_equal(rounds, 2);
  own_rank = 2;
  does_not_meet(transport, DIST_INVALID_ARGUMENT, "the rank (tcp-job) is 2, but must be 0 to 1");
  own_rank = 0;
  job_size = 1;
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "4", 1);
  does_not_meet(transport, DIST_FAILED_PRECONDITION,
                "this process has rank 0 of 1 by the link module \"tcp-job\", but rank 1 of 4 by RANK");
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  dist_cluster_resolver *resolver = NULL;
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  setenv("DIST_TRANSPORT", "tcp-job", 1);
  options.size = 3;
  assert_int_equal(dist_cluster_resolver_create_rendezvous(&options, NULL, &resolver),
                   DIST_FAILED_PRECONDITION);
  assert_non_null(strstr(dist_last_error(), "but rank 0 of 3 by the options"));
  options.size = 0;
  own_rank = -1;
  assert_ok(dist_cancel_create(NULL, &options.cancel));
  assert_ok(dist_cancel_signal(options.cancel, "not today"));
  assert_int_equal(dist_cluster_resolver_create_rendezvous(&options, NULL, &resolver), DIST_CANCELLED);
  dist_cancel_destroy(options.cancel);
  options.cancel = NULL;
  own_rank = 0;
  assert_ok(dist_cluster_resolver_create_rendezvous(&options, NULL, &resolver));
  dist_cluster_resolver_destroy(resolver);
  unsetenv("DIST_TRANSPORT");
}

/* A module that was compiled before `meet` existed. */
static void a_shorter_table_is_accepted(void **state) {
  (void)state;
  static union {
    dist_link_functions functions;
    char bytes[offsetof(dist_link_functions, meet)];
  } old;
  memcpy(old.bytes, dist_link_module(), sizeof old.bytes);
  old.functions.struct_size = sizeof old.bytes;
  old.functions.name = "tcp-old";
  old.functions.meet = (dist_status(*)(dist_link_meeting *, char *, size_t))(uintptr_t)1;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  assert_ok(dist_link_register(&old.functions, &worker.transport));
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  dist_strategy *strategy = NULL;
  assert_ok(dist_strategy_create(&options, &strategy));
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_wrong_table_is_refused(void **state) {
  (void)state;
  const dist_link_functions good = *dist_link_module();
  assert_int_equal(dist_link_register(NULL, NULL), DIST_INVALID_ARGUMENT);
  static dist_link_functions bad[16];
  int n = 0;
  for (int i = 0; i < 16; ++i) bad[i] = good;
  bad[n++].struct_size = 8;
  bad[n++].reserved = 1;
  bad[n++].name = NULL;
  bad[n++].name = "";
  bad[n++].name = "a name";
  bad[n++].name = "../../tmp/evil";
  bad[n++].name = "sixteen-letters-";
  bad[n++].description = NULL;
  bad[n++].description = "two\nlines";
  bad[n++].open = NULL;
  bad[n++].write = NULL;
  bad[n++].destroy = NULL;
  for (int i = 0; i < n; ++i) assert_int_equal(dist_link_register(&bad[i], NULL), DIST_INVALID_ARGUMENT);
  static const char *const own[] = {"auto", "none", "grpc", "gloo", "shm"};
  for (int i = 0; i < 5; ++i) {
    bad[0] = good;
    bad[0].name = own[i];
    assert_int_equal(dist_link_register(&bad[0], NULL), DIST_ALREADY_EXISTS);
  }
}

static void a_name_is_registered_once(void **state) {
  (void)state;
  static dist_link_functions tables[20];
  static char names[20][16];
  int32_t first = 0;
  int32_t again = 0;
  for (int i = 0; i < 20; ++i) {
    snprintf(names[i], sizeof names[i], "net-%d", i);
    tables[i] = *dist_link_module();
    tables[i].name = names[i];
  }
  assert_ok(dist_link_register(&tables[0], &first));
  assert_ok(dist_link_register(&tables[0], &again));
  assert_int_equal(first, again);
  dist_link_functions twin = tables[0];
  assert_int_equal(dist_link_register(&twin, &again), DIST_ALREADY_EXISTS);
  const int left = 15 - OF_OTHER_TESTS;
  for (int i = 1; i <= left; ++i) assert_ok(dist_link_register(&tables[i], &again));
  assert_int_equal(again, first + left);
  assert_int_equal(dist_link_register(&tables[left + 1], &again), DIST_RESOURCE_EXHAUSTED);
}

static void a_transport_that_nobody_registered_is_refused(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  worker.transport = 99;
  const job all = job_of(2);
  set_tf_config(&all, 0);
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
  worker.transport = DIST_TRANSPORT_AUTO;
  static const char *const names[] = {"grcp", "../grpc", "GRPC", "a name that is much too long"};
  for (int i = 0; i < 4; ++i) {
    setenv("DIST_TRANSPORT", names[i], 1);
    assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
    assert_non_null(strstr(dist_last_error(), "must be auto, none, grpc, gloo or the name of a link module"));
  }
  unsetenv("DIST_TRANSPORT");
  unsetenv("TF_CONFIG");
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "meets") == 0) return play_meeting((int)strtol(argv[2], NULL, 10));
  if (argc == 3) return play(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workers_use_a_registered_module),
      cmocka_unit_test(workers_meet_through_a_module),
      cmocka_unit_test(a_meeting_through_a_module_can_fail),
      cmocka_unit_test(a_shorter_table_is_accepted),
      cmocka_unit_test(a_wrong_table_is_refused),
      cmocka_unit_test(a_transport_that_nobody_registered_is_refused),
      cmocka_unit_test(a_name_is_registered_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
