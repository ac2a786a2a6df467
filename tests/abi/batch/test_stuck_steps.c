/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that do not return although one of their items should have ended. Their replicas get new threads, and
 * all items of the instance end. Until the step returns, it keeps what it uses: the states of the items and
 * of the instance.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/batch/batch_support.h"
#include "tests/abi/clock.h"
#include "tests/abi/metrics_support.h"

enum { DEADLINE_NS = 1000, STUCK_NS = 1000, LONG_NS = 100000 };

/* ---- A batcher whose steps block when a test asks for it ---- */

typedef struct engine {
  held at;              /* where a step waits */
  atomic_int stuck_now; /* the next step with a member that stops blocks */
  atomic_int exits;     /* then its thread ends instead of returning */
  atomic_int item_states, instance_states, destroyed;
  atomic_int numbered, ended[64]; /* by instance */
  atomic_int wrong, told, came_back;
} engine;

typedef struct member {
  engine *of;
  int stops; /* a step with it may block */
  int steps; /* number of steps that it takes; 0 = no limit */
  int emits; /* emits a result in each step until its results are full */
  atomic_int done;
} member;

static dist_status make_instance(dist_replica *replica, void **out_state, void *user_data) {
  (void)replica;
  engine *e = user_data;
  atomic_fetch_add(&e->instance_states, 1);
  *out_state = &e->ended[atomic_fetch_add(&e->numbered, 1) % COUNT_OF(e->ended)];
  return DIST_OK;
}

static void end_instance(void *state, void *user_data) {
  engine *e = user_data;
  atomic_store((atomic_int *)state, 1);
  atomic_fetch_sub(&e->instance_states, 1);
  atomic_fetch_add(&e->destroyed, 1);
}

typedef struct item_state {
  engine *of;
  atomic_int *instance_ended;
  int32_t *marks; /* a stuck step writes to them when it continues, so they must not have been freed */
} item_state;

static void free_item_state(void *what, void *user_data) {
  (void)user_data;
  item_state *s = what;
  /* The state of its instance, which it may use, must still exist. */
  if (atomic_load(s->instance_ended)) atomic_fetch_add(&s->of->wrong, 1);
  atomic_fetch_sub(&s->of->item_states, 1);
  free(s->marks);
  free(s);
}

static void free_mark(void *what, void *user_data) { (void)what, (void)user_data; }

static item_state *state_at(dist_replica *replica, dist_batch *batch, size_t i, engine *e) {
  item_state *s = dist_batch_state(batch, i);
  if (s != NULL) return s;
  s = malloc(sizeof *s);
  *s = (item_state){e, dist_instance_state(replica), calloc(4, sizeof(int32_t))};
  atomic_fetch_add(&e->item_states, 1);
  dist_batch_set_state(batch, i, s);
  return s;
}

/* Whether libdist's calls tell a step that it was replaced. */
static int is_told(dist_replica *replica, dist_batch *batch) {
  int told = dist_replica_check(replica) == DIST_CANCELLED;
  int mark = 0;
  for (size_t i = 0; i < dist_batch_size(batch); i++) {
    told &= dist_batch_check(batch, i) == DIST_CANCELLED;
    told &= dist_batch_emit(batch, i, &mark) == DIST_CANCELLED;
    dist_batch_end(batch, i, DIST_OK);
    told &= dist_batch_user_data(batch, i) != NULL;
    item_state *s = dist_batch_state(batch, i);
    told &= s != NULL;
    if (s != NULL) s->marks[1] = 7;
  }
  return told;
}

static dist_status engine_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  engine *e = user_data;
  int stops = 0;
  const size_t size = dist_batch_size(batch);
  for (size_t i = 0; i < size; i++) {
    member *m = dist_batch_user_data(batch, i);
    (void)state_at(replica, batch, i, e);
    stops |= m->stops;
    const int done = atomic_fetch_add(&m->done, 1) + 1;
    if (m->emits && dist_batch_emit(batch, i, m) != DIST_OK) atomic_fetch_add(&e->wrong, 1);
    if (m->steps != 0 && done >= m->steps) dist_batch_end(batch, i, DIST_OK);
  }
  if (!stops || !atomic_exchange(&e->stuck_now, 0)) return DIST_OK;
  gate_add(&e->at.inside);
  gate_await(&e->at.released, 1);
  atomic_fetch_add(&e->told, is_told(replica, batch));
  atomic_fetch_add(&e->came_back, 1);
  if (atomic_load(&e->exits)) pthread_exit(NULL);
  return DIST_OK;
}

