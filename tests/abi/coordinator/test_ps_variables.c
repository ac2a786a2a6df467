/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables on parameter servers: their placement, reading, all ways of updating them, saving and restoring.
 */
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "cluster_of_servers.h"

/* variables[0] -= variables[1] = 0.5 * variables[1] + gradient */
static dist_status momentum(dist_tensor *variables, size_t n, dist_value *arguments, void *user_data) {
  (void)user_data;
  dist_tensor gradient;
  if (n != 2) return dist_fail(DIST_INVALID_ARGUMENT, "momentum takes two variables");
  const dist_status status = dist_value_tensor(arguments, &gradient);
  if (status != DIST_OK) return status;
  float *w = variables[0].data, *m = variables[1].data;
  const float *g = gradient.data;
  int64_t elements = 1;
  for (int32_t i = 0; i < gradient.ndim; ++i) elements *= gradient.shape[i];
  for (int64_t i = 0; i < elements; ++i) w[i] -= m[i] = 0.5F * m[i] + g[i];
  return DIST_OK;
}
static dist_status half_done(dist_tensor *variables, size_t n, dist_value *arguments, void *user_data) {
  (void)n, (void)arguments, (void)user_data;
  *(float *)variables[0].data = 77;
  return dist_fail(DIST_OUT_OF_RANGE, "half done");
}
/* Fails with a status and without a message. */
static dist_status wordless(dist_tensor *variables, size_t n, dist_value *arguments, void *user_data) {
  (void)variables, (void)n, (void)user_data;
  return dist_value_kind_of(arguments) == DIST_VALUE_NONE ? DIST_DATA_LOSS : 77;
}
/* Tries to end its own server and to wait for its end, both of which must fail. */
static dist_status end_itself(dist_tensor *variables, size_t n, dist_value *arguments, void *user_data) {
  (void)variables, (void)n, (void)arguments;
  const dist_status joined = dist_server_join(user_data, -1, NULL);
  const dist_status ended = dist_server_destroy(user_data);
  return joined == ended ? ended : DIST_INTERNAL;
}

static dist_status step(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                        void *user_data) {
  (void)out_result, (void)user_data;
  const char *names[] = {"w", "m"};
  return dist_closure_update(closure, "momentum", names, 2, arguments);
}

/* Adds 1 to `other`, which is on another server, and then makes an update of w that fails. */
static dist_status fail_on_one(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                               void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  const char *const w = "w";
  dist_value *one = number(1);
  dist_status status = dist_closure_assign(closure, "other", DIST_ASSIGN_ADD, one);
  dist_value_release(one);
  if (status == DIST_OK) status = dist_closure_update(closure, "half_done", &w, 1, NULL);
  return status;
}

static void register_all(dist_server *server, void *user_data) {
  (void)user_data;
  assert_ok(dist_server_register(server, "add_and_double", add_and_double, NULL, NULL));
  assert_ok(dist_server_register(server, "step", step, NULL, NULL));
  assert_ok(dist_server_register(server, "fail_on_one", fail_on_one, NULL, NULL));
  assert_ok(dist_server_register_update(server, "momentum", momentum, NULL, NULL));
  assert_ok(dist_server_register_update(server, "half_done", half_done, NULL, NULL));
  assert_ok(dist_server_register_update(server, "wordless", wordless, NULL, NULL));
  assert_ok(dist_server_register_update(server, "end_itself", end_itself, server, NULL));
}

