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
  IMPATIENT,   /* a timeout of one nanosecond for the step */
  NONSENSE,    /* arguments that are invalid, or different from those of the peers */
  FAULTS
};

typedef struct step {
  enum what what;
  enum mode mode;
  exchange e; /* of dist_reduce_apply(): gradients in `in`, parameters in `out` */
  view states[REPLICAS][TENSORS];
  dist_apply_options apply;
  int32_t rounds;
  int64_t bytes_per_pack;
  uint8_t order[REPLICAS];  /* the order in which a replica's tensors become ready */
  uint8_t settle[REPLICAS]; /* what a replica does with its work in progress after the step */
  dist_work* works[REPLICAS];
  char tag[2];
  atomic_int merges;
} step;

typedef struct program {
  int32_t replicas, threads;
  int stubborn;   /* continues after an error */
  int leave_open; /* returns with work in progress */
  int32_t finish; /* the order in which the remaining work is waited for */
  int again;      /* a second run with the same plans */
  enum fault fault;
  int fault_step;
  int32_t culprit;
  uint8_t detail;
  int n;
  step steps[STEPS];
} program;

/* All groups of a strategy's replicas; the index has one bit for each replica. [0] is NULL, which means all
 * replicas. */
typedef dist_group* groups_of[1 << REPLICAS];

/* decode_head() must be called first: it decodes the replicas and threads, which determine the strategy. */
void decode_head(program* p, bytes* in);
void decode_steps(program* p, bytes* in, const groups_of groups);
void free_program(program* p);

/* Replica functions. play() executes the program, and the other one a further round of each of its plans. */
dist_status play(dist_replica* replica, void* user_data);
dist_status play_plans_again(dist_replica* replica, void* user_data);

#endif