static void open_instances(dist_strategy *strategy, engine *e, int32_t max_replaced) {
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = make_instance;
  options.destroy_state = end_instance;
  options.user_data = e;
  options.stuck_ns = STUCK_NS;
  options.max_replaced = max_replaced;
  assert_ok(dist_instances_open(strategy, &options));
}

static dist_batcher *engine_batcher(dist_strategy *strategy, engine *e, int32_t max_items) {
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.max_items = max_items;
  options.max_results = 2;
  options.free_state = free_item_state;
  options.free_result = free_mark;
  return batcher_of(strategy, engine_step, e, &options);
}

static void await_value(atomic_int *count, int value) {
  while (atomic_load(count) != value) sched_yield();
}

/* Advances the time until the item has ended. */
static void pass_until_end(stepping_clock *clock, dist_request *work) {
  int32_t done = 0;
  while (dist_request_test(work, &done) == DIST_OK && !done) {
    atomic_fetch_add(&clock->now_ns, LONG_NS);
    sched_yield();
  }
}

static void assert_left(dist_request *work, dist_status status, const char *words) {
  assert_fails(dist_request_wait(work, -1), status, words);
  assert_has(dist_last_error(), "which got a new thread");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_true(info.replica == 0 || info.replica == 1);
  dist_request_destroy(work);
}

/* ---- Replacing a step ---- */

enum way { BY_DEADLINE, BY_WORK, BY_OBJECT, WAYS };

/* An item in a stuck step should end. Another item is in the same step, and a third one is on the instance
 * with full results. */
static void check_stuck(enum way way, int exits) {
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 2, DIST_THREADS_LIBRARY));
  engine e = {.at = HELD_INIT, .exits = exits};
  open_instances(strategy, &e, 0);
  dist_batcher *batcher = engine_batcher(strategy, &e, 3);
  /* All three items are on one instance. */
  held h = HELD_INIT;
  dist_request *holders[2];
  for (int i = 0; i < 2; i++) holders[i] = submit(strategy, hold_here, &h, NULL);
  gate_await(&h.inside, 2);
  member to_end = {.of = &e, .stops = 1}, peer = {.of = &e, .stops = 1}, full = {.of = &e, .emits = 1};
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  dist_cancel *cancel = NULL;
  if (way == BY_DEADLINE) item.timeout_ns = DEADLINE_NS;
  if (way == BY_OBJECT) assert_ok(dist_cancel_create(NULL, &cancel));
  item.cancel = cancel;
  dist_request *kept = join(batcher, &full, NULL), *told = join(batcher, &to_end, &item),
               *other = join(batcher, &peer, NULL);
  gate_add(&h.released);
  for (int i = 0; i < 2; i++) assert_int_equal(end_of(holders[i]), DIST_OK);
  await_value(&full.done, 2);
  while (atomic_load(&to_end.done) < 3) sched_yield();
  atomic_store(&e.stuck_now, 1);
  gate_await(&e.at.inside, 1);
  assert_int_equal(atomic_load(&e.item_states), 3);
  /* Before one of the items should end, nothing happens, however long the step takes. */
  if (way != BY_DEADLINE) {
    atomic_fetch_add(&clock.now_ns, LONG_NS);
    for (int i = 0; i < 100; i++) sched_yield();
    expect_sample(strategy, "dist_instances_replaced_total", 0);
  }
  if (way == BY_WORK) assert_ok(dist_request_cancel(told));
  if (way == BY_OBJECT) assert_ok(dist_cancel_signal(cancel, "no longer needed"));
  pass_until_end(&clock, told);
  const char *const words = way == BY_DEADLINE ? "the item's deadline of"
                            : way == BY_WORK   ? "the item was cancelled: dist_request_cancel()"
                                               : "the item was cancelled: no longer needed";
  assert_left(told, way == BY_DEADLINE ? DIST_DEADLINE_EXCEEDED : DIST_CANCELLED, words);
  assert_left(other, DIST_UNAVAILABLE, "an item of the step had to end");
  /* Results that it emitted earlier can be taken. */
  for (int i = 0; i < 3; i++) {
    void *result = NULL;
    assert_ok(dist_request_take(kept, 0, &result));
    assert_ptr_equal(result, i < 2 ? &full : NULL);
  }
  assert_left(kept, DIST_UNAVAILABLE, "an item of the step had to end");
  expect_sample(strategy, "dist_instances_replaced_total", 1);
  expect_sample(strategy, "dist_instances_stuck", 1);
  expect_sample(strategy, "dist_items_ended_total{batcher=\"0\",end=\"failed\"}", 2);
  expect_sample(strategy, "dist_items_active{batcher=\"0\"}", 0);
  /* The other instance and this one continue: a run gets all replicas, and both instances handle requests. */
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  for (int i = 0; i < 8; i++) {
    member brief = {.of = &e, .steps = 3};
    assert_int_equal(end_of(join(batcher, &brief, NULL)), DIST_OK);
    assert_int_equal(atomic_load(&brief.done), 3);
  }
  pair p = {GATE_INIT};
  dist_request *works[2];
  for (int i = 0; i < 2; i++) works[i] = submit(strategy, meet, &p, NULL);
  for (int i = 0; i < 2; i++) assert_int_equal(end_of(works[i]), DIST_OK);
  /* The step owns the states until it returns. */
  assert_int_equal(atomic_load(&e.item_states), 3);
  assert_int_equal(atomic_load(&e.instance_states), 3);
  gate_add(&e.at.released);
  await_value(&e.instance_states, 2);
  assert_int_equal(atomic_load(&e.item_states), 0);
  assert_int_equal(atomic_load(&e.told), 1);
  assert_int_equal(atomic_load(&e.wrong), 0);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
  dist_cancel_destroy(cancel);
  assert_int_equal(atomic_load(&e.instance_states), 0);
}

