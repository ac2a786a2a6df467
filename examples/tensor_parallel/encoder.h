// SPDX-License-Identifier: Apache-2.0
//
// The encoder of a BERT model on the logical devices of each replica. Each device has some of the attention
// heads and a part of the rows between the two layers of the perceptron:
//
//     device d:  q, k, v = state · columns[d]            for its heads
//                change  = attention(q, k, v) · rows[d]  a partial sum; device 0 also adds the old state
//     together:  state   = norm(all_reduce(change))      once for the attention, once for the perceptron
#ifndef EXAMPLES_TENSOR_PARALLEL_ENCODER_H
#define EXAMPLES_TENSOR_PARALLEL_ENCODER_H

#include <dist/dist.h>

#include "weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct encoder encoder;

// Splits the weights over the logical devices and packs each part once, for all replicas and requests; the
// caller may then release `w`. The number of devices must be a divisor of `heads`. The strategy must outlive
// the encoder. Call encoder_destroy() even if this fails.
dist_status encoder_create(dist_strategy *strategy, const weights *w, int64_t heads, encoder **out);
void encoder_destroy(encoder *e);

// Runs the encoder on every replica. `input` is [tokens, hidden size] with any number of tokens; *out_output
// has the same shape on each replica. Calls must not overlap.
dist_status encoder_run(encoder *e, dist_value *input, dist_value **out_output);

// The size of the packed weights.
size_t encoder_bytes(const encoder *e);

// How replica 0 spent its time in collectives during the last run: waiting for the last device to arrive, and
// then computing the sum.
typedef struct {
  double waiting_seconds, own_seconds;
} encoder_times;
encoder_times encoder_last_times(const encoder *e);

#ifdef __cplusplus
}
#endif
#endif
