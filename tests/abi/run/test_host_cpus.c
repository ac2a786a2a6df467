/* SPDX-License-Identifier: Apache-2.0
 *
 * Host threads that share a CPU: dist_strategy_explain() reports it, dist_cpu_options.move_host_threads makes
 * libdist move them, and the host controls at all times where they may run.
 *
 * The test intercepts sched_setaffinity(), so that it sees every change that libdist makes. Its own calls
 * bypass the interception.
 */
#include "tests/abi/common.h"

#include <sys/syscall.h>
#include <unistd.h>

static int32_t first_cpu, second_cpu; /* of the process */

typedef struct changes {
  int narrow, back;
  int strange;   /* changes that libdist must never make */
  int interfere; /* the next change is undone at once, as if by another thread */
} changes;

static _Thread_local changes mine;
static _Thread_local cpu_set_t given; /* the mask that the host gave this thread */

static int set_cpus(const cpu_set_t *set) { return (int)syscall(SYS_sched_setaffinity, 0, sizeof *set, set); }

static cpu_set_t cpus(int32_t a, int32_t b) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(a, &set);
  CPU_SET(b, &set);
  return set;
}

static int give(cpu_set_t set) {
  given = set;
  return set_cpus(&set);
}

static int has_what_was_given(void) {
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &given);
}

/* libdist calls this. hwloc calls it too, with sets of another size. */
int sched_setaffinity(pid_t thread, size_t size, const cpu_set_t *set) {
  if (size != sizeof *set) return (int)syscall(SYS_sched_setaffinity, thread, size, set);
  if (mine.interfere && CPU_COUNT(set) == 1) {
    mine.interfere = 0;
    if (syscall(SYS_sched_setaffinity, thread, size, set) != 0) return -1;
    return give(cpus(first_cpu, first_cpu));
  }
  cpu_set_t both;
  CPU_AND(&both, set, &given);
  if (CPU_EQUAL(set, &given)) {
    mine.back++;
  } else if (CPU_COUNT(set) > 0 && CPU_EQUAL(&both, set)) {
    mine.narrow++;
  } else {
    mine.strange++;
  }
  return (int)syscall(SYS_sched_setaffinity, thread, size, set);
}

static int set_up(void **state) {
  cpu_set_t all;
  int found = 0;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &all)) continue;
    if (found++ == 0)
      first_cpu = cpu;
    else
      second_cpu = cpu;
  }
  *state = found >= 2 ? &first_cpu : NULL;
  return 0;
}

/* ---- What dist_strategy_explain() reports ---- */

static void collect(const char *text, size_t length, void *user_data) {
  char *all = user_data;
  const size_t used = strlen(all);
  if (used + length < 8192) memcpy(all + used, text, length), all[used + length] = '\0';
}

/* How often a replica shared a CPU, and how often it moved. */
typedef struct told {
  unsigned met, moved;
} told;

static told read_told(dist_strategy *strategy, int replica) {
  char text[8192] = "";
  char words[64];
  told result = {0, 0};
  if (dist_strategy_explain(strategy, collect, text) != DIST_OK) return result;
  const char *line = strstr(text, "shared CPUs:");
  snprintf(words, sizeof words, " replica %d shared a CPU ", replica);
  const char *at = line == NULL ? NULL : strstr(line, words);
  if (at == NULL) return result;
  const char *moved = strstr(at, "and moved ");
  if (sscanf(at + strlen(words), "%u times", &result.met) != 1) abort();
  if (moved == NULL || sscanf(moved, "and moved %u times", &result.moved) != 1) abort();
  return result;
}

static int explains(dist_strategy *strategy, const char *words) {
  char text[8192] = "";
  return dist_strategy_explain(strategy, collect, text) == DIST_OK && strstr(text, words) != NULL;
}

/* With fewer CPUs than replicas, for example in a cgroup, waiting replicas yield instead. */
#define NO_SPARE_CPU "the process may use fewer CPUs than it has replicas"

static int crowded(dist_strategy *strategy) { return explains(strategy, "waiting: oversubscribed"); }

/* ---- Two replicas on one CPU ---- */

enum { MEETINGS = 8, MOST_TURNS = 1000000 };

/* All members call this at the same time. `here` moves this thread to that CPU, from which it may go
   anywhere; -1 leaves it. Returns when the strategy reports that replica `of` has shared a CPU, or has
   moved. */
