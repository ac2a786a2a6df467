// SPDX-License-Identifier: Apache-2.0
#include "encoder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ops.h"

enum { COLUMNS, BIASES, ROWS, WHOLE, NUM_ARGS };  // arguments of pack_shards()
enum { SUMS = 2 };                                // collectives per layer

// The buffers of one logical device of a replica. Only the device's thread uses them.
typedef struct {
  ops_session *session;  // for inputs of `rows` rows
  int64_t rows;
  float *state, *attention, *mixed, *inner;  // intermediate results, allocated as one block
  double *began, *ended;                     // times of each sum in the last run
} place;

struct encoder {
  dist_strategy *strategy;
  dist_value *whole;  // the weights that are replicated to all devices
  int64_t heads;
  int32_t devices;
  size_t replicas, layers;
  ops_sizes *sizes;      // [devices], without the number of rows
  ops_matrix *matrices;  // [devices, layers, OPS_NUM_PRODUCTS]
  place *places;         // [replicas, devices]
};

static dist_status no_memory(void) { return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for an encoder"); }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static dist_value *tensor_of(dist_value *group, size_t layer, size_t index) {
  return dist_value_item(dist_value_item(group, layer), index);
}

static const float *vector(dist_value *group, size_t layer, size_t index) {
  dist_tensor tensor;
  return dist_value_tensor(tensor_of(group, layer, index), &tensor) ? NULL : tensor.data;
}

// A shard is a view into the whole matrix, so its row stride exceeds its row length.
static ops_weight matrix(dist_value *group, size_t layer, size_t index, const float *bias) {
  dist_tensor tensor;
  if (dist_value_tensor(tensor_of(group, layer, index), &tensor)) return (ops_weight){NULL, NULL, 0, 0, 0};
  const int64_t stride = tensor.strides != NULL ? tensor.strides[0] : tensor.shape[1];
  return (ops_weight){tensor.data, bias, tensor.shape[0], tensor.shape[1], stride};
}

// ---- Packing ------------------------------------------------------------------------------------------

static dist_status pack_layer(const ops_sizes *sizes, dist_value *args, size_t layer, int first,
                              ops_matrix *out) {
  dist_value *columns = dist_value_item(args, COLUMNS), *biases = dist_value_item(args, BIASES);
  dist_value *rows = dist_value_item(args, ROWS), *whole = dist_value_item(args, WHOLE);
  ops_weight weights[WEIGHTS_INTERMEDIATE + 1];
  for (size_t i = WEIGHTS_QUERY; i <= WEIGHTS_INTERMEDIATE; i++)
    weights[i] = matrix(columns, layer, i, vector(biases, layer, i));
  dist_status status = ops_pack(sizes, OPS_QUERY_KEY_VALUE, weights, 3, &out[OPS_QUERY_KEY_VALUE]);
  if (!status) status = ops_pack(sizes, OPS_INTERMEDIATE, weights + 3, 1, &out[OPS_INTERMEDIATE]);
  // The bias and the old state must enter the sum once, so only the first device adds them.
  weights[0] =
      matrix(rows, layer, WEIGHTS_ATTENTION, first ? vector(whole, layer, WEIGHTS_ATTENTION_BIAS) : NULL);
  weights[1] = matrix(rows, layer, WEIGHTS_OUTPUT, first ? vector(whole, layer, WEIGHTS_OUTPUT_BIAS) : NULL);
  if (!status) status = ops_pack(sizes, OPS_ATTENTION_OUTPUT, weights, 1, &out[OPS_ATTENTION_OUTPUT]);
  if (!status) status = ops_pack(sizes, OPS_OUTPUT, weights + 1, 1, &out[OPS_OUTPUT]);
  return status;
}

// Runs on each logical device of replica 0. Packs the device's shards; all replicas' devices with this number
// read them.
static dist_status pack_shards(dist_replica *device, dist_value *args, dist_value *kwargs,
                               dist_value **out_result, void *user_data) {
  (void)kwargs, (void)out_result;
  encoder *e = user_data;
  const int32_t d = dist_replica_id(device);
  const ops_weight query = matrix(dist_value_item(args, COLUMNS), 0, WEIGHTS_QUERY, NULL);
  const ops_weight inner = matrix(dist_value_item(args, COLUMNS), 0, WEIGHTS_INTERMEDIATE, NULL);
  ops_sizes *sizes = &e->sizes[d];
  *sizes = (ops_sizes){0, query.inputs, query.outputs, inner.outputs, e->heads / e->devices};
  const int entered = ops_enter();
  dist_status status = DIST_OK;
  for (size_t layer = 0; layer < e->layers && !status; layer++) {
    ops_matrix *matrices = e->matrices + ((size_t)d * e->layers + layer) * OPS_NUM_PRODUCTS;
    status = pack_layer(sizes, args, layer, d == 0, matrices);
  }
  ops_leave(entered);
  return status;
}

