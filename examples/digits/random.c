// SPDX-License-Identifier: Apache-2.0
//
// random.h specifies the numbers. Keep both files consistent.
#include "random.h"

uint64_t random_bits(random_stream *stream) {
  uint64_t z = stream->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

float random_signed_unit(random_stream *stream) {
  return (float)(random_bits(stream) >> 40) * 0x1p-23f - 1.0f;
}

void random_shuffle(random_stream *stream, int64_t *indices, size_t n) {
  for (size_t i = n; i-- > 1;) {
    const size_t j = (size_t)((random_bits(stream) >> 32) * (i + 1) >> 32);
    const int64_t kept = indices[i];
    indices[i] = indices[j];
    indices[j] = kept;
  }
}
