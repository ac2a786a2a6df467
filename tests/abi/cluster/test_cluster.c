/* SPDX-License-Identifier: Apache-2.0
 *
 * Cluster specs, their limits, and the rules of a cluster.
 */
#include "../common.h"

static dist_cluster_spec *spec_of(const char *json) {
  dist_cluster_spec *spec = NULL;
  assert_ok(dist_cluster_spec_from_json(json, NULL, &spec));
  return spec;
}

static void refused(const char *json, const char *words) {
  dist_cluster_spec *spec = NULL;
  assert_fails(dist_cluster_spec_from_json(json, NULL, &spec), DIST_INVALID_ARGUMENT, words);
  assert_null(spec);
}

static void jobs_keep_their_order(void **state) {
  (void)state;
  dist_cluster_spec *spec =
      spec_of("{\"z\": [\"a:1\", \"b:2\"], \"a\": {\"7\": \"c:3\", \"2\": \"d:4\"}, \"m\": []}");
  assert_int_equal(dist_cluster_spec_num_jobs(spec), 3);
  assert_string_equal(dist_cluster_spec_job(spec, 0), "z");
  assert_string_equal(dist_cluster_spec_job(spec, 1), "a");
  assert_null(dist_cluster_spec_job(spec, 3));
  int32_t n = 0, indices[2] = {0, 0};
  size_t count = 0;
  const char *address = NULL;
  assert_ok(dist_cluster_spec_num_tasks(spec, "z", &n));
  assert_int_equal(n, 2);
  assert_ok(dist_cluster_spec_task_indices(spec, "a", indices, 1, &count));
  assert_int_equal(count, 2);
  assert_int_equal(indices[0], 2);
  assert_int_equal(indices[1], 0); /* the array was too small */
  assert_ok(dist_cluster_spec_task_address(spec, "a", 7, &address));
  assert_string_equal(address, "c:3");
  assert_fails(dist_cluster_spec_task_address(spec, "a", 3, &address), DIST_INVALID_ARGUMENT, "no task 3");
  assert_fails(dist_cluster_spec_task_address(spec, "a", DIST_TASK_UNSET, &address), DIST_INVALID_ARGUMENT,
               "the index of a task of job \"a\" is missing");
  assert_fails(dist_cluster_spec_task_address(spec, "b", 0, &address), DIST_INVALID_ARGUMENT, "no job \"b\"");
  assert_string_equal(dist_cluster_spec_json(spec),
                      "{\"z\":[\"a:1\",\"b:2\"],\"a\":{\"2\":\"d:4\",\"7\":\"c:3\"},\"m\":{}}");
  dist_cluster_spec_destroy(spec);
  assert_int_equal(dist_cluster_spec_num_jobs(NULL), 0);
  assert_null(dist_cluster_spec_json(NULL));
  dist_cluster_spec_destroy(NULL);
}

static void arrays_and_json_give_the_same(void **state) {
  (void)state;
  const char *const workers[] = {"a:1", "b:2"}, *const ps[] = {"c:3", "x:0", "d:4"};
  const int32_t indices[] = {5, 1, 1}; /* if an index occurs twice, the later task counts */
  const dist_cluster_job jobs[] = {{"worker", workers, NULL, 2}, {"ps", ps, indices, 3}};
  dist_cluster_spec *made = NULL,
                    *read =
                        spec_of("{\"ps\": {\"1\": \"d:4\", \"5\": \"c:3\"}, \"worker\": [\"a:1\", \"b:2\"]}");
  assert_ok(dist_cluster_spec_create(jobs, 2, NULL, &made));
  assert_int_equal(dist_cluster_spec_is_equal(made, read), 1);
  dist_cluster_spec *other = spec_of("{\"ps\": {\"1\": \"d:4\"}, \"worker\": [\"a:1\", \"b:2\"]}");
  assert_int_equal(dist_cluster_spec_is_equal(made, other), 0);
  assert_int_equal(dist_cluster_spec_is_equal(made, NULL), 0);
  dist_cluster_spec_destroy(made), dist_cluster_spec_destroy(read), dist_cluster_spec_destroy(other);
}

