/* SPDX-License-Identifier: Apache-2.0
 *
 * DIST_PLACEMENT_CORES: the CPUs to which libdist pins its threads, also next to other strategies and with a
 * device assignment.
 */
#include "tests/abi/mesh_support.h"

/* The process's mask is reduced to two CPUs. `all` is the original one. */
typedef struct machine {
  cpu_set_t all, mine;
  int cpus[2];
} machine;

static void allow(const cpu_set_t *set) { assert_int_equal(sched_setaffinity(0, sizeof *set, set), 0); }

static int set_up(void **state) {
  static machine m;
  if (sched_getaffinity(0, sizeof m.all, &m.all) != 0) return -1;
  CPU_ZERO(&m.mine);
  int found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
    if (!CPU_ISSET(cpu, &m.all)) continue;
    m.cpus[found++] = cpu;
    CPU_SET(cpu, &m.mine);
  }
  *state = found == 2 ? &m : NULL;
  return found == 2 ? sched_setaffinity(0, sizeof m.mine, &m.mine) : 0;
}

static int tear_down(void **state) {
  machine *m = *state;
  return m == NULL ? 0 : sched_setaffinity(0, sizeof m->all, &m->all);
}

static machine *two_cpus(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  return *state;
}

/* The mask of each member of a run. */
typedef struct masks {
  cpu_set_t of[4];
} masks;

static dist_status see_mask(dist_replica *replica, void *user_data) {
  masks *m = user_data;
  cpu_set_t *mine = &m->of[dist_replica_id(replica)];
  return sched_getaffinity(0, sizeof *mine, mine) == 0 ? DIST_OK : DIST_INTERNAL;
}

/* Returns the only CPU of a set. */
static int only_cpu(const cpu_set_t *set) {
  assert_int_equal(CPU_COUNT(set), 1);
  int cpu = 0;
  while (!CPU_ISSET(cpu, set)) cpu++;
  return cpu;
}

static int cpu_of(dist_strategy *strategy, int32_t replica) {
  masks seen;
  assert_ok(dist_run(strategy, see_mask, &seen, NULL));
  return only_cpu(&seen.of[replica]);
}

static dist_strategy *pinned(int32_t num_replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = num_replicas;
  options.threads = threads;
  cpu.placement = DIST_PLACEMENT_CORES;
  return strategy_with(options);
}

static void two_strategies_take_two_cpus(void **state) {
  two_cpus(state);
  for (int round = 0; round < 20; round++) {
    dist_strategy *a = pinned(1, DIST_THREADS_LIBRARY), *b = pinned(1, DIST_THREADS_LIBRARY);
    assert_int_not_equal(cpu_of(a, 0), cpu_of(b, 0));
    /* The CPUs of a destroyed strategy are free for the next one. */
    const int left = cpu_of(a, 0);
    assert_ok(dist_strategy_destroy(a));
    a = pinned(1, DIST_THREADS_LIBRARY);
    assert_int_equal(cpu_of(a, 0), left);
    assert_ok(dist_strategy_destroy(a));
    assert_ok(dist_strategy_destroy(b));
  }
}

static void many_strategies_balance(void **state) {
  machine *m = two_cpus(state);
  enum { N = 5 };
  dist_strategy *all[N];
  int on_first = 0;
  for (int i = 0; i < N; i++) {
    all[i] = pinned(1, DIST_THREADS_LIBRARY);
    const int cpu = cpu_of(all[i], 0);
    assert_true(cpu == m->cpus[0] || cpu == m->cpus[1]);
    on_first += cpu == m->cpus[0];
    assert_in_range(2 * on_first, i, i + 2);
  }
  for (int i = 0; i < N; i++) assert_ok(dist_strategy_destroy(all[i]));
}

static void replicas_share_what_there_is(void **state) {
  two_cpus(state);
  dist_strategy *strategy = pinned(4, DIST_THREADS_LIBRARY);
  masks seen;
  assert_ok(dist_run(strategy, see_mask, &seen, NULL));
  for (int i = 0; i < 4; i++) assert_int_equal(only_cpu(&seen.of[i]), only_cpu(&seen.of[i % 2]));
  assert_int_not_equal(only_cpu(&seen.of[0]), only_cpu(&seen.of[1]));
  assert_ok(dist_strategy_destroy(strategy));
}

static void the_caller_is_not_moved(void **state) {
  machine *m = two_cpus(state);
  dist_strategy *a = pinned(2, DIST_THREADS_CALLER), *b = pinned(2, DIST_THREADS_CALLER);
  masks of_a, of_b;
  assert_ok(dist_run(a, see_mask, &of_a, NULL));
  assert_ok(dist_run(b, see_mask, &of_b, NULL));
  assert_true(CPU_EQUAL(&of_a.of[0], &m->mine) && CPU_EQUAL(&of_b.of[0], &m->mine));
  assert_int_not_equal(only_cpu(&of_a.of[1]), only_cpu(&of_b.of[1]));
  assert_ok(dist_strategy_destroy(a));
  assert_ok(dist_strategy_destroy(b));
}

static void one_cpu_is_for_all(void **state) {
  machine *m = two_cpus(state);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(m->cpus[1], &one);
  allow(&one);
  dist_strategy *a = pinned(2, DIST_THREADS_LIBRARY), *b = pinned(1, DIST_THREADS_LIBRARY);
  const int seen[] = {cpu_of(a, 0), cpu_of(a, 1), cpu_of(b, 0)};
  assert_ok(dist_strategy_destroy(a));
  assert_ok(dist_strategy_destroy(b));
  allow(&m->mine);
  for (size_t i = 0; i < COUNT_OF(seen); i++) assert_int_equal(seen[i], m->cpus[1]);
}

