/* SPDX-License-Identifier: Apache-2.0
 *
 * experimental/links.h: a program that contains a link module and registers it. The module is that of examples/link_module.
 */
#include "../processes_support.h"

#include <dist/experimental/links.h>

const dist_link_functions *dist_link_module(void);

static dist_status add(dist_replica *replica, void *user_data) {
  float *const value = user_data;
  dist_tensor tensor = {value, DIST_F32, 0, NULL, NULL};
  *value = (float)(1 + dist_replica_id(replica));
  for (int i = 0; i < 200; ++i) {
    const dist_status status = dist_all_reduce(replica, DIST_REDUCE_MEAN, &tensor, &tensor, 1, NULL);
    if (status != DIST_OK) return status;
  }
  static float many[300000];
  const int64_t shape[] = {300000};
  dist_tensor large = {many, DIST_F32, 1, shape, NULL};
  for (int i = 0; i < 300000; ++i) many[i] = *value;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &large, &large, 1, NULL);
}

static void print(const char *text, size_t size, void *user_data) {
  (void)user_data;
  printf("%.*s\n", (int)size, text);
}

static int play(const char *part) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  if (dist_link_register(dist_link_module(), strcmp(part, "option") == 0 ? &options.transport : NULL) !=
      DIST_OK) {
    return 3;
  }
  dist_strategy *strategy = NULL;
  float value = 0;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, add, &value, NULL);
  if (status != DIST_OK) return say_how_it_went(status);
  status = dist_explain(strategy, print, NULL);
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
  for (int i = 1; i < 16; ++i) assert_ok(dist_link_register(&tables[i], &again));
  assert_int_equal(again, first + 15);
  assert_int_equal(dist_link_register(&tables[16], &again), DIST_RESOURCE_EXHAUSTED);
}

static void a_transport_that_nobody_registered_is_refused(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.transport = 99;
  const job all = job_of(2);
  set_tf_config(&all, 0);
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
  options.transport = DIST_TRANSPORT_AUTO;
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
  if (argc == 3) return play(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workers_use_a_registered_module),
      cmocka_unit_test(a_wrong_table_is_refused),
      cmocka_unit_test(a_transport_that_nobody_registered_is_refused),
      cmocka_unit_test(a_name_is_registered_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
