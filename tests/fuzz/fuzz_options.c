/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: options structs of older and newer callers, with any struct_size, any numbers in their fields
 * and any bytes in the excess. Each struct occupies exactly struct_size bytes of memory. Unknown fields that
 * are set must be rejected. Otherwise every result is accepted except a crash, INTERNAL, and a strategy that
 * no longer runs.
 */
#include "tests/abi/common.h"
#include "tests/fuzz/bytes.h"

enum { FIRST = 64 };
enum { LONGEST_TAIL = 40, MOST_REPLICAS = 4, MOST_EVENTS = 3000 };

static dist_strategy* strategy;

typedef struct given {
  void* memory;
  uint32_t size;
  int future; /* something is set behind what this version knows */
} given;

/* A struct of `known` bytes, cut or with a tail. `fields` are offsets and widths of numbers, up to a width of
 * 0. The width of an enum also has its first constant, from which small numbers count. */
static given decode(bytes* in, size_t known, const size_t* fields) {
  given g = {0};
  const uint8_t how = take(in);
  g.size = (uint32_t)(how < 64 ? known : how < 128 ? known + 1 + how % LONGEST_TAIL : take(in) % (known + 1));
  const size_t room = g.size < sizeof g.size ? sizeof g.size : g.size;
  g.memory = calloc(1, room);
  assert_non_null(g.memory);
  for (; fields[1] != 0; fields += 2) {
    const size_t width = fields[1] % FIRST;
    int64_t number = take_hostile(in); /* little-endian */
    if (number >= 0 && number < 16) number += (int64_t)(fields[1] / FIRST);
    const size_t bytes = width < sizeof number ? width : sizeof number;
    if (fields[0] + bytes <= room) memcpy((char*)g.memory + fields[0], &number, bytes);
  }
  memcpy(g.memory, &g.size, sizeof g.size);
  if (g.size <= known || (how & 1) == 0) return g;
  uint8_t tail[1 + LONGEST_TAIL] = {0};
  for (size_t i = 0; i < g.size - known; i++) {
    tail[i] = take(in);
    g.future = g.future || tail[i] != 0;
  }
  memcpy((char*)g.memory + known, tail, g.size - known);
  return g;
}

#define FIELD(type, name) offsetof(type, name), sizeof(((type*)0)->name)
#define ENUM(type, name, first) offsetof(type, name), sizeof(int32_t) + FIRST*(size_t)first
#define DECODE(in, type, ...) decode(in, sizeof(type), (const size_t[]){__VA_ARGS__, 0, 0})

static void check(const given* g, dist_status status) {
  if (g->future && status != DIST_INVALID_ARGUMENT)
    fail_msg("an option from the future: %s instead of INVALID_ARGUMENT", dist_status_name(status));
  if (status == DIST_INTERNAL) fail_msg("INTERNAL: %s", dist_last_error());
}

/* ---- A struct each ---- */

/* A number there that is more than `most`, and legal, becomes that. */
static void limit(const given* g, size_t at, int32_t most, int32_t legal) {
  int32_t number;
  if (g->size < at + sizeof number) return;
  memcpy(&number, (char*)g->memory + at, sizeof number);
  if (number > most && number <= legal) memcpy((char*)g->memory + at, &most, sizeof most);
}

static given create_strategy(bytes* in) {
  given g = DECODE(in, dist_strategy_options, ENUM(dist_strategy_options, kind, DIST_STRATEGY_MIRRORED),
                   ENUM(dist_strategy_options, threads, DIST_THREADS_CALLER),
                   FIELD(dist_strategy_options, reserved), FIELD(dist_strategy_options, timeout_ns),
                   FIELD(dist_strategy_options, num_replicas),
                   ENUM(dist_strategy_options, numerics, DIST_NUMERICS_DEFAULT));
  given cpu = DECODE(in, dist_cpu_options, ENUM(dist_cpu_options, placement, DIST_PLACEMENT_FREE),
                     FIELD(dist_cpu_options, move_host_threads), FIELD(dist_cpu_options, reserved));
  given host = DECODE(in, dist_host_options, FIELD(dist_host_options, helper_threads),
                      FIELD(dist_host_options, recorded_events), FIELD(dist_host_options, late_destroys));
  /* legal, but dear: hundreds of threads, and gigabytes where there are many CPUs */
  limit(&g, offsetof(dist_strategy_options, num_replicas), MOST_REPLICAS, 256);
  limit(&host, offsetof(dist_host_options, recorded_events), MOST_EVENTS, 1 << 20);
  if (g.size >= sizeof(dist_strategy_options)) {
    ((dist_strategy_options*)g.memory)->cpu = cpu.memory;
    ((dist_strategy_options*)g.memory)->host = host.memory;
    g.future = g.future || cpu.future || host.future;
  }
  dist_strategy* made = NULL;
  const dist_status status = dist_strategy_create(g.memory, &made);
  check(&g, status);
  free(cpu.memory);
  free(host.memory);
  if (status != DIST_OK) return g;
  assert_true(dist_strategy_num_replicas(made) >= 1);
  assert_ok(dist_strategy_destroy(made));
  return g;
}

