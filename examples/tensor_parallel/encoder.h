// SPDX-License-Identifier: Apache-2.0
//
// The encoder of a BERT model on the logical devices of each replica. Each device has some of the heads, and
// some of the rows between the two layers of the perceptron:
//
//     device d:  q, k, v = state · columns[d]            its heads' part
//                change  = attention(q, k, v) · rows[d]  a summand of the whole; device 0's has the old state, too
//     together:  state   = norm(all_reduce(change))      once for the attention, once for the perceptron
#ifndef EXAMPLES_TENSOR_PARALLEL_ENCODER_H
#define EXAMPLES_TENSOR_PARALLEL_ENCODER_H

#include <dist/dist.h>

#include "weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct encoder encoder;

// Divides the weights over the logical devices and packs each device's part, once for all replicas and all
// requests: `w` may be released then. The number of devices is a divisor of `heads`. The strategy must
// outlive it. encoder_destroy() in any case.
dist_status encoder_create(dist_strategy *strategy, const weights *w, int64_t heads, encoder **out);
void encoder_destroy(encoder *e);

// On every replica. input: [tokens, hidden size], any number of tokens; *out_output the same, of each
// replica. One call at a time.
dist_status encoder_run(encoder *e, dist_value *input, dist_value **out_output);

// What the packed weights take.
size_t encoder_bytes(const encoder *e);

// Where replica 0's time went in its collectives, of the last run: waiting until the later device came, and
// then until all had the sum.
typedef struct {
  double waiting_seconds, own_seconds;
} encoder_times;
encoder_times encoder_last_times(const encoder *e);

#ifdef __cplusplus
}
#endif
#endif
