/* SPDX-License-Identifier: Apache-2.0
 *
 * The same ten errors in every language: bindings/errors.txt has what C, C++, Go, Java and Python say, and
 * each language has a test that reads it. The first argument is the file.
 */
#include "tests/abi/common.h"

static const char *file_name;

/* Checks this thread's latest error against the line of C below `name`: function | parameter | message. */
static void assert_said(const char *name) {
  FILE *file = fopen(file_name, "r");
  assert_non_null(file);
  char line[1024], expected[1024] = "", said[1024];
  int here = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] != ' ') here = strcmp(line, name) == 0;
    if (here && strncmp(line, "  C, C++ | ", 11) == 0) snprintf(expected, sizeof expected, "%s", line + 11);
  }
  fclose(file);
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  snprintf(said, sizeof said, "%s | %s | %s", info.function, info.parameter, info.message);
  if (strcmp(said, expected) != 0) print_error("%s\n", name);
  assert_string_equal(said, expected);
}

static dist_status other_shapes(dist_replica *replica, void *user_data) {
  (void)user_data;
  float data[3] = {0};
  const int64_t shape[] = {2 + dist_replica_id(replica)};
  const dist_tensor tensor = {data, DIST_F32, 1, shape, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "gradients";
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, NULL);
}

static dist_status one_returns(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 1 ? DIST_OK : dist_barrier(replica, NULL, NULL);
}

static dist_status no_such_root(dist_replica *replica, void *user_data) {
  (void)user_data;
  float data = 0;
  const dist_tensor tensor = {&data, DIST_F32, 0, NULL, NULL};
  return dist_broadcast(replica, 7, &tensor, &tensor, 1, NULL, NULL);
}

static dist_status keep_replica(dist_replica *replica, void *user_data) {
  if (dist_replica_id(replica) == 0) *(dist_replica **)user_data = replica;
  return DIST_OK;
}

static void what_c_says(void **state) {
  (void)state;
  dist_strategy *strategy = NULL, *none = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = -1;
  assert_int_equal(dist_strategy_create(&options, &none), DIST_INVALID_ARGUMENT);
  assert_said("replicas");
  options.num_replicas = 2;
  assert_ok(dist_strategy_create(&options, &strategy));

  const int32_t ids[] = {0, 7};
  dist_group *group = NULL;
  assert_int_equal(dist_group_create(strategy, ids, 2, &group), DIST_INVALID_ARGUMENT);
  assert_said("group");
  assert_int_equal(dist_run(strategy, other_shapes, NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_said("shapes");
  assert_int_equal(dist_run(strategy, one_returns, NULL, NULL), DIST_ABORTED);
  assert_said("left");
  assert_int_equal(dist_run(strategy, no_such_root, NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_said("root");
  dist_replica *replica = NULL;
  assert_ok(dist_run(strategy, keep_replica, &replica, NULL));
  assert_int_equal(dist_barrier(replica, NULL, NULL), DIST_FAILED_PRECONDITION);
  assert_said("stale");

  float data[3] = {0};
  const int64_t two[] = {2}, three[] = {3};
  const dist_tensor initial = {data, DIST_F32, 1, two, NULL}, longer = {data, DIST_F32, 1, three, NULL};
  dist_variable_options named = DIST_VARIABLE_OPTIONS_INIT;
  named.name = "w";
  dist_variable *variable = NULL;
  dist_value *value = NULL;
  assert_ok(dist_variable_create(strategy, &initial, &named, &variable));
  assert_ok(dist_value_create_tensor(strategy, &longer, &value));
  assert_int_equal(dist_variable_assign(strategy, variable, DIST_ASSIGN, value), DIST_INVALID_ARGUMENT);
  assert_said("assign");
  dist_value_release(value);
  dist_variable_destroy(variable);

  dist_checkpoint *checkpoint = NULL;
  assert_int_equal(dist_checkpoint_open(strategy, "/nothing/here", &checkpoint), DIST_NOT_FOUND);
  assert_said("checkpoint");
  dist_cluster_resolver_options from = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  from.tf_config = "{";
  dist_cluster_resolver *resolver = NULL;
  dist_cluster_spec *spec = NULL;
  assert_ok(dist_cluster_resolver_create_tf_config(&from, &resolver));
  assert_int_equal(dist_cluster_resolver_spec(resolver, &spec), DIST_INVALID_ARGUMENT);
  assert_said("tf_config");
  dist_cluster_resolver_destroy(resolver);
  char name[64];
  assert_int_equal(dist_canonical_device("GPU:x", name, sizeof name), DIST_INVALID_ARGUMENT);
  assert_said("device");
  assert_ok(dist_strategy_destroy(strategy));
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  file_name = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_c_says)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
