/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes a program inside one replica. Statuses are stored in the step's slots, which the main thread reads
 * afterwards.
 */
#include "tests/fuzz/program.h"

typedef struct player {
  program* p;
  dist_replica* replica;
  int32_t id;
  int under_way[STEPS], n; /* steps whose work has not been waited for, in their order */
  dist_status first;       /* the first failure */
} player;

static int32_t rank_in(const step* s, int32_t id) {
  return s->e.group == NULL ? id : dist_group_rank(s->e.group, id);
}

static void record(player* me, int k, dist_status status) {
  step* s = &me->p->steps[k];
  s->e.statuses[rank_in(s, me->id)] = status;
  if (me->first == DIST_OK) me->first = status;
}

/* ---- Work under way ---- */

static void forget(player* me, int at) {
  me->n--;
  for (int i = at; i < me->n; i++) me->under_way[i] = me->under_way[i + 1];
}

static void wait_for(player* me, int at) {
  const int k = me->under_way[at];
  forget(me, at);
  record(me, k, dist_work_wait(me->p->steps[k].works[me->id], DIST_NO_TIMEOUT));
}

static void wait_for_any(player* me) {
  /* Peers of a replica that waits for any of several works detect a missing call only by their timeout, and a
     minute is too long for a test. */
  if (me->n > 1 && me->p->fault != NO_FAULT) {
    wait_for(me, 0);
    return;
  }
  dist_work* works[STEPS];
  for (int i = 0; i < me->n; i++) works[i] = me->p->steps[me->under_way[i]].works[me->id];
  size_t which = 0;
  const dist_status status = dist_work_wait_any(works, (size_t)me->n, DIST_NO_TIMEOUT, &which);
  const int k = me->under_way[which];
  forget(me, (int)which);
  record(me, k, status);
}

static void test_for(player* me, int at) {
  const int k = me->under_way[at];
  int32_t done = 0;
  const dist_status status = dist_work_test(me->p->steps[k].works[me->id], &done);
  if (status == DIST_OK && !done) return;
  forget(me, at);
  record(me, k, status);
}

/* Makes calls that must be rejected and change nothing. Returns DIST_OK if all were rejected. */
static dist_status misuse(const player* me, int k) {
  size_t which;
  dist_group* group = NULL;
  const int32_t id = 0;
  dist_work* work = me->p->steps[k].works[me->id];
  /* The next round of a plan may begin after this one has ended, so dist_work_start() is not tried. */
  const int planned = me->p->steps[k].mode == PLANNED;
  dist_strategy* strategy = dist_replica_strategy(me->replica);
  const int refused =
      dist_work_ready(work, TENSORS) != DIST_OK && (planned || dist_work_start(work) != DIST_OK) &&
      dist_work_test(work, NULL) != DIST_OK &&
      dist_work_wait_any(&work, 0, DIST_NO_TIMEOUT, &which) != DIST_OK &&
      dist_work_wait(NULL, DIST_NO_TIMEOUT) != DIST_OK && dist_run(strategy, play, NULL, NULL) != DIST_OK &&
      dist_group_create(strategy, &id, 1, &group) != DIST_OK;
  return refused ? DIST_OK : dist_fail(DIST_INTERNAL, "what is wrong was accepted");
}

static void settle(player* me, uint8_t how) {
  if (me->n == 0) return;
  const int at = how / 8 % me->n, k = me->under_way[at];
  dist_work** work = &me->p->steps[k].works[me->id];
  switch (how % 8) {
    case 3: wait_for(me, at); break;
    case 4: test_for(me, at); break;
    case 5: wait_for_any(me); break;
    case 6: /* the run's status reports how the work ended */
      forget(me, at);
      dist_work_destroy(*work);
      *work = NULL;
      break;
    case 7:
      if (me->first == DIST_OK) me->first = misuse(me, k);
      break;
    default: break;
  }
}

static void finish(player* me) {
  while (me->n > 0) {
    switch (me->p->finish) {
      case 0: wait_for(me, 0); break;
      case 1: wait_for(me, me->n - 1); break;
      case 2: wait_for_any(me); break;
      default:
        /* A replica that only tests its works does not count as waiting, so peers that wait for it in vain
         * could not be detected. */
        if (me->p->fault == NO_FAULT)
          test_for(me, me->n / 2);
        else
          wait_for(me, me->n / 2);
        break;
    }
  }
}