/* A task with this index could not be asked for. */
static void an_index_is_not_the_mark_of_no_task(void **state) {
  (void)state;
  refused("{\"worker\": {\"-2147483648\": \"a:1\"}}",
          "job \"worker\" is -2147483648, which means that no task");
  const char *const addresses[] = {"a:1"}, *address = NULL;
  int32_t index = DIST_TASK_UNSET;
  const dist_cluster_job job = {"worker", addresses, &index, 1};
  dist_cluster_spec *spec = NULL;
  assert_fails(dist_cluster_spec_create(&job, 1, NULL, &spec), DIST_INVALID_ARGUMENT, "no task is set");
  assert_null(spec);
  index++;
  assert_ok(dist_cluster_spec_create(&job, 1, NULL, &spec));
  assert_ok(dist_cluster_spec_task_address(spec, "worker", index, &address));
  assert_string_equal(address, "a:1");
  dist_cluster_spec_destroy(spec);
}

static void what_is_no_spec_is_refused(void **state) {
  (void)state;
  refused("", "not JSON");
  refused("{\"worker\": [\"a:1\",]}", "not JSON");
  refused("{} {}", "not JSON");
  refused("[]", "is a list");
  refused("null", "is null");
  refused("{\"worker\": \"a:1\"}", "a string as the tasks");
  refused("{\"worker\": [5]}", "is not a string");
  refused("{\"worker\": {\"x\": \"a:1\"}}", "\"x\", but must be an integer of 32 bits");
  refused("{\"worker\": {\"2147483648\": \"a:1\"}}", "32 bits");
  refused("{\"worker\": [\"a\\nb\"]}", "one line");
  refused("{\"worker\": [\"a\\u0000b\"]}", "NUL");
  refused("{\"wor\\u0007ker\": []}", "one line");
  refused("{\"worker\": [\"\xff\"]}", "not JSON");
  dist_cluster_spec *spec = NULL;
  assert_fails(dist_cluster_spec_from_json(NULL, NULL, &spec), DIST_INVALID_ARGUMENT, "text is NULL");
  assert_fails(dist_cluster_spec_from_json("{}", NULL, NULL), DIST_INVALID_ARGUMENT, "out_spec is NULL");
  const char *const addresses[] = {NULL};
  const dist_cluster_job nameless = {NULL, NULL, NULL, 0}, without = {"worker", addresses, NULL, 1};
  assert_fails(dist_cluster_spec_create(&nameless, 1, NULL, &spec), DIST_INVALID_ARGUMENT, "name of a job");
  assert_fails(dist_cluster_spec_create(&without, 1, NULL, &spec), DIST_INVALID_ARGUMENT, "address");
  /* A member is ignored if a later one has the same name. */
  spec = spec_of("{\"worker\": 3, \"worker\": [\"a:1\"], \"worker\": {\"0\": 4, \"00\": \"b:2\"}}");
  assert_string_equal(dist_cluster_spec_json(spec), "{\"worker\":[\"b:2\"]}");
  dist_cluster_spec_destroy(spec);
}

/* ---- Limits: the largest accepted size, and one more ---- */

/* Returns `head`, n times `item` separated by commas, and `tail`. */
static char *repeated(const char *head, const char *item, size_t n, const char *tail) {
  const size_t length = strlen(item);
  char *text = malloc(strlen(head) + n * (length + 1) + strlen(tail) + 1), *at = text;
  at += sprintf(at, "%s", head);
  for (size_t i = 0; i < n; i++) {
    if (i > 0) *at++ = ',';
    memcpy(at, item, length), at += length;
  }
  sprintf(at, "%s", tail);
  return text;
}