static given create_variable(bytes* in) {
  given g = DECODE(in, dist_variable_options, ENUM(dist_variable_options, aggregation, DIST_AGGREGATION_NONE),
                   ENUM(dist_variable_options, synchronization, DIST_SYNCHRONIZATION_AUTO),
                   FIELD(dist_variable_options, reserved));
  float number = 1;
  const dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  dist_variable* variable = NULL;
  check(&g, dist_variable_create(strategy, &tensor, g.memory, &variable));
  dist_variable_destroy(variable);
  return g;
}

static given create_dataset(bytes* in) {
  given g = DECODE(in, dist_dataset_options, FIELD(dist_dataset_options, drop_remainder),
                   FIELD(dist_dataset_options, global_batch_size), FIELD(dist_dataset_options, shuffle),
                   FIELD(dist_dataset_options, prefetch), FIELD(dist_dataset_options, seed),
                   ENUM(dist_dataset_options, shard_policy, DIST_SHARD_AUTO),
                   FIELD(dist_dataset_options, num_workers), FIELD(dist_dataset_options, worker_index),
                   FIELD(dist_dataset_options, worker_batches), FIELD(dist_dataset_options, shard_hint),
                   FIELD(dist_dataset_options, interleave), FIELD(dist_dataset_options, static_shapes),
                   ENUM(dist_dataset_options, replication_mode, DIST_INPUT_PER_WORKER),
                   FIELD(dist_dataset_options, num_batch_sizes), FIELD(dist_dataset_options, as_one_process),
                   FIELD(dist_dataset_options, reserved));
  float rows[6] = {0};
  const int64_t shape[2] = {3, 2};
  const dist_tensor tensor = {rows, DIST_F32, 2, shape, NULL};
  dist_dataset* dataset = NULL;
  const dist_status status = dist_dataset_create_from_tensors(strategy, &tensor, 1, g.memory, &dataset);
  check(&g, status);
  if (status != DIST_OK) return g;
  dist_iterator* iterator = NULL;
  check(&g, dist_iterator_create(dataset, &iterator));
  dist_dataset_destroy(dataset);
  dist_value* batch = NULL;
  for (int i = 0;
       iterator != NULL && i < 4 && dist_iterator_next(iterator, &batch) == DIST_OK && batch != NULL; i++)
    dist_value_release(batch);
  dist_iterator_destroy(iterator);
  return g;
}

static dist_status nothing(dist_replica* replica, dist_value* args, dist_value* kwargs, dist_value** out,
                           void* user_data) {
  (void)replica, (void)args, (void)kwargs, (void)out, (void)user_data;
  return DIST_OK;
}

static void await_idle(void) {
  while (dist_run(strategy, healthy, NULL, NULL) == DIST_FAILED_PRECONDITION) sched_yield();
}

static given run_with(bytes* in) {
  given g = DECODE(in, dist_run_options, FIELD(dist_run_options, reserved),
                   FIELD(dist_run_options, timeout_ns), FIELD(dist_run_options, enable_dynamic_batch_size),
                   FIELD(dist_run_options, bucketizing_dynamic_shape));
  check(&g, dist_run_values(strategy, nothing, NULL, NULL, NULL, g.memory, NULL));
  await_idle(); /* a deadline of a nanosecond leaves replicas inside */
  return g;
}

typedef struct collective_case {
  given options[2];
  given apply[2];
  int fused;
  dist_status statuses[2];
} collective_case;