static dist_status play(dist_replica *replica, int32_t here, int of, int until_moved) {
  dist_strategy *const strategy = dist_replica_strategy(replica);
  const cpu_set_t wide = given;
  const told before = read_told(strategy, of);
  for (int turn = 0; turn < MOST_TURNS; turn++) {
    if (here >= 0 && (give(cpus(here, here)) != 0 || give(wide) != 0)) return DIST_INTERNAL;
    for (int i = 0; i < MEETINGS; i++) {
      const dist_status met = dist_barrier(replica, NULL, NULL);
      if (met != DIST_OK) return met;
      if (!has_what_was_given()) return dist_fail(DIST_INTERNAL, "the thread's mask is not the host's");
    }
    const told now = read_told(strategy, of);
    int32_t enough = here < 0 ? 0 : until_moved ? now.moved > before.moved : now.met > before.met;
    dist_tensor all = {&enough, DIST_I32, 0, NULL, NULL};
    const dist_status agreed = dist_all_reduce(replica, DIST_REDUCE_MAX, &all, &all, 1, NULL, NULL);
    if (agreed != DIST_OK) return agreed;
    if (enough) return DIST_OK;
  }
  return dist_fail(DIST_INTERNAL, "they were never told to share a CPU");
}

enum ending { LEAVES, FAILS, ENDS, CHANGES, IS_OVERRULED };

typedef struct guest {
  dist_strategy *strategy;
  int id;
  int until_moved;
  enum ending how;
  dist_status played, left;
  int same_inside, same_after;
  changes seen;
} guest;

static pthread_key_t ended;

static void look_at_the_end(void *argument) {
  guest *g = argument;
  g->same_after = has_what_was_given();
  g->seen = mine;
}

/* Replica 0 stays on the first CPU. Replica 1 is moved there, and may use both. */
static void *be_replica(void *argument) {
  guest *g = argument;
  dist_replica *replica = NULL;
  if (pthread_setspecific(ended, g) != 0) return NULL;
  if (give(g->id == 0 ? cpus(first_cpu, first_cpu) : cpus(first_cpu, second_cpu)) != 0) return NULL;
  g->left = dist_replica_enter(g->strategy, g->id, &replica);
  if (g->left != DIST_OK) return NULL;
  mine.interfere = g->how == IS_OVERRULED && g->id == 1;
  g->played = play(replica, g->id == 0 ? -1 : first_cpu, 1, g->until_moved);
  g->same_inside = has_what_was_given();
  if (g->how == ENDS) pthread_exit(NULL);
  if (g->how == CHANGES && give(cpus(second_cpu, second_cpu)) != 0) return NULL;
  g->left = dist_replica_leave(replica, g->how == FAILS ? DIST_NOT_FOUND : g->played);
  return NULL;
}

static dist_strategy *of_host_threads(int32_t move) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_HOST;
  cpu.move_host_threads = move;
  return strategy_with(options);
}

/* Starts both guests. `how` determines how they end. */
static void invite(dist_strategy *strategy, guest guests[2], int until_moved, enum ending how) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    guests[i] = (guest){.strategy = strategy, .id = i, .until_moved = until_moved, .how = how, .played = -1};
    assert_int_equal(pthread_create(&threads[i], NULL, be_replica, &guests[i]), 0);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(guests[i].played, DIST_OK);
    assert_true(guests[i].same_inside);
    assert_true(guests[i].same_after);
    assert_int_equal(guests[i].seen.strange, 0);
  }
  /* The first of the two never moves. */
  assert_int_equal(guests[0].seen.narrow + guests[0].seen.back, 0);
}

static void it_is_told_and_nothing_is_done(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  guest guests[2];
  dist_strategy *strategy = of_host_threads(0);
  if (crowded(strategy)) skip_because(NO_SPARE_CPU);
  assert_true(explains(strategy,
                       "\n  placement: chosen by the host program; libdist never moves host threads\n  "
                       "shared CPUs: no replica"));
  invite(strategy, guests, 0, LEAVES);
  assert_int_equal(guests[1].seen.narrow + guests[1].seen.back, 0);
  assert_true(read_told(strategy, 1).met > 0);
  assert_int_equal(read_told(strategy, 1).moved, 0);
  assert_int_equal(read_told(strategy, 0).met, 0);
  assert_true(explains(strategy, "and moved 0 times. Set move_host_threads to let host threads move\n"));
  assert_ok(dist_strategy_destroy(strategy));
}

