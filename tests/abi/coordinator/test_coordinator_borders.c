/* SPDX-License-Identifier: Apache-2.0
 *
 * How coordinators start and end: what is rejected and why, and which processes learn of the end.
 */
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "cluster_of_servers.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

/* ---- Start ---- */

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
  join(&c); /* no closure has been scheduled */
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

/* ---- Where servers listen ---- */

static struct sockaddr_in on_loopback(const char *host, const char *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host)};
  at.sin_port = htons((uint16_t)strtol(port, NULL, 10));
  return at;
}

/* Whether a program listens there. */
static int listens(const char *host, const char *port) {
  const struct sockaddr_in to = on_loopback(host, port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  const int connected = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
  close(fd);
  return connected;
}

/* Returns a port on which no program listens. */
static void free_port(char (*port)[8]) {
  struct sockaddr_in at = on_loopback("127.0.0.1", "0");
  socklen_t size = sizeof at;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
  close(fd);
  snprintf(*port, sizeof *port, "%d", ntohs(at.sin_port));
}

static dist_server *server_at(const char *address, const char *bind_address) {
  const dist_cluster_job job = {"worker", &address, NULL, 1};
  dist_cluster_spec *spec = NULL;
  dist_server *server = NULL;
  dist_server_options options = DIST_SERVER_OPTIONS_INIT;
  options.bind_address = bind_address;
  assert_ok(dist_cluster_spec_create(&job, 1, NULL, &spec));
  assert_ok(dist_server_create(spec, "worker", 0, &options, &server));
  dist_cluster_spec_destroy(spec);
  assert_ok(dist_server_start(server));
  return server;
}

static void a_server_whose_address_is_not_local_listens_on_all_interfaces(void **state) {
  (void)state;
  setenv("DIST_PLAINTEXT", "1", 1);
  setenv("DIST_JOB_SECRET", "of this job", 1);
  static const char *const kHosts[] = {"192.0.2.1", "not..a.name"};
  for (size_t i = 0; i < COUNT_OF(kHosts); ++i) {
    char port[8];
    char address[64];
    char bind_address[64];
    free_port(&port);
    snprintf(address, sizeof address, "%s:%s", kHosts[i], port);
    dist_server *server = server_at(address, NULL);
    assert_true(listens("127.0.0.1", port) && listens("127.0.0.2", port));
    assert_ok(dist_server_destroy(server));
    /* The environment variable, and the option, which has precedence. */
    free_port(&port);
    snprintf(bind_address, sizeof bind_address, "127.0.0.2:%s", port);
    setenv("DIST_BIND_ADDRESS", bind_address, 1);
    server = server_at(address, NULL);
    assert_true(listens("127.0.0.2", port) && !listens("127.0.0.1", port));
    assert_ok(dist_server_destroy(server));
    setenv("DIST_BIND_ADDRESS", "192.0.2.2:1", 1);
    server = server_at(address, bind_address);
    assert_true(listens("127.0.0.2", port) && !listens("127.0.0.1", port));
    assert_ok(dist_server_destroy(server));
    unsetenv("DIST_BIND_ADDRESS");
  }
  unsetenv("DIST_PLAINTEXT");
  unsetenv("DIST_JOB_SECRET");
}

static void a_server_on_loopback_listens_there_only(void **state) {
  (void)state;
  char port[8];
  char address[64];
  free_port(&port);
  snprintf(address, sizeof address, "127.0.0.1:%s", port);
  dist_server *server = server_at(address, NULL);
  assert_true(listens("127.0.0.1", port) && !listens("127.0.0.2", port));
  assert_ok(dist_server_destroy(server));
}

/* ---- End ---- */

/* The coordinator has tried to reach the server before, and tries again after a pause. */
static void a_server_that_has_just_begun_hears_of_the_end(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, NULL, NULL, NULL);
  dist_coordinator_destroy(c.coordinator);
  assert_ok(dist_server_destroy(c.workers[0]));
  assert_ok(dist_server_destroy(c.ps[0]));
  start_server(&c.ps[0], c.addresses[0], NULL, NULL);
  /* The worker's old address, which the coordinator has not reached yet. */
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
      cmocka_unit_test(a_server_whose_address_is_not_local_listens_on_all_interfaces),
      cmocka_unit_test(a_server_on_loopback_listens_there_only),
      cmocka_unit_test(a_server_that_has_just_begun_hears_of_the_end),
  };
  return cmocka_run_group_tests_name("coordinator_borders", tests, NULL, NULL);
}
