// SPDX-License-Identifier: Apache-2.0
//
// progress.h describes the output.
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, REDRAW_NS = 50000000 };

progress progress_create(int32_t epochs, int32_t replicas, int32_t one_core, int64_t rows) {
  return (progress){epochs, replicas, one_core, rows, isatty(STDOUT_FILENO), 0};
}

static void draw(const progress *p, const progress_state *state) {
  const double done =
      ((double)(state->epoch - 1) + (double)state->rows / (double)p->rows) / (double)p->epochs;
  const int filled = (int)(done * BAR_WIDTH);
  char bar[BAR_WIDTH + 1];
  memset(bar, '.', BAR_WIDTH);
  memset(bar, '#', (size_t)(filled < BAR_WIDTH ? filled : BAR_WIDTH));
  bar[BAR_WIDTH] = '\0';
  char speed[PROGRESS_NUMBER_BYTES];
  printf("\r[%s] epoch %d/%d  loss %.4f  %s examples/s  %d replica%s%s\x1b[K", bar, (int)state->epoch,
         (int)p->epochs, state->loss, progress_thousands((int64_t)state->examples_per_second, speed),
         (int)p->replicas, p->replicas == 1 ? "" : "s", p->one_core ? " on one core" : "");
  fflush(stdout);
}

void progress_step(progress *p, const progress_state *state, int64_t now_ns) {
  if (!p->is_terminal || now_ns - p->drawn_ns < REDRAW_NS) return;
  p->drawn_ns = now_ns;
  draw(p, state);
}

void progress_epoch(progress *p, const progress_state *state, double test_accuracy) {
  if (p->is_terminal) {
    draw(p, state);
    if (state->epoch == p->epochs) putchar('\n');
    return;
  }
  char speed[PROGRESS_NUMBER_BYTES];
  printf("epoch %d/%d: loss %.4f, test accuracy %.4f, %s examples/s, %d replica%s%s\n", (int)state->epoch,
         (int)p->epochs, state->loss, test_accuracy,
         progress_thousands((int64_t)state->examples_per_second, speed), (int)p->replicas,
         p->replicas == 1 ? "" : "s", p->one_core ? " on one core" : "");
  fflush(stdout);
}

void progress_clear(const progress *p) {
  if (p->is_terminal) fputs("\r\x1b[K", stdout);
}

const char *progress_thousands(int64_t number, char out[PROGRESS_NUMBER_BYTES]) {
  char digits[PROGRESS_NUMBER_BYTES];
  const int length = snprintf(digits, sizeof digits, "%" PRId64, number);
  char *to = out;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return out;
}
