// SPDX-License-Identifier: Apache-2.0
#ifndef EXAMPLES_INFERENCE_HOST_METRICS_H
#define EXAMPLES_INFERENCE_HOST_METRICS_H

#include <dist/dist.h>
#include <stddef.h>

// What dist_write_metrics() writes, in one piece, to be freed; NULL: no memory. *out_size without the NUL.
char *metrics_text(dist_strategy *strategy, size_t *out_size);

#endif
