/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolvers: options take precedence over the environment; TF_CONFIG, unions and host resolvers. Everything
 * runs on one thread, so the tests can set environment variables.
 */
#include "../resolver_support.h"

static dist_cluster_resolver *simple(const char *json, const dist_cluster_resolver_options *options) {
  dist_cluster_spec *spec = spec_of(json);
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_simple(spec, options, &resolver));
  dist_cluster_spec_destroy(spec); /* the resolver keeps it */
  return resolver;
}

static void tf_config_is_read_at_each_question(void **state) {
  (void)state;
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_tf_config(NULL, &resolver));
  has_spec(resolver, "{}");
  has_task(resolver, NULL, DIST_TASK_UNSET);
  explains(resolver, "task id: not set");
  setenv("TF_CONFIG", "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"]}, \"task\": {\"type\": \"worker\"}}", 1);
  char address[DIST_MAX_ADDRESS_BYTES];
  assert_fails(dist_cluster_resolver_master(resolver, NULL, DIST_TASK_UNSET, NULL, address, sizeof address),
               DIST_INVALID_ARGUMENT, "\"index\" is missing");
  setenv(
      "TF_CONFIG",
      "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"]}, \"task\": {\"type\": \"worker\", \"index\": \"1\"}, "
      "\"rpc_layer\": \"grpc\"}",
      1);
  has_spec(resolver, "{\"worker\":[\"a:1\",\"b:2\"]}");
  has_task(resolver, "worker", 1);
  has_master(resolver, NULL, DIST_TASK_UNSET, "grpc://b:2");
  has_master(resolver, NULL, 0, "grpc://a:1");
  explains(resolver, "task id: 1 (environment variable TF_CONFIG)");
  setenv("TF_CONFIG", "", 1);
  int32_t id = 0;
  assert_fails(dist_cluster_resolver_task_id(resolver, &id), DIST_INVALID_ARGUMENT, "TF_CONFIG is not JSON");
  explains(resolver, "task id: not known: TF_CONFIG is not JSON");
  dist_cluster_resolver_destroy(resolver);
}

static void options_count_before_the_environment(void **state) {
  (void)state;
  setenv("TF_CONFIG", "not read", 1);
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.tf_config =
      "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}";
  options.task_type = "worker";
  options.has_task_id = 1;
  options.task_id = 1;
  options.rpc_layer = "";
  options.environment = "cloud";
  options.num_accelerators = 3;
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_tf_config(&options, &resolver));
  has_task(resolver, "worker", 1);
  has_master(resolver, NULL, DIST_TASK_UNSET, "b:2");
  char text[8];
  int32_t n = 0, is_set = 0;
  assert_ok(dist_cluster_resolver_environment(resolver, text, sizeof text, &is_set));
  assert_string_equal(text, "cloud");
  assert_ok(dist_cluster_resolver_rpc_layer(resolver, text, sizeof text, &is_set));
  assert_int_equal(is_set, 1);
  assert_ok(dist_cluster_resolver_num_accelerators(resolver, NULL, DIST_TASK_UNSET, &n));
  assert_int_equal(n, 3);
  assert_fails(dist_cluster_resolver_task_type(resolver, text, 3, &is_set), DIST_INVALID_ARGUMENT,
               "size_bytes is only 3");
  explains(resolver, "task type: \"worker\" (given as an option)");
  dist_cluster_resolver_destroy(resolver);
}

