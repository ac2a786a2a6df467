/* SPDX-License-Identifier: Apache-2.0
 *
 * A merge call: one function runs for all replicas, reduces what they pass, and updates a variable.
 *
 *     cc merge.c $(pkg-config --cflags --libs dist) -o merge && ./merge
 */
#include <dist/dist.h>
#include <stdio.h>

static void print(const char *text, size_t size_bytes, void *user_data) {
  (void)user_data;
  fwrite(text, 1, size_bytes, stdout);
}

/* section merge */
/* Called for each copy of the variable: keeps it below the limit. */
static dist_status clamp(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                         dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)kwargs, (void)out_result;
  double *copy = place->copy->data;
  const double *limit = user_data;
  if (*copy > *limit) *copy = *limit;
  return DIST_OK;
}

/* Called once, while all replicas wait. The item of args is a per-replica value. */
static dist_status merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                         dist_value **out_result, void *user_data) {
  (void)kwargs, (void)out_result;
  dist_variable *w = user_data;
  dist_value *loss = NULL;
  double limit = 1;
  dist_status status = dist_reduce(strategy, DIST_REDUCE_MEAN, dist_value_item(args, 0), NULL, 0, &loss);
  if (!status) status = (printf("mean loss: "), dist_value_describe(loss, print, NULL));
  if (!status) status = dist_update(strategy, w, clamp, &limit, NULL, NULL, NULL, NULL);
  dist_value_release(loss);
  return status;
}

static dist_status step(dist_replica *replica, void *user_data) {
  double number = dist_replica_id(replica) + 1; /* this replica's loss */
  const dist_tensor tensor = {&number, DIST_F64, 0, NULL, NULL};
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *loss = NULL, *args = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &loss);
  if (!status) status = dist_value_create_list(strategy, &loss, 1, &args);
  if (!status) status = dist_merge_call(replica, merge, user_data, args, NULL, NULL, NULL);
  dist_value_release(args);
  dist_value_release(loss);
  return status;
}
/* end of merge */

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  dist_variable *w = NULL;
  double two = 2;
  const dist_tensor initial = {&two, DIST_F64, 0, NULL, NULL};
  dist_variable_options named = DIST_VARIABLE_OPTIONS_INIT;
  named.name = "w";
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_variable_create(strategy, &initial, &named, &w);
  if (!status) status = dist_run(strategy, step, w, NULL);
  if (!status) status = (putchar('\n'), dist_variable_describe(w, print, NULL));
  if (!status) putchar('\n');
  if (status) fprintf(stderr, "merge: %s\n", dist_last_error());
  dist_variable_destroy(w);
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
