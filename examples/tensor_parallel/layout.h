// SPDX-License-Identifier: Apache-2.0
//
// So many replicas of so many logical devices, as the command line says it.
#ifndef EXAMPLES_TENSOR_PARALLEL_LAYOUT_H
#define EXAMPLES_TENSOR_PARALLEL_LAYOUT_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LAYOUT_MOST_DEVICES = 64 };  // of all replicas together
typedef struct {
  int32_t replicas, devices;  // devices: of each replica
} layout;

// "2": one replica of two devices; "2x1": two replicas of one device each. 0 devices: neither.
layout layout_parse(const char *text);
// A mesh strategy. *out_strategy is the caller's.
dist_status layout_strategy(layout of, dist_strategy **out_strategy);

#ifdef __cplusplus
}
#endif
#endif
