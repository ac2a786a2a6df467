// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON with printf() and one function that escapes strings. Nothing here parses JSON.
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_speeds(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

report_speed report_speed_of(const report_epoch *epochs, int32_t num_epochs, int64_t rows) {
  double seconds = 0;
  report_speed speed = {0, 0, 0};
  double *each = malloc((size_t)num_epochs * sizeof *each);
  for (int32_t i = 0; i < num_epochs; i++) {
    seconds += epochs[i].seconds;
    const double of_epoch = (double)rows / epochs[i].seconds;
    if (each) each[i] = of_epoch;
    if (of_epoch > speed.best_epoch) speed.best_epoch = of_epoch;
  }
  speed.training = (double)rows * num_epochs / seconds;
  if (each) {
    qsort(each, (size_t)num_epochs, sizeof *each, compare_speeds);
    speed.median_epoch = (each[(num_epochs - 1) / 2] + each[num_epochs / 2]) / 2;
  }
  free(each);
  return speed;
}

static const char *const kKinds[TRAINER_KINDS] = {"compute", "all_reduce", "update"};

static void write_text(FILE *f, const char *text) {
  if (!text) {
    fputs("null", f);
    return;
  }
  fputc('"', f);
  for (const char *c = text; *c; c++) {
    if (*c == '"' || *c == '\\') fputc('\\', f);
    if ((unsigned char)*c < ' ') {
      fprintf(f, "\\u%04x", (unsigned)*c);
    } else {
      fputc(*c, f);
    }
  }
  fputc('"', f);
}

static void write_text_field(FILE *f, const char *name, const char *text) {
  fprintf(f, "  \"%s\": ", name);
  write_text(f, text);
  fputs(",\n", f);
}

static void write_epochs(FILE *f, const report *r) {
  fputs("  \"epochs\": [", f);
  for (int32_t i = 0; i < r->num_epochs; i++) {
    const report_epoch *e = &r->epochs[i];
    fprintf(f,
            "%s\n    {\"train_loss\": %.6f, \"train_accuracy\": %.6f, \"test_loss\": %.6f, "
            "\"test_accuracy\": %.6f, \"seconds\": %.6f}",
            i ? "," : "", e->train_loss, e->train_accuracy, e->test_loss, e->test_accuracy, e->seconds);
  }
  fputs("],\n", f);
  if (r->num_epochs == 0) {
    fputs("  \"examples_per_second\": null,\n", f);
    return;
  }
  const report_speed speed = report_speed_of(r->epochs, r->num_epochs, r->train->rows);
  fprintf(f,
          "  \"examples_per_second\": {\"training\": %.0f, \"median_epoch\": %.0f, \"best_epoch\": %.0f},\n",
          floor(speed.training), floor(speed.median_epoch), floor(speed.best_epoch));
}

static void write_replica(FILE *f, const trainer_replica *replica) {
  fputs("{\"total_ns\": {", f);
  for (int k = 0; k < TRAINER_KINDS; k++)
    fprintf(f, "%s\"%s\": %" PRId64, k ? ", " : "", kKinds[k], replica->total_ns[k]);
  fputs("}, \"cpu_ns\": {", f);
  for (int k = 0; k < TRAINER_KINDS; k++)
    fprintf(f, "%s\"%s\": %" PRId64, k ? ", " : "", kKinds[k], replica->cpu_ns[k]);
  fputs("}, \"events\": [", f);
  const int64_t count = replica->num_events < TRAINER_EVENTS ? replica->num_events : TRAINER_EVENTS;
  for (int64_t i = replica->num_events - count; i < replica->num_events; i++) {
    const trainer_event *e = &replica->events[i % TRAINER_EVENTS];
    fprintf(f, "%s\n      [%" PRId64 ", \"%s\", %" PRId64 ", %" PRId64 ", %" PRId64 "]",
            i > replica->num_events - count ? "," : "", e->step, kKinds[e->kind], e->start_ns, e->end_ns,
            e->cpu_ns);
  }
  fputs("]}", f);
}

// The held-out rows that the model misclassified. Their features are included if there are few enough of them
// to be an image.
static void write_wrong(FILE *f, const report *r) {
  const csv_table *table = r->table;
  fputs("  \"wrong\": [", f);
  const char *separator = "";
  for (int64_t i = 0; i < r->test->rows; i++) {
    const int64_t row = r->test->sources[i];
    const int32_t predicted = r->trained->predictions[row];
    if (predicted == table->labels[row]) continue;
    fprintf(f, "%s\n    {\"line\": %" PRId64 ", \"label\": ", separator, table->lines[row]);
    write_text(f, table->class_names[table->labels[row]]);
    fputs(", \"predicted\": ", f);
    write_text(f, table->class_names[predicted]);
    fputs(", \"features\": [", f);
    for (int64_t j = 0; j < table->features && table->features <= 64; j++)
      fprintf(f, "%s%.9g", j ? ", " : "", (double)table->values[row * table->features + j]);
    fputs("]}", f);
    separator = ",";
  }
  fputs("],\n", f);
}

static void write_outcome(FILE *f, const report *r) {
  if (r->failure) {
    fprintf(f, "  \"failure\": {\"step\": %" PRId64 ", \"replica\": %d, \"status\": \"%s\", \"text\": ",
            r->failed_step, (int)r->failed_replica, dist_status_name(r->failed_status));
    write_text(f, r->failure);
    fputs("},\n", f);
  } else {
    fputs("  \"failure\": null,\n", f);
  }
  if (r->contrast)
    fprintf(f, "  \"contrast\": {\"libdist_ns\": %.0f, \"std_barrier_ns\": %.0f},\n", r->contrast->dist_ns,
            r->contrast->std_barrier_ns);
  else
    fputs("  \"contrast\": null,\n", f);
  fprintf(f, "  \"test_accuracy\": %.6f\n", r->test_accuracy);
}

static void write_runs(FILE *f, const scaling *runs) {
  fputs("  \"runs\": [", f);
  for (int32_t i = 0; i < runs->num_runs; i++) {
    const scaling_run *run = &runs->runs[i];
    fprintf(f,
            "%s\n    {\"num_replicas\": %d, \"one_core\": %s, \"seconds\": %.6f, \"compute\": %.6f, "
            "\"all_reduce\": %.6f, "
            "\"update\": %.6f, \"test_accuracy\": %.6f, \"parameters\": \"%s\"}",
            i ? "," : "", (int)run->replicas, run->one_core ? "true" : "false", run->seconds,
            run->parts[TRAINER_COMPUTE], run->parts[TRAINER_ALL_REDUCE], run->parts[TRAINER_UPDATE],
            run->test_accuracy, run->digest);
  }
  fputs("],\n", f);
}

// How the clocks of the workers were synchronized.
static void write_clocks(FILE *f, const report *r) {
  if (!r->clocks) {
    fputs("  \"clocks\": null,\n", f);
    return;
  }
  fputs("  \"clocks\": [", f);
  for (int32_t w = 0; w < r->num_workers; w++) {
    const gather_clock *clock = &r->clocks[w];
    fprintf(f, "%s\n    {\"same_machine\": %s, \"offset_ns\": %" PRId64 ", \"uncertainty_ns\": %" PRId64 "}",
            w ? "," : "", clock->is_same ? "true" : "false", clock->offset_ns, clock->uncertainty_ns);
  }
  fputs("],\n", f);
}

// One object per process. "machine" is the first worker on the same machine, or null if that is unknown.
static void write_machines(FILE *f, const report *r) {
  static const char *const kNames[MACHINE_NUMBERS] = {"machine", "cpus",     "all_cpus", "wall_ns",
                                                      "own_ns",  "delay_ns", "busy_ns",  "stolen_ns"};
  fputs("  \"machines\": [", f);
  for (int32_t w = 0; w < (r->clocks ? r->num_workers : 1); w++) {
    const int64_t *numbers = r->machines[w].numbers;
    int32_t first = 0;
    while (r->machines[first].numbers[MACHINE_ID] != numbers[MACHINE_ID]) first++;
    fprintf(f, "%s\n    {\"%s\": ", w ? "," : "", kNames[MACHINE_ID]);
    fprintf(f, numbers[MACHINE_ID] ? "%d" : "null", (int)first);
    for (int i = MACHINE_CPUS; i < MACHINE_NUMBERS; i++)
      fprintf(f, ", \"%s\": %" PRId64, kNames[i], numbers[i]);
    fputs("}", f);
  }
  fputs("],\n", f);
}

static void write_report(FILE *f, const report *r) {
  const csv_table *table = r->table;
  fputs("{\n", f);
  write_text_field(f, "command", r->command);
  write_text_field(f, "data", r->chosen->data);
  fprintf(f,
          "  \"rows\": %" PRId64 ", \"features\": %" PRId64 ", \"classes\": %" PRId64
          ", \"train_rows\": %" PRId64 ", \"test_rows\": %" PRId64 ",\n",
          table->rows, table->features, table->classes, r->train->rows, r->test->rows);
  fprintf(f,
          "  \"seed\": %" PRIu64 ", \"num_replicas\": %d, \"num_workers\": %d, \"num_parameters\": %" PRId64
          ",\n",
          r->chosen->seed, (int)r->trained->num_replicas, (int)r->num_workers,
          model_num_parameters(&r->trained->parameters));
  fprintf(f, "  \"steps\": %" PRId64 ", \"interrupted\": %s,\n", r->trained->step,
          r->interrupted ? "true" : "false");
  write_text_field(f, "numerics",
                   r->chosen->numerics == DIST_NUMERICS_REPRODUCIBLE ? "reproducible" : "ordered");
  write_text_field(f, "parameters", r->digest);
  write_runs(f, r->runs);
  write_epochs(f, r);
  fputs("  \"replicas\": [", f);
  for (int32_t i = 0; i < r->trained->num_replicas; i++) {
    fputs(i ? ",\n    " : "\n    ", f);
    write_replica(f, &r->trained->replicas[i]);
  }
  fputs("],\n", f);
  write_clocks(f, r);
  write_machines(f, r);
  write_wrong(f, r);
  write_outcome(f, r);
  fputs("}\n", f);
}

int report_write(const char *path, const report *r) {
  FILE *f = fopen(path, "w");
  if (!f) return -1;
  write_report(f, r);
  const int failed = ferror(f);
  const int not_closed = fclose(f);
  if (failed && !errno) errno = EIO;
  return failed || not_closed ? -1 : 0;
}
