/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a program of collectives (program.h). Without a fault, every result must equal that of the
 * oracle, bit for bit. With a fault, every replica must return, successful results must be correct, and the
 * strategy must remain usable.
 *
 * Hangs are detected in two ways. A member that waits for a peer times out after a minute, which is an error
 * unless the program requested it. The driver also has an overall limit (libFuzzer's -timeout or Meson's).
 */
#include "tests/fuzz/program.h"

static const int64_t patience_ns = 60 * (int64_t)1000000000;

typedef struct stage {
  dist_strategy* strategy;
  groups_of groups;
} stage;

/* Strategies are created when first needed and shared by all inputs. Thus a strategy that an input leaves in
 * a bad state makes a later input fail. */
static stage* stage_for(const program* p) {
  static stage stages[REPLICAS + 1][3];
  stage* s = &stages[p->replicas][p->threads - DIST_THREADS_CALLER];
  if (s->strategy != NULL) return s;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = p->replicas;
  options.threads = p->threads;
  options.timeout_ns = patience_ns;
  s->strategy = strategy_with(options);
  for (uint32_t subset = 1; subset < 1u << p->replicas; subset++) {
    int32_t ids[REPLICAS];
    size_t n = 0;
    for (int32_t id = 0; id < p->replicas; id++)
      if (subset >> id & 1) ids[n++] = id;
    assert_ok(dist_group_create(s->strategy, ids, n, &s->groups[subset]));
  }
  return s;
}

/* ---- Expected results ---- */

/* Returns the new parameter by the equations of dist_reduce_apply(). `state` changes too. */
static double applied(const step* s, dist_dtype dtype, double gradient, double parameter, double* state) {
  if (s->apply.kind == DIST_APPLY_CALLBACK)
    return dtype == DIST_F32 ? (double)((float)parameter - (float)gradient) : parameter - gradient;
  if (dtype == DIST_F32) {
    const float down = (float)s->apply.learning_rate * (float)gradient;
    if (s->apply.momentum == 0) return (double)((float)parameter - down);
    const float push = (float)s->apply.momentum * (float)*state;
    *state = (double)(push - down);
    return (double)((float)parameter + (float)*state);
  }
  const double down = s->apply.learning_rate * gradient;
  if (s->apply.momentum == 0) return parameter - down;
  const double push = s->apply.momentum * *state;
  *state = push - down;
  return parameter + *state;
}

/* Returns whether a clip leaves the gradients unchanged: all are finite, and their squares fit in f64. */
static int below_clip(const step* s) {
  const exchange* e = &s->e;
  for (size_t t = 0; t < e->n && s->apply.clip_norm > 0; t++) {
    for (int64_t i = 0; i < elements_in(&e->out[0][t]); i++) {
      unsigned char gradient[8];
      folded(e, e->members, t, i, gradient);
      if (!(fabs(number_of(e->out[0][t].tensor.dtype, gradient)) < 1e150)) return 0;
    }
  }
  return 1;
}

static void check_applied(const step* s, int32_t rank) {
  const exchange* e = &s->e;
  if (!below_clip(s)) return;
  for (size_t t = 0; t < e->n; t++) {
    const view *out = &e->out[rank][t], *states = &s->states[rank][t];
    const dist_dtype dtype = out->tensor.dtype;
    for (int64_t i = 0; i < elements_in(out); i++) {
      const size_t at_i = (size_t)i * size_of(dtype);
      unsigned char gradient[8], wanted[2][8];
      folded(e, e->members, t, i, gradient);
      double state = number_of(dtype, states->saved + at_i);
      const double parameter =
          applied(s, dtype, number_of(dtype, gradient), number_of(dtype, out->saved + at_i), &state);
      const double both[2] = {parameter, state};
      for (int k = 0; k < 2; k++) {
        const float narrow = (float)both[k];
        memcpy(wanted[k], dtype == DIST_F32 ? (const void*)&narrow : &both[k], size_of(dtype));
      }
      if (!same_element(dtype, at(out, i), wanted[0]) || !same_element(dtype, at(states, i), wanted[1]))
        fail_msg("reduce_apply, kind %d: element %lld of tensor %zu of member %d is wrong",
                 (int)s->apply.kind, (long long)i, t, (int)rank);
    }
  }
}

