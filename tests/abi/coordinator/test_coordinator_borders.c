/* SPDX-License-Identifier: Apache-2.0
 *
 * How coordinators start and end: what is rejected and why, and which processes learn of the end.
 */
#include "cluster_of_servers.h"

#include <stdlib.h>

/* ---- Begin ---- */

static void refused_with(cluster *c, const dist_coordinator_options *options, dist_status status,
                         const char *words) {
  dist_coordinator *none = NULL;
  assert_fails(dist_coordinator_create(c->strategy, options, &none), status, words);
  assert_null(none);
}

static void why_one_cannot_begin_is_said(void **state) {
  (void)state;
  cluster c = {.num_ps = 1, .num_workers = 1};
  snprintf(c.addresses[0], sizeof c.addresses[0], "127.0.0.1:1");
  snprintf(c.addresses[1], sizeof c.addresses[1], "127.0.0.1:2");
  c.strategy = cluster_strategy(&c);
  setenv("DIST_LEASE_SECONDS", "abc", 1);
  refused_with(&c, NULL, DIST_INVALID_ARGUMENT, "DIST_LEASE_SECONDS");
  unsetenv("DIST_LEASE_SECONDS");
  setenv("DIST_TLS_CA", "/nowhere/ca.pem", 1);
  refused_with(&c, NULL, DIST_NOT_FOUND, "DIST_TLS_CA");
  unsetenv("DIST_TLS_CA");
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.max_message_bytes = -1;
  refused_with(&c, &options, DIST_INVALID_ARGUMENT, "max_message_bytes is -1");
  options.max_message_bytes = INT64_MAX;
  refused_with(&c, &options, DIST_INVALID_ARGUMENT, "max_message_bytes");
  assert_ok(dist_strategy_destroy(c.strategy));

  snprintf(c.addresses[1], sizeof c.addresses[1], "192.0.2.1:2");
  c.strategy = cluster_strategy(&c);
  refused_with(&c, NULL, DIST_FAILED_PRECONDITION, "DIST_TLS_CA");
  assert_ok(dist_strategy_destroy(c.strategy));
}

static void names_that_no_closure_has_are_refused(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, NULL, NULL, NULL);
  char long_name[300];
  memset(long_name, 'n', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  const char *const bad[] = {"", "a\nb", "\xff", long_name};
  for (size_t i = 0; i < COUNT_OF(bad); ++i) {
    dist_remote_value *none = NULL;
    assert_fails(dist_coordinator_schedule(c.coordinator, bad[i], NULL, NULL, &none), DIST_INVALID_ARGUMENT,
                 "the name of a closure");
    assert_null(none);
    assert_fails(dist_coordinator_create_per_worker(c.coordinator, "p", bad[i], NULL), DIST_INVALID_ARGUMENT,
                 "the name of a closure");
  }
  assert_fails(dist_coordinator_create_per_worker(c.coordinator, "a\nb", "f", NULL), DIST_INVALID_ARGUMENT,
               "the name of a per-worker value");
  join(&c); /* nothing has been scheduled */
  end_cluster(&c);
}

static void a_file_that_cannot_be_is_named(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, NULL, NULL, NULL);
  create_number(&c, "v", 1);
  int64_t step = 0;
  assert_fails(dist_coordinator_save(c.coordinator, "/nowhere/at/all.ckpt"), DIST_NOT_FOUND,
               "\"/nowhere/at/all.ckpt\": ");
  assert_fails(dist_coordinator_restore(c.coordinator, "/nowhere/at/all.ckpt", &step), DIST_NOT_FOUND,
               "\"/nowhere/at/all.ckpt\": ");
  end_cluster(&c);
}

/* ---- End ---- */

/* The coordinator has looked for the server before, and looks again after a pause of its own. */
static void a_server_that_has_just_begun_hears_of_the_end(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, NULL, NULL, NULL);
  dist_coordinator_destroy(c.coordinator);
  assert_ok(dist_server_destroy(c.workers[0]));
  assert_ok(dist_server_destroy(c.ps[0]));
  start_server(&c.ps[0], c.addresses[0], NULL, NULL);
  /* The worker's old address, of which nothing has been heard yet. */
  c.coordinator = NULL;
  assert_ok(dist_strategy_destroy(c.strategy));
  c.strategy = cluster_strategy(&c);
  assert_ok(dist_coordinator_create(c.strategy, NULL, &c.coordinator));
  create_number(&c, "v", 1);
  dist_server *late = NULL;
  dist_cluster_spec *spec = NULL;
  const char *address = c.addresses[1];
  const dist_cluster_job job = {"worker", &address, NULL, 1};
  assert_ok(dist_cluster_spec_create(&job, 1, NULL, &spec));
  assert_ok(dist_server_create(spec, "worker", 0, NULL, &late));
  assert_ok(dist_server_start(late));
  c.workers[0] = late;
  dist_coordinator_destroy(c.coordinator);
  c.coordinator = NULL;
  assert_ok(dist_server_join(c.ps[0], -1, NULL));
  assert_ok(dist_server_join(late, -1, NULL));
  dist_cluster_spec_destroy(spec);
  end_cluster(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(why_one_cannot_begin_is_said),
      cmocka_unit_test(names_that_no_closure_has_are_refused),
      cmocka_unit_test(a_file_that_cannot_be_is_named),
      cmocka_unit_test(a_server_that_has_just_begun_hears_of_the_end),
  };
  return cmocka_run_group_tests_name("coordinator_borders", tests, NULL, NULL);
}
