// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "weights.h"

enum { HEAD_SIZE = 32 };  // the file does not contain it; this is MiniLM's
enum { STEP = 16 };       // rows of a product are rounded up to a multiple, to limit the number of shapes
enum { BLOCK = 256 };     // maximum number of rows per product
enum { WORDS, POSITIONS, TYPES, SCALE, SHIFT, NUM_EMBEDDINGS };

static const char *const embedding_names[] = {
    "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
    "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"};

struct model {
  weights file;
  dist_value *embeddings[NUM_EMBEDDINGS];
  dist_tensor embedding[NUM_EMBEDDINGS];  // indexed by the constants above
  ops_sizes sizes;                        // without the number of rows
  size_t layers;
  ops_matrix *matrices;  // [layers, OPS_NUM_PRODUCTS]
};

static dist_status no_memory(void) { return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for a model"); }

// ---- Loading ------------------------------------------------------------------------------------------

// Checks that a value is f32[rows, columns], or f32[columns] if rows is 0. With rows -1, any number is
// accepted.
static dist_status take(const dist_value *value, int64_t rows, int64_t columns, dist_tensor *out) {
  const dist_status status = dist_value_tensor(value, out);
  if (status) return status;
  if (out->dtype == DIST_F32 && out->strides == NULL && out->ndim == (rows == 0 ? 1 : 2) &&
      out->shape[out->ndim - 1] == columns && (rows <= 0 || out->shape[0] == rows))
    return DIST_OK;
  return dist_fail(DIST_INVALID_ARGUMENT, "a tensor of the file has another type or shape than an encoder's");
}

static dist_status item(dist_value *group, size_t layer, size_t index, int64_t rows, int64_t columns,
                        dist_tensor *out) {
  return take(dist_value_item(dist_value_item(group, layer), index), rows, columns, out);
}

// Takes a weight, [outputs, inputs], and its bias, which has the index `bias_at` in its group.
static dist_status matrix(dist_value *group, size_t index, dist_value *biases, size_t bias_at, size_t layer,
                          int64_t outputs, int64_t inputs, ops_weight *out) {
  dist_tensor weight, bias;
  dist_status status = item(group, layer, index, outputs, inputs, &weight);
  if (!status) status = item(biases, layer, bias_at, 0, outputs, &bias);
  if (!status) *out = (ops_weight){weight.data, bias.data, outputs, inputs, inputs};
  return status;
}

static dist_status pack_layer(model *m, size_t layer) {
  const ops_sizes *s = &m->sizes;
  const weights *f = &m->file;
  ops_matrix *out = m->matrices + layer * OPS_NUM_PRODUCTS;
  ops_weight qkv[3], attention, inner, output;
  dist_status status = DIST_OK;
  for (size_t i = WEIGHTS_QUERY; i <= WEIGHTS_VALUE && !status; i++)
    status = matrix(f->columns, i, f->biases, i, layer, s->width, s->hidden, &qkv[i]);
  if (!status)
    status = matrix(f->columns, WEIGHTS_INTERMEDIATE, f->biases, WEIGHTS_INTERMEDIATE, layer, s->intermediate,
                    s->hidden, &inner);
  if (!status)
    status = matrix(f->rows, WEIGHTS_ATTENTION, f->whole, WEIGHTS_ATTENTION_BIAS, layer, s->hidden, s->width,
                    &attention);
  if (!status)
    status = matrix(f->rows, WEIGHTS_OUTPUT, f->whole, WEIGHTS_OUTPUT_BIAS, layer, s->hidden, s->intermediate,
                    &output);
  const size_t vectors[] = {WEIGHTS_ATTENTION_SCALE, WEIGHTS_ATTENTION_SHIFT, WEIGHTS_OUTPUT_SCALE,
                            WEIGHTS_OUTPUT_SHIFT};
  dist_tensor vector;
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0] && !status; i++)
    status = item(f->whole, layer, vectors[i], 0, s->hidden, &vector);
  if (!status) status = ops_pack(s, OPS_QUERY_KEY_VALUE, qkv, 3, &out[OPS_QUERY_KEY_VALUE]);
  if (!status) status = ops_pack(s, OPS_ATTENTION_OUTPUT, &attention, 1, &out[OPS_ATTENTION_OUTPUT]);
  if (!status) status = ops_pack(s, OPS_INTERMEDIATE, &inner, 1, &out[OPS_INTERMEDIATE]);
  if (!status) status = ops_pack(s, OPS_OUTPUT, &output, 1, &out[OPS_OUTPUT]);
  return status;
}