/* ---- Steps ---- */

/* Makes the arguments invalid, or different from those of the peers. */
static void spoil(call* c, uint8_t how) {
  static const int64_t negative[DIMS] = {-1, -1, -1, -1},
                       large[DIMS] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  static const double weights[LISTS] = {-1, 1, 1};
  static const int64_t splits[MEMBERS] = {-1, 1, INT64_MAX, INT64_MAX};
  dist_tensor* t = how & 32 ? &c->in_list[0] : &c->out_list[0];
  switch (how % 32) {
    case 0: c->op = 0; break;
    case 1: c->op = c->op == DIST_REDUCE_USER ? DIST_REDUCE_SUM : c->op + 1; break;
    case 2: c->root = -1; break;
    case 3: c->root++; break;
    case 4: c->kind = 9; break;
    case 5: c->options.numerics = 77; break;
    case 6: c->options.axis = 99; break;
    case 7: c->options.axis = INT32_MIN; break;
    case 8: c->n = c->n > 0 ? c->n - 1 : 1; break;
    case 9: t->dtype = 0; break;
    case 10: t->dtype = t->dtype % LAST_DTYPE + 1, t->data = NULL; break;
    case 11: t->ndim = -1; break;
    case 12: t->ndim = INT32_MAX; break;
    case 13: t->shape = NULL; break;
    case 14: t->shape = negative; break;
    case 15: t->shape = large; break;
    case 16: t->data = NULL; break;
    case 17: c->options.struct_size = 3; break;
    case 18: c->options.contributions = SIZE_MAX; break;
    case 19: c->options.contributions = 3; break;
    case 20: c->options.weights = weights; break;
    case 21: c->options.splits = splits; break;
    case 22: c->destination = 99; break;
    case 23: c->destination = c->source = -1; break;
    case 24: c->in = NULL; break;
    case 25: c->out = NULL; break;
    case 26: c->op = DIST_REDUCE_USER, c->options.reduce_fn = NULL; break;
    case 27: c->options.tag = "another"; break;
    case 28: c->options.planned = 2; break;
    case 29: c->options.bytes_per_pack = INT64_MIN; break;
    case 30: c->in = c->out = NULL; break;
    default: c->collective = c->collective % LAST_COLLECTIVE + 1; break;
  }
}

/* Restores inputs that a round has changed in place. */
static void refill(step* s, int32_t rank) {
  for (size_t t = 0; t < LISTS * TENSORS; t++) {
    const view* v = &s->e.in[rank][t];
    const size_t size = size_of(v->tensor.dtype);
    for (int64_t i = 0; v->saved != NULL && i < elements_in(v); i++)
      memcpy(at(v, i), v->saved + (size_t)i * size, size);
  }
}

static dist_status begin_round(step* s, dist_work* work, uint8_t order) {
  const size_t n = s->e.n;
  if (n == 0 || order % 4 == 0) return dist_work_start(work);
  dist_status status = DIST_OK;
  for (size_t i = 0; status == DIST_OK && i < n; i++) {
    const size_t t = (i + order / 8) % n;
    status = dist_work_ready(work, order % 4 == 1 ? t : n - 1 - t);
  }
  return status;
}

static void play_plan(player* me, int k, int32_t rank) {
  step* s = &me->p->steps[k];
  dist_status status = DIST_OK;
  for (int32_t round = 1; status == DIST_OK; round++) {
    if (round > 1) refill(s, rank);
    status = begin_round(s, s->works[me->id], s->order[me->id]);
    if (status == DIST_OK && round == s->rounds) {
      me->under_way[me->n++] = k;
      return;
    }
    if (status == DIST_OK) status = dist_work_wait(s->works[me->id], DIST_NO_TIMEOUT);
  }
  record(me, k, status);
}

static dist_status count_merges(dist_strategy* strategy, dist_value* args, dist_value* kwargs,
                                dist_value** out, void* user_data) {
  (void)strategy, (void)args, (void)out, (void)kwargs;
  atomic_fetch_add((atomic_int*)user_data, 1);
  return DIST_OK;
}

