/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of a few collectives for 2 to 4 replicas, decoded from bytes. Any bytes are a program, and the
 * same bytes are the same program. It is valid except for at most one fault, which one replica commits before
 * or in one step.
 */
#ifndef TESTS_FUZZ_PROGRAM_H
#define TESTS_FUZZ_PROGRAM_H

#include "tests/abi/recipe.h"
#include "tests/fuzz/bytes.h"

enum { STEPS = 6, REPLICAS = 4, MOST_ROUNDS = 3 };

enum mode { BLOCKING, ASYNCHRONOUS, PLANNED, MODES };
enum what { EXCHANGE, APPLY, MERGE };
enum fault {
  NO_FAULT,
  LEAVE,       /* returns DIST_OK before the step */
  FAIL,        /* returns an error of its own before the step */
  SKIP,        /* leaves the step out */
  SWAP,        /* does the next step first */
  CANCEL,      /* dist_strategy_cancel() before the step */
  CANCEL_WORK, /* dist_work_cancel() of work under way, before the step */
  IMPATIENT,   /* a nanosecond for its peers to come */
  NONSENSE,    /* arguments that are wrong, or others than its peers' */
  FAULTS
};

typedef struct step {
  enum what what;
  enum mode mode;
  exchange e; /* of APPLY: gradients in `in`, parameters in `out` */
  view states[REPLICAS][TENSORS];
  dist_apply_options apply;
  int32_t rounds;
  int64_t bytes_per_pack;
  uint8_t order[REPLICAS];  /* in which tensors get ready, by replica */
  uint8_t settle[REPLICAS]; /* what is done about work under way after the step, by replica */
  dist_work* works[REPLICAS];
  char tag[2];
  atomic_int merges;
} step;

typedef struct program {
  int32_t replicas, threads;
  int stubborn;   /* goes on after an error */
  int leave_open; /* returns with work under way */
  int32_t finish; /* in which order work is waited for at the end */
  int again;      /* a second run, with the plans of the first */
  enum fault fault;
  int fault_step;
  int32_t culprit;
  uint8_t detail;
  int n;
  step steps[STEPS];
} program;

/* Every subset of a strategy's replicas by its bits; [0] is NULL: all. */
typedef dist_group* groups_of[1 << REPLICAS];

/* Which strategy it is for comes first; then the rest. */
void decode_head(program* p, bytes* in);
void decode_steps(program* p, bytes* in, const groups_of groups);
void free_program(program* p);

/* The replica functions: the program; and one more round of each of its plans. */
dist_status play(dist_replica* replica, void* user_data);
dist_status play_plans_again(dist_replica* replica, void* user_data);

#endif
