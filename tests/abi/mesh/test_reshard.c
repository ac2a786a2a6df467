/* SPDX-License-Identifier: Apache-2.0
 *
 * Resharding: from every kind of partition to every other one. Checks each element and the predicted number
 * of bytes.
 */
#include "tests/abi/mesh_support.h"

enum { DEVICES = 4, MOST_ELEMENTS = 512 };

static const int64_t shape[] = {6, 5, 4};
static const int64_t splits[][3] = {{4, 1, 1}, {1, 1, 4}, {2, 1, 2}, {1, 4, 1}, {2, 2, 1}};

/* Partition number k: first the splits, then one per device, then replicated. */
enum { PARTITIONS = 5 + DEVICES + 1 };
static dist_partition partition_of(int k) {
  dist_partition p = DIST_PARTITION_INIT;
  p.shape = shape;
  p.ndim = 3;
  p.num_logical_devices = DEVICES;
  p.uneven = 1;
  if (k < 5) {
    p.dimensions = splits[k];
    p.num_dimensions = 3;
  } else {
    p.kind = k < 5 + DEVICES ? DIST_PARTITION_ASSIGN : DIST_PARTITION_REPLICATE;
    p.logical_device = k < 5 + DEVICES ? k - 5 : 0;
  }
  return p;
}

static int64_t number_at(const int64_t *begin, const int64_t *size, int64_t k) {
  int64_t number = 0, step = 1;
  for (int i = 2; i >= 0; i--) {
    number += (begin[i] + k % size[i]) * step;
    k /= size[i];
    step *= shape[i];
  }
  return number;
}

typedef struct change {
  dist_partition from, to;
} change;

static dist_status move_and_compare(dist_replica *device, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  const change *c = user_data;
  const int32_t me = dist_replica_id(device);
  int64_t begin[3], size[3], elements = 0, in[MOST_ELEMENTS], out[MOST_ELEMENTS];
  TRY(dist_partition_shard(&c->from, me, NULL, begin, size, &elements));
  for (int64_t k = 0; k < elements; k++) in[k] = number_at(begin, size, k);
  const dist_tensor shard = {in, DIST_I64, 3, size, NULL};
  const int has_in = elements != 0;
  int64_t to_begin[3], to_size[3];
  TRY(dist_partition_shard(&c->to, me, NULL, to_begin, to_size, &elements));
  dist_tensor result = {out, DIST_I64, 3, to_size, NULL};
  TRY(dist_reshard(device, &c->from, &c->to, has_in ? &shard : NULL, elements != 0 ? &result : NULL, NULL));
  for (int64_t k = 0; k < elements; k++) EXPECT(out[k] == number_at(to_begin, to_size, k));
  return DIST_OK;
}
static dist_status run_change(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, move_and_compare, user_data, NULL, NULL, NULL, NULL);
}

/* Counts, element by element, which of a device's elements it does not have yet. */
static int64_t count_moved(const change *c, int32_t device) {
  int64_t moved = 0, begin[3], size[3], had_begin[3], had_size[3], elements = 0, had = 0;
  assert_ok(dist_partition_shard(&c->to, device, NULL, begin, size, &elements));
  assert_ok(dist_partition_shard(&c->from, device, NULL, had_begin, had_size, &had));
  for (int64_t k = 0; k < elements; k++) {
    const int64_t number = number_at(begin, size, k);
    int found = 0;
    for (int64_t h = 0; h < had; h++) found |= number_at(had_begin, had_size, h) == number;
    moved += !found;
  }
  return moved;
}

static void from_every_partition_to_every_other(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, DEVICES);
  for (int a = 0; a < PARTITIONS; a++)
    for (int b = 0; b < PARTITIONS; b++) {
      change c = {partition_of(a), partition_of(b)};
      const dist_status status = dist_run(strategy, run_change, &c, NULL);
      if (status != DIST_OK) fail_msg("from %d to %d: %s", a, b, dist_last_error());
      size_t all = 0, bytes = 0;
      for (int32_t d = 0; d < DEVICES; d++) {
        assert_ok(dist_reshard_bytes(&c.from, &c.to, DIST_I32, d, &bytes));
        assert_int_equal(bytes, 4 * count_moved(&c, d));
        all += bytes;
      }
      assert_ok(dist_reshard_bytes(&c.from, &c.to, DIST_I32, -1, &bytes));
      assert_int_equal(bytes, all);
      if (a == b) assert_int_equal(all, 0);
    }
  assert_ok(dist_strategy_destroy(strategy));
}

