/* SPDX-License-Identifier: Apache-2.0
 *
 * A mirrored variable, whose copies are equal, and a counter, of which each replica changes its own copy.
 *
 *     cc variables.c $(pkg-config --cflags --libs dist) -o variables && ./variables
 */
#include <dist/dist.h>
#include <stdio.h>

typedef struct model {
  dist_variable *w, *seen;
} model;

static dist_status step(dist_replica *replica, void *user_data) {
  const model *m = user_data;
  double change = dist_replica_id(replica) + 1, rows = 4 - dist_replica_id(replica);
  const dist_tensor change_tensor = {&change, DIST_F64, 0, NULL, NULL};
  const dist_tensor rows_tensor = {&rows, DIST_F64, 0, NULL, NULL};
  /* A collective: all copies change by the sum of the replicas' changes, 1 + 2. */
  dist_status status = dist_replica_assign(replica, m->w, DIST_ASSIGN_ADD, &change_tensor, NULL);
  /* Not a collective: this replica's copy changes by its rows, 4 or 3. */
  if (!status) status = dist_replica_assign(replica, m->seen, DIST_ASSIGN_ADD, &rows_tensor, NULL);
  return status;
}

static void print(const char *text, size_t size_bytes, void *user_data) {
  (void)user_data;
  fwrite(text, 1, size_bytes, stdout);
}

static dist_status print_all(dist_strategy *strategy, const model *m) {
  dist_value *seen = NULL;
  dist_status status = dist_variable_describe(m->w, print, NULL);
  if (!status) status = (putchar('\n'), dist_variable_describe(m->seen, print, NULL));
  if (!status) status = dist_variable_read(strategy, m->seen, &seen); /* the sum of the copies */
  dist_tensor sum;
  if (!status) status = dist_value_tensor(seen, &sum);
  if (!status) printf("\nseen: %g\n", *(const double *)sum.data);
  dist_value_release(seen);
  return status;
}

static dist_status use(dist_strategy *strategy) {
  double zero = 0;
  const dist_tensor initial = {&zero, DIST_F64, 0, NULL, NULL};
  dist_variable_options mirrored = DIST_VARIABLE_OPTIONS_INIT, counter = DIST_VARIABLE_OPTIONS_INIT;
  mirrored.name = "w";
  mirrored.aggregation = DIST_AGGREGATION_SUM;
  counter.name = "seen";
  counter.aggregation = DIST_AGGREGATION_SUM;
  counter.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  model m = {NULL, NULL};
  dist_status status = dist_variable_create(strategy, &initial, &mirrored, &m.w);
  if (!status) status = dist_variable_create(strategy, &initial, &counter, &m.seen);
  if (!status) status = dist_run(strategy, step, &m, NULL);
  if (!status) status = print_all(strategy, &m);
  dist_variable_destroy(m.seen);
  dist_variable_destroy(m.w);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = use(strategy);
  if (status) fprintf(stderr, "variables: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