// Takes the sizes from the first layer. pack_layer() requires all other layers to match them.
static dist_status find_sizes(model *m, const model *like) {
  dist_tensor query, inner;
  dist_status status =
      dist_value_tensor(dist_value_item(dist_value_item(m->file.columns, 0), WEIGHTS_QUERY), &query);
  if (!status)
    status =
        dist_value_tensor(dist_value_item(dist_value_item(m->file.columns, 0), WEIGHTS_INTERMEDIATE), &inner);
  if (status) return status;
  if (query.ndim != 2 || inner.ndim != 2 || query.shape[0] < HEAD_SIZE || query.shape[0] % HEAD_SIZE != 0 ||
      query.shape[1] < 1 || query.shape[1] > MODEL_MOST_OUTPUTS || inner.shape[0] < 1)
    return dist_fail(DIST_INVALID_ARGUMENT, "the file's matrices are not those of an encoder");
  m->sizes = (ops_sizes){0, query.shape[1], query.shape[0], inner.shape[0], query.shape[0] / HEAD_SIZE};
  if (like != NULL && memcmp(&like->sizes, &m->sizes, sizeof m->sizes) != 0)
    return dist_fail(DIST_INVALID_ARGUMENT, "the file's model has other sizes than the one that is served");
  return DIST_OK;
}

static dist_status map_embeddings(dist_strategy *strategy, const char *path, model *m) {
  dist_checkpoint *file = NULL;
  dist_status status = dist_checkpoint_open(strategy, path, &file);
  for (int i = 0; i < NUM_EMBEDDINGS && !status; i++) {
    status = dist_checkpoint_map(file, embedding_names[i], NULL, &m->embeddings[i]);
    if (!status) status = take(m->embeddings[i], i < SCALE ? -1 : 0, m->sizes.hidden, &m->embedding[i]);
  }
  dist_checkpoint_destroy(file);
  if (!status && (m->embedding[POSITIONS].shape[0] < 1 || m->embedding[TYPES].shape[0] < 1))
    status = dist_fail(DIST_INVALID_ARGUMENT, "the file's embeddings are empty");
  return status;
}

dist_status model_load(dist_strategy *strategy, const char *path, const model *like, model **out) {
  model *m = *out = calloc(1, sizeof *m);
  if (m == NULL) return no_memory();
  dist_status status = weights_load(strategy, path, &m->file);
  if (!status) status = find_sizes(m, like);
  if (!status) status = map_embeddings(strategy, path, m);
  if (status) return status;
  m->layers = dist_value_size(m->file.whole);
  m->matrices = calloc(m->layers * OPS_NUM_PRODUCTS, sizeof *m->matrices);
  if (m->matrices == NULL) return no_memory();
  const int entered = ops_enter();
  for (size_t layer = 0; layer < m->layers && !status; layer++) status = pack_layer(m, layer);
  ops_leave(entered);
  return status;
}

void model_release(void *made, void *user_data) {
  (void)user_data;
  model *m = made;
  if (m == NULL) return;
  for (size_t i = 0; m->matrices != NULL && i < m->layers * OPS_NUM_PRODUCTS; i++)
    ops_release(&m->matrices[i]);
  for (int i = 0; i < NUM_EMBEDDINGS; i++) dist_value_release(m->embeddings[i]);
  weights_release(&m->file);
  free(m->matrices);
  free(m);
}

int64_t model_outputs(const model *m) { return m->sizes.hidden; }

// ---- Forward pass -------------------------------------------------------------------------------------

typedef struct {
  ops_session *products[BLOCK / STEP + 1];        // [rows / STEP]
  ops_session *attention[MODEL_MOST_TOKENS + 1];  // [tokens]
  int64_t room;                                   // number of rows that the buffers can hold
  float *state, *qkv, *mixed, *inner;             // allocated as one block
} workspace;

dist_status workspace_create(dist_replica *replica, void **out_workspace, void *user_data) {
  (void)replica, (void)user_data;
  *out_workspace = calloc(1, sizeof(workspace));
  return *out_workspace != NULL ? DIST_OK : no_memory();
}

static void leave_buffers(workspace *w) {
  free(w->state);
  w->state = NULL;
  w->room = 0;
}

