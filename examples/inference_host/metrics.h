// SPDX-License-Identifier: Apache-2.0
#ifndef EXAMPLES_INFERENCE_HOST_METRICS_H
#define EXAMPLES_INFERENCE_HOST_METRICS_H

#include <dist/dist.h>
#include <stddef.h>

// Returns the text of dist_strategy_write_metrics(). The caller frees it; NULL if memory is exhausted. *out_size
// excludes the NUL.
char *metrics_text(dist_strategy *strategy, size_t *out_size);

#endif
