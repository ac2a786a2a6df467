/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of a source function, and a value from a function: what each of two replicas gets.
 *
 *     cc input.c $(pkg-config --cflags --libs dist) -o input && ./input
 */
#include <dist/dist.h>
#include <stdio.h>

/* Produces element `index` of a pass: the squares of 0 to 6. */
static dist_status square(dist_strategy *strategy, int64_t index, dist_value **out_element, void *user_data) {
  (void)user_data;
  if (index == 7) return DIST_OUT_OF_RANGE; /* the end of the pass */
  int64_t number = index * index;
  const dist_tensor tensor = {&number, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(strategy, &tensor, out_element);
}

/* Produces the value of one replica. */
static dist_status seed(dist_strategy *strategy, const dist_value_context *context, dist_value **out_value,
                        void *user_data) {
  (void)user_data;
  int64_t number = 100 + context->replica_id_in_sync_group;
  const dist_tensor tensor = {&number, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(strategy, &tensor, out_value);
}

static void print(const char *text, size_t size_bytes, void *user_data) {
  (void)user_data;
  fwrite(text, 1, size_bytes, stdout);
}

static dist_status print_line(const dist_value *value) {
  const dist_status status = dist_value_describe(value, print, NULL);
  putchar('\n');
  return status;
}

static dist_status show(dist_strategy *strategy) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  dist_dataset *dataset = NULL;
  dist_iterator *pass = NULL;
  dist_value *batch = NULL, *seeds = NULL;
  dist_status status = dist_dataset_create_from_callback(strategy, square, NULL, NULL, &options, &dataset);
  if (!status) status = dist_iterator_create(dataset, &pass);
  while (!status) {
    status = dist_iterator_next(pass, &batch);
    if (status || batch == NULL) break; /* NULL: the end of the pass */
    status = print_line(batch);         /* a training loop passes the batch to dist_run_values() */
    dist_value_release(batch);
  }
  dist_iterator_destroy(pass);
  dist_dataset_destroy(dataset);

  if (!status) status = dist_values_from_function(strategy, seed, NULL, &seeds);
  if (!status) status = print_line(seeds);
  dist_value_release(seeds);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = show(strategy);
  if (status) fprintf(stderr, "input: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
