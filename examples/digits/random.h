// SPDX-License-Identifier: Apache-2.0
//
// A random number generator that is easy to reproduce in any language: SplitMix64 (Steele, Lea, Flood 2014).
//
//     state += 0x9e3779b97f4a7c15
//     z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9
//     z = (z ^ z >> 27) * 0x94d049bb133111eb
//     next = z ^ z >> 31                                   all modulo 2^64
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t state;
} random_stream;

/** Returns the next 64 bits. */
uint64_t random_bits(random_stream *stream);

/**
 * Returns a number in [-1, 1) made of the upper 24 bits: 2 * (next >> 40) / 2^24 - 1. Every operation is
 * exact.
 */
float random_signed_unit(random_stream *stream);

/**
 * Shuffles indices (Fisher-Yates, starting at the last): swaps item i with item (next >> 32) * (i + 1) >> 32.
 */
void random_shuffle(random_stream *stream, int64_t *indices, size_t n);
