// SPDX-License-Identifier: Apache-2.0
//
// The encoder of a BERT model on a replica's logical devices. Each has some of the heads, and some of the
// rows between the two layers of the perceptron:
//
//     device d:  q, k, v = hidden · columns[d]           its heads' part
//                change  = attention(q, k, v) · rows[d]  a summand of the whole
//     together:  all_reduce(change)                      once for the attention, once for the perceptron
#ifndef EXAMPLES_TENSOR_PARALLEL_ENCODER_H
#define EXAMPLES_TENSOR_PARALLEL_ENCODER_H

#include <dist/dist.h>

#include "weights.h"

// input, *out_output: [tokens, hidden size]. The strategy has one replica, and a divisor of `heads` of
// devices.
dist_status encoder_run(dist_strategy *strategy, const weights *w, int64_t heads, dist_value *input,
                        dist_value **out_output);

#endif
