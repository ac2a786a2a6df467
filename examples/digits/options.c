// SPDX-License-Identifier: Apache-2.0
//
// Parses the options with getopt_long(). This file defines their names and ranges.
#include "options.h"

#include <dist/dist.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DIGITS_CSV
#define DIGITS_CSV "examples/data/digits.csv"
#endif

enum { MAX_EPOCHS = 100000 };

static const char kHelp[] =
    "Usage: train_digits [OPTION...]\n"
    "Trains a small neural network on handwritten digits, data-parallel with libdist.\n"
    "\n"
    "  -r, --replicas=N[,N...]  Number of replicas, one thread each (default 2). A list\n"
    "                           trains once for each number and compares the runs\n"
    "  -w, --workers=W          Number of workers in this process, each with its own\n"
    "                           strategy and N replicas (default 1). Not with TF_CONFIG\n"
    "  -n, --numerics=WHICH     ordered: add gradients in replica order. reproducible:\n"
    "                           add the gradients of micro-batches of 8 rows exactly, so\n"
    "                           that the result does not depend on their distribution\n"
    "  -e, --epochs=N           Passes over the training data (default 40)\n"
    "  -s, --seed=N             Seed of the split, the initial weights and the order of\n"
    "                           the batches (default 1)\n"
    "  -d, --data=FILE          Your own CSV file: numbers, and one column of labels\n"
    "  -l, --label=COLUMN       Column of the labels, by name or number from 1 (default:\n"
    "                           the last column)\n"
    "  -f, --fault=R@STEP       Make replica R (from 0) fail in this step (from 1);\n"
    "                           training continues from there\n"
    "  -o, --report=FILE        Write a report as JSON, for report.py\n"
    "  -h, --help               Print this help\n"
    "\n"
    "The same replicas, epochs and seed give the same parameters, bit for bit. With\n"
    "--numerics=reproducible, the default if --replicas is a list, every number of\n"
    "replicas gives the same parameters. W workers of N replicas give the same result as\n"
    "W*N replicas.\n"
    "\n"
    "If TF_CONFIG names a cluster, as under dist-launch, this process is one of its\n"
    "workers. All workers train together, and worker 0 prints and writes the report. Each\n"
    "has --replicas replicas, or DIST_REPLICAS if that option is missing.\n"
    "\n"
    "Exit status: 0 if training succeeded; 1 if it failed; 2 if the command line or the\n"
    "data is wrong; 130 if stopped by Ctrl-C (after the current step; the report is still\n"
    "written).\n";

static const struct option kOptions[] = {{"replicas", required_argument, NULL, 'r'},
                                         {"workers", required_argument, NULL, 'w'},
                                         {"numerics", required_argument, NULL, 'n'},
                                         {"epochs", required_argument, NULL, 'e'},
                                         {"seed", required_argument, NULL, 's'},
                                         {"data", required_argument, NULL, 'd'},
                                         {"label", required_argument, NULL, 'l'},
                                         {"fault", required_argument, NULL, 'f'},
                                         {"report", required_argument, NULL, 'o'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};

_Noreturn static void refuse_usage(void) {
  fputs("Try 'train_digits --help' for more information.\n", stderr);
  exit(EXIT_USAGE);
}

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
_Noreturn static void
refuse(const char *format, ...) {
  va_list words;
  va_start(words, format);
  fputs("train_digits: ", stderr);
  vfprintf(stderr, format, words);
  fputc('\n', stderr);
  va_end(words);
  refuse_usage();
}

// Parses the text before `stop` as a number.
static uint64_t parse_part(const char *name, const char *text, const char *stop, uint64_t least,
                           uint64_t most) {
  char *end;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (!strchr("0123456789", text[0]) || end == text || end != stop || errno || value < least || value > most)
    refuse("%s is \"%.*s\", but must be a whole number from %llu to %llu", name, (int)(stop - text), text,
           (unsigned long long)least, (unsigned long long)most);
  return value;
}

static uint64_t parse_count(const char *name, const char *text, uint64_t least, uint64_t most) {
  return parse_part(name, text, text + strlen(text), least, most);
}

static void parse_replicas(const char *text, options *out) {
  const char *name = strchr(text, ',') ? "a number in --replicas" : "--replicas";
  out->num_runs = 0;
  out->replicas_given = 1;
  for (const char *item = text;; item++) {
    if (out->num_runs == OPTIONS_MAX_RUNS) refuse("--replicas has more than %d numbers", OPTIONS_MAX_RUNS);
    const char *end = item + strcspn(item, ",");
    out->replicas[out->num_runs++] = (int32_t)parse_part(name, item, end, 1, INT32_MAX);
    if (!*(item = end)) return;
  }
}

static dist_numerics parse_numerics(const char *text) {
  if (strcmp(text, "ordered") == 0) return DIST_NUMERICS_ORDERED;
  if (strcmp(text, "reproducible") != 0)
    refuse("--numerics is \"%s\", but must be ordered or reproducible", text);
  return DIST_NUMERICS_REPRODUCIBLE;
}

static void parse_fault(const char *text, options *out) {
  const char *at = strchr(text, '@');
  if (!at || at == text) refuse("--fault is \"%s\", but must be R@STEP, such as 1@40", text);
  out->fault_replica = (int32_t)parse_part("the replica of --fault", text, at, 0, INT32_MAX);
  out->fault_step = (int64_t)parse_count("the step of --fault", at + 1, 1, INT32_MAX);
}

static void parse_option(int key, char *text, options *out) {
  switch (key) {
    case 'r': parse_replicas(text, out); break;
    case 'w': out->workers = (int32_t)parse_count("--workers", text, 1, INT32_MAX); break;
    case 'n': out->numerics = parse_numerics(text); break;
    case 'e': out->epochs = (int32_t)parse_count("--epochs", text, 1, MAX_EPOCHS); break;
    case 's': out->seed = parse_count("--seed", text, 0, UINT64_MAX); break;
    case 'd': out->data = text; break;
    case 'l': out->label = text; break;
    case 'f': parse_fault(text, out); break;
    case 'o': out->report = text; break;
    case 'h': fputs(kHelp, stdout); exit(EXIT_SUCCESS);
    default: refuse_usage();  // getopt_long() has printed the message
  }
}

options options_parse(int argc, char **argv) {
  options parsed = {.replicas = {2}, .num_runs = 1, .workers = 1, .epochs = 40, .seed = 1};
  for (int key; (key = getopt_long(argc, argv, "+r:w:n:e:s:d:l:f:o:h", kOptions, NULL)) != -1;)
    parse_option(key, optarg, &parsed);
  if (optind < argc) refuse("\"%s\" is not an option", argv[optind]);
  if (parsed.workers > 1 && parsed.num_runs > 1) refuse("--workers needs one number of replicas, not a list");
  for (int32_t i = 0; i < parsed.num_runs; i++) {
    const int64_t all = (int64_t)parsed.workers * parsed.replicas[i];
    if (all > INT32_MAX)
      refuse("%d workers of %d replicas are more than %d replicas", (int)parsed.workers,
             (int)parsed.replicas[i], INT32_MAX);
  }
  if (parsed.numerics == 0)
    parsed.numerics = parsed.num_runs > 1 ? DIST_NUMERICS_REPRODUCIBLE : DIST_NUMERICS_ORDERED;
  if (parsed.label && !parsed.data) refuse("--label needs --data");
  if (!parsed.data) parsed.data = DIGITS_CSV;
  return parsed;
}
