/* SPDX-License-Identifier: Apache-2.0
 *
 * One input pipeline for each replica, and a pass that continues at a stored position.
 *
 *     cc pipelines.c $(pkg-config --cflags --libs dist) -o pipelines && ./pipelines
 */
#include <dist/dist.h>
#include <stdio.h>

static void print(const char *text, size_t size_bytes, void *user_data) {
  (void)user_data;
  fwrite(text, 1, size_bytes, stdout);
}

static dist_status print_next(const char *title, dist_iterator *pass) {
  dist_value *batch = NULL;
  dist_status status = dist_iterator_next(pass, &batch);
  if (!status) status = (printf("%s: ", title), dist_value_describe(batch, print, NULL));
  putchar('\n');
  dist_value_release(batch);
  return status;
}

/* section function */
/* Makes the dataset of one pipeline: here, of one replica. */
static dist_status pipeline(dist_strategy *strategy, const dist_input_context *context,
                            dist_dataset **out_dataset, void *user_data) {
  (void)user_data;
  printf("pipeline %d of %d\n", context->input_pipeline_id, context->num_input_pipelines);
  const int64_t n = 4;
  float rows[4];
  for (int i = 0; i < 4; i++) rows[i] = (float)(10 * context->input_pipeline_id + i);
  const dist_tensor tensor = {rows, DIST_F32, 1, &n, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  dist_status status = dist_input_context_per_replica_batch_size(context, 4, &options.global_batch_size);
  if (!status) status = dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, out_dataset);
  return status;
}

static dist_status from_function(dist_strategy *strategy) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.replication_mode = DIST_INPUT_PER_REPLICA;
  dist_dataset *dataset = NULL;
  dist_iterator *pass = NULL;
  dist_status status = dist_dataset_create_from_function(strategy, pipeline, NULL, &options, &dataset);
  if (!status) status = dist_iterator_create(dataset, &pass);
  if (!status) status = print_next("batch", pass);
  dist_iterator_destroy(pass);
  dist_dataset_destroy(dataset);
  return status;
}
/* end of function */

/* section position */
static dist_status continue_pass(dist_dataset *dataset) {
  dist_iterator *pass = NULL, *continued = NULL;
  dist_position position = DIST_POSITION_INIT;
  dist_status status = dist_iterator_create(dataset, &pass);
  if (!status) status = print_next("first", pass);
  if (!status) status = dist_iterator_position(pass, &position); /* plain numbers: store them anywhere */
  if (!status) status = dist_iterator_create_at(dataset, &position, &continued);
  if (!status) status = print_next("second", pass);
  if (!status) status = print_next("continued", continued);
  dist_iterator_destroy(continued);
  dist_iterator_destroy(pass);
  return status;
}
/* end of position */

static dist_status shuffled(dist_strategy *strategy) {
  const int64_t n = 8;
  int32_t rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const dist_tensor tensor = {rows, DIST_I32, 1, &n, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  options.shuffle = 1;
  dist_dataset *dataset = NULL;
  dist_status status = dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &dataset);
  if (!status) status = continue_pass(dataset);
  dist_dataset_destroy(dataset);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = from_function(strategy);
  if (!status) status = shuffled(strategy);
  if (status) fprintf(stderr, "pipelines: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