// Splits the weights without copying them, one call per group.
static dist_status divide_and_pack(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                   dist_value **out_result, void *user_data) {
  (void)kwargs;
  encoder *e = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  const int64_t by_outputs[] = {e->devices, 1}, by_inputs[] = {1, e->devices};
  dist_value *items[NUM_ARGS] = {NULL}, *shards = NULL;
  dist_status status = dist_split_to_logical_devices(replica, dist_value_item(args, COLUMNS), by_outputs, 2,
                                                     NULL, &items[COLUMNS]);
  if (!status)
    status = dist_split_to_logical_devices(replica, dist_value_item(args, BIASES), by_outputs, 1, NULL,
                                           &items[BIASES]);
  if (!status)
    status =
        dist_split_to_logical_devices(replica, dist_value_item(args, ROWS), by_inputs, 2, NULL, &items[ROWS]);
  if (!status)
    status = dist_replicate_to_logical_devices(replica, dist_value_item(args, WHOLE), &items[WHOLE]);
  if (!status) status = dist_value_create_list(e->strategy, items, NUM_ARGS, &shards);
  if (!status) status = dist_run_on_devices(replica, pack_shards, e, shards, NULL, NULL, out_result);
  dist_value_release(shards);
  for (int i = 0; i < NUM_ARGS; i++) dist_value_release(items[i]);
  return status;
}

dist_status encoder_create(dist_strategy *strategy, const weights *w, int64_t heads, encoder **out) {
  encoder *e = *out = calloc(1, sizeof *e);
  if (e == NULL) return no_memory();
  e->strategy = strategy;
  e->heads = heads;
  e->devices = dist_strategy_num_logical_devices(strategy);
  e->replicas = (size_t)dist_strategy_num_replicas(strategy);
  e->layers = dist_value_size(w->whole);
  e->whole = dist_value_retain(w->whole);
  if (heads < 1 || heads % e->devices != 0)
    return dist_fail(DIST_INVALID_ARGUMENT, "the heads cannot be dealt out evenly to the logical devices");
  const size_t devices = (size_t)e->devices;
  e->sizes = calloc(devices, sizeof *e->sizes);
  e->matrices = calloc(devices * e->layers * OPS_NUM_PRODUCTS, sizeof *e->matrices);
  e->places = calloc(e->replicas * devices, sizeof *e->places);
  if (e->sizes == NULL || e->matrices == NULL || e->places == NULL) return no_memory();
  dist_value *items[NUM_ARGS] = {w->columns, w->biases, w->rows, w->whole}, *args = NULL;
  dist_value *nothing = NULL;
  dist_status status = dist_value_create_list(strategy, items, NUM_ARGS, &args);
  if (!status) status = dist_run_values(strategy, divide_and_pack, e, args, NULL, NULL, &nothing);
  dist_value_release(nothing);
  dist_value_release(args);
  return status;
}

static void leave_place(place *p) {
  ops_session_destroy(p->session);
  free(p->state);
  free(p->began);
  *p = (place){NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL};
}

void encoder_destroy(encoder *e) {
  if (e == NULL) return;
  const size_t devices = (size_t)e->devices;
  for (size_t i = 0; e->matrices != NULL && i < devices * e->layers * OPS_NUM_PRODUCTS; i++)
    ops_release(&e->matrices[i]);
  for (size_t i = 0; e->places != NULL && i < e->replicas * devices; i++) leave_place(&e->places[i]);
  dist_value_release(e->whole);
  free(e->sizes);
  free(e->matrices);
  free(e->places);
  free(e);
}

size_t encoder_bytes(const encoder *e) {
  size_t bytes = 0;
  for (size_t i = 0; i < (size_t)e->devices * e->layers * OPS_NUM_PRODUCTS; i++)
    bytes += e->matrices[i].bytes;
  return bytes;
}

// ---- Forward pass -------------------------------------------------------------------------------------

// Allocates the device's buffers, unless the last input had the same number of rows.
static dist_status take_place(const encoder *e, int32_t device, int64_t rows, place *p) {
  if (p->rows == rows) return DIST_OK;
  leave_place(p);
  ops_sizes sizes = e->sizes[device];
  sizes.rows = rows;
  const int64_t parts[] = {sizes.hidden, 3 * sizes.width, sizes.width, sizes.intermediate};
  float **const buffers[] = {&p->state, &p->attention, &p->mixed, &p->inner};
  int64_t row = 0;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) row += (parts[i] + 15) / 16 * 16;
  float *at = ops_memory((size_t)(row * rows) * sizeof *at);
  p->began = calloc(2 * SUMS * e->layers, sizeof *p->began);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0] && at != NULL; i++) {
    *buffers[i] = at;
    at += (parts[i] + 15) / 16 * 16 * rows;
  }
  if (at == NULL || p->began == NULL) return no_memory();
  p->ended = p->began + SUMS * e->layers;
  const dist_status status = ops_session_create(&sizes, device == 0, &p->session);
  if (!status) p->rows = rows;
  return status;
}