static void free_threads_go_anywhere(void **state) {
  machine *m = two_cpus(state);
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  masks seen;
  assert_ok(dist_run(strategy, see_mask, &seen, NULL));
  assert_true(CPU_EQUAL(&seen.of[0], &m->mine) && CPU_EQUAL(&seen.of[1], &m->mine));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- By a device assignment ---- */

static dist_status see_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  return see_mask(device, user_data);
}

static dist_status see_devices(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, see_device, user_data, NULL, NULL, NULL, NULL);
}

static void collect(const char *text, size_t length, void *user_data) {
  char *all = user_data;
  const size_t used = strlen(all);
  if (used + length < 8192) memcpy(all + used, text, length), all[used + length] = '\0';
}

/* One replica on the two CPUs, the second one first. `cpus` receives their numbers. */
static dist_device_assignment *second_first(int32_t cpus[2]) {
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_topology_from_host(NULL, &topology));
  assert_int_equal(dist_topology_num_devices_per_task(topology), 2);
  const int32_t *at = dist_topology_device_coordinates(topology);
  int32_t turned[8];
  for (int i = 0; i < 2; i++) {
    memcpy(turned + 4 * i, at + 4 * (1 - i), 4 * sizeof *at);
    assert_ok(dist_topology_cpu_at(topology, turned + 4 * i, &cpus[i]));
  }
  assert_ok(dist_device_assignment_create(topology, turned, 1, 2, 4, &assignment));
  dist_topology_destroy(topology);
  return assignment;
}

static void an_assignment_names_the_cpus(void **state) {
  machine *m = two_cpus(state);
  int32_t cpus[2];
  dist_device_assignment *assignment = second_first(cpus);
  assert_int_not_equal(cpus[0], cpus[1]);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment;
  for (cpu.placement = DIST_PLACEMENT_FREE; cpu.placement <= DIST_PLACEMENT_CORES; cpu.placement++) {
    for (options.threads = DIST_THREADS_CALLER; options.threads <= DIST_THREADS_LIBRARY; options.threads++) {
      dist_strategy *strategy = strategy_with(options);
      masks seen;
      assert_ok(dist_run(strategy, see_devices, &seen, NULL));
      for (int d = 0; d < 2; d++) {
        const int is_caller = d == 0 && options.threads == DIST_THREADS_CALLER;
        if (cpu.placement == DIST_PLACEMENT_FREE || is_caller) {
          assert_true(CPU_EQUAL(&seen.of[d], &m->mine));
        } else {
          assert_int_equal(only_cpu(&seen.of[d]), cpus[d]);
        }
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
  dist_device_assignment_destroy(assignment);
}

static void an_assignment_stays_on_the_set(void **state) {
  machine *m = two_cpus(state);
  int32_t cpus[2];
  dist_device_assignment *assignment = second_first(cpus);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment;
  cpu.placement = DIST_PLACEMENT_CORES;
  cpu.cpus = &m->cpus[0];
  cpu.num_cpus = 1;
  char words[128];
  snprintf(words, sizeof words, "a logical device on CPU %d, which cpus does not contain", m->cpus[1]);
  dist_strategy *strategy = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, words);
  /* Without placement by the assignment, the devices' threads still use only CPUs of the set. */
  cpu.placement = DIST_PLACEMENT_FREE;
  options.threads = DIST_THREADS_LIBRARY;
  strategy = strategy_with(options);
  masks seen;
  assert_ok(dist_run(strategy, see_devices, &seen, NULL));
  for (int d = 0; d < 2; d++) assert_int_equal(only_cpu(&seen.of[d]), m->cpus[0]);
  assert_ok(dist_strategy_destroy(strategy));
  dist_device_assignment_destroy(assignment);
}

static void explanations_say_where(void **state) {
  two_cpus(state);
  static char text[8192];
  char words[128];
  dist_strategy *strategy = pinned(1, DIST_THREADS_LIBRARY);
  assert_ok(dist_strategy_explain(strategy, collect, text));
  snprintf(words, sizeof words, "was created: replica 0 to CPU %d; libdist never moves the caller's thread\n",
           cpu_of(strategy, 0));
  assert_has(text, words);
  assert_has(text, "\n  parallel loops: ");
  assert_ok(dist_strategy_destroy(strategy));

  int32_t cpus[2];
  dist_device_assignment *assignment = second_first(cpus);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment;
  cpu.placement = DIST_PLACEMENT_CORES;
  strategy = strategy_with(options);
  text[0] = '\0';
  assert_ok(dist_strategy_explain(strategy, collect, text));
  snprintf(words, sizeof words, "assignment gives: replica 0 device 1 to CPU %d; libdist never", cpus[1]);
  assert_has(text, words);
  assert_ok(dist_strategy_destroy(strategy));
  dist_device_assignment_destroy(assignment);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_strategies_take_two_cpus),
      cmocka_unit_test(many_strategies_balance),
      cmocka_unit_test(replicas_share_what_there_is),
      cmocka_unit_test(the_caller_is_not_moved),
      cmocka_unit_test(one_cpu_is_for_all),
      cmocka_unit_test(free_threads_go_anywhere),
      cmocka_unit_test(an_assignment_names_the_cpus),
      cmocka_unit_test(explanations_say_where),
      cmocka_unit_test(an_assignment_stays_on_the_set),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