static void variables_take_turns_on_the_servers(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 2, 1, NULL, NULL, NULL);
  static const char *const wanted[] = {"/job:ps/replica:0/task:0/device:CPU:0",
                                       "/job:ps/replica:0/task:1/device:CPU:0"};
  char name[8];
  const char *device = NULL;
  int64_t begin = 0, rows = 0;
  for (int i = 0; i < 5; ++i) {
    snprintf(name, sizeof name, "s%d", i);
    create_number(&c, name, (float)i);
    assert_ok(dist_coordinator_variable_part(c.coordinator, name, 0, &device, &begin, &rows));
    assert_string_equal(device, wanted[i % 2]);
  }
  /* 7 rows in 3 parts: 3, 2 and 2. The servers take turns. */
  float data[14];
  for (int i = 0; i < 14; ++i) data[i] = (float)i;
  const int64_t shape[] = {7, 2}, partitions[] = {3, 1};
  const dist_tensor tensor = {data, DIST_F32, 2, shape, NULL};
  dist_ps_variable_options options = DIST_PS_VARIABLE_OPTIONS_INIT;
  options.partitions = partitions;
  options.num_partitions = 2;
  assert_ok(dist_coordinator_create_variable(c.coordinator, "divided", &tensor, &options));
  static const int64_t begins[] = {0, 3, 5}, sizes[] = {3, 2, 2};
  for (int i = 0; i < 3; ++i) {
    assert_ok(dist_coordinator_variable_part(c.coordinator, "divided", i, &device, &begin, &rows));
    assert_string_equal(device, wanted[(5 + i) % 2]);
    assert_int_equal(begin, begins[i]);
    assert_int_equal(rows, sizes[i]);
  }
  assert_fails(dist_coordinator_variable_part(c.coordinator, "divided", 3, &device, &begin, &rows),
               DIST_INVALID_ARGUMENT, "parts 0 to 2");
  create_number(&c, "after", 0);
  assert_ok(dist_coordinator_variable_part(c.coordinator, "after", 0, &device, &begin, &rows));
  assert_string_equal(device, wanted[0]);
  assert_int_equal(dist_coordinator_num_variables(c.coordinator), 7);
  assert_string_equal(dist_coordinator_variable_name(c.coordinator, 5), "divided");
  dist_tensor spec;
  int64_t parts = 0;
  assert_ok(dist_coordinator_variable_spec(c.coordinator, "divided", &spec, &parts));
  assert_int_equal(parts, 3);
  assert_int_equal(spec.shape[0], 7);

  /* The whole variable, some of its rows, and updates of some rows. */
  dist_value *values[2] = {NULL, NULL};
  const char *names[] = {"divided", "s3"};
  assert_ok(dist_coordinator_read(c.coordinator, names, 2, values));
  dist_tensor got;
  assert_ok(dist_value_tensor(values[0], &got));
  assert_memory_equal(got.data, data, sizeof data);
  assert_true(float_of(values[1]) == 3);
  dist_value_release(values[0]);
  dist_value_release(values[1]);

  const int32_t which_rows[] = {6, 0, 3, 6};
  const int64_t four = 4;
  const dist_tensor indices_tensor = {(void *)which_rows, DIST_I32, 1, &four, NULL};
  dist_value *indices = NULL, *some = NULL;
  assert_ok(dist_value_create_tensor(dist_get_strategy(), &indices_tensor, &indices));
  assert_ok(dist_coordinator_read_rows(c.coordinator, "divided", indices, &some));
  assert_ok(dist_value_tensor(some, &got));
  for (int k = 0; k < 4; ++k) assert_true(((float *)got.data)[2 * k] == (float)(2 * which_rows[k]));

  dist_value *nothing = NULL, *slices = NULL;
  assert_ok(dist_value_create_none(dist_get_strategy(), &nothing));
  dist_value *const items[] = {some, indices, nothing};
  assert_ok(dist_value_create_composite(dist_get_strategy(), DIST_VALUE_INDEXED_SLICES, items, 3, &slices));
  assert_ok(dist_coordinator_scatter(c.coordinator, "divided", DIST_SCATTER_ADD, slices));
  assert_ok(dist_coordinator_read(c.coordinator, names, 1, values));
  assert_ok(dist_value_tensor(values[0], &got));
  for (int i = 0; i < 14; ++i) {
    const int row = i / 2;
    const float factor = row == 6 ? 3 : row == 0 || row == 3 ? 2 : 1;
    assert_true(((float *)got.data)[i] == factor * data[i]);
  }
  dist_value_release(values[0]);
  dist_value *whole = NULL;
  assert_ok(dist_value_create_tensor(dist_get_strategy(), &tensor, &whole));
  assert_ok(dist_coordinator_assign(c.coordinator, "divided", DIST_ASSIGN_SUB, whole));
  assert_ok(dist_coordinator_assign(c.coordinator, "divided", DIST_ASSIGN, whole));
  assert_ok(dist_coordinator_assign(c.coordinator, "divided", DIST_ASSIGN_ADD, whole));
  assert_ok(dist_coordinator_read(c.coordinator, names, 1, values));
  assert_ok(dist_value_tensor(values[0], &got));
  for (int i = 0; i < 14; ++i) assert_true(((float *)got.data)[i] == 2 * data[i]);
  dist_value_release(values[0]);
  dist_value_release(whole);
  dist_value_release(slices);
  dist_value_release(nothing);
  dist_value_release(some);
  dist_value_release(indices);
  end_cluster(&c);
}

