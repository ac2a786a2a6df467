// SPDX-License-Identifier: Apache-2.0
//
// The numbers of replicas and of logical devices, from the command line.
#ifndef EXAMPLES_TENSOR_PARALLEL_LAYOUT_H
#define EXAMPLES_TENSOR_PARALLEL_LAYOUT_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LAYOUT_MOST_DEVICES = 64 };  // over all replicas
typedef struct {
  int32_t replicas, devices;  // devices: per replica
} layout;

// Parses "2" (one replica with two devices) or "2x1" (two replicas with one device each). Returns 0 devices
// on error.
layout layout_parse(const char *text);
// Creates a mesh strategy. The caller owns *out_strategy.
dist_status layout_strategy(layout of, dist_strategy **out_strategy);

#ifdef __cplusplus
}
#endif
#endif
