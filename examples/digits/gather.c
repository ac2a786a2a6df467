// SPDX-License-Identifier: Apache-2.0
//
// Uses dist_gather(): every worker contributes rows of a table and receives the complete table.
#include "gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_ROUNDS = 32 };
enum { CLOCK_NUMBERS = 3 }; /* see measure_clocks() */
enum { EVENT_NUMBERS = 5, REPLICA_NUMBERS = 1 + 2 * TRAINER_KINDS + TRAINER_EVENTS * EVENT_NUMBERS };

typedef struct {
  dist_value *value;
  const void *data; /* the data of `value` */
} gathered;

// Gathers the rows of all workers, in worker order. The caller must call dist_value_release(out->value).
static dist_status gather_rows(dist_strategy *strategy, dist_tensor mine, int64_t least_rows, gathered *out) {
  dist_value *value = NULL;
  dist_tensor all;
  dist_status status = dist_value_create_tensor(strategy, &mine, &value);
  if (!status) status = dist_gather(strategy, value, 0, &out->value);
  if (!status) status = dist_value_tensor(out->value, &all);
  if (!status && all.shape[0] < least_rows)
    status = dist_fail(DIST_INTERNAL, "workers brought fewer rows than there are");
  if (!status) out->data = all.data;
  dist_value_release(value);
  return status;
}

dist_status gather_compare(dist_strategy *strategy, int32_t num_workers, const gather_setting *settings,
                           size_t n) {
  int64_t mine[GATHER_SETTINGS] = {0};
  for (size_t i = 0; i < n; i++) mine[i] = settings[i].value;
  const int64_t shape[] = {1, GATHER_SETTINGS};
  gathered all = {NULL, NULL};
  dist_status status =
      gather_rows(strategy, (dist_tensor){mine, DIST_I64, 2, shape, NULL}, num_workers, &all);
  const int64_t *first = all.data;
  for (int32_t w = 1; w < num_workers && !status; w++) {
    const int64_t *row = first + (size_t)w * GATHER_SETTINGS;
    for (size_t i = 0; i < n && !status; i++) {
      if (row[i] == first[i]) continue;
      char message[160];
      snprintf(message, sizeof message,
               "worker %d has %" PRId64 " for %s, and worker 0 has %" PRId64
               ": start all with the same options and data",
               (int)w, row[i], settings[i].name, first[i]);
      status = dist_fail(DIST_INVALID_ARGUMENT, message);
    }
  }
  dist_value_release(all.value);
  return status;
}

static dist_status compare_parameters(const trainer *t, int32_t num_workers) {
  char digest[MODEL_DIGEST_BYTES];
  const int64_t shape[] = {1, MODEL_DIGEST_BYTES};
  gathered all = {NULL, NULL};
  dist_status status = model_digest(&t->parameters, t->first, t->local, digest);
  if (!status)
    status = gather_rows(t->strategy, (dist_tensor){digest, DIST_U8, 2, shape, NULL}, num_workers, &all);
  for (int32_t w = 1; w < num_workers && !status; w++) {
    const char *first = all.data;
    if (memcmp(first, first + (size_t)w * MODEL_DIGEST_BYTES, MODEL_DIGEST_BYTES) == 0) continue;
    char message[96];
    snprintf(message, sizeof message, "worker %d has other parameters than worker 0; this is a defect",
             (int)w);
    status = dist_fail(DIST_INTERNAL, message);
  }
  dist_value_release(all.value);
  return status;
}

// Each row was predicted by one worker. The others have 0 there, so the sum contains all predictions.
static dist_status add_predictions(trainer *t, int64_t rows) {
  const int64_t shape[] = {rows};
  dist_tensor tensor = {t->predictions, DIST_I32, 1, shape, NULL};
  dist_value *mine = NULL, *all = NULL;
  dist_status status = dist_value_create_tensor(t->strategy, &tensor, &mine);
  if (!status) status = dist_reduce(t->strategy, DIST_REDUCE_SUM, mine, NULL, 0, &all);
  if (!status) status = dist_value_tensor(all, &tensor);
  if (!status && t->first == 0) memcpy(t->predictions, tensor.data, (size_t)rows * sizeof *t->predictions);
  const int64_t classes = t->parameters.sizes[MODEL_LAYERS];
  for (int64_t i = 0; i < rows && !status; i++)
    if (t->predictions[i] < 0 || t->predictions[i] >= classes)
      status = dist_fail(DIST_INTERNAL, "a worker brought a prediction that is no class");
  dist_value_release(all);
  dist_value_release(mine);
  return status;
}

static void write_replica(const trainer_replica *from, int64_t *to) {
  *to++ = from->num_events;
  for (int k = 0; k < TRAINER_KINDS; k++) *to++ = from->total_ns[k];
  for (int k = 0; k < TRAINER_KINDS; k++) *to++ = from->cpu_ns[k];
  for (int i = 0; i < TRAINER_EVENTS; i++) {
    const trainer_event *event = &from->events[i];
    *to++ = event->step;
    *to++ = event->kind;
    *to++ = event->start_ns;
    *to++ = event->end_ns;
    *to++ = event->cpu_ns;
  }
}

// Subtracts without signed overflow. The operands may come from another process and are not trusted.
static int64_t minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