static void types_are_texts_and_indices_integers(void **state) {
  (void)state;
  const struct {
    const char *task, *type;
    int32_t id;
  } rows[] = {
      {"{\"type\": \"worker\", \"index\": 1}", "worker", 1},
      {"{\"type\": null, \"index\": \"12\"}", NULL, 12},
      {"{\"type\": \"3\", \"index\": \"-10\"}", "3", -10},
      {"{\"index\": -0}", NULL, 0},
      {"{}", NULL, DIST_TASK_UNSET},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    char text[256];
    snprintf(text, sizeof text, "{\"task\": %s}", rows[i].task);
    setenv("TF_CONFIG", text, 1);
    dist_cluster_resolver *resolver = NULL;
    assert_ok(dist_cluster_resolver_create_tf_config(NULL, &resolver));
    has_task(resolver, rows[i].type, rows[i].id);
    dist_cluster_resolver_destroy(resolver);
  }
  const char *const bad_indices[] = {
      "NaN", "Infinity", "null",   "[]",  "{}",      "\"1.5\"",     "\"\"",       "true",
      "1.9", "\" 1\"",   "\"+1\"", "1e2", "\"1_0\"", "-2147483648", "2147483648", "\"4294967296\""};
  const char *const bad_types[] = {"3", "1.5", "true", "[]", "{}", "\"a\\u0000b\"", "\"a\\nb\""};
  const char *const bad_tasks[] = {"[]", "\"text\"", "3", "null"};
  const struct {
    const char *format, *const *bad;
    size_t n;
  } all[] = {{"{\"task\": {\"index\": %s}}", bad_indices, COUNT_OF(bad_indices)},
             {"{\"task\": {\"type\": %s}}", bad_types, COUNT_OF(bad_types)},
             {"{\"task\": %s}", bad_tasks, COUNT_OF(bad_tasks)}};
  for (size_t k = 0; k < COUNT_OF(all); k++) {
    for (size_t i = 0; i < all[k].n; i++) {
      char text[256], type[DIST_MAX_JOB_NAME_BYTES];
      int32_t id = 0, is_set = 0;
      snprintf(text, sizeof text, all[k].format, all[k].bad[i]);
      setenv("TF_CONFIG", text, 1);
      dist_cluster_resolver *resolver = NULL;
      assert_ok(dist_cluster_resolver_create_tf_config(NULL, &resolver));
      if (k != 1) assert_int_equal(dist_cluster_resolver_task_id(resolver, &id), DIST_INVALID_ARGUMENT);
      if (k != 0)
        assert_int_equal(dist_cluster_resolver_task_type(resolver, type, sizeof type, &is_set),
                         DIST_INVALID_ARGUMENT);
      dist_cluster_resolver_destroy(resolver);
    }
  }
}

static void bad_options_are_refused(void **state) {
  (void)state;
  dist_cluster_spec *spec = spec_of("{}");
  dist_cluster_resolver *resolver = NULL;
  char text[DIST_MAX_ADDRESS_BYTES + 1];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  const dist_cluster_resolver_options none = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  dist_cluster_resolver_options options = none;
  options.rpc_layer = text;
  assert_fails(dist_cluster_resolver_create_simple(spec, &options, &resolver), DIST_INVALID_ARGUMENT,
               "rpc_layer");
  options = none, options.task_type = text + sizeof text - 1 - DIST_MAX_JOB_NAME_BYTES;
  assert_fails(dist_cluster_resolver_create_simple(spec, &options, &resolver), DIST_INVALID_ARGUMENT,
               "task_type");
  options = none, options.environment = "a\nb";
  assert_fails(dist_cluster_resolver_create_simple(spec, &options, &resolver), DIST_INVALID_ARGUMENT,
               "one line");
  options = none, options.num_accelerators = -1;
  assert_fails(dist_cluster_resolver_create_simple(spec, &options, &resolver), DIST_INVALID_ARGUMENT,
               "is -1");
  options = none, options.has_task_id = 2;
  assert_fails(dist_cluster_resolver_create_simple(spec, &options, &resolver), DIST_INVALID_ARGUMENT,
               "has_task_id");
  assert_fails(dist_cluster_resolver_create_simple(NULL, NULL, &resolver), DIST_INVALID_ARGUMENT,
               "spec is NULL");
  char *const large = calloc(1, DIST_MAX_CLUSTER_TEXT_BYTES + 1);
  memset(large, ' ', DIST_MAX_CLUSTER_TEXT_BYTES);
  options = none, options.tf_config = large;
  assert_fails(dist_cluster_resolver_create_tf_config(&options, &resolver), DIST_INVALID_ARGUMENT,
               "tf_config");
  free(large);
  assert_null(resolver);
  dist_cluster_spec_destroy(spec);
}

