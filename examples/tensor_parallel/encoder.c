// SPDX-License-Identifier: Apache-2.0
#define DIST_EXPERIMENTAL
#include "encoder.h"

#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { INPUT, COLUMNS, BIASES, ROWS, WHOLE, NUM_ARGS };

// What a device computes with: its weights in `args`, and room for a layer's intermediate results.
typedef struct {
  dist_replica *device;
  dist_value *args;
  int64_t tokens, hidden, width, intermediate;  // width: of this device's heads; intermediate: its rows
  int64_t heads;                                // this device's
  float *state, *query, *key, *value, *mixed, *inner, *change, *scores, *panel;
} worker;

static dist_value *tensor_of(const worker *w, int group, size_t layer, size_t index) {
  return dist_value_item(dist_value_item(dist_value_item(w->args, (size_t)group), layer), index);
}

static const float *vector(const worker *w, int group, size_t layer, size_t index) {
  dist_tensor tensor;
  return dist_value_tensor(tensor_of(w, group, layer, index), &tensor) ? NULL : tensor.data;
}

// A shard is a view into the whole matrix, whose rows are further apart than its own are long.
static ops_weight matrix(const worker *w, int group, size_t layer, size_t index) {
  dist_tensor tensor;
  if (dist_value_tensor(tensor_of(w, group, layer, index), &tensor)) return (ops_weight){NULL, 0, 0, 0};
  const int64_t stride = tensor.strides != NULL ? tensor.strides[0] : tensor.shape[1];
  return (ops_weight){tensor.data, tensor.shape[0], tensor.shape[1], stride};
}

static void column_linear(const worker *w, size_t layer, size_t index, float *out) {
  ops_linear(w->state, w->tokens, matrix(w, COLUMNS, layer, index), vector(w, BIASES, layer, index), w->panel,
             out);
}

// The devices' summands of a change come together; then every device has the new state.
static dist_status row_linear(const worker *w, size_t layer, size_t index, const float *in, size_t bias) {
  ops_linear(in, w->tokens, matrix(w, ROWS, layer, index), NULL, w->panel, w->change);
  const int64_t shape[] = {w->tokens, w->hidden};
  dist_tensor change = {w->change, DIST_F32, 2, shape, NULL};
  const dist_status status = dist_all_reduce(w->device, DIST_REDUCE_SUM, &change, &change, 1, NULL);
  if (status) return status;
  ops_add_and_norm(w->state, w->change, vector(w, WHOLE, layer, bias), vector(w, WHOLE, layer, bias + 1),
                   vector(w, WHOLE, layer, bias + 2), w->tokens, w->hidden);
  return DIST_OK;
}

static dist_status run_layer(const worker *w, size_t layer) {
  column_linear(w, layer, WEIGHTS_QUERY, w->query);
  column_linear(w, layer, WEIGHTS_KEY, w->key);
  column_linear(w, layer, WEIGHTS_VALUE, w->value);
  ops_attention(w->query, w->key, w->value, w->tokens, w->heads, w->width / w->heads, w->scores, w->mixed);
  const dist_status status = row_linear(w, layer, WEIGHTS_ATTENTION, w->mixed, WEIGHTS_ATTENTION_BIAS);
  if (status) return status;
  column_linear(w, layer, WEIGHTS_INTERMEDIATE, w->inner);
  ops_gelu(w->inner, w->tokens * w->intermediate);
  return row_linear(w, layer, WEIGHTS_OUTPUT, w->inner, WEIGHTS_OUTPUT_BIAS);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// One block for all of the device's buffers; NULL: no memory.
static float *make_room(worker *w) {
  const int64_t attention = w->tokens * w->width, state = w->tokens * w->hidden;
  const int64_t most_inputs = larger(w->hidden, larger(w->width, w->intermediate));
  const int64_t sizes[] = {state,     attention, attention,
                           attention, attention, w->tokens * w->intermediate,
                           state,     w->tokens, OPS_PANEL * most_inputs};
  float **const buffers[] = {&w->state, &w->query,  &w->key,    &w->value, &w->mixed,
                             &w->inner, &w->change, &w->scores, &w->panel};
  size_t total = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) total += (size_t)sizes[i];
  float *block = malloc(total * sizeof *block);
  for (size_t i = 0, at = 0; block != NULL && i < sizeof sizes / sizeof sizes[0]; at += (size_t)sizes[i++])
    *buffers[i] = block + at;
  return block;
}