static dist_status read_replica(const int64_t *from, int64_t offset_ns, trainer_replica *to) {
  to->num_events = *from++;
  int is_wrong = to->num_events < 0;
  for (int k = 0; k < TRAINER_KINDS; k++) to->total_ns[k] = *from++;
  for (int k = 0; k < TRAINER_KINDS; k++) to->cpu_ns[k] = *from++;
  for (int i = 0; i < TRAINER_EVENTS; i++, from += EVENT_NUMBERS) {
    is_wrong |= from[1] < 0 || from[1] >= TRAINER_KINDS;
    to->events[i] = (trainer_event){from[0], (int32_t)from[1], minus(from[2], offset_ns),
                                    minus(from[3], offset_ns), from[4]};
  }
  return is_wrong ? dist_fail(DIST_INTERNAL, "a worker brought events that there are not") : DIST_OK;
}

static dist_status gather_events(trainer *t, const gather_clock *clocks) {
  int64_t *mine = calloc((size_t)t->local, REPLICA_NUMBERS * sizeof *mine);
  if (!mine) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the events");
  for (int32_t r = 0; r < t->local; r++)
    write_replica(&t->replicas[t->first + r], mine + (size_t)r * REPLICA_NUMBERS);
  const int64_t shape[] = {t->local, REPLICA_NUMBERS};
  gathered all = {NULL, NULL};
  dist_status status =
      gather_rows(t->strategy, (dist_tensor){mine, DIST_I64, 2, shape, NULL}, t->num_replicas, &all);
  for (int32_t r = t->local; r < t->num_replicas && !status && t->first == 0; r++) {
    const int64_t *row = (const int64_t *)all.data + (size_t)r * REPLICA_NUMBERS;
    status = read_replica(row, clocks ? clocks[r / t->local].offset_ns : 0, &t->replicas[r]);
  }
  dist_value_release(all.value);
  free(mine);
  return status;
}

static dist_status gather_machines(const trainer *t, int32_t num_workers, gather_machine *machines) {
  const int64_t shape[] = {1, MACHINE_NUMBERS};
  gathered all = {NULL, NULL};
  const dist_tensor mine = {machines[t->first / t->local].numbers, DIST_I64, 2, shape, NULL};
  dist_status status = gather_rows(t->strategy, mine, num_workers, &all);
  if (!status) memcpy(machines, all.data, (size_t)num_workers * sizeof *machines);
  dist_value_release(all.value);
  return status;
}

// Lower and upper bound of the offset by which a worker's clock is ahead of worker 0's.
typedef struct {
  int64_t low, high;
} bounds;

/*
 * Each worker contributes to round k: its machine id, the time b when it entered round k, and the time when
 * it received round k - 1. No worker receives a round before all have entered it. Let b be the entry time and
 * a the receive time of the same round. Then
 *
 *     b of worker 0 <= a of worker w on one clock:   offset <= a of w - b of 0
 *     b of worker w <= a of worker 0 on one clock:   offset >= b of w - a of 0
 */
static dist_status measure_clocks(const trainer *t, int32_t num_workers, int64_t machine_id,
                                  gather_clock *clocks) {
  const int64_t shape[] = {1, CLOCK_NUMBERS};
  int64_t mine[CLOCK_NUMBERS] = {machine_id, 0, 0};
  int64_t *came = calloc((size_t)num_workers, sizeof *came);
  bounds *of = calloc((size_t)num_workers, sizeof *of);
  dist_status status = came && of ? DIST_OK : dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the clocks");
  for (int32_t w = 0; w < num_workers && !status; w++) of[w] = (bounds){INT64_MIN, INT64_MAX};
  for (int round = 0; round <= CLOCK_ROUNDS && !status; round++) {
    gathered all = {NULL, NULL};
    mine[1] = trainer_now_ns();
    status = gather_rows(t->strategy, (dist_tensor){mine, DIST_I64, 2, shape, NULL}, num_workers, &all);
    mine[2] = trainer_now_ns();
    const int64_t *zero = all.data;
    for (int32_t w = 0; w < num_workers && !status; w++) {
      const int64_t *row = zero + (size_t)w * CLOCK_NUMBERS;
      if (round > 0) {
        const int64_t low = minus(came[w], zero[2]), high = minus(row[2], came[0]);
        if (w > 0 && low > of[w].low) of[w].low = low;
        if (w > 0 && high < of[w].high) of[w].high = high;
      }
      clocks[w].is_same = zero[0] != 0 && row[0] == zero[0];
    }
    for (int32_t w = 0; w < num_workers && !status; w++) came[w] = zero[(size_t)w * CLOCK_NUMBERS + 1];
    dist_value_release(all.value);
  }
  for (int32_t w = 1; w < num_workers && !status; w++) {
    gather_clock *clock = &clocks[w];
    // A container may have its own time namespace. Its clock then differs, and 0 is outside the bounds.
    clock->is_same = clock->is_same && of[w].low <= 0 && of[w].high >= 0;
    if (clock->is_same) continue;
    const int64_t half = minus(of[w].high, of[w].low) / 2;
    clock->offset_ns = minus(of[w].low, -half);
    clock->uncertainty_ns = (half < 0 ? -half : half) + 1;
  }
  free(came);
  free(of);
  return status;
}

dist_status gather_results(trainer *t, int64_t rows, gather_clock *clocks, gather_machine *machines) {
  if (clocks) clocks[0].is_same = 1;
  if (t->local == t->num_replicas) return DIST_OK;
  const int32_t num_workers = t->num_replicas / t->local;
  dist_status status = compare_parameters(t, num_workers);
  if (!status) status = add_predictions(t, rows);
  if (!status) status = gather_machines(t, num_workers, machines);
  if (!status && clocks)
    status = measure_clocks(t, num_workers, machines[t->first / t->local].numbers[MACHINE_ID], clocks);
  return status ? status : gather_events(t, clocks);
}
