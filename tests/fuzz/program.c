/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/program.h"

/* @every collective but NONE, RETURN, HALO_EXCHANGE, RESHARD: no calls, or calls of logical devices */
static const int32_t collectives[] = {
    DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_BROADCAST,      DIST_COLLECTIVE_REDUCE,
    DIST_COLLECTIVE_GATHER,     DIST_COLLECTIVE_REDUCE_SCATTER, DIST_COLLECTIVE_ALL_GATHER,
    DIST_COLLECTIVE_SCATTER,    DIST_COLLECTIVE_ALL_TO_ALL,     DIST_COLLECTIVE_SCAN,
    DIST_COLLECTIVE_PERMUTE,    DIST_COLLECTIVE_BARRIER,        DIST_COLLECTIVE_REDUCE_APPLY,
    DIST_COLLECTIVE_MERGE_CALL};

void decode_head(program* p, bytes* in) {
  const uint8_t kind = take(in), flags = take(in), fault = take(in), where = take(in);
  p->detail = take(in);
  p->replicas = 2 + kind % 3;
  p->threads = DIST_THREADS_CALLER + kind / 3 % 3;
  p->stubborn = flags & 1;
  p->leave_open = flags >> 1 & 1;
  p->finish = flags >> 2 & 3;
  p->again = flags >> 4 & 1;
  p->fault = fault < 128 ? NO_FAULT : (enum fault)(fault % FAULTS);
  p->fault_step = where % STEPS;
  p->culprit = where / STEPS % p->replicas;
  p->n = 0;
}

/* Decodes the parameters of a reduction, as far as the collective and the dtypes support them. */
static void decode_reduction(recipe* given, bytes* in) {
  const uint8_t flags = take(in);
  const int scan = given->collective == DIST_COLLECTIVE_SCAN;
  given->op = DIST_REDUCE_SUM + (dist_reduce_op)take_below(in, DIST_REDUCE_USER - DIST_REDUCE_SUM + 1);
  if (scan && given->op == DIST_REDUCE_MEAN) given->op = DIST_REDUCE_PROD;
  int real = given->n > 0;
  for (size_t t = 0; t < given->n; t++) {
    if (given->op != DIST_REDUCE_USER && !allowed(given->op, given->dtypes[t])) given->dtypes[t] = DIST_F32;
    real = real && given->dtypes[t] <= DIST_F64;
  }
  given->several = !scan && flags & 1;
  given->weighted = given->op == DIST_REDUCE_MEAN && flags & 2;
  const int sums = given->op == DIST_REDUCE_SUM || given->op == DIST_REDUCE_MEAN;
  if (sums && real && !scan && flags & 4) given->numerics = DIST_NUMERICS_REPRODUCIBLE;
  if (given->numerics == DIST_NUMERICS_ORDERED && flags & 16) given->numerics = DIST_NUMERICS_TREE;
  given->one_out = given->collective == DIST_COLLECTIVE_ALL_REDUCE && flags & 8;
}

static recipe decode_recipe(int32_t collective, int32_t members, bytes* in) {
  recipe given = {
      .collective = collective, .op = DIST_REDUCE_SUM, .members = members, .n = take(in) % (TENSORS + 1)};
  const uint8_t sizes = take(in), styles = take(in), flags = take(in);
  if (collective == DIST_COLLECTIVE_BARRIER) given.n = 0;
  given.ndim = 1 + sizes % DIMS;
  given.axis = sizes / DIMS % (2 * given.ndim) - given.ndim;
  given.most = sizes < 224 ? 1 + sizes / 32 : given.ndim < 3 ? 40 : 8;
  given.in_style = (enum style)(styles % (STYLES + 1));
  given.out_style = (enum style)(styles / (STYLES + 1) % STYLES);
  given.root = flags % members;
  given.kind = DIST_SCAN_INCLUSIVE + (flags >> 3 & 1);
  given.uneven = flags >> 4 & 1;
  given.splits = given.uneven && flags >> 5 & 1;
  given.in_place = flags >> 6 & 1 && given.in_style != ONE_PLACE;
  for (int t = 0; t < TENSORS; t++) given.dtypes[t] = 1 + take_below(in, LAST_DTYPE);
  if (reduces(collective)) decode_reduction(&given, in);
  given.in_place = given.in_place && !given.one_out;
  given.seed = take_number(in, 2);
  return given;
}