static void a_stuck_step_is_replaced(void **state) {
  (void)state;
  const int before = count_threads();
  for (int way = 0; way < WAYS; way++)
    for (int exits = 0; exits < 2; exits++) check_stuck((enum way)way, exits);
  await_threads(before);
}

/* Replaces steps up to the limit, which exceeds the number of steps that a batcher has at one time. After
 * that, a stuck step is waited for. */
static void replacements_are_bounded(void **state) {
  (void)state;
  enum { MOST = 7 };
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  engine one = {.at = HELD_INIT}, *const e = &one;
  open_instances(strategy, e, MOST);
  dist_batcher *batcher = engine_batcher(strategy, e, 1);
  member members[MOST + 1];
  dist_item_options item = DIST_ITEM_OPTIONS_INIT;
  item.timeout_ns = DEADLINE_NS;
  for (int i = 0; i <= MOST; i++) {
    members[i] = (member){.of = e, .stops = 1};
    atomic_store(&e->stuck_now, 1);
    dist_request *work = join(batcher, &members[i], &item);
    gate_await(&e->at.inside, i + 1);
    atomic_fetch_add(&clock.now_ns, LONG_NS);
    if (i == MOST) {
      for (int k = 0; k < 100; k++) sched_yield();
      expect_sample(strategy, "dist_items_active{batcher=\"0\"}", 1);
      gate_add(&e->at.released);
    } else {
      pass_until_end(&clock, work);
    }
    if (i < MOST) {
      assert_left(work, DIST_DEADLINE_EXCEEDED, "deadline");
    } else {
      assert_int_equal(end_of(work), DIST_OK); /* the step's own result */
    }
  }
  expect_sample(strategy, "dist_instances_replaced_total", MOST);
  await_value(&e->destroyed, MOST);
  assert_int_equal(atomic_load(&e->item_states), 0);
  assert_int_equal(atomic_load(&e->told), MOST);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&e->instance_states), 0);
}