static void bytes_of_nonsense_are_refused(void **state) {
  (void)state;
  const dist_partition good = partition_of(0);
  dist_partition bad = good;
  const int64_t other[] = {6, 5, 5}, unknown[] = {-1, 5, 4}, huge[] = {INT64_MAX / 8, 1, 4};
  size_t bytes = 0;
  assert_fails(dist_reshard_bytes(NULL, &good, DIST_F32, 0, &bytes), DIST_INVALID_ARGUMENT, "from is NULL");
  assert_fails(dist_reshard_bytes(&good, &good, 99, 0, &bytes), DIST_INVALID_ARGUMENT, "not a dtype");
  assert_fails(dist_reshard_bytes(&good, &good, DIST_F32, 4, &bytes), DIST_INVALID_ARGUMENT,
               "no logical device 4");
  bad.shape = other;
  assert_fails(dist_reshard_bytes(&good, &bad, DIST_F32, 0, &bytes), DIST_INVALID_ARGUMENT,
               "different shapes");
  bad.shape = unknown;
  assert_fails(dist_reshard_bytes(&bad, &bad, DIST_F32, 0, &bytes), DIST_INVALID_ARGUMENT, "must be known");
  bad = partition_of(0);
  dist_partition all = partition_of(PARTITIONS - 1);
  bad.shape = all.shape = huge;
  assert_fails(dist_reshard_bytes(&bad, &all, DIST_F64, -1, &bytes), DIST_INVALID_ARGUMENT, "64 bits");
}

enum wrong { PARTITION, COUNT, MISSING, SHAPE, DTYPE, OVERLAP, DIFFER, WRONGS };
static const char *const words[] = {"must be the number",  "the group has",         "in is NULL",
                                    "the partition gives", "out of logical device", "overlaps in of",
                                    "other partitions"};

static dist_status move_wrongly(dist_replica *device, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  static const int64_t whole[] = {4}, four[] = {4}, two[] = {2};
  const enum wrong wrong = *(const enum wrong *)user_data;
  const int32_t me = dist_replica_id(device);
  dist_partition from = DIST_PARTITION_INIT;
  from.shape = whole, from.ndim = 1, from.dimensions = four, from.num_dimensions = 1,
  from.num_logical_devices = 4;
  dist_partition to = from;
  to.kind = DIST_PARTITION_REPLICATE;
  int64_t in[4] = {1, 2, 3, 4}, out[4], one = 1, size = 4;
  dist_tensor given = vector_of(in, DIST_I64, &one), result = vector_of(out, DIST_I64, &size);
  switch (wrong) {
    case PARTITION: from.dimensions = two; break;
    case COUNT:
      from.dimensions = two;
      from.num_logical_devices = to.num_logical_devices = 2;
      break;
    case SHAPE: one = 2; break;
    case DTYPE: result.dtype = me == 2 ? DIST_F64 : DIST_I64; break;
    case OVERLAP: result.data = in; break;
    case DIFFER:
      to.kind = me == 3 ? DIST_PARTITION_ASSIGN : DIST_PARTITION_REPLICATE;
      to.logical_device = 3;
      break;
    default: break;
  }
  return dist_reshard(device, &from, &to, wrong == MISSING ? NULL : &given, &result, NULL);
}
static dist_status run_wrongly(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, move_wrongly, user_data, NULL, NULL, NULL, NULL);
}

static void what_does_not_fit_is_refused_on_all(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(1, DEVICES);
  for (enum wrong wrong = PARTITION; wrong < WRONGS; wrong++)
    assert_fails(dist_run(strategy, run_wrongly, &wrong, NULL), DIST_INVALID_ARGUMENT, words[wrong]);
  assert_ok(dist_strategy_destroy(strategy));
}

/* One device has shards of another dtype. The report names it, whichever it is, even if most devices have
 * nothing beforehand. */
typedef struct odd_dtype {
  int32_t device, from; /* the device; a DIST_PARTITION_... */
} odd_dtype;

static dist_status move_another_dtype(dist_replica *device, dist_value *args, dist_value *kwargs,
                                      dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  static const int64_t whole[] = {DEVICES}, parts[] = {DEVICES};
  const odd_dtype *odd = user_data;
  const int32_t me = dist_replica_id(device);
  dist_partition from = DIST_PARTITION_INIT;
  from.shape = whole, from.ndim = 1, from.dimensions = parts, from.num_dimensions = 1;
  from.num_logical_devices = DEVICES;
  dist_partition to = from;
  from.kind = odd->from, to.kind = DIST_PARTITION_REPLICATE;
  int64_t in[DEVICES] = {0}, out[DEVICES], begin = 0, size = 0;
  TRY(dist_partition_shard(&from, me, NULL, &begin, &size, NULL));
  const dist_dtype dtype = me == odd->device ? DIST_F64 : DIST_I64;
  const dist_tensor given = vector_of(in, dtype, &size);
  dist_tensor result = vector_of(out, dtype, whole);
  const int has_in = odd->from == DIST_PARTITION_SPLIT || me == 0;
  return dist_reshard(device, &from, &to, has_in ? &given : NULL, &result, NULL);
}
static dist_status run_another_dtype(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, move_another_dtype, user_data, NULL, NULL, NULL, NULL);
}

static void who_has_another_dtype_is_named(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(1, DEVICES);
  odd_dtype odd;
  for (odd.from = DIST_PARTITION_SPLIT; odd.from <= DIST_PARTITION_ASSIGN; odd.from++)
    for (odd.device = 0; odd.device < DEVICES; odd.device++) {
      assert_fails(dist_run(strategy, run_another_dtype, &odd, NULL), DIST_INVALID_ARGUMENT, "the shard of");
      assert_blames(odd.device, "i64", "f64");
    }
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(from_every_partition_to_every_other),
      cmocka_unit_test(bytes_of_nonsense_are_refused),
      cmocka_unit_test(what_does_not_fit_is_refused_on_all),
      cmocka_unit_test(who_has_another_dtype_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
