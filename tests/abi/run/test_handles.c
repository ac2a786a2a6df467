/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica handle belongs to the thread that runs the replica's function. Other threads cannot use it;
 * another thread can take over with attach; and only a thread that has entered can leave.
 */
#include "tests/abi/mesh_support.h"
#include "tests/abi/replica_calls.h"

enum { R = 3 };

typedef struct handles {
  dist_strategy *strategy;
  call_things things;
  dist_replica *of[R];
  int rows;  /* number of calls that are tried */
  int wrong; /* calls that were not rejected as expected; only one thread writes it */
  char said[256];
} handles;

/* Tries every call with a handle of another thread. All must be rejected with a message that names both
 * threads. */
static int try_all(handles *h, dist_replica *handle, const char *words, char *said, size_t size) {
  int wrong = 0;
  for (size_t i = 0; i < COUNT_OF(replica_calls); i++) {
    const dist_status status = replica_calls[i].call(handle, &h->things);
    if (status == DIST_FAILED_PRECONDITION && strstr(dist_last_error(), words) != NULL) continue;
    wrong++;
    snprintf(said, size, "%s: %s: %s", replica_calls[i].name, dist_status_name(status), dist_last_error());
  }
  return wrong;
}

static dist_status zero_tries_the_handle_of_one(dist_replica *replica, void *user_data) {
  handles *h = user_data;
  const int32_t id = dist_replica_id(replica);
  h->of[id] = replica;
  dist_status status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK && id == 0) {
    h->wrong += dist_replica_id(h->of[1]) != 1 || dist_replica_num_replicas(h->of[1]) != R;
    h->wrong += dist_replica_strategy(h->of[1]) != h->strategy;
    h->wrong +=
        try_all(h, h->of[1], "handle of replica 1, but the calling thread is in the function of replica 0",
                h->said, sizeof h->said);
    dist_replica *const mine = dist_get_replica();
    h->wrong += mine != replica;
  }
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void of_another_replica(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    handles h = {.strategy = strategy_of(R, threads)};
    h.things = things_of(h.strategy);
    report error;
    for (int i = 0; i < 3; i++) {
      if (run_on(threads, h.strategy, zero_tries_the_handle_of_one, &h, &error) != DIST_OK)
        fail_msg("%s: %s", threads_name(threads), error.message);
      if (h.wrong != 0) fail_msg("%d: %s", h.wrong, h.said);
    }
    assert_healthy(threads, h.strategy);
    end_things(&h.things);
    assert_ok(dist_strategy_destroy(h.strategy));
  }
}

/* ---- On a thread without a replica, and in pieces of a loop ---- */

typedef struct piece {
  handles *h;
  dist_replica *handle;
  pthread_t owner;
  atomic_int wrong;
} piece;

static void *try_on_a_thread(void *argument) {
  piece *p = argument;
  atomic_fetch_add(
      &p->wrong, try_all(p->h, p->handle, "not inside a replica's function", p->h->said, sizeof p->h->said));
  atomic_fetch_add(&p->wrong, dist_replica_id(p->handle) != 0);
  return NULL;
}

static void try_in_a_loop(int64_t begin, int64_t end, void *user_data) {
  piece *p = user_data;
  if (pthread_equal(pthread_self(), p->owner)) return;
  for (int64_t i = begin; i < end; i++)
    atomic_fetch_add(&p->wrong, dist_barrier(p->handle, NULL, NULL) != DIST_FAILED_PRECONDITION);
}

static dist_status zero_asks_a_thread(dist_replica *replica, void *user_data) {
  handles *h = user_data;
  if (dist_replica_id(replica) == 0) {
    piece p = {.h = h, .handle = replica, .owner = pthread_self()};
    pthread_t thread;
    if (pthread_create(&thread, NULL, try_on_a_thread, &p) != 0) abort();
    pthread_join(thread, NULL);
    if (dist_replica_parallel_for(replica, 0, 1000, 1, try_in_a_loop, &p) != DIST_OK)
      atomic_fetch_add(&p.wrong, 1);
    h->wrong += atomic_load(&p.wrong);
  }
  return healthy(replica, NULL);
}

static void of_no_replica(void **state) {
  (void)state;
  handles h = {.strategy = strategy_of(R, DIST_THREADS_CALLER)};
  h.things = things_of(h.strategy);
  assert_ok(dist_run(h.strategy, zero_asks_a_thread, &h, NULL));
  if (h.wrong != 0) fail_msg("%d: %s", h.wrong, h.said);
  end_things(&h.things);
  assert_ok(dist_strategy_destroy(h.strategy));
}