/* Returns whether the results of members with status OK are correct in this step. After a member has skipped
 * a step, data of one step may be used in another. */
static int comparable(const program* p, int k) {
  return p->fault == SKIP || p->fault == SWAP || p->fault == NONSENSE ? k < p->fault_step : 1;
}

static void check_step(const program* p, int k, const char* when) {
  const step* s = &p->steps[k];
  char text[256];
  for (int32_t r = 0; r < s->e.members; r++) {
    const dist_status status = s->e.statuses[r];
    /* -1 means that the status is unknown: the replica did not reach the step, or destroyed its work. Without
     * a fault, the result is there nevertheless. */
    const int well = status == DIST_OK || (status == -1 && p->fault == NO_FAULT);
    if (p->fault == NO_FAULT && !well)
      fail_msg("%s, step %d, member %d: %s without a fault", when, k, (int)r, dist_status_name(status));
    if (status == DIST_INTERNAL && p->fault != FAIL)
      fail_msg("%s, step %d, member %d: INTERNAL", when, k, (int)r);
    if (status == DIST_DEADLINE_EXCEEDED && p->fault != IMPATIENT && p->fault != FAIL)
      fail_msg("%s, step %d, member %d: waited for a peer in vain", when, k, (int)r);
    if (!well || !comparable(p, k)) continue;
    if (s->what == EXCHANGE && find_wrong_of(&s->e, r, text, sizeof text) != NULL)
      fail_msg("%s, step %d: %s", when, k, text);
    if (s->what == APPLY) check_applied(s, r);
    if (s->what == MERGE && atomic_load(&s->merges) != 1)
      fail_msg("%s, step %d: the merge function ran %d times", when, k, atomic_load(&s->merges));
  }
}

/* Checks the run's status if the program determines it. */
static void check_run(const program* p, dist_status status, const report* error) {
  if (p->fault == NO_FAULT && status != DIST_OK) fail_msg("without a fault: %s", error->message);
  if (p->fault == FAIL && status != 1 + p->detail % 15)
    fail_msg("a replica returned %s, the run %s: %s", dist_status_name(1 + p->detail % 15),
             dist_status_name(status), error->message);
  if (status == DIST_INTERNAL && p->fault != FAIL) fail_msg("INTERNAL: %s", error->message);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static program p;
  bytes in = {data, size};
  decode_head(&p, &in);
  stage* s = stage_for(&p);
  decode_steps(&p, &in, s->groups);
  report error;
  check_run(&p, run_on(p.threads, s->strategy, play, &p, &error), &error);
  for (int k = 0; k < p.n; k++) check_step(&p, k, "the run");
  int plans = 1; /* whether all plans exist, that is, none was destroyed */
  for (int k = 0; k < p.n; k++) {
    for (int32_t r = 0; r < p.replicas; r++) {
      const step* of = &p.steps[k];
      const int member = of->e.group == NULL || dist_group_rank(of->e.group, r) >= 0;
      plans = plans && (of->mode != PLANNED || !member || of->works[r] != NULL);
    }
  }
  if (p.fault == NO_FAULT && p.again && plans) {
    if (run_on(p.threads, s->strategy, play_plans_again, &p, &error) != DIST_OK)
      fail_msg("one more round of each plan: %s", error.message);
    for (int k = 0; k < p.n; k++)
      if (p.steps[k].mode == PLANNED) check_step(&p, k, "one more round");
  }
  free_program(&p);
  assert_healthy(p.threads, s->strategy);
  return 0;
}