static dist_status reduce_with(dist_replica* replica, void* user_data) {
  collective_case* c = user_data;
  const int32_t id = dist_replica_id(replica);
  float numbers[2] = {1, 2}, parameters[2] = {0}, momenta[2] = {0};
  const int64_t shape[1] = {2};
  dist_tensor in = {numbers, DIST_F32, 1, shape, NULL}, out = {parameters, DIST_F32, 1, shape, NULL};
  const dist_tensor state = {momenta, DIST_F32, 1, shape, NULL};
  dist_apply_options* apply = c->apply[id].memory;
  if (c->apply[id].size >= offsetof(dist_apply_options, num_states)) apply->states = &state; /* not cut */
  c->statuses[id] =
      c->fused ? dist_reduce_apply(replica, DIST_REDUCE_SUM, &in, &out, 1, apply, c->options[id].memory, NULL)
               : dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, c->options[id].memory, NULL);
  return c->statuses[id];
}

/* Both replicas have their own. */
static given collective_with(bytes* in, int fused) {
  static collective_case c;
  memset(&c, 0, sizeof c);
  c.fused = fused;
  for (int r = 0; r < 2; r++) {
    c.options[r] =
        DECODE(in, dist_collective_options, ENUM(dist_collective_options, numerics, DIST_NUMERICS_DEFAULT),
               FIELD(dist_collective_options, axis), FIELD(dist_collective_options, planned),
               FIELD(dist_collective_options, bytes_per_pack));
    c.apply[r] = DECODE(in, dist_apply_options, ENUM(dist_apply_options, kind, DIST_APPLY_SGD),
                        FIELD(dist_apply_options, learning_rate), FIELD(dist_apply_options, momentum),
                        FIELD(dist_apply_options, clip_norm));
    const size_t num_states = fused && take(in) % 2;
    if (c.apply[r].size >= offsetof(dist_apply_options, num_states) + sizeof num_states)
      memcpy((char*)c.apply[r].memory + offsetof(dist_apply_options, num_states), &num_states,
             sizeof num_states);
  }
  const dist_status status = dist_run(strategy, reduce_with, &c, NULL);
  given any = {.future = c.options[0].future || c.options[1].future};
  if (fused) any.future = any.future || c.apply[0].future || c.apply[1].future;
  if (any.future && status == DIST_OK) fail_msg("an option from the future went unseen");
  for (int r = 0; r < 2; r++) {
    if (c.statuses[r] == DIST_INTERNAL) fail_msg("INTERNAL");
    free(c.options[r].memory);
    free(c.apply[r].memory);
  }
  return any;
}

/* Who fills a struct keeps to its size: of what is older or newer, too. */
static given fill_in(bytes* in) {
  given g = {.size = take(in)};
  g.memory = malloc(g.size > 0 ? g.size : 1);
  assert_non_null(g.memory);
  switch (take_below(in, 7)) {
    case 0: dist_strategy_options_init(g.memory, g.size); break;
    case 1: dist_run_options_init(g.memory, g.size); break;
    case 2: dist_collective_options_init(g.memory, g.size); break;
    case 3: dist_apply_options_init(g.memory, g.size); break;
    case 4: dist_variable_options_init(g.memory, g.size); break;
    case 5: dist_dataset_options_init(g.memory, g.size); break;
    default:
      if (g.size < sizeof g.size) return g;
      memcpy(g.memory, &g.size, sizeof g.size);
      if (dist_last_error_info(g.memory) == DIST_OK) assert_memory_equal(g.memory, &g.size, sizeof g.size);
      return g;
  }
  if (g.size >= sizeof g.size) assert_memory_equal(g.memory, &g.size, sizeof g.size);
  return g;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (strategy == NULL) strategy = strategy_of(2, DIST_THREADS_CALLER);
  bytes in = {data, size};
  given g;
  switch (take_below(&in, 7)) {
    case 0: g = create_strategy(&in); break;
    case 1: g = create_variable(&in); break;
    case 2: g = create_dataset(&in); break;
    case 3: g = run_with(&in); break;
    case 4: g = collective_with(&in, 0); break;
    case 5: g = collective_with(&in, 1); break;
    default: g = fill_in(&in); break;
  }
  free(g.memory);
  assert_healthy(DIST_THREADS_CALLER, strategy);
  return 0;
}
