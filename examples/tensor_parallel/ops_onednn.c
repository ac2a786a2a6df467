// SPDX-License-Identifier: Apache-2.0
// Implements ops.h with oneDNN, which generates its kernels at run time for the current processor.
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

// From OpenMP, which runs oneDNN's threads. Declared here because its header belongs to the compiler, and
// Clang has a different one.
void omp_set_num_threads(int num_threads);
int omp_get_max_threads(void);

enum { ROWS_OF_PACKING = 128 };  // determines the format of the weights; other numbers of rows use it, too

// The primitive of one product and its memory objects. Each call sets the data of all of them except `room`.
typedef struct {
  dnnl_primitive_t run;
  dnnl_memory_t in, weights, bias, out, scratchpad;
  void *room;  // for the scratchpad
} product_of;

struct ops_session {
  ops_sizes sizes;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  product_of products[OPS_NUM_PRODUCTS];
  dnnl_primitive_t softmax, norm;
  dnnl_memory_t scores, state, scale, shift;
  float *score;  // [rows, rows], for one head
};

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
const char *ops_name(void) {
  return "oneDNN " TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR) "." TEXT(DNNL_VERSION_PATCH);
}

static dist_status check(dnnl_status_t status, const char *what) {
  if (status == dnnl_success) return DIST_OK;
  char words[128];
  snprintf(words, sizeof words, "oneDNN cannot %s: its status is %d", what, (int)status);
  return dist_fail(status == dnnl_out_of_memory ? DIST_RESOURCE_EXHAUSTED : DIST_UNIMPLEMENTED, words);
}

// OpenMP keeps this number per thread. With 1, oneDNN runs its loops on the calling thread.
int ops_enter(void) {
  const int before = omp_get_max_threads();
  if (before != 1) omp_set_num_threads(1);
  return before;
}

void ops_leave(int entered) {
  if (entered != 1) omp_set_num_threads(entered);
}

static dnnl_status_t dense(dnnl_memory_desc_t *out, int64_t rows, int64_t columns) {
  const dnnl_dims_t dims = {rows, columns};
  return dnnl_memory_desc_init_by_tag(out, 2, dims, dnnl_f32, dnnl_ab);
}

// With `packed` NULL, oneDNN chooses the weights' format.
static dnnl_status_t describe(dnnl_engine_t engine, const ops_sizes *sizes, int64_t rows, ops_product product,
                              int adds, const dnnl_memory_desc_t *packed, dnnl_primitive_desc_t *out) {
  const int64_t inputs = ops_inputs(sizes, product), outputs = ops_outputs(sizes, product);
  const dnnl_dims_t dims = {inputs, outputs};
  dnnl_memory_desc_t in, weights, bias, result;
  dnnl_matmul_desc_t matmul;
  dnnl_primitive_attr_t how = NULL;
  dnnl_post_ops_t after = NULL;
  dnnl_status_t status = dense(&in, rows, inputs);
  if (!status) status = dense(&result, rows, outputs);
  if (!status) status = dense(&bias, 1, outputs);
  if (packed != NULL)
    weights = *packed;
  else if (!status)
    status = dnnl_memory_desc_init_by_tag(&weights, 2, dims, dnnl_f32, dnnl_format_tag_any);
  if (!status) status = dnnl_matmul_desc_init(&matmul, &in, &weights, &bias, &result);
  if (!status) status = dnnl_post_ops_create(&after);
  if (!status && product == OPS_INTERMEDIATE)
    status = dnnl_post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_gelu_erf, 0.0f, 0.0f);
  if (!status && adds && (product == OPS_ATTENTION_OUTPUT || product == OPS_OUTPUT))
    status = dnnl_post_ops_append_sum(after, 1.0f);
  if (!status) status = dnnl_primitive_attr_create(&how);
  if (!status) status = dnnl_primitive_attr_set_post_ops(how, after);
  if (!status) status = dnnl_primitive_attr_set_scratchpad_mode(how, dnnl_scratchpad_mode_user);
  if (!status) status = dnnl_primitive_desc_create(out, &matmul, how, engine, NULL);
  dnnl_post_ops_destroy(after);
  dnnl_primitive_attr_destroy(how);
  return status;
}

