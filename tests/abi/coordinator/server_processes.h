/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameter servers and workers as processes that run the test's own program. Each prints "serves", runs
 * until its coordinator ends, and then prints the result. The coordinator is the test or another of its
 * processes.
 */
#ifndef TESTS_ABI_COORDINATOR_SERVER_PROCESSES_H
#define TESTS_ABI_COORDINATOR_SERVER_PROCESSES_H

#include <dist/experimental/coordinator.h>
#include <dist/experimental/server.h>
#include "../processes_support.h"

typedef struct servers {
  job all; /* parameter servers, then workers */
  int num_ps, num_workers;
  const char *more[4]; /* additional environment of each: NAME=value */
} servers;

static inline void config_of(const servers *s, const char *type, int index, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "TF_CONFIG={\"cluster\": {\"ps\": [");
  for (int i = 0; i < s->all.n; ++i) {
    used += (size_t)snprintf(text + used, size - used, "%s\"%s\"",
                             i == 0           ? ""
                             : i == s->num_ps ? "], \"worker\": ["
                                              : ", ",
                             s->all.addresses[i]);
  }
  snprintf(text + used, size - used, "]}, \"task\": {\"type\": \"%s\", \"index\": %d}}", type, index);
}

static inline process *ps_of(servers *s, int index) { return &s->all.processes[index]; }
static inline process *worker_of(servers *s, int index) { return &s->all.processes[s->num_ps + index]; }

/* Starts or restarts server `place` of the list. */
static inline void start_server_process(servers *s, int place) {
  static char configs[MOST_PROCESSES][1024];
  const int is_ps = place < s->num_ps;
  config_of(s, is_ps ? "ps" : "worker", is_ps ? place : place - s->num_ps, configs[place],
            sizeof configs[place]);
  const char *environment[] = {
      configs[place], "DIST_LEASE_SECONDS=2", s->more[0], s->more[1], s->more[2], NULL};
  start_as(&s->all, place, place, "serve", environment);
}

static inline void await_server(servers *s, int place) {
  if (!has_said(&s->all.processes[place], "serves\n")) fail_msg("%s", s->all.processes[place].text);
}

static inline void start_servers(servers *s, int num_ps, int num_workers) {
  s->all = job_of(num_ps + num_workers);
  s->num_ps = num_ps;
  s->num_workers = num_workers;
  for (int i = 0; i < s->all.n; ++i) start_server_process(s, i);
  for (int i = 0; i < s->all.n; ++i) await_server(s, i);
}

/* All of them have ended because their coordinator asked them to. */
static inline void end_servers(servers *s) {
  for (int i = 0; i < s->all.n; ++i) {
    process *p = &s->all.processes[i];
    if (p->pid == 0) continue;
    const int code = end_of(p);
    if (code != 0) fail_msg("server %d ended with %d, and had said: %s", i, code, p->text);
  }
}

static inline void kill_server(servers *s, int place) {
  process *p = &s->all.processes[place];
  kill(p->pid, SIGKILL);
  assert_int_equal(end_of(p), 128 + SIGKILL);
  p->pid = 0;
}

/* ---- The coordinator's side ---- */

typedef struct chief {
  dist_strategy *strategy;
  dist_coordinator *coordinator;
} chief;

static inline chief chief_of(const servers *s) {
  char config[1024];
  config_of(s, "chief", 0, config, sizeof config);
  /* The chief has no address, because the resolver is not asked for one. */
  setenv("TF_CONFIG", config + sizeof "TF_CONFIG", 1);
  setenv("DIST_LEASE_SECONDS", "2", 1);
  chief made = {NULL, NULL};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  assert_ok(dist_strategy_create(&options, &made.strategy));
  assert_ok(dist_coordinator_create(made.strategy, NULL, &made.coordinator));
  return made;
}

static inline void end_chief(chief *c) {
  dist_coordinator_destroy(c->coordinator);
  assert_ok(dist_strategy_destroy(c->strategy));
}

static inline void create_count(chief *c, const char *name) {
  int64_t zero = 0;
  const dist_tensor tensor = {&zero, DIST_I64, 0, NULL, NULL};
  assert_ok(dist_coordinator_create_variable(c->coordinator, name, &tensor, NULL));
}

static inline int64_t count_of(chief *c, const char *name) {
  dist_value *value = NULL;
  dist_tensor tensor;
  assert_ok(dist_coordinator_read(c->coordinator, &name, 1, &value));
  assert_ok(dist_value_tensor(value, &tensor));
  const int64_t count = *(const int64_t *)tensor.data;
  dist_value_release(value);
  return count;
}

static inline void schedule_closures(chief *c, const char *name, int n) {
  for (int i = 0; i < n; ++i) assert_ok(dist_coordinator_schedule(c->coordinator, name, NULL, NULL, NULL));
}

static inline dist_coordinator_stats stats_of(chief *c) {
  dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
  assert_ok(dist_coordinator_query(c->coordinator, &stats));
  return stats;
}

static inline void await_workers(chief *c, int up) {
  const time_t end = time(NULL) + GUARD_S;
  while (stats_of(c).workers_up != up) {
    if (time(NULL) > end) fail_msg("%d workers are up, not %d", stats_of(c).workers_up, up);
    poll(NULL, 0, 1);
  }
}

/* ---- The servers' side ---- */

/* Counts on all parameter servers: on "a", "b" and so on, for all variables that exist. */
static inline dist_status count_everywhere(dist_closure *closure, int n) {
  int64_t one = 1;
  const dist_tensor tensor = {&one, DIST_I64, 0, NULL, NULL};
  dist_value *value = NULL;
  dist_status status = dist_value_create_tensor(dist_get_strategy(), &tensor, &value);
  for (int i = 0; status == DIST_OK && i < n; ++i) {
    const char name[] = {(char)('a' + i), '\0'};
    status = dist_closure_assign(closure, name, DIST_ASSIGN_ADD, value);
  }
  dist_value_release(value);
  return status;
}

static inline int serve_until_the_end(void (*add)(dist_server *server)) {
  dist_server *server = NULL;
  dist_status status = dist_server_create(NULL, NULL, DIST_TASK_UNSET, NULL, &server);
  if (status == DIST_OK) add(server);
  if (status == DIST_OK) status = dist_server_start(server);
  if (status != DIST_OK) return say_how_it_went(status);
  printf("serves\n");
  fflush(stdout);
  status = dist_server_join(server, -1, NULL);
  printf("ended: %s\n", status == DIST_OK ? "well" : dist_last_error());
  fflush(stdout);
  if (dist_server_destroy(server) != DIST_OK) return 3;
  return status == DIST_OK ? 0 : 4;
}

#endif