static void tasks_are_limited(void **state) {
  (void)state;
  char *text = repeated("{\"w\":[", "\"\"", DIST_MAX_CLUSTER_TASKS, "]}");
  dist_cluster_spec_destroy(spec_of(text));
  free(text);
  text = repeated("{\"w\":[", "\"\"", DIST_MAX_CLUSTER_TASKS + 1, "]}");
  refused(text, "more than 65536 tasks");
  free(text);
  const dist_cluster_job job = {"w", NULL, NULL, (size_t)DIST_MAX_CLUSTER_TASKS + 1};
  dist_cluster_spec *spec = NULL;
  assert_fails(dist_cluster_spec_create(&job, 1, NULL, &spec), DIST_INVALID_ARGUMENT, "65536");
}

static void texts_and_values_are_limited(void **state) {
  (void)state;
  char *text = malloc(DIST_MAX_CLUSTER_TEXT_BYTES + 1);
  memset(text, ' ', DIST_MAX_CLUSTER_TEXT_BYTES);
  memcpy(text, "{}", 2);
  text[DIST_MAX_CLUSTER_TEXT_BYTES - 1] = '\0';
  dist_cluster_spec_destroy(spec_of(text));
  text[DIST_MAX_CLUSTER_TEXT_BYTES - 1] = ' ';
  text[DIST_MAX_CLUSTER_TEXT_BYTES] = '\0';
  refused(text, "more than 1048575 bytes");
  free(text);
  text = repeated("[", "1", (size_t)4 * DIST_MAX_CLUSTER_TASKS, "]");
  refused(text, "262144 values");
  free(text);
}

static void depth_is_limited(void **state) {
  (void)state;
  char text[400] = "{\"worker\": 5, \"x\": ";
  const size_t head = strlen(text);
  for (int depth = DIST_MAX_CLUSTER_DEPTH - 1; depth <= DIST_MAX_CLUSTER_DEPTH; depth++) {
    char *at = text + head;
    for (int i = 0; i < depth; i++) *at++ = '[';
    for (int i = 0; i < depth; i++) *at++ = ']';
    strcpy(at, "}");
    refused(text,
            depth < DIST_MAX_CLUSTER_DEPTH ? "a number as the tasks" : "more than 32 objects and lists");
  }
  char *deep = malloc(1000001);
  memset(deep, '[', 1000000);
  deep[1000000] = '\0';
  refused(deep, "more than 32 objects and lists");
  free(deep);
}

static void names_are_limited(void **state) {
  (void)state;
  char text[2 * DIST_MAX_ADDRESS_BYTES], address[DIST_MAX_ADDRESS_BYTES + 1],
      name[DIST_MAX_JOB_NAME_BYTES + 1];
  memset(address, 'a', sizeof address), memset(name, 'n', sizeof name);
  for (int extra = 0; extra <= 1; extra++) {
    address[DIST_MAX_ADDRESS_BYTES - 1 + extra] = '\0';
    snprintf(text, sizeof text, "{\"worker\": [\"%s\"]}", address);
    if (extra == 0) dist_cluster_spec_destroy(spec_of(text));
    if (extra == 1) refused(text, "more than 511 bytes");
    address[DIST_MAX_ADDRESS_BYTES - 1] = 'a';
    name[DIST_MAX_JOB_NAME_BYTES - 1 + extra] = '\0';
    snprintf(text, sizeof text, "{\"%s\": []}", name);
    if (extra == 0) dist_cluster_spec_destroy(spec_of(text));
    if (extra == 1) refused(text, "more than 127 bytes");
    name[DIST_MAX_JOB_NAME_BYTES - 1] = 'n';
  }
}

