// SPDX-License-Identifier: Apache-2.0
// Implements ops.h with plain loops, for machines without oneDNN.
#include "ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL = 16 };  // outputs per panel

struct ops_session {
  ops_sizes sizes;
  int adds;
  float *scores;  // of one row
};

const char *ops_name(void) { return "plain loops"; }
int ops_enter(void) { return 0; }
void ops_leave(int entered) { (void)entered; }

// Packs panels of PANEL outputs: each input's PANEL weights are contiguous. The last panel is padded with
// zeros.
dist_status ops_pack(const ops_sizes *sizes, ops_product product, const ops_weight *weights, size_t n,
                     ops_matrix *out) {
  const int64_t inputs = ops_inputs(sizes, product), outputs = ops_outputs(sizes, product);
  const int64_t panels = (outputs + PANEL - 1) / PANEL;
  out->bytes = (size_t)(panels * PANEL * inputs) * sizeof(float);
  out->packed = ops_memory(out->bytes);
  out->bias = ops_memory((size_t)outputs * sizeof(float));
  if (out->packed == NULL || out->bias == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory");
  memset(out->packed, 0, out->bytes);
  int64_t at = 0;
  for (size_t w = 0; w < n; w++) {
    for (int64_t o = 0; o < weights[w].outputs; o++, at++) {
      float *panel = out->packed + at / PANEL * PANEL * inputs + at % PANEL;
      for (int64_t i = 0; i < inputs; i++) panel[i * PANEL] = weights[w].data[o * weights[w].row_stride + i];
      out->bias[at] = weights[w].bias != NULL ? weights[w].bias[o] : 0.0f;
    }
  }
  return DIST_OK;
}

dist_status ops_session_create(const ops_sizes *sizes, int adds, ops_session **out) {
  ops_session *session = *out = calloc(1, sizeof *session);
  if (session == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory");
  session->sizes = *sizes;
  session->adds = adds;
  session->scores = ops_memory((size_t)sizes->rows * sizeof(float));
  return session->scores != NULL ? DIST_OK : dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory");
}

void ops_session_destroy(ops_session *session) {
  if (session != NULL) free(session->scores);
  free(session);
}

// Computes two rows by PANEL outputs. The sums stay in registers, and each one adds the inputs in order.
static void multiply_two(const float *restrict a, const float *restrict b, const float *restrict panel,
                         int64_t inputs, float *restrict out_a, float *restrict out_b) {
  float sum_a[PANEL] = {0}, sum_b[PANEL] = {0};
  for (int64_t i = 0; i < inputs; i++) {
    for (int o = 0; o < PANEL; o++) {
      sum_a[o] += a[i] * panel[i * PANEL + o];
      sum_b[o] += b[i] * panel[i * PANEL + o];
    }
  }
  memcpy(out_a, sum_a, sizeof sum_a);
  memcpy(out_b, sum_b, sizeof sum_b);
}

static float gelu(float value) { return value * 0.5f * (1.0f + erff(value * 0.70710678f)); }

dist_status ops_linear(ops_session *session, ops_product product, const ops_matrix *matrix, const float *in,
                       float *out) {
  const int64_t rows = session->sizes.rows;
  const int64_t inputs = ops_inputs(&session->sizes, product);
  const int64_t outputs = ops_outputs(&session->sizes, product);
  const int adds = session->adds && (product == OPS_ATTENTION_OUTPUT || product == OPS_OUTPUT);
  for (int64_t first = 0; first < outputs; first += PANEL) {
    const int64_t left = outputs - first, n = left < PANEL ? left : PANEL;
    for (int64_t r = 0; r < rows; r += 2) {
      float sums[2][PANEL];
      const int64_t second = r + 1 < rows ? r + 1 : r;  // computes an odd last row twice
      multiply_two(in + r * inputs, in + second * inputs, matrix->packed + first * inputs, inputs, sums[0],
                   sums[1]);
      for (int64_t k = r; k <= second; k++) {
        float *to = out + k * outputs + first;
        for (int64_t o = 0; o < n; o++) {
          const float sum = sums[k - r][o] + matrix->bias[first + o];
          to[o] = product == OPS_INTERMEDIATE ? gelu(sum) : adds ? to[o] + sum : sum;
        }
      }
    }
  }
  return DIST_OK;
}

static void softmax(float *values, int64_t n) {
  float most = values[0], sum = 0.0f;
  for (int64_t i = 1; i < n; i++) most = fmaxf(most, values[i]);
  for (int64_t i = 0; i < n; i++) sum += values[i] = expf(values[i] - most);
  for (int64_t i = 0; i < n; i++) values[i] /= sum;
}

dist_status ops_attention(ops_session *session, const float *qkv, float *out) {
  const int64_t rows = session->sizes.rows, width = session->sizes.width, heads = session->sizes.heads;
  const int64_t head_size = width / heads;
  const float scale = 1.0f / sqrtf((float)head_size);
  float *scores = session->scores;
  for (int64_t h = 0; h < heads; h++) {
    const float *query = qkv + h * head_size, *key = query + width, *value = key + width;
    for (int64_t r = 0; r < rows; r++) {
      float *mixed = out + r * width + h * head_size;
      for (int64_t s = 0; s < rows; s++) {
        float sum = 0.0f;
        for (int64_t i = 0; i < head_size; i++) sum += query[r * 3 * width + i] * key[s * 3 * width + i];
        scores[s] = sum * scale;
      }
      softmax(scores, rows);
      memset(mixed, 0, (size_t)head_size * sizeof *mixed);
      for (int64_t s = 0; s < rows; s++)
        for (int64_t i = 0; i < head_size; i++) mixed[i] += scores[s] * value[s * 3 * width + i];
    }
  }
  return DIST_OK;
}

dist_status ops_norm(ops_session *session, float *state, const float *scale, const float *shift) {
  const int64_t columns = session->sizes.hidden;
  for (int64_t r = 0; r < session->sizes.rows; r++) {
    float *row = state + r * columns, mean = 0.0f, variance = 0.0f;
    for (int64_t c = 0; c < columns; c++) mean += row[c];
    mean /= (float)columns;
    for (int64_t c = 0; c < columns; c++) variance += (row[c] - mean) * (row[c] - mean);
    const float factor = 1.0f / sqrtf(variance / (float)columns + 1e-12f);
    for (int64_t c = 0; c < columns; c++) row[c] = (row[c] - mean) * factor * scale[c] + shift[c];
  }
  return DIST_OK;
}