// Returns the format of a product's packed weights. All sessions use the same one.
static dnnl_status_t packed_format(dnnl_engine_t engine, const ops_sizes *sizes, ops_product product,
                                   dnnl_memory_desc_t *out) {
  dnnl_primitive_desc_t best = NULL;
  const dnnl_status_t status = describe(engine, sizes, ROWS_OF_PACKING, product, 0, NULL, &best);
  if (!status) *out = *dnnl_primitive_desc_query_md(best, dnnl_query_weights_md, 0);
  dnnl_primitive_desc_destroy(best);
  return status;
}

static dnnl_status_t reorder(dnnl_engine_t engine, const dnnl_memory_desc_t *from, float *data,
                             const dnnl_memory_desc_t *to, float *packed) {
  dnnl_primitive_desc_t how = NULL;
  dnnl_primitive_t run = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_memory_t source = NULL, result = NULL;
  dnnl_status_t status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  if (!status) status = dnnl_memory_create(&source, from, engine, data);
  if (!status) status = dnnl_memory_create(&result, to, engine, packed);
  if (!status) status = dnnl_reorder_primitive_desc_create(&how, from, engine, to, engine, NULL);
  if (!status) status = dnnl_primitive_create(&run, how);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, result}};
  if (!status) status = dnnl_primitive_execute(run, stream, 2, arguments);
  if (!status) status = dnnl_stream_wait(stream);
  dnnl_primitive_destroy(run);
  dnnl_primitive_desc_destroy(how);
  dnnl_memory_destroy(source);
  dnnl_memory_destroy(result);
  dnnl_stream_destroy(stream);
  return status;
}

dist_status ops_pack(const ops_sizes *sizes, ops_product product, const ops_weight *weights, size_t n,
                     ops_matrix *out) {
  const int64_t inputs = ops_inputs(sizes, product), outputs = ops_outputs(sizes, product);
  const dnnl_dims_t dims = {inputs, outputs}, strides = {1, inputs};  // the file has [outputs, inputs]
  dnnl_engine_t engine = NULL;
  dnnl_memory_desc_t from, to;
  dnnl_status_t status = dnnl_engine_create(&engine, dnnl_cpu, 0);
  if (!status) status = packed_format(engine, sizes, product, &to);
  if (!status) status = dnnl_memory_desc_init_by_strides(&from, 2, dims, dnnl_f32, strides);
  float *together = NULL;
  if (!status) {
    out->bytes = dnnl_memory_desc_get_size(&to);
    together = ops_memory((size_t)(inputs * outputs) * sizeof(float));
    out->packed = ops_memory(out->bytes);
    out->bias = ops_memory((size_t)outputs * sizeof(float));
    if (together == NULL || out->packed == NULL || out->bias == NULL) status = dnnl_out_of_memory;
  }
  int64_t at = 0;
  for (size_t w = 0; w < n && !status; w++) {
    for (int64_t o = 0; o < weights[w].outputs; o++, at++) {
      memcpy(together + at * inputs, weights[w].data + o * weights[w].row_stride,
             (size_t)inputs * sizeof(float));
      out->bias[at] = weights[w].bias != NULL ? weights[w].bias[o] : 0.0f;
    }
  }
  if (!status) status = reorder(engine, &from, together, &to, out->packed);
  free(together);
  dnnl_engine_destroy(engine);
  return check(status, "pack weights");
}