/* ---- Unions, and host resolvers ---- */

static void the_first_of_a_union_answers(void **state) {
  (void)state;
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "worker";
  options.session_address = "m:1";
  options.rpc_layer = "r";
  dist_cluster_resolver *members[] = {simple("{\"worker\": [\"a:1\"]}", &options),
                                      simple("{\"ps\": [\"b:2\"]}", NULL)};
  dist_cluster_resolver *both = NULL, *outer = NULL;
  assert_ok(dist_cluster_resolver_create_union(members, 2, NULL, &both));
  dist_cluster_resolver_destroy(members[0]), dist_cluster_resolver_destroy(members[1]);
  has_spec(both, "{\"worker\":[\"a:1\"],\"ps\":[\"b:2\"]}");
  has_task(both, "worker", DIST_TASK_UNSET);
  has_master(both, NULL, DIST_TASK_UNSET, "r://m:1");
  has_master(both, "ps", 0, "b:2");
  explains(both, "resolver: union");
  options.task_type = "chief";
  options.session_address = "not asked for";
  options.rpc_layer = "u";
  assert_ok(dist_cluster_resolver_create_union(&both, 1, &options, &outer));
  has_master(outer, "ps", 0, "u://b:2");
  has_master(outer, NULL, DIST_TASK_UNSET, "r://m:1");
  has_task(outer, "chief", DIST_TASK_UNSET);
  dist_cluster_resolver_destroy(both), dist_cluster_resolver_destroy(outer);
}

/* Unions of unions would take exponential time, because each one doubles the calls of those inside it. */
static void unions_are_limited(void **state) {
  (void)state;
  dist_cluster_resolver *inner = simple("{\"worker\": [\"a:1\"]}", NULL), *outer = NULL;
  dist_status status = DIST_OK;
  int depth = 0;
  for (; status == DIST_OK; depth++) {
    dist_cluster_resolver *twice[] = {inner, inner};
    outer = NULL;
    status = dist_cluster_resolver_create_union(twice, 2, NULL, &outer);
    if (status != DIST_OK) break;
    dist_cluster_resolver_destroy(inner);
    inner = outer;
  }
  assert_int_equal(status, DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "more than 64 resolvers");
  assert_int_equal(depth, 5);
  dist_cluster_resolver_destroy(inner);
  assert_fails(dist_cluster_resolver_create_union(NULL, 0, NULL, &outer), DIST_INVALID_ARGUMENT,
               "at least one");
  dist_cluster_resolver *none[] = {NULL};
  assert_fails(dist_cluster_resolver_create_union(none, 1, NULL, &outer), DIST_INVALID_ARGUMENT,
               "resolver 0");
}

typedef struct own {
  int released;
  int32_t id;
  dist_status fails;
  const char *text; /* the answer to all questions for a text */
} own;

static dist_status own_spec(dist_cluster_spec **out_spec, void *user_data) {
  const own *self = user_data;
  const dist_status status = dist_cluster_spec_from_json("{\"worker\": [\"a:1\", \"b:2\"]}", NULL, out_spec);
  return status != DIST_OK ? status : self->fails; /* the resolver takes it over even if this fails */
}

static dist_status own_text(char *out_text, size_t size_bytes, int32_t *out_is_set, void *user_data) {
  const own *self = user_data;
  *out_is_set = self->text != NULL;
  if (self->text != NULL)
    memcpy(out_text, self->text, strlen(self->text) < size_bytes ? strlen(self->text) + 1 : size_bytes);
  return DIST_OK;
}

static dist_status own_id(int32_t *out_task_id, void *user_data) {
  *out_task_id = ((own *)user_data)->id;
  return DIST_OK;
}

static void own_release(void *user_data) { ((own *)user_data)->released++; }

