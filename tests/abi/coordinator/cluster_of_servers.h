/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameter servers, workers and their coordinator in one process, over loopback.
 */
#ifndef TESTS_ABI_COORDINATOR_CLUSTER_OF_SERVERS_H
#define TESTS_ABI_COORDINATOR_CLUSTER_OF_SERVERS_H

#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "../common.h"

#include <unistd.h>

enum { MOST_SERVERS = 8 };

typedef struct cluster {
  int num_ps, num_workers;
  dist_server *ps[MOST_SERVERS], *workers[MOST_SERVERS];
  char addresses[2 * MOST_SERVERS][64]; /* parameter servers, then workers */
  dist_strategy *strategy;
  dist_coordinator *coordinator;
} cluster;

/* Registers the closures and functions of a server. */
typedef void (*register_fn)(dist_server *server, void *user_data);

static void start_server(dist_server **server, char *address, register_fn add, void *user_data) {
  assert_ok(dist_server_create_local(NULL, server));
  if (add != NULL) add(*server, user_data);
  assert_ok(dist_server_start(*server));
  assert_int_equal(strncmp(dist_server_target(*server), "grpc://", 7), 0);
  snprintf(address, 64, "%s", dist_server_target(*server) + 7);
}

static dist_strategy *cluster_strategy(const cluster *c) {
  const char *ps[MOST_SERVERS], *workers[MOST_SERVERS];
  for (int i = 0; i < c->num_ps; ++i) ps[i] = c->addresses[i];
  for (int i = 0; i < c->num_workers; ++i) workers[i] = c->addresses[c->num_ps + i];
  const dist_cluster_job jobs[] = {{"ps", ps, NULL, (size_t)c->num_ps},
                                   {"worker", workers, NULL, (size_t)c->num_workers}};
  dist_cluster_spec *spec = NULL;
  dist_cluster_resolver *resolver = NULL;
  dist_strategy *strategy = NULL;
  assert_ok(dist_cluster_spec_create(jobs, 2, NULL, &spec));
  assert_ok(dist_cluster_resolver_create_simple(spec, NULL, &resolver));
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  worker.cluster_resolver = resolver;
  assert_ok(dist_strategy_create(&options, &strategy));
  dist_cluster_resolver_destroy(resolver);
  dist_cluster_spec_destroy(spec);
  return strategy;
}

static void begin_cluster(cluster *c, int num_ps, int num_workers, register_fn add, void *user_data,
                          const dist_coordinator_options *options) {
  memset(c, 0, sizeof *c);
  c->num_ps = num_ps;
  c->num_workers = num_workers;
  for (int i = 0; i < num_ps; ++i) start_server(&c->ps[i], c->addresses[i], add, user_data);
  for (int i = 0; i < num_workers; ++i)
    start_server(&c->workers[i], c->addresses[num_ps + i], add, user_data);
  c->strategy = cluster_strategy(c);
  assert_ok(dist_coordinator_create(c->strategy, options, &c->coordinator));
}

static void end_cluster(cluster *c) {
  dist_coordinator_destroy(c->coordinator);
  assert_ok(dist_strategy_destroy(c->strategy));
  for (int i = 0; i < c->num_ps; ++i) assert_ok(dist_server_destroy(c->ps[i]));
  for (int i = 0; i < c->num_workers; ++i) assert_ok(dist_server_destroy(c->workers[i]));
}

/* ---- Values ---- */

static dist_value *number(float x) {
  dist_value *value = NULL;
  const dist_tensor tensor = {&x, DIST_F32, 0, NULL, NULL};
  assert_ok(dist_value_create_tensor(dist_get_strategy(), &tensor, &value));
  return value;
}

static float float_of(dist_value *value) {
  dist_tensor tensor;
  assert_ok(dist_value_tensor(value, &tensor));
  assert_int_equal(tensor.dtype, DIST_F32);
  return *(const float *)tensor.data;
}

static void create_number(cluster *c, const char *name, float x) {
  const dist_tensor tensor = {&x, DIST_F32, 0, NULL, NULL};
  assert_ok(dist_coordinator_create_variable(c->coordinator, name, &tensor, NULL));
}

static inline float read_number(cluster *c, const char *name) {
  dist_value *value = NULL;
  assert_ok(dist_coordinator_read(c->coordinator, &name, 1, &value));
  const float x = float_of(value);
  dist_value_release(value);
  return x;
}

/* ---- Closures ---- */

/* v += x; returns 2 x. */
static inline dist_status add_and_double(dist_closure *closure, dist_value *arguments,
                                         dist_value **out_result, void *user_data) {
  (void)user_data;
  const dist_status status = dist_closure_assign(closure, "v", DIST_ASSIGN_ADD, arguments);
  if (status == DIST_OK) *out_result = number(2 * float_of(arguments));
  return status;
}

static inline dist_remote_value *schedule(cluster *c, const char *name, dist_value *arguments) {
  dist_remote_value *remote = NULL;
  assert_ok(dist_coordinator_schedule(c->coordinator, name, arguments, NULL, &remote));
  if (arguments != NULL) dist_value_release(arguments);
  return remote;
}
static inline float fetch(dist_remote_value *remote) {
  dist_value *value = NULL;
  assert_ok(dist_remote_value_get(remote, -1, &value));
  const float x = float_of(value);
  dist_value_release(value);
  dist_remote_value_release(remote);
  return x;
}
static inline void join(cluster *c) { assert_ok(dist_coordinator_join(c->coordinator, -1, NULL)); }

#endif
