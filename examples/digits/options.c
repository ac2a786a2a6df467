// SPDX-License-Identifier: Apache-2.0
//
// argp does the parsing, --help and --usage; here are the options' words and ranges.
#include "options.h"

#include <argp.h>
#include <dist/dist.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef DIGITS_CSV
#define DIGITS_CSV "examples/data/digits.csv"
#endif

enum { MAX_EPOCHS = 100000, UNSET = -1 };

static const char kText[] =
    "Trains a small neural network on the handwritten digits, data-parallel on libdist.\v"
    "The same replicas, epochs and seed give the same parameters, bit for bit. With --numerics reproducible, "
    "the default where --replicas is a list, any number of replicas gives the same.\n\n"
    "Exit status: 0 done; 1 training failed; 2 the command line or the data are wrong; 130 stopped by Ctrl-C "
    "(after the step under way; the report is still written).";

static const struct argp_option kOptions[] = {
    {"replicas", 'r', "N[,N...]", 0,
     "Replicas, each a thread (2); a list trains once for each number and compares the runs", 0},
    {"numerics", 'n', "WHICH", 0,
     "ordered: gradients are added in the order of replicas. reproducible: those of micro-batches of 8 rows "
     "are added exactly, whoever brings them",
     0},
    {"epochs", 'e', "N", 0, "Passes over the training part (40)", 0},
    {"seed", 's', "N", 0, "Of the split, the first weights and the order of the batches (1)", 0},
    {"data", 'd', "FILE", 0, "A CSV file of your own: numbers and one column of labels", 0},
    {"label", 'l', "COLUMN", 0, "Its column of labels, by name or number from 1 (the last one)", 0},
    {"fault", 'f', "R@STEP", 0, "Replica R (from 0) fails in that step (from 1); training goes on from there",
     0},
    {"report", 'o', "FILE", 0, "Write what happened as JSON, for report.py", 0},
    {0}};

// The text in front of `stop` as a number.
static uint64_t parse_part(struct argp_state *state, const char *name, const char *text, const char *stop,
                           uint64_t least, uint64_t most) {
  char *end;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (!strchr("0123456789", text[0]) || end == text || end != stop || errno || value < least || value > most)
    argp_error(state, "%s is \"%.*s\"; a whole number from %llu to %llu was expected", name,
               (int)(stop - text), text, (unsigned long long)least, (unsigned long long)most);
  return value;
}

static uint64_t parse_count(struct argp_state *state, const char *name, const char *text, uint64_t least,
                            uint64_t most) {
  return parse_part(state, name, text, text + strlen(text), least, most);
}

static void parse_replicas(struct argp_state *state, const char *text, options *out) {
  const char *name = strchr(text, ',') ? "a number in --replicas" : "--replicas";
  out->num_runs = 0;
  for (const char *item = text;; item++) {
    if (out->num_runs == OPTIONS_MAX_RUNS)
      argp_error(state, "--replicas has more than %d numbers", OPTIONS_MAX_RUNS);
    const char *end = item + strcspn(item, ",");
    out->replicas[out->num_runs++] = (int32_t)parse_part(state, name, item, end, 1, DIST_MAX_REPLICAS);
    if (!*(item = end)) return;
  }
}

static int32_t parse_numerics(struct argp_state *state, const char *text) {
  if (strcmp(text, "ordered") == 0) return DIST_NUMERICS_ORDERED;
  if (strcmp(text, "reproducible") != 0)
    argp_error(state, "--numerics is \"%s\"; ordered or reproducible was expected", text);
  return DIST_NUMERICS_REPRODUCIBLE;
}

static void parse_fault(struct argp_state *state, const char *text, options *out) {
  const char *at = strchr(text, '@');
  if (!at || at == text) {
    argp_error(state, "--fault is \"%s\"; R@STEP was expected, as in 1@40", text);
    return;
  }
  out->fault_replica =
      (int32_t)parse_part(state, "the replica of --fault", text, at, 0, DIST_MAX_REPLICAS - 1);
  out->fault_step = (int64_t)parse_count(state, "the step of --fault", at + 1, 1, INT32_MAX);
}

static error_t parse_option(int key, char *text, struct argp_state *state) {
  options *out = state->input;
  switch (key) {
    case 'r': parse_replicas(state, text, out); break;
    case 'n': out->numerics = parse_numerics(state, text); break;
    case 'e': out->epochs = (int32_t)parse_count(state, "--epochs", text, 1, MAX_EPOCHS); break;
    case 's': out->seed = parse_count(state, "--seed", text, 0, UINT64_MAX); break;
    case 'd': out->data = text; break;
    case 'l': out->label = text; break;
    case 'f': parse_fault(state, text, out); break;
    case 'o': out->report = text; break;
    case ARGP_KEY_ARG: argp_error(state, "\"%s\" is no option", text); break;
    case ARGP_KEY_END:
      for (int32_t i = 0; i < out->num_runs; i++)
        if (out->fault_step > 0 && out->fault_replica >= out->replicas[i])
          argp_error(state, "--fault names replica %d, but there are %d: 0 to %d", (int)out->fault_replica,
                     (int)out->replicas[i], (int)out->replicas[i] - 1);
      if (out->numerics == UNSET)
        out->numerics = out->num_runs > 1 ? DIST_NUMERICS_REPRODUCIBLE : DIST_NUMERICS_ORDERED;
      if (out->label && !out->data) argp_error(state, "--label needs --data");
      break;
    default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

options options_parse(int argc, char **argv) {
  options parsed = {.replicas = {2}, .num_runs = 1, .numerics = UNSET, .epochs = 40, .seed = 1};
  const struct argp parser = {kOptions, parse_option, NULL, kText, NULL, NULL, NULL};
  argp_err_exit_status = EXIT_USAGE;
  argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &parsed);
  if (!parsed.data) parsed.data = DIGITS_CSV;
  return parsed;
}
