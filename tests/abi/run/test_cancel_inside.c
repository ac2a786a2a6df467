/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancel objects inside runs: collectives that wait, are in progress or are planned; logical devices; runs
 * inside merge functions.
 */
#include "tests/abi/gate.h"
#include "tests/abi/mesh_support.h"

static const char kReason[] = "the budget is spent";

static dist_cancel *new_cancel(void) {
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  return cancel;
}

enum how { BLOCKING, ASYNCHRONOUS, PLANNED, HOWS };

typedef struct meeting {
  enum how how;
  dist_group *group;   /* NULL = all replicas */
  dist_cancel *cancel; /* of the member that passes it */
  int destroys;        /* this member destroys its handle while its work uses the object */
  int before;          /* the object is signalled before the collective */
  int32_t has_it;      /* the replica that passes it */
  gate coming;
  dist_status statuses[MOST];
  report reports[MOST];
  dist_status others[MOST]; /* of a barrier of all replicas, after a smaller group was cancelled */
} meeting;

static dist_status meet(dist_replica *replica, meeting *m, int32_t me) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = m->group;
  options.cancel = me == m->has_it ? m->cancel : NULL;
  dist_work *work = NULL;
  int64_t length = 1;
  float number = 1;
  dist_tensor tensor = vector_of(&number, DIST_F32, &length);
  options.planned = m->how == PLANNED;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options,
                                       m->how != BLOCKING ? &work : NULL);
  if (m->how == PLANNED && status == DIST_OK) {
    status = dist_work_start(work); /* one round succeeds */
    if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
    gate_add(&m->coming);
    /* and the last member does not start a second one */
    if (status == DIST_OK && me == dist_replica_num_replicas(replica) - 1) {
      while (!dist_cancel_signalled(m->cancel)) sched_yield();
    }
    if (status == DIST_OK) status = dist_work_start(work);
  }
  if (status == DIST_OK && m->how == ASYNCHRONOUS && me == m->has_it && m->destroys)
    dist_cancel_destroy(m->cancel);
  if (status == DIST_OK && m->how != BLOCKING) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  m->statuses[me] = status;
  read_report(&m->reports[me]);
  dist_work_destroy(work);
  return status;
}

static dist_status member(dist_replica *replica, void *user_data) {
  meeting *m = user_data;
  const int32_t me = dist_replica_id(replica);
  const int32_t last = dist_replica_num_replicas(replica) - 1;
  const int comes = m->group == NULL || dist_group_rank(m->group, me) >= 0;
  if (!comes) {
    m->others[me] = DIST_OK;
    return DIST_OK;
  }
  if (m->how != PLANNED && !m->before) {
    gate_add(&m->coming);
    while (me == last && !m->destroys && !dist_cancel_signalled(m->cancel)) sched_yield();
  }
  const dist_status status = meet(replica, m, me);
  return m->destroys ? status : DIST_OK;
}

static void *signal_when_all_come(void *argument) {
  meeting *m = argument;
  gate_await(&m->coming, 3);
  (void)!dist_cancel_signal(m->cancel, kReason);
  return NULL;
}

static void check_meeting(dist_strategy *strategy, meeting *m, int32_t members_from) {
  pthread_t signaller;
  m->cancel = new_cancel();
  if (m->before) assert_ok(dist_cancel_signal(m->cancel, kReason));
  if (!m->before) assert_int_equal(pthread_create(&signaller, NULL, signal_when_all_come, m), 0);
  /* the functions return OK, although a part of the run was cancelled */
  const dist_status status = dist_run(strategy, member, m, NULL);
  if (!m->before) pthread_join(signaller, NULL);
  assert_int_equal(status, m->group == NULL ? DIST_CANCELLED : DIST_OK);
  for (int32_t i = members_from; i < 3 + members_from; i++) {
    assert_int_equal(m->statuses[i], DIST_CANCELLED);
    assert_has(m->reports[i].message, kReason);
  }
  dist_cancel_destroy(m->cancel);
  assert_healthy(DIST_THREADS_CALLER, strategy);
}

