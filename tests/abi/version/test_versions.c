/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions: all parts of a run (replicas, logical devices, runs inside merge functions) and of a request see
 * the same version until it ends, whatever is published in the meantime.
 */
#include "tests/abi/mesh_support.h"
#include "tests/abi/serve/serve_support.h"
#include "tests/abi/version/versions_support.h"

enum { RUNS = 300, MANY = 10 };

/* ---- One version for all replicas ---- */

typedef struct watch {
  series *s;
  int64_t seen; /* by replica 0 */
} watch;

/* Each replica asks at a different time, and again after all others. */
static dist_status see_the_same(dist_replica *replica, void *user_data) {
  watch *w = user_data;
  int64_t number = 0, length = 1;
  TRY(see(replica, w->s, &number));
  int64_t least = number, greatest = number;
  dist_tensor low = vector_of(&least, DIST_I64, &length), high = vector_of(&greatest, DIST_I64, &length);
  TRY(dist_all_reduce(replica, DIST_REDUCE_MIN, &low, &low, 1, NULL, NULL));
  TRY(dist_all_reduce(replica, DIST_REDUCE_MAX, &high, &high, 1, NULL, NULL));
  if (least != greatest) return dist_fail(DIST_INTERNAL, "replicas of one run see several versions");
  TRY(see_number(replica, w->s, number));
  if (dist_replica_id(replica) == 0) w->seen = number;
  return DIST_OK;
}