/* ---- After the function, in a merge function, of an inner run, of logical devices ---- */

static dist_status keep(dist_replica *replica, void *user_data) {
  ((handles *)user_data)->of[dist_replica_id(replica)] = replica;
  return DIST_OK;
}

static void after_the_function(void **state) {
  (void)state;
  handles h = {.strategy = strategy_of(R, DIST_THREADS_CALLER)};
  h.things = things_of(h.strategy);
  assert_ok(dist_run(h.strategy, keep, &h, NULL));
  for (int i = 0; i < R; i++) {
    if (try_all(&h, h.of[i], "is not running", h.said, sizeof h.said) != 0) fail_msg("%s", h.said);
  }
  end_things(&h.things);
  assert_ok(dist_strategy_destroy(h.strategy));
}

static dist_status inner(dist_replica *replica, void *user_data) {
  handles *h = user_data;
  const int32_t me = dist_replica_id(replica);
  char said[256];
  int wrong = 0;
  if (me == 1) wrong = try_all(h, h->of[2], "is in the function of replica 1", said, sizeof said);
  if (me == 0) wrong = try_all(h, h->of[0], "but this thread is inside a merge function", said, sizeof said);
  return wrong != 0 ? dist_fail(DIST_INTERNAL, said) : healthy(replica, NULL);
}

static dist_status merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs, dist_value **out,
                         void *user_data) {
  (void)args, (void)out, (void)kwargs;
  handles *h = user_data;
  h->wrong += try_all(h, h->of[0], "but this thread is inside a merge function", h->said, sizeof h->said);
  return dist_run(strategy, inner, h, NULL);
}

static dist_status run_inside(dist_replica *replica, void *user_data) {
  (void)keep(replica, user_data);
  const dist_status status = dist_merge_call(replica, merge, user_data, NULL, NULL, NULL, NULL);
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void in_inner_runs(void **state) {
  (void)state;
  handles h = {.strategy = strategy_of(R, DIST_THREADS_LIBRARY)};
  h.things = things_of(h.strategy);
  assert_ok(dist_run(h.strategy, run_inside, &h, NULL));
  if (h.wrong != 0) fail_msg("%d: %s", h.wrong, h.said);
  end_things(&h.things);
  assert_ok(dist_strategy_destroy(h.strategy));
}

static dist_status try_as_a_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                                   dist_value **out, void *user_data) {
  (void)args, (void)kwargs, (void)out;
  handles *h = user_data;
  const int32_t replica = dist_device_replica(device);
  dist_status status = DIST_OK;
  char said[256];
  if (replica == 0) {
    const int wrong = try_all(h, h->of[0], "is inside dist_run_on_devices()", said, sizeof said);
    if (wrong != 0) status = dist_fail(DIST_INTERNAL, said);
  }
  return status == DIST_OK ? dist_barrier(device, NULL, NULL) : status;
}

static dist_status on_devices(dist_replica *replica, void *user_data) {
  (void)keep(replica, user_data);
  const dist_status status = dist_run_on_devices(replica, try_as_a_device, user_data, NULL, NULL, NULL, NULL);
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void of_logical_devices(void **state) {
  (void)state;
  handles h = {.strategy = mesh_of(2, 2)};
  h.things = things_of(h.strategy);
  assert_ok(dist_run(h.strategy, on_devices, &h, NULL));
  end_things(&h.things);
  assert_ok(dist_strategy_destroy(h.strategy));
}

/* ---- Only a thread that has entered can leave ---- */

static dist_status leave(dist_replica *replica, void *user_data) {
  (void)user_data;
  const dist_status status = dist_replica_leave(replica, DIST_OK);
  if (status != DIST_FAILED_PRECONDITION || strstr(dist_last_error(), "dist_replica_enter()") == NULL)
    return dist_fail(DIST_INTERNAL, "it leaves");
  return healthy(replica, NULL);
}

static dist_status leave_as_a_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                                     dist_value **out, void *user_data) {
  (void)args, (void)kwargs, (void)out;
  return leave(device, user_data);
}

static dist_status leave_on_devices(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, leave_as_a_device, user_data, NULL, NULL, NULL, NULL);
}