// Sums `state` over the devices and normalizes it. Every device then has the new state.
static dist_status add_up(const encoder *e, dist_replica *device, const place *p, size_t sum, size_t scale) {
  const int64_t shape[] = {p->rows, e->sizes[0].hidden};
  dist_tensor state = {p->state, DIST_F32, 2, shape, NULL};
  p->began[sum] = seconds();
  const dist_status status = dist_all_reduce(device, DIST_REDUCE_SUM, &state, &state, 1, NULL, NULL);
  p->ended[sum] = seconds();
  if (status) return status;
  return ops_norm(p->session, p->state, vector(e->whole, sum / SUMS, scale),
                  vector(e->whole, sum / SUMS, scale + 1));
}

static dist_status run_layer(const encoder *e, dist_replica *device, const place *p, size_t layer) {
  const size_t d = (size_t)dist_replica_id(device);
  const ops_matrix *m = e->matrices + (d * e->layers + layer) * OPS_NUM_PRODUCTS;
  ops_session *s = p->session;
  dist_status status = ops_linear(s, OPS_QUERY_KEY_VALUE, &m[OPS_QUERY_KEY_VALUE], p->state, p->attention);
  if (!status) status = ops_attention(s, p->attention, p->mixed);
  if (!status) status = ops_linear(s, OPS_ATTENTION_OUTPUT, &m[OPS_ATTENTION_OUTPUT], p->mixed, p->state);
  if (!status) status = add_up(e, device, p, SUMS * layer, WEIGHTS_ATTENTION_SCALE);
  if (!status) status = ops_linear(s, OPS_INTERMEDIATE, &m[OPS_INTERMEDIATE], p->state, p->inner);
  if (!status) status = ops_linear(s, OPS_OUTPUT, &m[OPS_OUTPUT], p->inner, p->state);
  if (!status) status = add_up(e, device, p, SUMS * layer + 1, WEIGHTS_OUTPUT_SCALE);
  return status;
}

// Runs on each logical device. All devices compute the same bits; device 0 returns them.
static dist_status run_layers(dist_replica *device, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)kwargs;
  const encoder *e = user_data;
  const int32_t d = dist_replica_id(device);
  place *p = &e->places[dist_device_replica(device) * e->devices + d];
  dist_tensor input;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &input);
  if (status) return status;
  if (input.ndim != 2 || input.dtype != DIST_F32 || input.strides != NULL || input.shape[0] < 1 ||
      input.shape[1] != e->sizes[d].hidden)
    return dist_fail(DIST_INVALID_ARGUMENT, "the input is not f32[tokens, hidden size]");
  const int entered = ops_enter();
  status = take_place(e, d, input.shape[0], p);
  if (!status) memcpy(p->state, input.data, (size_t)(p->rows * input.shape[1]) * sizeof(float));
  for (size_t layer = 0; layer < e->layers && !status; layer++) status = run_layer(e, device, p, layer);
  ops_leave(entered);
  const dist_tensor output = {p->state, DIST_F32, 2, input.shape, NULL};
  if (!status && d == 0) status = dist_value_create_tensor(e->strategy, &output, out_result);
  return status;
}

static dist_status encode(dist_replica *replica, dist_value *args, dist_value *kwargs,
                          dist_value **out_result, void *user_data) {
  (void)kwargs;
  return dist_run_on_devices(replica, run_layers, user_data, args, NULL, NULL, out_result);
}

dist_status encoder_run(encoder *e, dist_value *input, dist_value **out_output) {
  dist_value *args = NULL;
  dist_status status = dist_value_create_list(e->strategy, &input, 1, &args);
  if (!status) status = dist_run_values(e->strategy, encode, e, args, NULL, NULL, out_output);
  dist_value_release(args);
  return status;
}

encoder_times encoder_last_times(const encoder *e) {
  encoder_times times = {0.0, 0.0};
  for (size_t sum = 0; sum < SUMS * e->layers; sum++) {
    double first = e->places[0].began[sum], last = first, end = e->places[0].ended[sum];
    for (int32_t d = 1; d < e->devices; d++) {
      const place *p = &e->places[d];
      if (p->began[sum] < first) first = p->began[sum];
      if (p->began[sum] > last) last = p->began[sum];
      if (p->ended[sum] > end) end = p->ended[sum];
    }
    times.waiting_seconds += last - first;
    times.own_seconds += end - last;
  }
  return times;
}
