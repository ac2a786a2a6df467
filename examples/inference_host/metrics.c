// SPDX-License-Identifier: Apache-2.0
#include "metrics.h"

#include <stdio.h>
#include <stdlib.h>

static void write_text(const char *text, size_t size, void *file) { fwrite(text, 1, size, file); }

char *metrics_text(dist_strategy *strategy, size_t *out_size) {
  char *text = NULL;
  FILE *file = open_memstream(&text, out_size);
  if (file == NULL) return NULL;
  const dist_status status = dist_strategy_write_metrics(strategy, NULL, write_text, file);
  if (fclose(file) == 0 && !status) return text;
  free(text);
  return NULL;
}
