// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

#include <math.h>
#include <string.h>

// Two rows by OPS_PANEL outputs: sums that stay in registers, each in the order of the inputs.
static void multiply_two(const float *restrict a, const float *restrict b, const float *restrict panel,
                         int64_t inputs, float *restrict out_a, float *restrict out_b) {
  float sum_a[OPS_PANEL] = {0}, sum_b[OPS_PANEL] = {0};
  for (int64_t i = 0; i < inputs; i++) {
    for (int o = 0; o < OPS_PANEL; o++) {
      sum_a[o] += a[i] * panel[i * OPS_PANEL + o];
      sum_b[o] += b[i] * panel[i * OPS_PANEL + o];
    }
  }
  memcpy(out_a, sum_a, sizeof sum_a);
  memcpy(out_b, sum_b, sizeof sum_b);
}

// The weights of outputs first .. first + n - 1, turned so that one input's follow one another; zeros fill
// up.
static void pack(ops_weight weight, int64_t first, int64_t n, float *panel) {
  for (int64_t i = 0; i < weight.inputs; i++)
    for (int64_t o = 0; o < OPS_PANEL; o++)
      panel[i * OPS_PANEL + o] = o < n ? weight.data[(first + o) * weight.row_stride + i] : 0.0f;
}

void ops_linear(const float *in, int64_t rows, ops_weight weight, const float *bias, float *panel,
                float *out) {
  for (int64_t first = 0; first < weight.outputs; first += OPS_PANEL) {
    const int64_t left = weight.outputs - first, n = left < OPS_PANEL ? left : OPS_PANEL;
    pack(weight, first, n, panel);
    for (int64_t r = 0; r < rows; r += 2) {
      float sums[2][OPS_PANEL];
      const int64_t second = r + 1 < rows ? r + 1 : r;  // an odd last row twice
      multiply_two(in + r * weight.inputs, in + second * weight.inputs, panel, weight.inputs, sums[0],
                   sums[1]);
      for (int64_t k = r; k <= second; k++)
        for (int64_t o = 0; o < n; o++)
          out[k * weight.outputs + first + o] = sums[k - r][o] + (bias != NULL ? bias[first + o] : 0.0f);
    }
  }
}

static void softmax(float *values, int64_t n) {
  float most = values[0], sum = 0.0f;
  for (int64_t i = 1; i < n; i++) most = fmaxf(most, values[i]);
  for (int64_t i = 0; i < n; i++) sum += values[i] = expf(values[i] - most);
  for (int64_t i = 0; i < n; i++) values[i] /= sum;
}

void ops_attention(const float *query, const float *key, const float *value, int64_t rows, int64_t heads,
                   int64_t head_size, float *scores, float *out) {
  const int64_t width = heads * head_size;
  const float scale = 1.0f / sqrtf((float)head_size);
  for (int64_t h = 0; h < heads; h++) {
    for (int64_t r = 0; r < rows; r++) {
      const float *q = query + r * width + h * head_size;
      float *mixed = out + r * width + h * head_size;
      for (int64_t s = 0; s < rows; s++) {
        const float *k = key + s * width + h * head_size;
        float sum = 0.0f;
        for (int64_t i = 0; i < head_size; i++) sum += q[i] * k[i];
        scores[s] = sum * scale;
      }
      softmax(scores, rows);
      memset(mixed, 0, (size_t)head_size * sizeof *mixed);
      for (int64_t s = 0; s < rows; s++)
        for (int64_t i = 0; i < head_size; i++) mixed[i] += scores[s] * value[s * width + h * head_size + i];
    }
  }
}

void ops_gelu(float *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) values[i] *= 0.5f * (1.0f + erff(values[i] * 0.70710678f));
}

void ops_add_and_norm(float *hidden, const float *change, const float *bias, const float *scale,
                      const float *shift, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++) {
    float *row = hidden + r * columns;
    float mean = 0.0f, variance = 0.0f;
    for (int64_t c = 0; c < columns; c++) mean += row[c] += change[r * columns + c] + bias[c];
    mean /= (float)columns;
    for (int64_t c = 0; c < columns; c++) variance += (row[c] - mean) * (row[c] - mean);
    const float factor = 1.0f / sqrtf(variance / (float)columns + 1e-12f);
    for (int64_t c = 0; c < columns; c++) row[c] = (row[c] - mean) * factor * scale[c] + shift[c];
  }
}
