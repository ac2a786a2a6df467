/* SPDX-License-Identifier: Apache-2.0
 *
 * The input of a fuzz target, read byte by byte. After its end, all bytes are 0, so short inputs are simple
 * ones. A target reports errors with cmocka's fail_msg() on the thread that called it. This fails the test
 * when inputs are replayed and aborts under libFuzzer (fuzzer.c).
 */
#ifndef TESTS_FUZZ_BYTES_H
#define TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The target: one of the fuzz_NAME files. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#ifdef __cplusplus
}
#endif

typedef struct bytes {
  const uint8_t* at;
  size_t left;
} bytes;

static inline uint8_t take(bytes* in) {
  if (in->left == 0) return 0;
  in->left--;
  return *in->at++;
}
static inline int32_t take_below(bytes* in, int32_t n) { return take(in) % n; }
static inline uint64_t take_number(bytes* in, size_t width) {
  uint64_t number = 0;
  for (size_t i = 0; i < width; i++) number |= (uint64_t)take(in) << 8 * i;
  return number;
}
static inline void take_into(bytes* in, void* to, size_t size) {
  for (size_t i = 0; i < size; i++) ((uint8_t*)to)[i] = take(in);
}

/* Numbers near limits more often than others. */
static inline int64_t take_hostile(bytes* in) {
  static const int64_t special[] = {0,         1,         2,         3,         -1,        -2,
                                    16,        17,        INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                    1LL << 31, 1LL << 32, 1LL << 61, 1LL << 62};
  const uint8_t kind = take(in);
  if (kind < 128) return kind % 8;
  if (kind < 224) return special[kind % 16];
  return (int64_t)take_number(in, 8);
}

#endif