static void update_functions_change_what_lies_alike(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 2, 1, register_all, NULL, NULL);
  const int64_t shape[] = {3}, partitions[] = {2};
  float zeros[3] = {0, 0, 0};
  const dist_tensor tensor = {zeros, DIST_F32, 1, shape, NULL};
  dist_ps_variable_options options = DIST_PS_VARIABLE_OPTIONS_INIT;
  options.partitions = partitions;
  options.num_partitions = 1;
  assert_ok(dist_coordinator_create_variable(c.coordinator, "w", &tensor, &options));
  dist_ps_variable_options beside = DIST_PS_VARIABLE_OPTIONS_INIT;
  beside.colocate_with = "w";
  assert_ok(dist_coordinator_create_variable(c.coordinator, "m", &tensor, &beside));
  beside.colocate_with = "nothing";
  assert_int_equal(dist_coordinator_create_variable(c.coordinator, "n", &tensor, &beside), DIST_NOT_FOUND);
  /* A variable that is colocated with one part of another is not divided. */
  beside.colocate_with = "w/part_1";
  const int64_t five = 5;
  float more[5] = {0};
  const dist_tensor longer = {more, DIST_F32, 1, &five, NULL};
  assert_ok(dist_coordinator_create_variable(c.coordinator, "n", &longer, &beside));
  const char *device_of_w = NULL, *device_of_n = NULL;
  int64_t begin = -1, rows = 0;
  assert_ok(dist_coordinator_variable_part(c.coordinator, "w", 1, &device_of_w, &begin, &rows));
  assert_ok(dist_coordinator_variable_part(c.coordinator, "n", 0, &device_of_n, &begin, &rows));
  assert_string_equal(device_of_n, device_of_w);
  assert_int_equal(begin, 0);
  assert_int_equal(rows, 5);
  const char *const no_parts[] = {"w/part_2", "w/part_", "w/part_1x", "w/part_-1", "nothing/part_0"};
  for (size_t i = 0; i < sizeof no_parts / sizeof *no_parts; i++) {
    beside.colocate_with = no_parts[i];
    assert_fails(dist_coordinator_create_variable(c.coordinator, "o", &longer, &beside), DIST_NOT_FOUND,
                 no_parts[i]);
  }
  float ones[3] = {1, 2, 3};
  const dist_tensor gradient = {ones, DIST_F32, 1, shape, NULL};
  for (int i = 0; i < 2; ++i) {
    dist_value *value = NULL;
    assert_ok(dist_value_create_tensor(dist_get_strategy(), &gradient, &value));
    dist_remote_value_release(schedule(&c, "step", value));
  }
  join(&c);
  const char *name = "w";
  dist_value *value = NULL;
  dist_tensor got;
  assert_ok(dist_coordinator_read(c.coordinator, &name, 1, &value));
  assert_ok(dist_value_tensor(value, &got));
  for (int i = 0; i < 3; ++i) assert_true(((float *)got.data)[i] == -2.5F * ones[i]);
  dist_value_release(value);
  /* Changes that a function made before it failed are discarded. */
  assert_fails(dist_coordinator_update(c.coordinator, "half_done", &name, 1, NULL), DIST_OUT_OF_RANGE,
               "half done");
  assert_int_equal(dist_coordinator_update(c.coordinator, "nowhere", &name, 1, NULL), DIST_NOT_FOUND);
  assert_fails(dist_coordinator_update(c.coordinator, "end_itself", &name, 1, NULL), DIST_FAILED_PRECONDITION,
               "dist_server_destroy(): this thread is in one of the server's update functions");
  /* A failure without a message does not get another one's. A status of the host is passed on. */
  assert_fails(dist_coordinator_update(c.coordinator, "wordless", &name, 1, NULL), DIST_DATA_LOSS,
               "the update function failed with DATA_LOSS and gave no reason");
  value = number(1);
  assert_fails(dist_coordinator_update(c.coordinator, "wordless", &name, 1, value), DIST_UNKNOWN,
               "status 77, which libdist does not define");
  dist_value_release(value);
  assert_ok(dist_coordinator_read(c.coordinator, &name, 1, &value));
  assert_ok(dist_value_tensor(value, &got));
  assert_true(((float *)got.data)[0] == -2.5F);
  dist_value_release(value);
  end_cluster(&c);
}