// On each logical device. All leave with the same bits.
static dist_status run_layers(dist_replica *device, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)kwargs;
  worker w = {.device = device, .args = args};
  dist_tensor input;
  dist_status status = dist_value_tensor(dist_value_item(args, INPUT), &input);
  if (status) return status;
  w.tokens = input.shape[0];
  w.hidden = input.shape[1];
  w.width = matrix(&w, COLUMNS, 0, WEIGHTS_QUERY).outputs;
  w.intermediate = matrix(&w, COLUMNS, 0, WEIGHTS_INTERMEDIATE).outputs;
  w.heads = *(const int64_t *)user_data / dist_replica_num_replicas(device);
  float *room = make_room(&w);
  if (room == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for a layer");
  memcpy(w.state, input.data, (size_t)(w.tokens * w.hidden) * sizeof(float));
  const size_t layers = dist_value_size(dist_value_item(args, WHOLE));
  for (size_t layer = 0; layer < layers && !status; layer++) status = run_layer(&w, layer);
  const dist_tensor output = {w.state, DIST_F32, 2, input.shape, NULL};
  if (!status) status = dist_value_create_tensor(dist_replica_strategy(device), &output, out_result);
  free(room);
  return status;
}

// On the replica: weights are divided without a copy, each group by one call.
static dist_status encode(dist_replica *replica, dist_value *args, dist_value *kwargs,
                          dist_value **out_result, void *user_data) {
  (void)kwargs;
  dist_strategy *strategy = dist_replica_strategy(replica);
  const int64_t devices = dist_strategy_num_logical_devices(strategy);
  const int64_t by_outputs[] = {devices, 1}, by_inputs[] = {1, devices};
  // Every device gives the whole output; by default it would be taken for a part, as the first weight is.
  dist_partition whole = DIST_PARTITION_INIT;
  whole.kind = DIST_PARTITION_REPLICATE;
  whole.num_logical_devices = (int32_t)devices;
  const dist_partition *results[] = {&whole};
  dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  options.results = results;
  options.num_results = 1;
  dist_value *items[NUM_ARGS] = {NULL}, *shards = NULL;
  dist_status status =
      dist_replicate_to_logical_devices(replica, dist_value_item(args, INPUT), &items[INPUT]);
  if (!status)
    status = dist_split_to_logical_devices(replica, dist_value_item(args, COLUMNS), by_outputs, 2, NULL,
                                           &items[COLUMNS]);
  if (!status)
    status = dist_split_to_logical_devices(replica, dist_value_item(args, BIASES), by_outputs, 1, NULL,
                                           &items[BIASES]);
  if (!status)
    status =
        dist_split_to_logical_devices(replica, dist_value_item(args, ROWS), by_inputs, 2, NULL, &items[ROWS]);
  if (!status)
    status = dist_replicate_to_logical_devices(replica, dist_value_item(args, WHOLE), &items[WHOLE]);
  if (!status) status = dist_value_create_list(strategy, items, NUM_ARGS, &shards);
  if (!status)
    status = dist_run_on_devices(replica, run_layers, user_data, shards, NULL, &options, out_result);
  dist_value_release(shards);
  for (int i = 0; i < NUM_ARGS; i++) dist_value_release(items[i]);
  return status;
}

dist_status encoder_run(dist_strategy *strategy, const weights *w, int64_t heads, dist_value *input,
                        dist_value **out_output) {
  if (heads < 1 || heads % dist_strategy_num_logical_devices(strategy) != 0)
    return dist_fail(DIST_INVALID_ARGUMENT, "the heads cannot be dealt out evenly to the logical devices");
  dist_value *items[NUM_ARGS] = {input, w->columns, w->biases, w->rows, w->whole}, *args = NULL;
  dist_status status = dist_value_create_list(strategy, items, NUM_ARGS, &args);
  if (!status) status = dist_run_values(strategy, encode, &heads, args, NULL, NULL, out_output);
  dist_value_release(args);
  return status;
}