static dist_status leave_inside_merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                      dist_value **out, void *user_data) {
  (void)args, (void)out, (void)kwargs;
  if (dist_replica_leave(user_data, DIST_OK) != DIST_FAILED_PRECONDITION)
    return dist_fail(DIST_INTERNAL, "it leaves");
  return dist_strategy_num_replicas(strategy) > 0 ? DIST_OK : DIST_INTERNAL;
}

static dist_status leave_in_merge(dist_replica *replica, void *user_data) {
  (void)user_data;
  const dist_status status = dist_merge_call(replica, leave_inside_merge, replica, NULL, NULL, NULL, NULL);
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void only_who_entered_leaves(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(2, threads);
    report error;
    if (threads != DIST_THREADS_HOST) assert_ok(dist_run(strategy, leave, NULL, NULL));
    if (run_on(threads, strategy, leave_in_merge, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
  dist_strategy *mesh = mesh_of(2, 2);
  assert_ok(dist_run(mesh, leave_on_devices, NULL, NULL));
  assert_ok(dist_strategy_destroy(mesh));
  assert_fails(dist_replica_leave(dist_get_replica(), DIST_OK), DIST_FAILED_PRECONDITION,
               "dist_replica_enter()");
}

/* ---- Another thread takes over a replica ---- */

typedef struct visitor {
  dist_replica *replica;
  int end_inside; /* without detaching */
  dist_status status;
  report error;
} visitor;

static void *visit(void *argument) {
  visitor *v = argument;
  v->status = dist_replica_attach(v->replica);
  if (v->status == DIST_OK && dist_get_replica() != v->replica)
    v->status = dist_fail(DIST_INTERNAL, "not attached");
  if (v->status == DIST_OK) v->status = healthy(v->replica, NULL);
  if (v->status == DIST_OK && dist_replica_attach(v->replica) == DIST_OK)
    v->status = dist_fail(DIST_INTERNAL, "attached twice");
  if (v->status == DIST_OK && !v->end_inside) v->status = dist_replica_detach(v->replica);
  read_report(&v->error);
  return NULL;
}

static dist_status by_a_visitor(dist_replica *replica, int end_inside) {
  visitor v = {.replica = replica, .end_inside = end_inside, .status = DIST_INTERNAL};
  dist_status status = dist_replica_detach(replica);
  if (status != DIST_OK) return status;
  if (dist_barrier(replica, NULL, NULL) != DIST_FAILED_PRECONDITION)
    return dist_fail(DIST_INTERNAL, "not detached");
  pthread_t thread;
  if (pthread_create(&thread, NULL, visit, &v) != 0) abort();
  pthread_join(thread, NULL);
  status = dist_replica_attach(replica);
  if (status != DIST_OK) return status;
  return v.status == DIST_OK ? healthy(replica, NULL) : dist_fail(v.status, v.error.message);
}

static dist_status visited(dist_replica *replica, void *user_data) {
  (void)user_data;
  return by_a_visitor(replica, 0);
}
static dist_status visitor_ends(dist_replica *replica, void *user_data) {
  (void)user_data;
  return by_a_visitor(replica, 1);
}

static dist_status visited_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                                  dist_value **out, void *user_data) {
  (void)args, (void)kwargs, (void)out, (void)user_data;
  return by_a_visitor(device, 0);
}
static dist_status visited_devices(dist_replica *replica, void *user_data) {
  const dist_status status = dist_run_on_devices(replica, visited_device, user_data, NULL, NULL, NULL, NULL);
  return status == DIST_OK ? by_a_visitor(replica, 0) : status;
}

static void another_thread_goes_on(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    report error;
    if (run_on(threads, strategy, visited, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
    if (run_on(threads, strategy, visitor_ends, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
  dist_strategy *mesh = mesh_of(2, 2);
  assert_ok(dist_run(mesh, visited_devices, NULL, NULL));
  assert_ok(dist_strategy_destroy(mesh));
}

/* A function that returns while another thread is attached waits for that thread. */
typedef struct late {
  visitor visitor;
  pthread_t thread;
  atomic_int may_go;
  atomic_int gone;
} late;

static void *stay_a_while(void *argument) {
  late *l = argument;
  l->visitor.status = dist_replica_attach(l->visitor.replica);
  atomic_store(&l->may_go, 1);
  for (int i = 0; i < 1000; i++) sched_yield();
  if (l->visitor.status == DIST_OK) l->visitor.status = dist_barrier(l->visitor.replica, NULL, NULL);
  atomic_store(&l->gone, 1);
  if (l->visitor.status == DIST_OK) l->visitor.status = dist_replica_detach(l->visitor.replica);
  return NULL;
}

static dist_status return_too_early(dist_replica *replica, void *user_data) {
  late *l = user_data;
  if (dist_replica_id(replica) != 0) return dist_barrier(replica, NULL, NULL);
  l->visitor.replica = replica;
  const dist_status status = dist_replica_detach(replica);
  if (status != DIST_OK) return status;
  if (pthread_create(&l->thread, NULL, stay_a_while, l) != 0) abort();
  while (!atomic_load(&l->may_go)) sched_yield();
  return DIST_OK;
}

static void a_function_waits_for_who_is_attached(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  late l = {.visitor = {.status = DIST_INTERNAL}};
  assert_ok(dist_run(strategy, return_too_early, &l, NULL));
  assert_int_equal(atomic_load(&l.gone), 1);
  pthread_join(l.thread, NULL);
  assert_int_equal(l.visitor.status, DIST_OK);
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status attach_to_others(dist_replica *replica, void *user_data) {
  handles *h = user_data;
  h->of[dist_replica_id(replica)] = replica;
  dist_status status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK && dist_replica_id(replica) == 0) {
    h->wrong += dist_replica_attach(h->of[1]) != DIST_FAILED_PRECONDITION;
    h->wrong += strstr(dist_last_error(), "is already in the function of replica 0") == NULL;
    visitor v = {.replica = h->of[1]};
    pthread_t thread;
    if (pthread_create(&thread, NULL, visit, &v) != 0) abort();
    pthread_join(thread, NULL);
    h->wrong += v.status != DIST_FAILED_PRECONDITION ||
                strstr(v.error.message, "Call dist_replica_detach() there first") == NULL;
  }
  return status == DIST_OK ? dist_barrier(replica, NULL, NULL) : status;
}

static void attaching_where_nobody_let_go(void **state) {
  (void)state;
  handles h = {.strategy = strategy_of(2, DIST_THREADS_CALLER)};
  assert_ok(dist_run(h.strategy, attach_to_others, &h, NULL));
  assert_int_equal(h.wrong, 0);
  assert_fails(dist_replica_attach(h.of[1]), DIST_FAILED_PRECONDITION, "is not running");
  assert_fails(dist_replica_detach(h.of[1]), DIST_FAILED_PRECONDITION, "is not running");
  assert_fails(dist_replica_detach(dist_get_replica()), DIST_FAILED_PRECONDITION, "default replica");
  assert_int_equal(dist_replica_attach(NULL), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_replica_detach(NULL), DIST_INVALID_ARGUMENT);
  assert_ok(dist_strategy_destroy(h.strategy));
}

/* ---- A thread that has detached is still inside its function ---- */

static dist_status ask_while_detached(dist_replica *replica, void *user_data) {
  dist_strategy *strategy = user_data;
  dist_status status = dist_replica_detach(replica);
  if (status != DIST_OK) return status;
  const dist_status ran = dist_run(strategy, healthy, NULL, NULL);
  const int refused =
      ran == DIST_FAILED_PRECONDITION && strstr(dist_last_error(), "runs do not nest") != NULL;
  const dist_status ended = dist_strategy_shutdown(strategy, 0);
  status = dist_replica_attach(replica);
  if (status != DIST_OK) return status;
  if (!refused || ended != DIST_FAILED_PRECONDITION) return dist_fail(DIST_INTERNAL, "not refused");
  return healthy(replica, NULL);
}

static void runs_do_not_nest_where_detached(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    dist_strategy *strategy = strategy_of(2, threads);
    assert_ok(dist_run(strategy, ask_while_detached, strategy, NULL));
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_do_not_nest_where_detached),
      cmocka_unit_test(of_another_replica),
      cmocka_unit_test(of_no_replica),
      cmocka_unit_test(after_the_function),
      cmocka_unit_test(in_inner_runs),
      cmocka_unit_test(of_logical_devices),
      cmocka_unit_test(only_who_entered_leaves),
      cmocka_unit_test(another_thread_goes_on),
      cmocka_unit_test(a_function_waits_for_who_is_attached),
      cmocka_unit_test(attaching_where_nobody_let_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