static void jobs_are_limited(void **state) {
  (void)state;
  char names[DIST_MAX_CLUSTER_JOBS + 1][8];
  dist_cluster_job jobs[DIST_MAX_CLUSTER_JOBS + 1];
  for (int i = 0; i <= DIST_MAX_CLUSTER_JOBS; i++) {
    snprintf(names[i], sizeof names[i], "j%d", i);
    jobs[i] = (dist_cluster_job){names[i], NULL, NULL, 0};
  }
  dist_cluster_spec *spec = NULL;
  assert_ok(dist_cluster_spec_create(jobs, DIST_MAX_CLUSTER_JOBS, NULL, &spec));
  dist_cluster_spec_destroy(spec);
  spec = NULL;
  assert_fails(dist_cluster_spec_create(jobs, DIST_MAX_CLUSTER_JOBS + 1, NULL, &spec), DIST_INVALID_ARGUMENT,
               "64");
  char text[1024] = "{", *at = text + 1;
  for (int i = 0; i <= DIST_MAX_CLUSTER_JOBS; i++) at += sprintf(at, "%s\"%s\":[]", i ? "," : "", names[i]);
  strcpy(at, "}");
  refused(text, "more than 64 jobs");
}

/* ---- Unions ---- */

static void unions_join_lists_and_merge_holes(void **state) {
  (void)state;
  dist_cluster_spec *lists[2] = {spec_of("{\"w\": [\"a\", \"b\"], \"p\": [\"x\"]}"),
                                 spec_of("{\"w\": [\"b\"]}")};
  dist_cluster_spec *holes = spec_of("{\"w\": {\"5\": \"c\"}}"), *all = NULL;
  const dist_cluster_spec *const both[] = {lists[0], lists[1]}, *const mixed[] = {lists[0], holes};
  const dist_cluster_spec *const twice[] = {holes, holes};
  assert_ok(dist_cluster_spec_union(both, 2, NULL, &all));
  assert_string_equal(dist_cluster_spec_json(all), "{\"w\":[\"a\",\"b\",\"b\"],\"p\":[\"x\"]}");
  dist_cluster_spec_destroy(all);
  assert_ok(dist_cluster_spec_union(mixed, 2, NULL, &all));
  assert_string_equal(dist_cluster_spec_json(all),
                      "{\"w\":{\"0\":\"a\",\"1\":\"b\",\"5\":\"c\"},\"p\":[\"x\"]}");
  dist_cluster_spec_destroy(all);
  assert_fails(dist_cluster_spec_union(twice, 2, NULL, &all), DIST_INVALID_ARGUMENT,
               "task 5 of job \"w\" is in specs 0 and 1");
  assert_fails(dist_cluster_spec_union(twice, 0, NULL, &all), DIST_INVALID_ARGUMENT, "num_specs is 0");
  const dist_cluster_spec *many[DIST_MAX_CLUSTER_MEMBERS + 1];
  for (int i = 0; i <= DIST_MAX_CLUSTER_MEMBERS; i++) many[i] = lists[1];
  assert_ok(dist_cluster_spec_union(many, DIST_MAX_CLUSTER_MEMBERS, NULL, &all));
  dist_cluster_spec_destroy(all);
  assert_fails(dist_cluster_spec_union(many, DIST_MAX_CLUSTER_MEMBERS + 1, NULL, &all), DIST_INVALID_ARGUMENT,
               "num_specs is 65");
  dist_cluster_spec_destroy(lists[0]), dist_cluster_spec_destroy(lists[1]), dist_cluster_spec_destroy(holes);
}

/* ---- The rules of a cluster ---- */