/* If a request is stuck, the items of its instance end too. */
static void items_of_an_instance_whose_request_is_stuck(void **state) {
  (void)state;
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 1, DIST_THREADS_LIBRARY));
  engine e = {.at = HELD_INIT};
  open_instances(strategy, &e, 0);
  dist_batcher *first = engine_batcher(strategy, &e, 4), *second = engine_batcher(strategy, &e, 4);
  member full[2] = {{.of = &e, .emits = 1}, {.of = &e, .emits = 1}};
  dist_request *kept[2] = {join(first, &full[0], NULL), join(second, &full[1], NULL)};
  for (int i = 0; i < 2; i++) await_value(&full[i].done, 2);
  held h = HELD_INIT;
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.timeout_ns = DEADLINE_NS;
  dist_request *work = submit(strategy, hold_here, &h, &options);
  gate_await(&h.inside, 1);
  atomic_fetch_add(&clock.now_ns, LONG_NS);
  assert_fails(dist_request_wait(work, -1), DIST_DEADLINE_EXCEEDED, "a new thread");
  dist_request_destroy(work);
  for (int i = 0; i < 2; i++) assert_left(kept[i], DIST_UNAVAILABLE, "the request's deadline of");
  assert_int_equal(atomic_load(&e.item_states), 2);
  member brief = {.of = &e, .steps = 2};
  assert_int_equal(end_of(join(first, &brief, NULL)), DIST_OK);
  assert_int_equal(atomic_load(&e.item_states), 2);
  gate_add(&h.released);
  await_value(&e.destroyed, 1);
  assert_int_equal(atomic_load(&e.item_states), 0);
  assert_int_equal(atomic_load(&e.wrong), 0);
  assert_ok(dist_batcher_destroy(first));
  assert_ok(dist_batcher_destroy(second));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Ends ---- */

typedef struct closing {
  dist_strategy *strategy;
  dist_status status;
  atomic_int done;
} closing;

static void *close_main(void *argument) {
  closing *self = argument;
  self->status = dist_instances_close(self->strategy, DEADLINE_NS);
  atomic_store(&self->done, 1);
  return NULL;
}

/* The batcher and the strategy are destroyed while the step is stuck. What it uses is kept until it returns,
 * and then everything is freed. */
static void all_ends_before_it(void **state) {
  (void)state;
  static stepping_clock clock;
  static refusals memory;
  memory = (refusals){.refuse_at = -1};
  const int before = count_threads();
  for (int shut_down = 0; shut_down < 2; shut_down++) {
    atomic_store(&clock.now_ns, 1000);
    dist_strategy_options with = by_clock(&clock, 2, DIST_THREADS_LIBRARY);
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    if (with.host != NULL) host = *with.host;
    with.host = &host;
    host.allocator = refusing(&memory);
    dist_strategy *strategy = strategy_with(with);
    engine e = {.at = HELD_INIT};
    open_instances(strategy, &e, 0);
    dist_batcher *batcher = engine_batcher(strategy, &e, 4);
    member stops = {.of = &e, .stops = 1};
    atomic_store(&e.stuck_now, 1);
    dist_request *work = join(batcher, &stops, NULL);
    gate_await(&e.at.inside, 1);
    /* While instances close, the step is asked to end, and is then replaced. */
    closing c = {.strategy = strategy};
    pthread_t closer;
    assert_int_equal(pthread_create(&closer, NULL, close_main, &c), 0);
    while (!atomic_load(&c.done)) {
      atomic_fetch_add(&clock.now_ns, 500);
      sched_yield();
    }
    pthread_join(closer, NULL);
    assert_int_equal(c.status, DIST_DEADLINE_EXCEEDED);
    pass_until_end(&clock, work);
    assert_fails(dist_request_wait(work, -1), DIST_CANCELLED, "a new thread");
    assert_fails(dist_batcher_destroy(batcher), DIST_FAILED_PRECONDITION, "still has items");
    dist_request_destroy(work);
    assert_ok(dist_batcher_destroy(batcher));
    if (shut_down) {
      assert_ok(dist_strategy_shutdown(strategy, -1));
    } else {
      assert_ok(dist_instances_close(strategy, -1));
    }
    assert_ok(dist_strategy_destroy(strategy));
    await_threads(before + 1);
    assert_int_equal(atomic_load(&e.item_states), 1);
    assert_int_equal(atomic_load(&e.instance_states), 1);
    gate_add(&e.at.released);
    await_value(&e.instance_states, 0);
    assert_int_equal(atomic_load(&e.item_states), 0);
    await_threads(before);
    while (atomic_load(&memory.live_bytes) != 0) sched_yield();
    assert_int_equal(atomic_load(&e.told), 1);
    assert_int_equal(atomic_load(&e.wrong), 0);
  }
}