static dnnl_status_t make_product(ops_session *session, ops_product product, int adds) {
  product_of *made = &session->products[product];
  dnnl_memory_desc_t packed;
  dnnl_primitive_desc_t how = NULL;
  dnnl_status_t status = packed_format(session->engine, &session->sizes, product, &packed);
  if (!status)
    status = describe(session->engine, &session->sizes, session->sizes.rows, product, adds, &packed, &how);
  if (status) return status;
  const struct {
    dnnl_query_t what;
    dnnl_memory_t *memory;
    int index;
  } memories[] = {{dnnl_query_src_md, &made->in, 0},
                  {dnnl_query_weights_md, &made->weights, 0},
                  {dnnl_query_weights_md, &made->bias, 1},
                  {dnnl_query_dst_md, &made->out, 0},
                  {dnnl_query_scratchpad_md, &made->scratchpad, 0}};
  for (size_t i = 0; i < sizeof memories / sizeof memories[0] && !status; i++) {
    const dnnl_memory_desc_t *form = dnnl_primitive_desc_query_md(how, memories[i].what, memories[i].index);
    void *handle = DNNL_MEMORY_NONE;
    if (memories[i].memory == &made->scratchpad) {
      handle = made->room = ops_memory(dnnl_memory_desc_get_size(form));
      if (handle == NULL) status = dnnl_out_of_memory;
    }
    if (!status) status = dnnl_memory_create(memories[i].memory, form, session->engine, handle);
  }
  if (!status) status = dnnl_primitive_create(&made->run, how);
  dnnl_primitive_desc_destroy(how);
  return status;
}

static dnnl_status_t make_softmax(ops_session *session) {
  dnnl_memory_desc_t scores;
  dnnl_softmax_v2_desc_t softmax;
  dnnl_primitive_desc_t how = NULL;
  const int64_t rows = session->sizes.rows;
  session->score = ops_memory((size_t)(rows * rows) * sizeof(float));
  if (session->score == NULL) return dnnl_out_of_memory;
  dnnl_status_t status = dense(&scores, rows, rows);
  if (!status)
    status = dnnl_softmax_v2_forward_desc_init(&softmax, dnnl_forward_inference, dnnl_softmax_accurate,
                                               &scores, &scores, 1);
  if (!status) status = dnnl_primitive_desc_create(&how, &softmax, NULL, session->engine, NULL);
  if (!status) status = dnnl_primitive_create(&session->softmax, how);
  dnnl_primitive_desc_destroy(how);
  if (!status) status = dnnl_memory_create(&session->scores, &scores, session->engine, session->score);
  return status;
}

static dnnl_status_t make_norm(ops_session *session) {
  dnnl_memory_desc_t state, vector;
  dnnl_layer_normalization_desc_t norm;
  dnnl_primitive_desc_t how = NULL;
  const dnnl_dims_t columns = {session->sizes.hidden};
  dnnl_status_t status = dense(&state, session->sizes.rows, session->sizes.hidden);
  if (!status) status = dnnl_memory_desc_init_by_tag(&vector, 1, columns, dnnl_f32, dnnl_a);
  if (!status)
    status = dnnl_layer_normalization_forward_desc_init(&norm, dnnl_forward_inference, &state, NULL, 1e-12f,
                                                        dnnl_use_scale | dnnl_use_shift);
  if (!status) status = dnnl_primitive_desc_create(&how, &norm, NULL, session->engine, NULL);
  if (!status) status = dnnl_primitive_create(&session->norm, how);
  dnnl_primitive_desc_destroy(how);
  if (!status) status = dnnl_memory_create(&session->state, &state, session->engine, DNNL_MEMORY_NONE);
  if (!status) status = dnnl_memory_create(&session->scale, &vector, session->engine, DNNL_MEMORY_NONE);
  if (!status) status = dnnl_memory_create(&session->shift, &vector, session->engine, DNNL_MEMORY_NONE);
  return status;
}