static void by_option_they_move(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  dist_strategy *strategy = of_host_threads(1);
  if (crowded(strategy)) skip_because(NO_SPARE_CPU);
  unsigned moved = 0;
  assert_true(
      explains(strategy, "placement: chosen by the host program; a host thread that keeps sharing a CPU"));
  for (enum ending how = LEAVES; how <= CHANGES; how++) {
    guest guests[2];
    invite(strategy, guests, 1, how);
    assert_true(guests[1].seen.narrow > 0);
    assert_int_equal(guests[1].seen.narrow, guests[1].seen.back);
    moved += (unsigned)guests[1].seen.narrow;
    const told now = read_told(strategy, 1);
    assert_int_equal(now.moved, moved);
    assert_true(now.met >= now.moved);
  }
  assert_true(!explains(strategy, "Set move_host_threads"));
  assert_ok(dist_strategy_destroy(strategy));
}

/* If another thread sets the moving thread's mask, that mask stays. */
static void another_threads_mask_stays(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  dist_strategy *strategy = of_host_threads(1);
  if (crowded(strategy)) skip_because(NO_SPARE_CPU);
  guest guests[2];
  invite(strategy, guests, 1, IS_OVERRULED);
  assert_int_equal(guests[1].seen.interfere, 0);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- A strategy is shut down while replicas are inside ---- */

typedef struct stay {
  guest guest;
  pthread_barrier_t *moved, *gone;
} stay;

static void *stay_inside(void *argument) {
  stay *s = argument;
  guest *g = &s->guest;
  dist_replica *replica = NULL;
  if (give(g->id == 0 ? cpus(first_cpu, first_cpu) : cpus(first_cpu, second_cpu)) != 0) return NULL;
  g->left = dist_replica_enter(g->strategy, g->id, &replica);
  if (g->left == DIST_OK) g->played = play(replica, g->id == 0 ? -1 : first_cpu, 1, 1);
  pthread_barrier_wait(s->moved);
  pthread_barrier_wait(s->gone);
  g->same_inside = has_what_was_given();
  if (g->left == DIST_OK) g->left = dist_replica_leave(replica, DIST_OK);
  g->same_after = has_what_was_given();
  g->seen = mine;
  return NULL;
}

static void a_shutdown_leaves_their_masks(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  dist_strategy *strategy = of_host_threads(1);
  if (crowded(strategy)) skip_because(NO_SPARE_CPU);
  pthread_barrier_t moved, gone;
  pthread_t threads[2];
  stay stays[2];
  assert_int_equal(pthread_barrier_init(&moved, NULL, 3) | pthread_barrier_init(&gone, NULL, 3), 0);
  for (int i = 0; i < 2; i++) {
    stays[i] = (stay){{.strategy = strategy, .id = i, .played = -1}, &moved, &gone};
    assert_int_equal(pthread_create(&threads[i], NULL, stay_inside, &stays[i]), 0);
  }
  pthread_barrier_wait(&moved);
  const dist_status shut = dist_strategy_shutdown(strategy, 0);
  assert_ok(dist_strategy_destroy(strategy));
  pthread_barrier_wait(&gone);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(shut, DIST_DEADLINE_EXCEEDED);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(stays[i].guest.played, DIST_OK);
    assert_true(stays[i].guest.same_inside && stays[i].guest.same_after);
    assert_int_equal(stays[i].guest.seen.strange, 0);
  }
  assert_true(stays[1].guest.seen.narrow > 0);
}

/* ---- The caller of dist_run(), and attached threads ---- */

typedef struct party {
  int moves;
  _Atomic int32_t cpu; /* that of replica 1 */
  changes caller, attached;
  dist_status attached_status;
  dist_replica *replica;
} party;

/* Replica 1 is a library thread that is pinned to its CPU. The caller is moved there. */
static dist_status meet_the_caller(dist_replica *replica, void *user_data) {
  party *p = user_data;
  const int id = dist_replica_id(replica);
  if (id == 1) {
    if (sched_getaffinity(0, sizeof given, &given) != 0) return DIST_INTERNAL;
    atomic_store(&p->cpu, sched_getcpu());
  }
  const dist_status met = dist_barrier(replica, NULL, NULL);
  if (met != DIST_OK) return met;
  mine = (changes){0}; /* changes by hwloc when the strategy was created are not counted */
  const dist_status played = play(replica, id == 1 ? -1 : atomic_load(&p->cpu), 0, p->moves);
  if (id == 0) p->caller = mine;
  return played;
}