/* ---- Steps that emit results without end ---- */

typedef struct talker {
  atomic_int inside, left, emitted, freed;
} talker;

static void free_talk(void *what, void *user_data) {
  free(what);
  atomic_fetch_add(&((talker *)user_data)->freed, 1);
}

static dist_status talk(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica;
  talker *t = user_data;
  atomic_fetch_add(&t->inside, 1);
  for (dist_status status = DIST_OK; status != DIST_CANCELLED;) {
    for (size_t i = 0; i < dist_batch_size(batch); i++) {
      int *word = malloc(sizeof *word);
      status = dist_batch_emit(batch, i, word);
      if (status == DIST_OK) atomic_fetch_add(&t->emitted, 1);
      if (status != DIST_OK) free(word);
      dist_batch_end(batch, i, DIST_OK);
    }
    sched_yield();
  }
  atomic_fetch_add(&t->left, 1);
  return DIST_OK;
}

static void one_that_says_something_to_the_last(void **state) {
  (void)state;
  static stepping_clock clock;
  atomic_store(&clock.now_ns, 1000);
  dist_strategy *strategy = strategy_with(by_clock(&clock, 2, DIST_THREADS_LIBRARY));
  dist_instances_options with = DIST_INSTANCES_OPTIONS_INIT;
  with.stuck_ns = STUCK_NS;
  with.max_replaced = 1000;
  assert_ok(dist_instances_open(strategy, &with));
  talker t = {0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_results = 4;
  options.max_items = 2;
  options.free_result = free_talk;
  dist_batcher *batcher = batcher_of(strategy, talk, &t, &options);
  dist_completions *completions = NULL;
  assert_ok(dist_completions_create(NULL, &completions));
  enum { ROUNDS = 20, ITEMS = 3 };
  int taken = 0;
  for (int round = 0; round < ROUNDS; round++) {
    dist_item_options item = DIST_ITEM_OPTIONS_INIT;
    item.completions = round % 3 == 0 ? NULL : completions;
    item.timeout_ns = DEADLINE_NS;
    const int marks = 0;
    dist_request *works[ITEMS] = {NULL};
    for (int i = 0; i < ITEMS; i++) {
      dist_request **out = round % 3 == 0 ? &works[i] : NULL;
      assert_ok(dist_batcher_submit(batcher, (void *)&marks, &item, out));
    }
    for (int ended = 0; ended < ITEMS;) {
      atomic_fetch_add(&clock.now_ns, 700);
      dist_request *work = NULL;
      int32_t done = 0;
      if (round % 3 == 0) {
        work = works[ended];
      } else {
        assert_ok(dist_completions_next(completions, 0, &work));
        if (work == NULL) continue;
      }
      done = dist_request_test(work, &done) != DIST_OK || done;
      for (void *result = NULL; dist_request_take(work, 0, &result) == DIST_OK && result != NULL; taken++)
        free(result);
      if (done) assert_int_equal(dist_request_wait(work, DIST_NO_TIMEOUT), DIST_DEADLINE_EXCEEDED);
      ended += done;
      if (done || round % 3 != 0) dist_request_destroy(work);
    }
  }
  while (atomic_load(&t.left) != atomic_load(&t.inside)) sched_yield();
  while (dist_batcher_destroy(batcher) != DIST_OK) sched_yield();
  dist_completions_destroy(completions);
  assert_ok(dist_strategy_destroy(strategy));
  while (atomic_load(&t.emitted) != taken + atomic_load(&t.freed)) sched_yield();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stuck_step_is_replaced),
      cmocka_unit_test(replacements_are_bounded),
      cmocka_unit_test(items_of_an_instance_whose_request_is_stuck),
      cmocka_unit_test(all_ends_before_it),
      cmocka_unit_test(one_that_says_something_to_the_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
