// SPDX-License-Identifier: Apache-2.0
//
// The digits trainer: a session from the command line to the last three lines.
#include <dist/dist.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrast.h"
#include "options.h"
#include "report.h"
#include "session.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
  (void)number;
  interrupted = 1;
}

// The first Ctrl-C stops after the step under way; a second one ends the program at once, as ever.
static void catch_interrupt(void) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}

// The command as it was typed, but for quotes; NULL: no memory.
static char *join_arguments(int argc, char **argv) {
  char *joined = NULL;
  size_t length;
  FILE *memory = open_memstream(&joined, &length);
  if (!memory) return NULL;
  for (int i = 0; i < argc; i++) fprintf(memory, i > 0 ? " %s" : "%s", argv[i]);
  fclose(memory);
  return joined;
}

static int save_report(const session *s, int argc, char **argv, const char *digest,
                       const contrast_result *contrast) {
  char *command = join_arguments(argc, argv);
  const report r = {.command = command,
                    .chosen = &s->chosen,
                    .table = &s->table,
                    .train = &s->train,
                    .test = &s->test,
                    .trained = &s->t,
                    .epochs = s->epochs,
                    .num_epochs = s->num_epochs,
                    .interrupted = interrupted,
                    .test_accuracy = s->test_accuracy,
                    .digest = digest,
                    .failure = s->failure[0] ? s->failure : NULL,
                    .failed_replica = s->failed_replica,
                    .failed_step = s->failed_step,
                    .contrast = contrast};
  const int status = report_write(s->chosen.report, &r);
  if (status) fprintf(stderr, "train_digits: %s: %s\n", s->chosen.report, strerror(errno));
  free(command);
  return status ? EXIT_FAILURE : 0;
}

static void print_contrast(const session *s, const contrast_result *c) {
  char number[PROGRESS_NUMBER_BYTES];
  const double times = c->std_barrier_ns / (c->dist_ns > 1.0 ? c->dist_ns : 1.0);
  printf(
      "all_reduce of %s gradients: libdist %.1f us, std::barrier and loops %.1f us (%.*f times as fast)%s\n",
      progress_thousands(model_num_parameters(&s->t.parameters), number), c->dist_ns * 1e-3,
      c->std_barrier_ns * 1e-3, times < 1.0 ? 2 : 1, times, c->equal_bits ? "" : "; their sums differ");
}

// The last lines and the report.
static int finish(session *s, int argc, char **argv) {
  char digest[MODEL_DIGEST_BYTES];
  contrast_result contrast;
  const int measured = !interrupted;
  if (model_digest(&s->t.parameters, s->t.num_replicas, digest)) return session_say("parameters");
  printf("test accuracy: %.3f\nparameters: %s\n", s->test_accuracy, digest);
  fflush(stdout);
  if (measured) {
    if (contrast_measure(&s->t, &contrast)) return session_say("contrast");
    print_contrast(s, &contrast);
  }
  if (s->chosen.report && save_report(s, argc, argv, digest, measured ? &contrast : NULL))
    return EXIT_FAILURE;
  return interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  static session s;
  s.interrupted = &interrupted;
  s.chosen = options_parse(argc, argv);
  catch_interrupt();
  int status = session_load(&s);
  if (!status) status = session_prepare(&s);
  if (!status) status = session_train(&s);
  if (!status) status = finish(&s, argc, argv);
  session_end(&s);
  return status;
}