/* ---- Checkpoints ---- */

static void a_checkpoint_goes_on_from_its_mark(void **state) {
  (void)state;
  char path[] = "/tmp/dist-coordinator-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (int round = 0; round < 2; ++round) {
    cluster c;
    begin_cluster(&c, 2 - round, 1, register_all, NULL, NULL); /* on other servers the second time */
    create_number(&c, "other", 1);
    create_number(&c, "v", 0);
    if (round == 1) {
      int64_t mark = 0;
      assert_ok(dist_coordinator_restore(c.coordinator, path, &mark));
      assert_int_equal(mark, 3);
      assert_true(read_number(&c, "v") == 6);
    }
    for (int i = 3 * round; i < 3 * round + 3; ++i)
      dist_remote_value_release(schedule(&c, "add_and_double", number((float)i + 1)));
    join(&c);
    int64_t mark = 0;
    assert_fails(dist_coordinator_restore(c.coordinator, path, &mark), DIST_FAILED_PRECONDITION,
                 "before the first closure");
    assert_ok(dist_coordinator_save(c.coordinator, path));
    assert_true(read_number(&c, "v") == (round == 0 ? 6 : 21));
    end_cluster(&c);
  }
  unlink(path);
}

/* A partitioner tries to create another variable, which is rejected. Its own error is returned. */
static cluster divided;
static dist_status divide(const dist_tensor *spec, int64_t *out_partitions, void *user_data) {
  for (int32_t i = 0; i < spec->ndim; ++i) out_partitions[i] = 1;
  if (user_data != NULL) return DIST_OK;
  const float zero = 0;
  const dist_tensor tensor = {(void *)&zero, DIST_F32, 0, NULL, NULL};
  return dist_coordinator_create_variable(divided.coordinator, "inside", &tensor, NULL);
}

static void a_partitioner_creates_no_variable(void **state) {
  (void)state;
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.partitioner = divide;
  begin_cluster(&divided, 1, 1, NULL, NULL, &options);
  const int64_t two = 2;
  float data[2] = {1, 2};
  const dist_tensor tensor = {data, DIST_F32, 1, &two, NULL};
  assert_fails(dist_coordinator_create_variable(divided.coordinator, "x", &tensor, NULL),
               DIST_FAILED_PRECONDITION, "in the coordinator's partitioner");
  assert_int_equal(dist_coordinator_num_variables(divided.coordinator), 0);
  create_number(&divided, "scalar", 1);
  end_cluster(&divided);
}

static void a_function_that_fails_keeps_other_servers_as_they_are(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 2, 1, register_all, NULL, NULL);
  create_number(&c, "w", 1);
  create_number(&c, "other", 2);
  for (int i = 0; i < 20; ++i) {
    dist_remote_value *remote = schedule(&c, "fail_on_one", NULL);
    dist_value *none = NULL;
    assert_fails(dist_remote_value_get(remote, -1, &none), DIST_OUT_OF_RANGE, "half done");
    dist_remote_value_release(remote);
    assert_fails(dist_coordinator_join(c.coordinator, -1, NULL), DIST_OUT_OF_RANGE, "half done");
    assert_true(read_number(&c, "w") == 1);
    assert_true(read_number(&c, "other") == 2);
  }
  end_cluster(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_take_turns_on_the_servers),
      cmocka_unit_test(update_functions_change_what_lies_alike),
      cmocka_unit_test(a_checkpoint_goes_on_from_its_mark),
      cmocka_unit_test(a_partitioner_creates_no_variable),
      cmocka_unit_test(a_function_that_fails_keeps_other_servers_as_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