void workspace_destroy(void *made, void *user_data) {
  (void)user_data;
  workspace *w = made;
  if (w == NULL) return;
  leave_buffers(w);
  for (int i = 0; i <= BLOCK / STEP; i++) ops_session_destroy(w->products[i]);
  for (int i = 0; i <= MODEL_MOST_TOKENS; i++) ops_session_destroy(w->attention[i]);
  free(w);
}

// Grows the buffers to the largest batch so far.
static dist_status make_room(workspace *w, const ops_sizes *s, int64_t rows) {
  if (rows <= w->room) return DIST_OK;
  leave_buffers(w);
  const int64_t row = s->hidden + 4 * s->width, inner = s->intermediate * BLOCK;
  w->state = ops_memory((size_t)(row * rows + inner) * sizeof(float));
  if (w->state == NULL) return no_memory();
  memset(w->state, 0, (size_t)(row * rows + inner) * sizeof(float));
  w->room = rows;
  w->qkv = w->state + rows * s->hidden;
  w->mixed = w->qkv + 3 * rows * s->width;
  w->inner = w->mixed + rows * s->width;
  return DIST_OK;
}

static dist_status session_of(ops_session **at, const ops_sizes *sizes, int64_t rows) {
  if (*at != NULL) return DIST_OK;
  ops_sizes s = *sizes;
  s.rows = rows;
  const dist_status status = ops_session_create(&s, 1, at);
  if (!status) return DIST_OK;
  ops_session_destroy(*at);
  *at = NULL;
  return status;
}

// Adds the word, position and type embeddings. If an id is out of range, only this text fails; its rows are
// zeros.
static void embed(const model *m, text *t, float *out) {
  const int64_t hidden = m->sizes.hidden, words = m->embedding[WORDS].shape[0];
  const float *types = m->embedding[TYPES].data;
  memset(out, 0, (size_t)(t->tokens * hidden) * sizeof *out);
  t->status = DIST_OK;
  if (t->tokens > m->embedding[POSITIONS].shape[0]) t->status = DIST_OUT_OF_RANGE;
  for (int64_t i = 0; i < t->tokens; i++)
    if (t->ids[i] < 0 || t->ids[i] >= words) t->status = DIST_OUT_OF_RANGE;
  if (t->status) return;
  for (int64_t i = 0; i < t->tokens; i++) {
    const float *word = (const float *)m->embedding[WORDS].data + t->ids[i] * hidden;
    const float *position = (const float *)m->embedding[POSITIONS].data + i * hidden;
    for (int64_t c = 0; c < hidden; c++) out[i * hidden + c] = word[c] + position[c] + types[c];
  }
}

// The mean of the rows, normalized to length 1.
static void pool(const float *rows, int64_t tokens, int64_t hidden, float *out) {
  double square = 0.0;
  for (int64_t c = 0; c < hidden; c++) {
    float sum = 0.0f;
    for (int64_t i = 0; i < tokens; i++) sum += rows[i * hidden + c];
    out[c] = sum / (float)tokens;
    square += (double)out[c] * (double)out[c];
  }
  const float factor = square > 0.0 ? (float)(1.0 / sqrt(square)) : 0.0f;
  for (int64_t c = 0; c < hidden; c++) out[c] *= factor;
}

static const float *vector(const model *m, size_t layer, size_t index) {
  dist_tensor tensor;
  return item(m->file.whole, layer, index, 0, m->sizes.hidden, &tensor) ? NULL : tensor.data;
}

// Computes the rest of a layer after the attention for the block that begins at row `at`.
static dist_status run_block(const model *m, workspace *w, ops_session *s, size_t layer, int64_t at) {
  const ops_matrix *matrices = m->matrices + layer * OPS_NUM_PRODUCTS;
  float *state = w->state + at * m->sizes.hidden;
  dist_status status = ops_linear(s, OPS_ATTENTION_OUTPUT, &matrices[OPS_ATTENTION_OUTPUT],
                                  w->mixed + at * m->sizes.width, state);
  if (!status)
    status = ops_norm(s, state, vector(m, layer, WEIGHTS_ATTENTION_SCALE),
                      vector(m, layer, WEIGHTS_ATTENTION_SHIFT));
  if (!status) status = ops_linear(s, OPS_INTERMEDIATE, &matrices[OPS_INTERMEDIATE], state, w->inner);
  if (!status) status = ops_linear(s, OPS_OUTPUT, &matrices[OPS_OUTPUT], w->inner, state);
  if (!status)
    status =
        ops_norm(s, state, vector(m, layer, WEIGHTS_OUTPUT_SCALE), vector(m, layer, WEIGHTS_OUTPUT_SHIFT));
  return status;
}