/* parameter = parameter - gradient */
static void subtract(const dist_block* block, void* user_data) {
  (void)user_data;
  for (int64_t i = 0; i < block->count; i++) {
    if (block->dtype == DIST_F32)
      ((float*)block->parameter)[i] -= ((const float*)block->gradient)[i];
    else
      ((double*)block->parameter)[i] -= ((const double*)block->gradient)[i];
  }
}

static dist_status apply(dist_replica* replica, step* s, int32_t rank, call* c) {
  dist_apply_options options = s->apply;
  dist_tensor states[TENSORS];
  for (size_t t = 0; t < s->e.n; t++) states[t] = s->states[rank][t].tensor;
  options.fn = subtract;
  options.states = options.num_states > 0 ? states : NULL;
  return dist_reduce_apply(replica, c->op, c->in, c->out, c->n, &options, &c->options, NULL);
}

static void play_step(player* me, int k) {
  step* s = &me->p->steps[k];
  const int32_t rank = rank_in(s, me->id);
  if (rank < 0) return;
  const int at_fault = me->p->culprit == me->id && me->p->fault_step == k;
  call c;
  prepare_call(&s->e, rank, &c);
  if (at_fault && me->p->fault == IMPATIENT) c.options.timeout_ns = 1;
  if (s->mode != BLOCKING) {
    c.out_work = &s->works[me->id];
    c.options.planned = s->mode == PLANNED;
    c.options.bytes_per_pack = s->bytes_per_pack;
  }
  if (at_fault && me->p->fault == NONSENSE) spoil(&c, me->p->detail);
  const dist_status status =
      s->what == MERGE ? dist_merge_call(me->replica, count_merges, &s->merges, NULL, NULL, &c.options, NULL)
      : s->what == APPLY ? apply(me->replica, s, rank, &c)
                         : make_call(me->replica, &c);
  memset(&c, UNTOUCHED, sizeof c); /* descriptions were copied by the call */
  if (s->mode == BLOCKING || status != DIST_OK)
    record(me, k, status);
  else if (s->mode == ASYNCHRONOUS)
    me->under_way[me->n++] = k;
  else
    play_plan(me, k, rank);
}

/* Commits the fault before a step. Returns 0 if the replica must return. */
static int commit_fault(player* me, dist_status* status) {
  const uint8_t detail = me->p->detail;
  switch (me->p->fault) {
    case LEAVE: *status = DIST_OK; return 0;
    case FAIL: *status = dist_fail(1 + detail % LAST_STATUS, "on purpose"); return 0;
    case CANCEL_WORK:
      if (me->n > 0) {
        *status = dist_work_cancel(me->p->steps[me->under_way[detail % me->n]].works[me->id]);
        break;
      }
      __attribute__((fallthrough));
    case CANCEL: *status = dist_strategy_cancel(dist_replica_strategy(me->replica)); break;
    default: break;
  }
  return 1;
}

dist_status play(dist_replica* replica, void* user_data) {
  player me = {.p = user_data, .replica = replica, .id = dist_replica_id(replica)};
  program* p = me.p;
  for (int i = 0; i < p->n; i++) {
    int k = i;
    if (me.id == p->culprit && p->fault != NO_FAULT) {
      dist_status status = DIST_OK;
      if (i == p->fault_step && !commit_fault(&me, &status)) return status;
      if (p->fault == SKIP && i == p->fault_step) continue;
      const int swapped = p->fault == SWAP && p->fault_step + 1 < p->n;
      if (swapped && i == p->fault_step) k = i + 1;
      if (swapped && i == p->fault_step + 1) k = i - 1;
    }
    play_step(&me, k);
    settle(&me, p->steps[i].settle[me.id]);
    if (me.first != DIST_OK && !p->stubborn) return me.first;
  }
  if (!p->leave_open) finish(&me);
  return me.first;
}

dist_status play_plans_again(dist_replica* replica, void* user_data) {
  player me = {.p = user_data, .replica = replica, .id = dist_replica_id(replica)};
  for (int k = 0; k < me.p->n; k++) {
    step* s = &me.p->steps[k];
    const int32_t rank = rank_in(s, me.id);
    if (rank < 0 || s->mode != PLANNED) continue;
    refill(s, rank);
    dist_status status = begin_round(s, s->works[me.id], s->order[me.id]);
    if (status == DIST_OK) status = dist_work_wait(s->works[me.id], DIST_NO_TIMEOUT);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}