static void the_chief_leads_and_saves(void **state) {
  (void)state;
  dist_cluster_spec *spec =
      spec_of("{\"chief\": [\"c\"], \"worker\": [\"a\", \"b\"], \"ps\": [\"p\"], \"evaluator\": [\"e\"]}");
  int32_t answer = -1;
  char text[64] = "";
  assert_ok(dist_cluster_validate(spec, "worker", 1));
  assert_ok(dist_cluster_is_chief(spec, "chief", 0, &answer));
  assert_int_equal(answer, 1);
  assert_ok(dist_cluster_is_chief(spec, "worker", 0, &answer));
  assert_int_equal(answer, 0);
  assert_ok(dist_cluster_collective_leader(spec, "worker", 1, text, sizeof text));
  assert_string_equal(text, "/job:chief/replica:0/task:0");
  assert_ok(dist_cluster_coordination_leader(spec, text, sizeof text));
  assert_string_equal(text, "/job:ps/replica:0/task:0");
  assert_fails(dist_cluster_coordination_leader(spec, text, 5), DIST_INVALID_ARGUMENT,
               "size_bytes is only 5");
  assert_ok(dist_cluster_worker_count(spec, "worker", &answer));
  assert_int_equal(answer, 3);
  assert_ok(dist_cluster_id_in_cluster(spec, "worker", 1, &answer));
  assert_int_equal(answer, 2);
  assert_fails(dist_cluster_id_in_cluster(spec, "ps", 0, &answer), DIST_INVALID_ARGUMENT,
               "no id in the cluster for a task of type \"ps\"");
  const struct {
    const char *type;
    int32_t saves, evaluates;
  } tasks[] = {{"chief", 1, 0}, {"worker", 0, 0}, {"ps", 0, 0}, {"evaluator", 1, 1}};
  for (size_t i = 0; i < COUNT_OF(tasks); i++) {
    assert_ok(dist_cluster_should_save_checkpoint(spec, tasks[i].type, 0, &answer));
    assert_int_equal(answer, tasks[i].saves);
    assert_ok(dist_cluster_should_save_summary(spec, tasks[i].type, 0, &answer));
    assert_int_equal(answer, tasks[i].saves);
    assert_ok(dist_cluster_should_evaluate(spec, tasks[i].type, 0, &answer));
    assert_int_equal(answer, tasks[i].evaluates);
  }
  dist_cluster_spec_destroy(spec);
}

static void without_a_chief_worker_0_is_it(void **state) {
  (void)state;
  dist_cluster_spec *spec = spec_of("{\"worker\": [\"a\", \"b\"]}"), *empty = spec_of("{}");
  int32_t answer = -1;
  char text[64] = "";
  for (int32_t worker = 0; worker < 2; worker++) {
    assert_ok(dist_cluster_should_save_checkpoint(spec, "worker", worker, &answer));
    assert_int_equal(answer, worker == 0);
    assert_ok(dist_cluster_should_evaluate(spec, "worker", worker, &answer));
    assert_int_equal(answer, worker == 0);
  }
  /* A program with a single process does all of it. */
  assert_ok(dist_cluster_should_save_checkpoint(empty, NULL, DIST_TASK_UNSET, &answer));
  assert_int_equal(answer, 1);
  assert_ok(dist_cluster_collective_leader(empty, NULL, DIST_TASK_UNSET, text, sizeof text));
  assert_string_equal(text, "");
  assert_fails(dist_cluster_validate(spec, "worker", 2), DIST_INVALID_ARGUMENT,
               "the task id is 2, but job \"worker\" has 2 tasks, with ids 0 to 1");
  assert_fails(dist_cluster_validate(spec, "worker", DIST_TASK_UNSET), DIST_INVALID_ARGUMENT, "no id");
  assert_fails(dist_cluster_validate(spec, "ps", 0), DIST_INVALID_ARGUMENT, "no such job");
  assert_fails(dist_cluster_validate(spec, "gopher", 0), DIST_INVALID_ARGUMENT, "gopher");
  assert_fails(dist_cluster_validate(NULL, "worker", 0), DIST_INVALID_ARGUMENT, "spec is NULL");
  dist_cluster_spec_destroy(spec), dist_cluster_spec_destroy(empty);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(jobs_keep_their_order),
      cmocka_unit_test(arrays_and_json_give_the_same),
      cmocka_unit_test(an_index_is_not_the_mark_of_no_task),
      cmocka_unit_test(what_is_no_spec_is_refused),
      cmocka_unit_test(tasks_are_limited),
      cmocka_unit_test(texts_and_values_are_limited),
      cmocka_unit_test(depth_is_limited),
      cmocka_unit_test(names_are_limited),
      cmocka_unit_test(jobs_are_limited),
      cmocka_unit_test(unions_join_lists_and_merge_holes),
      cmocka_unit_test(the_chief_leads_and_saves),
      cmocka_unit_test(without_a_chief_worker_0_is_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