static void *call_pinned(void *argument) {
  party *p = argument;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = 2;
  cpu.placement = DIST_PLACEMENT_CORES;
  cpu.move_host_threads = p->moves;
  dist_strategy *strategy = NULL;
  if (sched_getaffinity(0, sizeof given, &given) != 0 || dist_strategy_create(&options, &strategy) != DIST_OK)
    return NULL;
  const int runs = !crowded(strategy);
  const int ok = runs && dist_run(strategy, meet_the_caller, p, NULL) == DIST_OK && has_what_was_given();
  return dist_strategy_destroy(strategy) != DIST_OK ? NULL : ok ? "it ran" : runs ? NULL : "crowded";
}

static void a_caller_gives_way_to_who_is_kept_there(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  for (int moves = 0; moves <= 1; moves++) {
    party p = {.moves = moves};
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, call_pinned, &p), 0);
    pthread_join(thread, &result);
    assert_non_null(result);
    if (strcmp(result, "crowded") == 0) skip_because(NO_SPARE_CPU);
    assert_int_equal(p.caller.strange, 0);
    assert_int_equal(p.caller.narrow, p.caller.back);
    assert_int_equal(p.caller.narrow > 0, moves);
  }
}

/* The thread that continues as replica 1 is a host thread, although the function began on a library
 * thread. */
static void *go_on(void *argument) {
  party *p = argument;
  p->attached_status = dist_replica_attach(p->replica);
  if (p->attached_status != DIST_OK) return NULL;
  if (give(cpus(first_cpu, second_cpu)) == 0) p->attached_status = play(p->replica, first_cpu, 1, p->moves);
  const dist_status detached = dist_replica_detach(p->replica);
  if (p->attached_status == DIST_OK) p->attached_status = has_what_was_given() ? detached : DIST_INTERNAL;
  p->attached = mine;
  return NULL;
}

static dist_status lend_replica(dist_replica *replica, void *user_data) {
  party *p = user_data;
  if (dist_replica_id(replica) == 0) {
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) != 0 || give(cpus(first_cpu, first_cpu)) != 0)
      return DIST_INTERNAL;
    const dist_status played = play(replica, -1, 1, p->moves);
    p->caller = mine;
    return give(before) == 0 ? played : DIST_INTERNAL;
  }
  pthread_t thread;
  p->replica = replica;
  dist_status status = dist_replica_detach(replica);
  if (status != DIST_OK) return status;
  const int made = pthread_create(&thread, NULL, go_on, p);
  if (made == 0) pthread_join(thread, NULL);
  status = dist_replica_attach(replica);
  return status != DIST_OK ? status : made == 0 ? p->attached_status : DIST_INTERNAL;
}

static void an_attached_thread_is_the_hosts(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  for (int moves = 0; moves <= 1; moves++) {
    party p = {.moves = moves};
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
    options.cpu = &cpu;
    options.num_replicas = 2;
    cpu.move_host_threads = moves;
    dist_strategy *strategy = strategy_with(options);
    if (crowded(strategy)) skip_because(NO_SPARE_CPU);
    assert_ok(dist_run(strategy, lend_replica, &p, NULL));
    assert_int_equal(p.attached.strange + p.caller.strange + p.caller.narrow + p.caller.back, 0);
    assert_int_equal(p.attached.narrow, p.attached.back);
    assert_int_equal(p.attached.narrow > 0, moves);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = 2;
  for (int32_t wrong = -1; wrong <= 2; wrong += 3) {
    cpu.move_host_threads = wrong;
    assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "move_host_threads");
  }
  cpu.move_host_threads = 1;
  options.threads = DIST_THREADS_LIBRARY;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
               "no replica runs on a host thread");
  cpu.move_host_threads = 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_told_and_nothing_is_done),
      cmocka_unit_test(by_option_they_move),
      cmocka_unit_test(another_threads_mask_stays),
      cmocka_unit_test(a_shutdown_leaves_their_masks),
      cmocka_unit_test(a_caller_gives_way_to_who_is_kept_there),
      cmocka_unit_test(an_attached_thread_is_the_hosts),
      cmocka_unit_test(wrong_options_are_refused),
  };
  if (pthread_key_create(&ended, look_at_the_end) != 0) return 1;
  return cmocka_run_group_tests(tests, set_up, NULL);
}