// Returns the session for the block that begins at row `at`.
static ops_session *block_at(workspace *w, int64_t rows, int64_t at) {
  return w->products[(rows - at < BLOCK ? rows - at : BLOCK) / STEP];
}

static dist_status run_layer(const model *m, workspace *w, int64_t rows, size_t layer, text *const *texts,
                             size_t n) {
  const ops_matrix *qkv = &m->matrices[layer * OPS_NUM_PRODUCTS + OPS_QUERY_KEY_VALUE];
  const int64_t hidden = m->sizes.hidden, width = m->sizes.width;
  dist_status status = DIST_OK;
  for (int64_t at = 0; at < rows && !status; at += BLOCK)
    status = ops_linear(block_at(w, rows, at), OPS_QUERY_KEY_VALUE, qkv, w->state + at * hidden,
                        w->qkv + 3 * at * width);
  int64_t row = 0;
  for (size_t i = 0; i < n && !status; i++) {
    status = ops_attention(w->attention[texts[i]->tokens], w->qkv + 3 * row * width, w->mixed + row * width);
    row += texts[i]->tokens;
  }
  for (int64_t at = 0; at < rows && !status; at += BLOCK)
    status = run_block(m, w, block_at(w, rows, at), layer, at);
  return status;
}

static dist_status encode(const model *m, workspace *w, text *const *texts, size_t n) {
  const int64_t hidden = m->sizes.hidden;
  int64_t rows = 0;
  for (size_t i = 0; i < n; i++) rows += texts[i]->tokens;
  const int64_t padded = (rows + STEP - 1) / STEP * STEP;
  dist_status status = make_room(w, &m->sizes, padded);
  for (int64_t at = 0; at < padded && !status; at += BLOCK) {
    const int64_t block = padded - at < BLOCK ? padded - at : BLOCK;
    status = session_of(&w->products[block / STEP], &m->sizes, block);
  }
  for (size_t i = 0; i < n && !status; i++)
    status = session_of(&w->attention[texts[i]->tokens], &m->sizes, texts[i]->tokens);
  if (status) return status;
  float *at = w->state;
  for (size_t i = 0; i < n; i++, at += texts[i - 1]->tokens * hidden) embed(m, texts[i], at);
  memset(at, 0, (size_t)((padded - rows) * hidden) * sizeof *at);
  memset(w->mixed + rows * m->sizes.width, 0, (size_t)((padded - rows) * m->sizes.width) * sizeof *at);
  for (int64_t row = 0; row < padded && !status; row += BLOCK)
    status = ops_norm(block_at(w, padded, row), w->state + row * hidden, m->embedding[SCALE].data,
                      m->embedding[SHIFT].data);
  for (size_t layer = 0; layer < m->layers && !status; layer++)
    status = run_layer(m, w, padded, layer, texts, n);
  at = w->state;
  for (size_t i = 0; i < n && !status; i++, at += texts[i - 1]->tokens * hidden)
    pool(at, texts[i]->tokens, hidden, texts[i]->vector);
  return status;
}

dist_status model_encode(const model *m, void *workspace, text *const *texts, size_t n) {
  const int entered = ops_enter();
  const dist_status status = encode(m, workspace, texts, n);
  ops_leave(entered);
  return status;
}

static dist_status make_all(const model *m, workspace *w, int64_t most) {
  dist_status status = make_room(w, &m->sizes, (most + STEP - 1) / STEP * STEP);
  for (int64_t i = 1; i <= BLOCK / STEP && !status; i++)
    status = session_of(&w->products[i], &m->sizes, i * STEP);
  for (int64_t tokens = 1; tokens <= MODEL_MOST_TOKENS && !status; tokens++)
    status = session_of(&w->attention[tokens], &m->sizes, tokens);
  return status;
}

dist_status model_warm_up(const model *m, void *workspace, size_t most) {
  const int entered = ops_enter();
  const dist_status status = make_all(m, workspace, (int64_t)most * MODEL_MOST_TOKENS);
  ops_leave(entered);
  return status;
}
