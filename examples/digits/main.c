// SPDX-License-Identifier: Apache-2.0
//
// The digits trainer: parses the command line, trains once or several times, and prints or saves the results.
#include <dist/dist.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrast.h"
#include "interrupt.h"
#include "options.h"
#include "report.h"
#include "scaling.h"
#include "session.h"
#include "workers.h"

// Joins the arguments with spaces, without quoting. Returns NULL if memory is exhausted.
static char *join_arguments(int argc, char **argv) {
  char *joined = NULL;
  size_t length;
  FILE *memory = open_memstream(&joined, &length);
  if (!memory) return NULL;
  for (int i = 0; i < argc; i++) fprintf(memory, i > 0 ? " %s" : "%s", argv[i]);
  fclose(memory);
  return joined;
}

static int save_report(const session *s, int argc, char **argv, const scaling *runs, const char *digest,
                       const contrast_result *contrast) {
  char *command = join_arguments(argc, argv);
  const report r = {.command = command,
                    .chosen = &s->chosen,
                    .table = &s->table,
                    .train = &s->train,
                    .test = &s->test,
                    .trained = &s->t,
                    .runs = runs,
                    .epochs = s->epochs,
                    .num_epochs = s->num_epochs,
                    .interrupted = session_is_stopping(s),
                    .test_accuracy = s->test_accuracy,
                    .digest = digest,
                    .failure = s->failure[0] ? s->failure : NULL,
                    .failed_status = s->failed_status,
                    .failed_replica = s->failed_replica,
                    .failed_step = s->failed_step,
                    .num_workers = s->num_workers,
                    .clocks = s->clocks,
                    .machines = s->machines,
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

static int compare_with_std_barrier(session *s, contrast_result *out) {
  if (contrast_measure(&s->t, out)) return session_say("contrast");
  print_contrast(s, out);
  return 0;
}

// Prints the table of a list of runs, which may be incomplete.
static int finish_list(const session *s, const scaling *runs) {
  const int32_t wanted = s->chosen.num_runs + 1; /* plus the run on one core */
  if (runs->num_runs > 0) scaling_print(runs);
  if (runs->num_runs < wanted) printf("%d of %d runs finished\n", (int)runs->num_runs, (int)wanted);
  if (runs->num_runs < 2) return 0;
  if (scaling_equal(runs)) {
    printf("all %d runs gave the same parameters: %s\n", (int)runs->num_runs, runs->runs[0].digest);
    return 0;
  }
  if (s->chosen.numerics == DIST_NUMERICS_ORDERED) {
    puts("the runs' parameters differ, as ordered sums may; see --numerics reproducible");
    return 0;
  }
  fputs("train_digits: reproducible sums gave different parameters; this is a defect\n", stderr);
  return EXIT_FAILURE;
}

static int finish(session *s, int argc, char **argv, const scaling *runs) {
  if (s->worker > 0) return session_is_stopping(s) ? EXIT_INTERRUPTED : EXIT_SUCCESS;
  const int is_list = s->chosen.num_runs > 1;
  // The std::barrier implementation computes ordered sums only.
  const int measured = !session_is_stopping(s) && !is_list && s->num_workers == 1 &&
                       s->chosen.numerics == DIST_NUMERICS_ORDERED;
  char digest[MODEL_DIGEST_BYTES];
  contrast_result contrast;
  if (model_digest(&s->t.parameters, s->first_replica, s->replicas, digest)) return session_say("parameters");
  int status = 0;
  if (is_list) {
    status = finish_list(s, runs);
  } else {
    printf("test accuracy: %.3f\nparameters: %s\n", s->test_accuracy, digest);
  }
  fflush(stdout);
  if (!status && measured) status = compare_with_std_barrier(s, &contrast);
  if (!status && s->chosen.report)
    status = save_report(s, argc, argv, runs, digest, measured ? &contrast : NULL);
  return status ? status : session_is_stopping(s) ? EXIT_INTERRUPTED : EXIT_SUCCESS;
}

// Computes the seconds spent on each kind of work, averaged over the replicas.
static void take_apart(const trainer *t, double parts[TRAINER_KINDS]) {
  for (int kind = 0; kind < TRAINER_KINDS; kind++) {
    for (int32_t r = 0; r < t->num_replicas; r++) parts[kind] += (double)t->replicas[r].total_ns[kind];
    parts[kind] *= 1e-9 / t->num_replicas;
  }
}

// Trains once. The run is added to `runs` unless it was interrupted.
static int train_once(session *s, int32_t replicas, scaling *runs) {
  int status = 0;
  if (s->num_workers > 1 && !s->place.is_there) {
    status = workers_train(s, replicas);
  } else {
    status = session_prepare(s, replicas);
    if (!status) status = session_train(s);
  }
  if (status || s->num_epochs < s->chosen.epochs) return status;
  scaling_run *run = &runs->runs[runs->num_runs++];
  *run = (scaling_run){
      .replicas = s->t.num_replicas, .one_core = s->one_core, .test_accuracy = s->test_accuracy};
  take_apart(&s->t, run->parts);
  for (int32_t i = 0; i < s->num_epochs; i++) run->seconds += s->epochs[i].seconds;
  return model_digest(&s->t.parameters, s->first_replica, s->replicas, run->digest)
             ? session_say("parameters")
             : 0;
}

int main(int argc, char **argv) {
  static session s;
  static scaling runs;
  s.chosen = options_parse(argc, argv);
  int status = session_find_job(&s);
  // Worker processes install the handler once they have met. Until then, Ctrl-C terminates them.
  if (!status && !s.place.is_there) interrupt_catch(0);
  if (!status) status = session_load(&s);
  s.one_core = s.chosen.num_runs > 1; /* a list starts with the one-core run, its baseline */
  if (!status && s.one_core) {
    status = train_once(&s, 1, &runs);
    s.one_core = 0;
  }
  for (int32_t i = 0; i < s.chosen.num_runs && !status && (s.num_epochs == 0 || !session_is_stopping(&s));
       i++) {
    if (s.strategy) session_end_run(&s);
    status = train_once(&s, s.chosen.replicas[i], &runs);
  }
  if (!status) status = finish(&s, argc, argv, &runs);
  session_end(&s);
  return status;
}