static void one_for_all_replicas(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int32_t n = 1; n <= 4; n++) {
      dist_strategy *strategy = strategy_of(n, threads);
      watch w = {series_with(NULL), 0};
      (void)publish(w.s);
      publisher p;
      begin_publishing(&p, w.s);
      const int runs = threads == DIST_THREADS_HOST ? RUNS / 10 : RUNS;
      int different = 0;
      int64_t before = 0;
      for (int i = 0; i < runs || different < MANY; i++) {
        report error;
        if (run_on(threads, strategy, see_the_same, &w, &error) != DIST_OK)
          fail_msg("%s: %s", threads_name(threads), error.message);
        assert_true(w.seen >= before);
        different += w.seen != before;
        before = w.seen;
      }
      end_publishing(&p);
      /* No run is in progress, so all versions except the latest have been released. */
      assert_ok(dist_versions_await(w.s->versions, dist_versions_latest(w.s->versions), 0));
      assert_int_equal(atomic_load(&w.s->released), atomic_load(&w.s->published) - 1);
      end_series(w.s);
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

/* ---- Inside a run ---- */

typedef struct nested {
  series *s;
  int64_t expected; /* the version that the run sees */
} nested;

static dist_status see_inside(dist_replica *replica, void *user_data) {
  const nested *in = user_data;
  return see_number(replica, in->s, in->expected);
}

static dist_status publish_and_run(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                   dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  const nested *in = user_data;
  TRY(publish_next(in->s, NULL));
  return dist_run(strategy, see_inside, user_data, NULL);
}

static dist_status publish_in_a_merge(dist_replica *replica, void *user_data) {
  nested *in = user_data;
  TRY(see_inside(replica, user_data));
  TRY(dist_merge_call(replica, publish_and_run, in, NULL, NULL, NULL, NULL));
  return see_inside(replica, user_data);
}

/* A replica of the inner run asks first. */
static dist_status ask_in_a_merge(dist_replica *replica, void *user_data) {
  nested *in = user_data;
  TRY(dist_merge_call(replica, publish_and_run, in, NULL, NULL, NULL, NULL));
  return see_inside(replica, user_data);
}

static void runs_inside_merge_functions(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    dist_strategy *strategy = strategy_of(2, threads);
    nested in = {series_with(NULL), 0};
    in.expected = publish(in.s);
    for (int run = 0; run < 3; run++) {
      assert_ok(dist_run(strategy, publish_in_a_merge, &in, NULL));
      in.expected = dist_versions_latest(in.s->versions) + 1;
      assert_int_equal(atomic_load(&in.s->released), in.expected - 2);
      assert_ok(dist_run(strategy, ask_in_a_merge, &in, NULL));
    }
    end_series(in.s);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status see_on_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  nested *in = user_data;
  TRY(see_number(device, in->s, in->expected));
  TRY(dist_barrier(device, NULL, NULL));
  if (dist_replica_id(device) == 0 && dist_device_replica(device) == 0) TRY(publish_next(in->s, NULL));
  TRY(dist_barrier(device, NULL, NULL));
  return see_number(device, in->s, in->expected);
}

static dist_status see_on_devices(dist_replica *replica, void *user_data) {
  for (int i = 0; i < 2; i++) {
    dist_value *result = NULL;
    TRY(dist_run_on_devices(replica, see_on_device, user_data, NULL, NULL, NULL, &result));
    dist_value_release(result);
    /* In a run, all replicas must have asked before the next version is published. A request has only one
     * replica. */
    if (dist_instance_state(replica) == NULL) TRY(dist_barrier(replica, NULL, NULL));
  }
  return see_inside(replica, user_data);
}

static dist_status an_own_state(dist_replica *replica, void **out_state, void *user_data) {
  (void)replica;
  *out_state = user_data;
  return DIST_OK;
}

static void logical_devices(void **state) {
  (void)state;
  dist_strategy_options with = DIST_STRATEGY_OPTIONS_INIT;
  with.threads = DIST_THREADS_LIBRARY;
  dist_strategy *strategy = mesh_with(2, 2, with);
  nested in = {series_with(NULL), 0};
  in.expected = publish(in.s);
  int own = 0;
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = an_own_state;
  options.user_data = &own;
  assert_ok(dist_instances_open(strategy, &options));
  for (int run = 0; run < 3; run++) {
    assert_ok(dist_run(strategy, see_on_devices, &in, NULL));
    in.expected = dist_versions_latest(in.s->versions);
    assert_int_equal(atomic_load(&in.s->released), in.expected - 1);
    assert_int_equal(end_of(submit(strategy, see_on_devices, &in, NULL)), DIST_OK);
    in.expected = dist_versions_latest(in.s->versions);
    assert_ok(dist_versions_await(in.s->versions, in.expected, -1));
  }
  assert_ok(dist_strategy_destroy(strategy));
  end_series(in.s);
}

/* ---- Requests ---- */

typedef struct asking {
  series *s;
  int64_t expected;
  held at;
} asking;

static dist_status see_before_and_after(dist_replica *replica, void *user_data) {
  asking *a = user_data;
  TRY(see_number(replica, a->s, a->expected));
  gate_add(&a->at.inside);
  gate_await(&a->at.released, 1);
  return see_number(replica, a->s, a->expected);
}

static void requests_are_runs_of_one(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  series *s = series_with(NULL);
  asking first = {s, publish(s), HELD_INIT};
  dist_request *one = submit(strategy, see_before_and_after, &first, NULL);
  gate_await(&first.at.inside, 1);
  asking second = {s, publish(s), HELD_INIT};
  dist_request *other = submit(strategy, see_before_and_after, &second, NULL);
  gate_await(&second.at.inside, 1);
  const int64_t latest = publish(s);
  assert_int_equal(latest, 3);
  assert_int_equal(atomic_load(&s->released), 0);
  assert_ok(dist_versions_await(s->versions, 1, 0));
  assert_fails(dist_versions_await(s->versions, 2, 0), DIST_DEADLINE_EXCEEDED, "version 1 (1 run)");
  assert_fails(dist_versions_await(s->versions, 3, 1), DIST_DEADLINE_EXCEEDED,
               "version 1 (1 run), version 2 (1 run)");
  gate_add(&first.at.released);
  assert_ok(dist_versions_await(s->versions, 2, -1));
  assert_int_equal(end_of(one), DIST_OK);
  assert_int_equal(atomic_load(&s->released), 1);
  assert_fails(dist_versions_await(s->versions, 3, 0), DIST_DEADLINE_EXCEEDED, "version 2 (1 run)");
  gate_add(&second.at.released);
  assert_ok(dist_versions_await(s->versions, latest, -1));
  assert_int_equal(end_of(other), DIST_OK);
  assert_ok(dist_strategy_destroy(strategy));
  end_series(s);
}

static dist_status make_from_version(dist_replica *replica, void **out_state, void *user_data) {
  *out_state = user_data;
  return see_inside(replica, user_data);
}

static void states_are_made_in_runs(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  nested in = {series_with(NULL), 0};
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.create_state = make_from_version;
  options.warm_up = see_inside;
  options.user_data = &in;
  assert_fails(dist_instances_open(strategy, &options), DIST_FAILED_PRECONDITION,
               "Call dist_versions_publish() first");
  in.expected = publish(in.s);
  assert_ok(dist_instances_open(strategy, &options));
  (void)publish(in.s);
  assert_ok(dist_versions_await(in.s->versions, 2, -1));
  assert_int_equal(atomic_load(&in.s->released), 1);
  assert_ok(dist_strategy_destroy(strategy));
  end_series(in.s);
}

/* ---- Replacing versions under load ---- */

enum { SUBMITTERS = 2, EACH = 2000, GANGS = 300 };

typedef struct load {
  dist_strategy *strategy;
  series *s;
  atomic_int answered, refused, bad;
} load;

static dist_status answer(dist_replica *replica, void *user_data) {
  load *l = user_data;
  int64_t number = 0;
  TRY(see(replica, l->s, &number));
  sched_yield();
  TRY(see_number(replica, l->s, number));
  atomic_fetch_add(&l->answered, 1);
  return DIST_OK;
}

static void *submit_main(void *argument) {
  load *l = argument;
  for (int i = 0; i < EACH; i++) {
    dist_request *work = NULL;
    if (dist_submit(l->strategy, answer, l, NULL, &work) != DIST_OK) {
      atomic_fetch_add(&l->refused, 1);
    } else if (dist_request_wait(work, -1) != DIST_OK) {
      atomic_fetch_add(&l->bad, 1);
    }
    dist_request_destroy(work);
  }
  return NULL;
}

static void *gang_main(void *argument) {
  load *l = argument;
  watch w = {l->s, 0};
  for (int i = 0; i < GANGS; i++) {
    if (dist_run(l->strategy, see_the_same, &w, NULL) != DIST_OK) atomic_fetch_add(&l->bad, 1);
  }
  return NULL;
}

static void a_swap_under_load(void **state) {
  (void)state;
  load l = {.strategy = strategy_of(2, DIST_THREADS_LIBRARY), .s = series_with(NULL)};
  (void)publish(l.s);
  assert_ok(dist_instances_open(l.strategy, NULL));
  publisher p;
  begin_publishing(&p, l.s);
  pthread_t threads[SUBMITTERS + 1];
  for (int i = 0; i <= SUBMITTERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, i < SUBMITTERS ? submit_main : gang_main, &l), 0);
  for (int i = 0; i <= SUBMITTERS; i++) pthread_join(threads[i], NULL);
  end_publishing(&p);
  const int64_t latest = dist_versions_latest(l.s->versions);
  print_message("# %lld versions, %d requests\n", (long long)latest, atomic_load(&l.answered));
  assert_true(latest > MANY);
  assert_int_equal(atomic_load(&l.bad), 0);
  assert_int_equal(atomic_load(&l.refused), 0);
  assert_int_equal(atomic_load(&l.answered), SUBMITTERS * EACH);
  assert_ok(dist_versions_await(l.s->versions, latest, -1));
  assert_int_equal(atomic_load(&l.s->released), latest - 1);
  assert_ok(dist_strategy_destroy(l.strategy));
  end_series(l.s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_for_all_replicas),    cmocka_unit_test(runs_inside_merge_functions),
      cmocka_unit_test(logical_devices),         cmocka_unit_test(requests_are_runs_of_one),
      cmocka_unit_test(states_are_made_in_runs), cmocka_unit_test(a_swap_under_load),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
