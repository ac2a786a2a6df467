// SPDX-License-Identifier: Apache-2.0
//
// The example of batch_reduce_to() from the tf.distribute documentation, in C. Run it as `batch_reduce_to
// [REPLICAS]` (default 2). With one replica it uses a one-device strategy. It prints every copy of the
// variable: 2.0 2.0 with two replicas, 1.0 with one.
//
//     strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], ...)
//     with strategy.scope():
//       v = tf.Variable(0., aggregation=tf.VariableAggregation.SUM)
//
//     def step_fn(v):
//       def merge_fn(strategy, value, var):
//         reduced = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(value, var)])[0]
//         strategy.extended.update(var, lambda var, value: var.assign(value), args=(reduced,))
//       value = tf.identity(1.)
//       tf.distribute.get_replica_context().merge_call(merge_fn, args=(value, v))
//
//     strategy.run(step_fn, args=(v,))
#include <dist/dist.h>
#include <stdio.h>
#include <stdlib.h>

// Does var.assign(value) on one copy of the variable.
static dist_status assign(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                          dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  dist_tensor *copy = place->copy;
  (void)user_data;
  dist_tensor value;
  const dist_status status = dist_value_tensor(dist_value_item(args, 0), &value);
  if (!status) *(float *)copy->data = *(const float *)value.data;
  return status;
}

// merge_fn: libdist calls it once for all replicas. args is the list (values of all replicas, var).
static dist_status merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                         dist_value **out_result, void *user_data) {
  (void)out_result, (void)kwargs;
  (void)user_data;
  dist_value *value = dist_value_item(args, 0);
  dist_variable *variable = dist_value_variable(dist_value_item(args, 1));
  const dist_destination destination = {variable, NULL, NULL};
  dist_value *reduced = NULL;
  dist_value *update_args = NULL;
  dist_status status =
      dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, &value, &destination, 1, NULL, &reduced);
  if (!status) status = dist_value_create_list(strategy, &reduced, 1, &update_args);
  if (!status) status = dist_update(strategy, variable, assign, NULL, update_args, NULL, NULL, NULL);
  dist_value_release(update_args);
  dist_value_release(reduced);
  return status;
}

// step_fn: runs on every replica. args is the list (v).
static dist_status step(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)kwargs;
  (void)out_result;
  (void)user_data;
  dist_strategy *strategy = dist_replica_strategy(replica);
  float one = 1.0f;
  const dist_tensor tensor = {&one, DIST_F32, 0, NULL, NULL};
  dist_value *merge_args = NULL;
  dist_value *items[2] = {NULL, dist_value_item(args, 0)};
  dist_status status = dist_value_create_tensor(strategy, &tensor, &items[0]);
  if (!status) status = dist_value_create_list(strategy, items, 2, &merge_args);
  if (!status) status = dist_merge_call(replica, merge, NULL, merge_args, NULL, NULL, NULL);
  dist_value_release(merge_args);
  dist_value_release(items[0]);
  return status;
}

static dist_status run_program(dist_strategy *strategy, dist_variable *variable) {
  dist_value *v = NULL;
  dist_value *args = NULL;
  dist_status status = dist_value_create_variable(variable, &v);
  if (!status) status = dist_value_create_list(strategy, &v, 1, &args);
  if (!status) status = dist_run_values(strategy, step, NULL, args, NULL, NULL, NULL);
  dist_value_release(args);
  dist_value_release(v);
  return status;
}

int main(int argc, char **argv) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = argc > 1 ? atoi(argv[1]) : 2;
  if (options.num_replicas == 1) options.kind = DIST_STRATEGY_ONE_DEVICE;
  float zero = 0.0f;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options variable_options = DIST_VARIABLE_OPTIONS_INIT;
  variable_options.aggregation = DIST_AGGREGATION_SUM;
  dist_strategy *strategy = NULL;
  dist_variable *variable = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_variable_create(strategy, &initial, &variable_options, &variable);
  if (!status) status = run_program(strategy, variable);
  for (int32_t r = 0; r < dist_strategy_num_replicas(strategy) && !status; r++) {
    dist_tensor copy;
    status = dist_variable_component(variable, r, &copy);
    if (!status) printf("%s%.1f", r > 0 ? " " : "", *(const float *)copy.data);
  }
  if (!status) putchar('\n');
  if (status) fprintf(stderr, "batch_reduce_to: %s\n", dist_last_error());
  dist_variable_destroy(variable);
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