dist_status ops_session_create(const ops_sizes *sizes, int adds, ops_session **out) {
  ops_session *session = *out = calloc(1, sizeof *session);
  if (session == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory");
  session->sizes = *sizes;
  dnnl_status_t status = dnnl_engine_create(&session->engine, dnnl_cpu, 0);
  if (!status) status = dnnl_stream_create(&session->stream, session->engine, dnnl_stream_default_flags);
  for (int product = 0; product < OPS_NUM_PRODUCTS && !status; product++)
    status = make_product(session, (ops_product)product, adds);
  if (!status) status = make_softmax(session);
  if (!status) status = make_norm(session);
  return check(status, "make its primitives");
}

void ops_session_destroy(ops_session *session) {
  if (session == NULL) return;
  for (int product = 0; product < OPS_NUM_PRODUCTS; product++) {
    product_of *made = &session->products[product];
    dnnl_primitive_destroy(made->run);
    dnnl_memory_t memories[] = {made->in, made->weights, made->bias, made->out, made->scratchpad};
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) dnnl_memory_destroy(memories[i]);
    free(made->room);
  }
  dnnl_primitive_destroy(session->softmax);
  dnnl_primitive_destroy(session->norm);
  dnnl_memory_t memories[] = {session->scores, session->state, session->scale, session->shift};
  for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) dnnl_memory_destroy(memories[i]);
  free(session->score);
  dnnl_stream_destroy(session->stream);
  dnnl_engine_destroy(session->engine);
  free(session);
}

static dnnl_status_t at(dnnl_memory_t memory, const void *data) {
  return dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)data);  // oneDNN does not modify inputs
}

dist_status ops_linear(ops_session *session, ops_product product, const ops_matrix *matrix, const float *in,
                       float *out) {
  product_of *made = &session->products[product];
  dnnl_status_t status = at(made->in, in);
  if (!status) status = at(made->weights, matrix->packed);
  if (!status) status = at(made->bias, matrix->bias);
  if (!status) status = at(made->out, out);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, made->in},
                                       {DNNL_ARG_WEIGHTS, made->weights},
                                       {DNNL_ARG_BIAS, made->bias},
                                       {DNNL_ARG_DST, made->out},
                                       {DNNL_ARG_SCRATCHPAD, made->scratchpad}};
  if (!status) status = dnnl_primitive_execute(made->run, session->stream, 5, arguments);
  return check(status, "multiply");
}

// Computes one head after another, so that its scores stay in the cache.
dist_status ops_attention(ops_session *session, const float *qkv, float *out) {
  const int64_t rows = session->sizes.rows, width = session->sizes.width, heads = session->sizes.heads;
  const int64_t size = width / heads, stride = 3 * width;
  const float scale = 1.0f / sqrtf((float)size);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, session->scores}, {DNNL_ARG_DST, session->scores}};
  dnnl_status_t status = dnnl_success;
  for (int64_t h = 0; h < heads && !status; h++) {
    const float *query = qkv + h * size, *key = query + width, *value = key + width;
    status =
        dnnl_sgemm('N', 'T', rows, rows, size, scale, query, stride, key, stride, 0.0f, session->score, rows);
    if (!status) status = dnnl_primitive_execute(session->softmax, session->stream, 2, arguments);
    if (!status)
      status = dnnl_sgemm('N', 'N', rows, size, rows, 1.0f, session->score, rows, value, stride, 0.0f,
                          out + h * size, width);
  }
  return check(status, "mix values");
}

dist_status ops_norm(ops_session *session, float *state, const float *scale, const float *shift) {
  dnnl_status_t status = at(session->state, state);
  if (!status) status = at(session->scale, scale);
  if (!status) status = at(session->shift, shift);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, session->state},
                                       {DNNL_ARG_DST, session->state},
                                       {DNNL_ARG_SCALE, session->scale},
                                       {DNNL_ARG_SHIFT, session->shift}};
  if (!status) status = dnnl_primitive_execute(session->norm, session->stream, 4, arguments);
  return check(status, "norm rows");
}
