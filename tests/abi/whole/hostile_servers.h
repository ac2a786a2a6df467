/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture's servers and their coordinator, created when a call needs them: a parameter server with the
 * fixture's variable, and a worker. hostile_support.h includes this file.
 */
#ifndef TESTS_ABI_WHOLE_HOSTILE_SERVERS_H
#define TESTS_ABI_WHOLE_HOSTILE_SERVERS_H

static const char *const variable_name = "variable";
static dist_coordinator *the_coordinator;
static _Atomic(dist_closure *) the_closure;

static dist_status closure_fn(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                              void *user_data) {
  (void)closure, (void)arguments, (void)out_result, (void)user_data;
  return DIST_OK;
}
static dist_status server_update_fn(dist_tensor *variables, size_t n, dist_value *arguments,
                                    void *user_data) {
  (void)variables, (void)n, (void)arguments, (void)user_data;
  return DIST_OK;
}
/* Lends its arguments to the test's calls until the process ends. */
static dist_status held_fn(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                           void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  the_closure = closure;
  for (;;) usleep(100000);
  return DIST_OK;
}

static inline dist_server *new_server(struct fixture *f) {
  dist_server *made = NULL;
  NEED(dist_server_create_local(NULL, &made));
  return made;
}
static inline dist_server *started_server(struct fixture *f) {
  dist_server *made = new_server(f);
  NEED(dist_server_register(made, "function", closure_fn, NULL, NULL));
  NEED(dist_server_register(made, "held", held_fn, NULL, NULL));
  NEED(dist_server_register_update(made, "function", server_update_fn, NULL, NULL));
  NEED(dist_server_start(made));
  return made;
}
static inline dist_server *ended_server(struct fixture *f) {
  dist_server *made = started_server(f);
  dist_server_stop(made);
  return made;
}
static inline dist_strategy *ps_strategy(struct fixture *f) {
  const char *ps = dist_server_target(started_server(f)) + 7,
             *worker = dist_server_target(started_server(f)) + 7;
  const dist_cluster_job jobs[] = {{"ps", &ps, NULL, 1}, {"worker", &worker, NULL, 1}};
  dist_cluster_spec *spec = NULL;
  dist_cluster_resolver *resolver = NULL;
  dist_strategy *strategy = NULL;
  NEED(dist_cluster_spec_create(jobs, 2, NULL, &spec));
  NEED(dist_cluster_resolver_create_simple(spec, NULL, &resolver));
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options cluster = DIST_WORKER_OPTIONS_INIT;
  options.worker = &cluster;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  cluster.cluster_resolver = resolver;
  NEED(dist_strategy_create(&options, &strategy));
  return strategy;
}
static inline dist_coordinator *own_coordinator(struct fixture *f) {
  if (the_coordinator != NULL) return the_coordinator;
  dist_tensor tensor;
  NEED(dist_coordinator_create(ps_strategy(f), NULL, &the_coordinator));
  NEED(dist_value_tensor(f->value, &tensor));
  NEED(dist_coordinator_create_variable(the_coordinator, variable_name, &tensor, NULL));
  NEED(dist_coordinator_create_per_worker(the_coordinator, variable_name, "function", NULL));
  return the_coordinator;
}
static inline dist_coordinator *last_coordinator(struct fixture *f) {
  dist_coordinator *last = own_coordinator(f);
  the_coordinator = NULL;
  return last;
}
static inline dist_coordinator *used_coordinator(struct fixture *f) {
  NEED(dist_coordinator_schedule(own_coordinator(f), "function", NULL, NULL, NULL));
  return the_coordinator;
}
static inline dist_closure *held_closure(struct fixture *f) {
  if (the_closure == NULL) NEED(dist_coordinator_schedule(own_coordinator(f), "held", NULL, NULL, NULL));
  while (the_closure == NULL) usleep(1000);
  return the_closure;
}
static inline dist_value *row_indices(struct fixture *f) {
  const int32_t zero = 0;
  const int64_t one = 1;
  const dist_tensor tensor = {(void *)&zero, DIST_I32, 1, &one, NULL};
  dist_value *value = NULL;
  NEED(dist_value_create_tensor(f->strategy, &tensor, &value));
  return value;
}
static inline const char *other_path(const struct fixture *f) {
  static char path[4096];
  snprintf(path, sizeof path, "%s.ps", f->path);
  return path;
}

#endif