static void collectives_of_all_members(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (int i = 0; i < 10; i++) {
    for (enum how how = BLOCKING; how < HOWS; how++) {
      for (int before = 0; before < 2; before++) {
        static meeting m;
        m = (meeting){.how = how, .before = before, .has_it = i % 3, .coming = GATE_INIT};
        check_meeting(strategy, &m, 0);
      }
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void collectives_of_some(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(4, DIST_THREADS_CALLER);
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, (const int32_t[]){1, 2, 3}, 3, &group));
  for (enum how how = BLOCKING; how < HOWS; how++) {
    static meeting m;
    m = (meeting){.how = how, .group = group, .has_it = 2, .coming = GATE_INIT};
    check_meeting(strategy, &m, 1);
  }
  assert_ok(dist_group_destroy(group));
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_work_holds_its_object(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  for (int i = 0; i < 20; i++) {
    static meeting m;
    m = (meeting){.how = ASYNCHRONOUS, .cancel = new_cancel(), .destroys = 1, .coming = GATE_INIT};
    assert_ok(dist_run(strategy, member, &m, NULL));
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* A signal after the collective has no effect. */
static dist_status over_before_the_signal(dist_replica *replica, void *user_data) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_status status = dist_barrier(replica, &options, NULL);
  options.cancel = user_data;
  if (status == DIST_OK) status = dist_barrier(replica, &options, NULL);
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL); /* all have released it */
  if (status == DIST_OK && dist_replica_id(replica) == 0) status = dist_cancel_signal(user_data, kReason);
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void a_signal_that_is_late(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  dist_cancel *cancel = new_cancel();
  assert_ok(dist_run(strategy, over_before_the_signal, cancel, NULL));
  dist_cancel_destroy(cancel);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- An operator signals during the collective that it cancels ---- */

static void signals_while_it_adds(void *acc, const void *in, int64_t count, dist_dtype dtype,
                                  void *user_data) {
  (void)acc, (void)in, (void)count, (void)dtype;
  (void)!dist_cancel_signal(user_data, kReason);
}

static dist_status reduce_by_it(dist_replica *replica, void *user_data) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = signals_while_it_adds;
  options.reduce_user_data = user_data;
  options.cancel = user_data;
  int64_t length = 1000;
  float numbers[1000] = {0}, sums[1000];
  const dist_tensor in = vector_of(numbers, DIST_F32, &length);
  dist_tensor out = vector_of(sums, DIST_F32, &length);
  return dist_all_reduce(replica, DIST_REDUCE_USER, &in, &out, 1, &options, NULL);
}

static void an_operator_signals(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  dist_cancel *cancel = new_cancel();
  const dist_status status = dist_run(strategy, reduce_by_it, cancel, NULL);
  if (status != DIST_OK) assert_int_equal(status, DIST_CANCELLED); /* it may have completed before */
  dist_cancel_destroy(cancel);
  assert_healthy(DIST_THREADS_LIBRARY, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Runs inside merge functions ---- */

typedef struct nested {
  dist_cancel *outer, *inner;
  int signal_inner;
  int late; /* the outer run is cancelled before the inner one starts */
  dist_status inner_status;
  report inner_error;
} nested;

static dist_status inside(dist_replica *replica, void *user_data) {
  nested *n = user_data;
  if (dist_replica_id(replica) == 0 && !n->late)
    (void)!dist_cancel_signal(n->signal_inner ? n->inner : n->outer, kReason);
  return dist_barrier(replica, NULL, NULL);
}

static dist_status run_inside(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  nested *n = user_data;
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = n->inner;
  if (n->late) (void)!dist_cancel_signal(n->outer, kReason);
  n->inner_status = dist_run(strategy, inside, n, &options);
  read_report(&n->inner_error);
  return DIST_OK;
}

static dist_status merge_once(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_inside, user_data, NULL, NULL, NULL, NULL);
}

static void runs_inside_merge_functions(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  for (int i = 0; i < 9; i++) {
    nested n = {.outer = new_cancel(), .inner = new_cancel(), .signal_inner = i % 3 == 1, .late = i % 3 == 2};
    dist_run_options options = DIST_RUN_OPTIONS_INIT;
    options.cancel = n.outer;
    const dist_status status = dist_run(strategy, merge_once, &n, &options);
    assert_int_equal(n.inner_status, DIST_CANCELLED);
    assert_has(n.inner_error.message, kReason);
    assert_int_equal(status, n.signal_inner ? DIST_OK : DIST_CANCELLED);
    dist_cancel_destroy(n.outer);
    dist_cancel_destroy(n.inner);
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Logical devices ---- */

typedef struct devices {
  dist_cancel *cancel;
  int of_run; /* the object belongs to the replicas' run; otherwise to replica 0's run on its devices */
  dist_status statuses[2];
  report reports[2];
} devices;

static dist_status on_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  devices *d = user_data;
  if (dist_device_replica(device) != 0 && !d->of_run) return dist_barrier(device, NULL, NULL);
  if (dist_replica_id(device) == 1) (void)!dist_cancel_signal(d->cancel, kReason);
  return dist_barrier(device, NULL, NULL);
}

static dist_status on_its_devices(dist_replica *replica, void *user_data) {
  devices *d = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  options.cancel = me == 0 && !d->of_run ? d->cancel : NULL;
  d->statuses[me] = dist_run_on_devices(replica, on_device, d, NULL, NULL, &options, NULL);
  read_report(&d->reports[me]);
  return dist_barrier(replica, NULL, NULL);
}

static void logical_devices(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  for (int i = 0; i < 10; i++) {
    static devices d;
    d = (devices){.cancel = new_cancel(), .of_run = i % 2};
    dist_run_options options = DIST_RUN_OPTIONS_INIT;
    options.cancel = d.of_run ? d.cancel : NULL;
    const dist_status status = dist_run(strategy, on_its_devices, &d, &options);
    assert_int_equal(status, d.of_run ? DIST_CANCELLED : DIST_OK);
    assert_int_equal(d.statuses[0], DIST_CANCELLED);
    assert_has(d.reports[0].message, kReason);
    if (!d.of_run) assert_int_equal(d.statuses[1], DIST_OK);
    if (d.of_run && d.statuses[1] != DIST_OK) assert_has(d.reports[1].message, kReason);
    dist_cancel_destroy(d.cancel);
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_of_all_members),
      cmocka_unit_test(collectives_of_some),
      cmocka_unit_test(a_work_holds_its_object),
      cmocka_unit_test(a_signal_that_is_late),
      cmocka_unit_test(an_operator_signals),
      cmocka_unit_test(runs_inside_merge_functions),
      cmocka_unit_test(logical_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
