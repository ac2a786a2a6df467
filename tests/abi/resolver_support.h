/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for tests of resolvers: an environment without their variables, and comparison of a resolver's
 * answers.
 */
#ifndef TESTS_ABI_RESOLVER_SUPPORT_H
#define TESTS_ABI_RESOLVER_SUPPORT_H

#include "common.h"

static const char *const variables[] = {"TF_CONFIG",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "WORLD_SIZE",
                                        "JOB_COMPLETION_INDEX",
                                        "SLURM_DISTRIBUTION",
                                        "SLURM_DIST_PLANESIZE",
                                        "SLURM_NODEID",
                                        "SLURM_LOCALID",
                                        "POD_NAMESPACE",
                                        "HOSTNAME"};

static inline int clear_environment(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(variables); i++) unsetenv(variables[i]);
  return 0;
}

static inline dist_cluster_spec *spec_of(const char *json) {
  dist_cluster_spec *spec = NULL;
  assert_ok(dist_cluster_spec_from_json(json, NULL, &spec));
  return spec;
}

static inline void has_spec(const dist_cluster_resolver *resolver, const char *json) {
  dist_cluster_spec *spec = NULL;
  assert_ok(dist_cluster_resolver_spec(resolver, &spec));
  assert_string_equal(dist_cluster_spec_json(spec), json);
  dist_cluster_spec_destroy(spec);
}

static inline void has_task(const dist_cluster_resolver *resolver, const char *type, int32_t id) {
  char text[DIST_MAX_ADDRESS_BYTES];
  int32_t is_set = -1, number = -1;
  assert_ok(dist_cluster_resolver_task_type(resolver, text, sizeof text, &is_set));
  assert_int_equal(is_set, type != NULL);
  assert_string_equal(text, type == NULL ? "" : type);
  assert_ok(dist_cluster_resolver_task_id(resolver, &number));
  assert_int_equal(number, id);
}

static inline void has_master(const dist_cluster_resolver *resolver, const char *type, int32_t id,
                              const char *wanted) {
  char text[DIST_MAX_ADDRESS_BYTES];
  assert_ok(dist_cluster_resolver_master(resolver, type, id, NULL, text, sizeof text));
  assert_string_equal(text, wanted);
}

static inline void append(const char *text, size_t size, void *user_data) {
  char *all = user_data;
  snprintf(all + strlen(all), 2048 - strlen(all), "%.*s", (int)size, text);
}

static inline void explains(const dist_cluster_resolver *resolver, const char *words) {
  char text[2048] = "";
  assert_ok(dist_cluster_explain(resolver, append, text));
  assert_has(text, words);
}

#define cleared(test) cmocka_unit_test_setup(test, clear_environment)

#endif