/* Gradients, parameters and states for dist_reduce_apply(): equal parameters and states on all members. */
static void decode_apply(step* s, int32_t members, bytes* in) {
  recipe given = decode_recipe(DIST_COLLECTIVE_ALL_REDUCE, members, in);
  const uint8_t flags = take(in);
  for (int t = 0; t < TENSORS; t++) given.dtypes[t] = given.dtypes[t] % 2 ? DIST_F32 : DIST_F64;
  given.in_style = given.out_style = DENSE;
  given.in_place = given.one_out = 0;
  if (given.op > DIST_REDUCE_MEAN) given.op = DIST_REDUCE_SUM;
  if (given.op != DIST_REDUCE_MEAN) given.weighted = 0;
  make_exchange(&s->e, &given);
  const dist_apply_options defaults = DIST_APPLY_OPTIONS_INIT;
  s->apply = defaults;
  s->apply.kind = flags & 1 ? DIST_APPLY_CALLBACK : DIST_APPLY_SGD;
  s->apply.learning_rate = (double)(flags >> 4) / 7;
  s->apply.momentum = flags & 2 ? 0.875 : 0;
  s->apply.clip_norm = flags & 4 ? 1e200 : 0; /* greater than the norm of any gradient that is compared */
  s->apply.num_states = s->apply.momentum != 0;
  for (int32_t r = 0; r < members; r++) {
    for (size_t t = 0; t < s->e.n; t++) {
      view* out = &s->e.out[r][t];
      fill_view(out, given.seed + t);
      make_view(&s->states[r][t], out->tensor.dtype, out->tensor.ndim, out->shape, DENSE);
      fill_view(&s->states[r][t], given.seed + t + TENSORS);
    }
  }
}

static void decode_step(program* p, step* s, bytes* in, const groups_of groups) {
  const int32_t collective = collectives[take_below(in, (int32_t)COUNT_OF(collectives))];
  const uint8_t how = take(in), communicator = take(in);
  const dist_group* group =
      collective == DIST_COLLECTIVE_MERGE_CALL ? NULL : groups[communicator % (1 << p->replicas)];
  const int32_t members = group == NULL ? p->replicas : dist_group_size(group);
  s->what = collective == DIST_COLLECTIVE_REDUCE_APPLY ? APPLY
            : collective == DIST_COLLECTIVE_MERGE_CALL ? MERGE
                                                       : EXCHANGE;
  if (s->what == EXCHANGE) {
    s->mode = how % MODES;
    s->rounds = 1 + how / MODES % MOST_ROUNDS;
    const recipe given = decode_recipe(collective, members, in);
    make_exchange(&s->e, &given);
    s->bytes_per_pack = take(in);
  } else if (s->what == APPLY) {
    decode_apply(s, members, in);
  } else {
    s->e.members = members;
  }
  s->e.group = group;
  if (communicator >= 64) s->tag[0] = (char)('a' + communicator / 32), s->e.tag = s->tag;
  for (int32_t r = 0; r < REPLICAS; r++) {
    s->e.statuses[r] = -1; /* unknown */
    s->settle[r] = take(in);
    s->order[r] = s->mode == PLANNED ? take(in) : 0;
  }
}

void decode_steps(program* p, bytes* in, const groups_of groups) {
  memset(p->steps, 0, sizeof p->steps);
  for (p->n = 0; p->n < STEPS && in->left > 0; p->n++) decode_step(p, &p->steps[p->n], in, groups);
  if (p->fault_step >= p->n) p->fault = NO_FAULT;
}

void free_program(program* p) {
  for (int k = 0; k < p->n; k++) {
    step* s = &p->steps[k];
    for (int32_t r = 0; r < REPLICAS; r++) {
      dist_work_destroy(s->works[r]);
      for (size_t t = 0; t < TENSORS; t++) free_view(&s->states[r][t]);
    }
    free_exchange(&s->e);
  }
}