static void a_host_has_functions_of_its_own(void **state) {
  (void)state;
  own self = {0, 1, DIST_OK, "worker"};
  dist_cluster_resolver_functions functions = DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT;
  dist_cluster_resolver *resolver = NULL;
  functions.release = own_release;
  assert_fails(dist_cluster_resolver_create_host(&functions, &self, NULL, &resolver), DIST_INVALID_ARGUMENT,
               "spec is NULL");
  assert_int_equal(self.released, 0);
  functions.spec = own_spec;
  functions.task_type = own_text;
  functions.task_id = own_id;
  assert_ok(dist_cluster_resolver_create_host(&functions, &self, NULL, &resolver));
  has_spec(resolver, "{\"worker\":[\"a:1\",\"b:2\"]}");
  has_task(resolver, "worker", 1);
  has_master(resolver, "worker", 0, "a:1");
  has_master(resolver, NULL, DIST_TASK_UNSET, "");
  self.id = DIST_TASK_UNSET;
  explains(resolver, "task id: not set");
  self.id = 1;
  explains(resolver, "(a host function)");
  self.text = NULL;
  has_task(resolver, NULL, 1);
  dist_cluster_spec *spec = NULL;
  self.fails = DIST_UNAVAILABLE;
  assert_fails(dist_cluster_resolver_spec(resolver, &spec), DIST_UNAVAILABLE, "spec failed with UNAVAILABLE");
  assert_null(spec);
  char text[2 * DIST_MAX_ADDRESS_BYTES];
  int32_t is_set = 0;
  memset(text, 'a', sizeof text - 1), text[sizeof text - 1] = '\0';
  self.text = text;
  char room[DIST_MAX_ADDRESS_BYTES];
  assert_fails(dist_cluster_resolver_task_type(resolver, room, sizeof room, &is_set), DIST_INVALID_ARGUMENT,
               "without a terminating NUL");
  self.text = "a\nb";
  assert_fails(dist_cluster_resolver_task_type(resolver, room, sizeof room, &is_set), DIST_INVALID_ARGUMENT,
               "one line");
  dist_cluster_resolver_destroy(resolver);
  assert_int_equal(self.released, 1);
}

/* ---- Strategies ---- */

static int32_t own_copy(int32_t replica_id, int32_t num_replicas, void *user_data) {
  (void)num_replicas, (void)user_data;
  return replica_id;
}

static void a_strategy_holds_its_resolver(void **state) {
  (void)state;
  own self = {0, 0, DIST_OK, NULL};
  dist_cluster_resolver_functions functions = DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT;
  functions.spec = own_spec;
  functions.release = own_release;
  for (int32_t with_functions = 0; with_functions <= 1; with_functions++) {
    dist_strategy_functions table = DIST_STRATEGY_FUNCTIONS_INIT;
    table.copy_of_replica = own_copy;
    dist_cluster_resolver *resolver = NULL, *found = NULL;
    assert_ok(dist_cluster_resolver_create_host(&functions, &self, NULL, &resolver));
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &options_worker;
    options.num_replicas = 2;
    options_worker.cluster_resolver = resolver;
    if (with_functions) options.functions = &table;
    dist_strategy *strategy = strategy_with(options);
    dist_cluster_resolver_destroy(resolver);
    assert_ok(dist_strategy_cluster_resolver(strategy, &found));
    assert_ptr_equal(found, resolver);
    has_spec(found, "{\"worker\":[\"a:1\",\"b:2\"]}");
    dist_strategy_properties properties = DIST_STRATEGY_PROPERTIES_INIT;
    assert_ok(dist_strategy_query(strategy, &properties));
    assert_int_equal(properties.num_workers, 1); /* the strategy still has one process */
    assert_int_equal(self.released, with_functions);
    assert_ok(dist_strategy_destroy(strategy));
    assert_int_equal(self.released, with_functions + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cleared(tf_config_is_read_at_each_question),   cleared(options_count_before_the_environment),
      cleared(types_are_texts_and_indices_integers), cleared(bad_options_are_refused),
      cleared(the_first_of_a_union_answers),         cleared(unions_are_limited),
      cleared(a_host_has_functions_of_its_own),      cleared(a_strategy_holds_its_resolver),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
