/* SPDX-License-Identifier: Apache-2.0
 *
 * Tuples, strings, none, host objects and composites: created, passed through runs, and rejected.
 */
#include "tests/abi/common.h"

enum { R = 3 };

static dist_value *tensor_of(dist_strategy *strategy, void *data, dist_dtype dtype, int32_t ndim,
                             const int64_t *shape) {
  const dist_tensor tensor = {data, dtype, ndim, shape, NULL};
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(strategy, &tensor, &value));
  return value;
}

static dist_value *indices_of(dist_strategy *strategy, const int64_t *numbers, int64_t n) {
  return tensor_of(strategy, (void *)(uintptr_t)numbers, DIST_I64, 1, &n);
}

static dist_value *floats_of(dist_strategy *strategy, int32_t ndim, const int64_t *shape) {
  static float floats[64] = {1, 2, 3, 4, 5, 6, 7, 8};
  return tensor_of(strategy, floats, DIST_F32, ndim, shape);
}

static void release_all(dist_value **values, size_t n) {
  for (size_t i = 0; i < n; i++) dist_value_release(values[i]);
}

static void count_release(void *user_data) { atomic_fetch_add((atomic_int *)user_data, 1); }

/* ---- Each kind ---- */

static void every_kind_says_what_it_is(void **state) {
  dist_value *none = NULL, *text = NULL, *tuple = NULL, *object = NULL;
  static atomic_int released;
  atomic_store(&released, 0);
  assert_ok(dist_value_create_none(*state, &none));
  assert_int_equal(dist_value_kind_of(none), DIST_VALUE_NONE);
  char letters[] = "h\xc3\xa9llo";
  assert_ok(dist_value_create_text(*state, letters, &text));
  letters[0] = 'j'; /* the value has a copy */
  assert_int_equal(dist_value_kind_of(text), DIST_VALUE_TEXT);
  assert_string_equal(dist_value_text(text), "h\xc3\xa9llo");
  assert_ok(dist_value_wrap_object(*state, &released, count_release, &object));
  assert_int_equal(dist_value_kind_of(object), DIST_VALUE_OBJECT);
  assert_ptr_equal(dist_value_object(object), &released);
  dist_value *items[] = {none, text, object};
  assert_ok(dist_value_create_tuple(*state, items, 3, &tuple));
  assert_int_equal(dist_value_kind_of(tuple), DIST_VALUE_TUPLE);
  assert_int_equal(dist_value_size(tuple), 3);
  for (size_t i = 0; i < 3; i++) assert_ptr_equal(dist_value_item(tuple, i), items[i]);
  /* Accessors of one kind do not apply to the others. */
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(dist_value_size(items[i]), 0);
    assert_null(dist_value_key(items[i], 0));
    assert_int_equal(dist_value_text(items[i]) != NULL, i == 1);
    assert_int_equal(dist_value_object(items[i]) != NULL, i == 2);
  }
  assert_null(dist_value_text(tuple));
  assert_null(dist_value_object(tuple));
  release_all(items, 3);
  assert_int_equal(atomic_load(&released), 0); /* the tuple keeps it */
  dist_value_release(tuple);
  assert_int_equal(atomic_load(&released), 1);
  assert_ok(dist_value_create_tuple(*state, NULL, 0, &tuple));
  assert_int_equal(dist_value_size(tuple), 0);
  dist_value_release(tuple);
  assert_ok(dist_value_wrap_object(*state, &released, NULL, &object));
  dist_value_release(object);
}

static void no_tensors(void **state) {
  dist_value *none = NULL, *text = NULL;
  assert_ok(dist_value_create_none(*state, &none));
  assert_ok(dist_value_create_text(*state, "seven", &text));
  dist_tensor tensor;
  struct DLManagedTensor *managed = NULL;
  assert_fails(dist_value_tensor(none, &tensor), DIST_INVALID_ARGUMENT, "value is nothing");
  assert_fails(dist_value_tensor(text, &tensor), DIST_INVALID_ARGUMENT, "value is a text");
  assert_fails(dist_value_to_dlpack(text, &managed), DIST_INVALID_ARGUMENT, "a text is not a tensor");
  dist_value_release(text);
  dist_value_release(none);
}

static void null_arguments(void **state) {
  dist_value *value = NULL;
  assert_fails(dist_value_create_none(NULL, &value), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_value_create_none(*state, NULL), DIST_INVALID_ARGUMENT, "out_value is NULL");
  assert_fails(dist_value_create_text(*state, NULL, &value), DIST_INVALID_ARGUMENT, "text is NULL");
  assert_fails(dist_value_wrap_object(*state, NULL, NULL, &value), DIST_INVALID_ARGUMENT, "object is NULL");
  assert_fails(dist_value_create_tuple(*state, NULL, 2, &value), DIST_INVALID_ARGUMENT, "items is NULL");
  dist_value *items[] = {NULL};
  assert_fails(dist_value_create_tuple(*state, items, 1, &value), DIST_INVALID_ARGUMENT,
               "items[0] of a tuple");
  assert_null(value);
  assert_null(dist_value_text(NULL));
  assert_null(dist_value_object(NULL));
}

/* ---- Composites ---- */

static const int64_t kRows[] = {3, 2}, kDense[] = {10, 2}, kOther[] = {10, 4}, kIndices[] = {0, 7, 7};
static const int64_t kThree = 3;

static void composites_are_made_of_their_parts(void **state) {
  dist_value *slices = NULL, *ragged = NULL, *sparse = NULL, *none = NULL;
  assert_ok(dist_value_create_none(*state, &none));
  dist_value *rows[] = {floats_of(*state, 2, kRows), indices_of(*state, kIndices, 3),
                        indices_of(*state, kDense, 2)};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_INDEXED_SLICES, rows, 3, &slices));
  assert_int_equal(dist_value_kind_of(slices), DIST_VALUE_INDEXED_SLICES);
  assert_int_equal(dist_value_size(slices), 3);
  for (size_t i = 0; i < 3; i++) assert_ptr_equal(dist_value_item(slices, i), rows[i]);
  dist_value_release(slices);
  dist_value *shapeless[] = {rows[0], rows[1], none};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_INDEXED_SLICES, shapeless, 3, &slices));
  dist_value_release(slices);
  /* [[1, 2], []], [[3]]: row splits from the outermost to the innermost. */
  const int64_t outer[] = {0, 2, 3}, inner[] = {0, 2, 2, 3}, zero = 0;
  dist_value *splits[] = {floats_of(*state, 1, &kThree), indices_of(*state, outer, 3),
                          indices_of(*state, inner, 4)};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_RAGGED, splits, 3, &ragged));
  dist_value_release(ragged);
  const int64_t no_rows[] = {0};
  dist_value *empty[] = {floats_of(*state, 1, &zero), indices_of(*state, no_rows, 1)};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_RAGGED, empty, 2, &ragged));
  dist_value_release(ragged);
  const int64_t places_shape[] = {3, 2}, two = 2;
  int64_t places[] = {0, 0, 1, 1, 2, 0}, dense[] = {3, 2};
  dist_value *elements[] = {tensor_of(*state, places, DIST_I64, 2, places_shape), splits[0],
                            tensor_of(*state, dense, DIST_I64, 1, &two)};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_SPARSE, elements, 3, &sparse));
  dist_tensor tensor;
  assert_fails(dist_value_tensor(sparse, &tensor), DIST_INVALID_ARGUMENT, "a sparse tensor with values");
  dist_value_release(sparse);
  dist_value_release(elements[0]);
  dist_value_release(elements[2]);
  release_all(rows, 3);
  release_all(splits, 3);
  release_all(empty, 2);
  dist_value_release(none);
}

static void parts_that_do_not_fit(void **state) {
  const int64_t falling[] = {0, 2, 1, 3}, late[] = {1, 3}, short_of[] = {0, 2}, two = 2, four = 4;
  float scalar = 1;
  dist_value *rows = floats_of(*state, 2, kRows), *flat = floats_of(*state, 1, &kThree);
  dist_value *three = indices_of(*state, kIndices, 3), *dense = indices_of(*state, kDense, 2);
  dist_value *other = indices_of(*state, kOther, 2), *number = tensor_of(*state, &scalar, DIST_F32, 0, NULL);
  dist_value *fall = indices_of(*state, falling, 4), *begin = indices_of(*state, late, 2);
  dist_value *end = indices_of(*state, short_of, 2), *none = NULL;
  dist_value *floats = floats_of(*state, 1, &two), *wide = floats_of(*state, 1, &four);
  assert_ok(dist_value_create_none(*state, &none));
  const struct {
    int32_t kind;
    dist_value *parts[3];
    size_t n;
    const char *words;
  } cases[] = {
      {DIST_VALUE_LIST, {rows, three, dense}, 3, "kind is 2564"},
      {DIST_VALUE_INDEXED_SLICES, {rows, three, NULL}, 2, "indexed slices cannot be created from 2 parts"},
      {DIST_VALUE_INDEXED_SLICES, {rows, NULL, dense}, 3, "parts[1] of indexed slices is NULL"},
      {DIST_VALUE_INDEXED_SLICES, {number, three, dense}, 3, "values of indexed slices"},
      {DIST_VALUE_INDEXED_SLICES, {none, three, dense}, 3, "values of indexed slices are nothing"},
      {DIST_VALUE_INDEXED_SLICES, {rows, floats, dense}, 3, "indices of indexed slices"},
      {DIST_VALUE_INDEXED_SLICES, {rows, dense, dense}, 3, "3 rows but 2 indices"},
      {DIST_VALUE_INDEXED_SLICES, {rows, three, three}, 3, "values of 2 dimensions, but a dense shape of 3"},
      {DIST_VALUE_INDEXED_SLICES,
       {rows, three, other},
       3,
       "size 2 in dimension 1, but the dense shape has 4"},
      {DIST_VALUE_INDEXED_SLICES, {rows, three, flat}, 3, "dense shape of indexed slices"},
      {DIST_VALUE_RAGGED, {flat, NULL, NULL}, 1, "a ragged tensor cannot be created from 1 parts"},
      {DIST_VALUE_RAGGED, {flat, fall, NULL}, 2, "row splits 1 of a ragged tensor"},
      {DIST_VALUE_RAGGED, {flat, begin, NULL}, 2, "row splits 1 of a ragged tensor"},
      {DIST_VALUE_RAGGED, {flat, end, NULL}, 2, "end with 3"},
      {DIST_VALUE_RAGGED, {number, end, NULL}, 2, "values of a ragged tensor"},
      {DIST_VALUE_SPARSE, {three, flat, dense}, 3, "indices of a sparse tensor"},
      {DIST_VALUE_SPARSE, {none, flat, dense}, 3, "indices of a sparse tensor are nothing"},
      {DIST_VALUE_SPARSE, {rows, wide, dense}, 3, "indices of a sparse tensor"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    dist_value *value = NULL;
    assert_fails(dist_value_create_composite(*state, cases[i].kind, cases[i].parts, cases[i].n, &value),
                 DIST_INVALID_ARGUMENT, cases[i].words);
    assert_null(value);
  }
  dist_value *all[] = {rows, flat, three, dense, other, number, fall, begin, end, none, floats, wide};
  release_all(all, COUNT_OF(all));
}

static void sparse_parts_agree_in_number(void **state) {
  int64_t places[] = {0, 0, 1, 1, 2, 0}, dense[] = {3, 2};
  const int64_t shape[] = {3, 2}, two = 2, three = 3;
  dist_value *where = tensor_of(*state, places, DIST_I64, 2, shape);
  dist_value *parts[] = {where, floats_of(*state, 1, &two), tensor_of(*state, dense, DIST_I64, 1, &two)};
  dist_value *value = NULL;
  assert_fails(dist_value_create_composite(*state, DIST_VALUE_SPARSE, parts, 3, &value),
               DIST_INVALID_ARGUMENT, "3 x 2 indices");
  dist_value *more[] = {where, floats_of(*state, 1, &three), tensor_of(*state, places, DIST_I64, 1, &three)};
  assert_fails(dist_value_create_composite(*state, DIST_VALUE_SPARSE, more, 3, &value), DIST_INVALID_ARGUMENT,
               "a dense shape of 3");
  assert_null(value);
  release_all(parts, 3);
  release_all(more + 1, 2);
}

/* ---- Passed through a run ---- */

/* Returns (the shared text, the replica's text, [none, the replica's slices, the shared slices]). On request,
 * replica 1's third item is a tuple. */
static dist_status give_all(dist_replica *replica, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)kwargs;
  const int *other_structure = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *shared = dist_value_item(args, 0), *slices = dist_value_item(args, 1);
  char name[16];
  snprintf(name, sizeof name, "r%d", (int)me);
  dist_value *own = NULL, *none = NULL, *copy = NULL, *inner = NULL;
  dist_value *parts[] = {dist_value_item(slices, 0), dist_value_item(slices, 1), dist_value_item(slices, 2)};
  dist_status status = dist_value_create_text(strategy, name, &own);
  if (status == DIST_OK) status = dist_value_create_none(strategy, &none);
  if (status == DIST_OK)
    status = dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, &copy);
  dist_value *list[] = {none, copy, slices};
  if (status == DIST_OK) {
    status = *other_structure && me == 1 ? dist_value_create_tuple(strategy, list, 3, &inner)
                                         : dist_value_create_list(strategy, list, 3, &inner);
  }
  dist_value *items[] = {shared, own, inner};
  if (status == DIST_OK) status = dist_value_create_tuple(strategy, items, 3, out_result);
  dist_value *mine[] = {own, none, copy, inner};
  for (size_t i = 0; i < 4; i++) dist_value_release(mine[i]);
  return status;
}

static void every_kind_passes_through_a_run(void **state) {
  dist_value *text = NULL, *none = NULL, *slices = NULL, *args = NULL, *result = NULL;
  assert_ok(dist_value_create_text(*state, "shared", &text));
  assert_ok(dist_value_create_none(*state, &none));
  dist_value *parts[] = {floats_of(*state, 2, kRows), indices_of(*state, kIndices, 3), none};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices));
  dist_value *items[] = {text, slices};
  assert_ok(dist_value_create_tuple(*state, items, 2, &args)); /* positional arguments may be a tuple */
  int other_structure = 0;
  assert_ok(dist_run_values(*state, give_all, &other_structure, args, NULL, NULL, &result));
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_TUPLE);
  assert_ptr_equal(dist_value_item(result, 0), text);
  const dist_value *own = dist_value_item(result, 1), *inner = dist_value_item(result, 2);
  assert_int_equal(dist_value_kind_of(own), DIST_VALUE_PER_REPLICA);
  assert_string_equal(dist_value_text(dist_value_item(own, 2)), "r2");
  assert_int_equal(dist_value_kind_of(inner), DIST_VALUE_LIST);
  assert_int_equal(dist_value_kind_of(dist_value_item(inner, 0)), DIST_VALUE_NONE);
  const dist_value *copies = dist_value_item(inner, 1); /* a leaf, which is not merged further */
  assert_int_equal(dist_value_kind_of(copies), DIST_VALUE_PER_REPLICA);
  for (size_t r = 0; r < R; r++)
    assert_int_equal(dist_value_kind_of(dist_value_item(copies, r)), DIST_VALUE_INDEXED_SLICES);
  assert_ptr_equal(dist_value_item(inner, 2), slices);
  dist_value *locals = NULL;
  assert_ok(dist_strategy_local_results(*state, dist_value_item(inner, 1), &locals));
  assert_int_equal(dist_value_size(locals), R);
  assert_ptr_equal(dist_value_item(locals, 1), dist_value_item(copies, 1));
  dist_value_release(locals);
  dist_value_release(result);
  other_structure = 1;
  result = NULL;
  assert_fails(dist_run_values(*state, give_all, &other_structure, args, NULL, NULL, &result),
               DIST_INVALID_ARGUMENT, "result[2]: replica 0 has a list of 3, but replica 1 has a tuple of 3");
  assert_null(result);
  release_all(parts, 3);
  dist_value_release(args);
  dist_value_release(slices);
  dist_value_release(text);
}

static dist_status some_give(dist_replica *replica, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  if (dist_replica_id(replica) == 1) *out_result = dist_value_retain(dist_value_item(args, 0));
  return DIST_OK;
}

static void no_result_is_nothing_where_others_give_one(void **state) {
  dist_value *text = NULL, *args = NULL, *result = NULL;
  assert_ok(dist_value_create_text(*state, "one", &text));
  assert_ok(dist_value_create_list(*state, &text, 1, &args));
  assert_ok(dist_run_values(*state, some_give, NULL, args, NULL, NULL, &result));
  assert_int_equal(dist_value_kind_of(result), DIST_VALUE_PER_REPLICA);
  assert_int_equal(dist_value_kind_of(dist_value_item(result, 0)), DIST_VALUE_NONE);
  assert_ptr_equal(dist_value_item(result, 1), text);
  assert_int_equal(dist_value_kind_of(dist_value_item(result, 2)), DIST_VALUE_NONE);
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(text);
}

/* ---- In collectives ---- */

typedef struct reducing {
  dist_reduce_op op;
  dist_dtype dtype;
  int gather;
  dist_value *leaf; /* instead of slices */
  dist_value *results[R];
} reducing;

/* Rows {r, r + 0.5} with the index r, in a list with a tensor of 1. */
static dist_status reduce_slices(dist_replica *replica, void *user_data) {
  reducing *all = user_data;
  dist_strategy *strategy = dist_replica_strategy(replica);
  const int32_t me = dist_replica_id(replica);
  float row[] = {(float)me, (float)me + 0.5f}, one = 1;
  int32_t whole[] = {me, me + 1};
  int64_t index = me;
  const int64_t row_shape[] = {1, 2}, n = 1;
  const dist_tensor rows = {all->dtype == DIST_F32 ? (void *)row : (void *)whole, all->dtype, 2, row_shape,
                            NULL};
  const dist_tensor indices = {&index, DIST_I64, 1, &n, NULL}, scalar = {&one, DIST_F32, 1, &n, NULL};
  dist_value *parts[3] = {NULL}, *slices = NULL, *tensor = NULL, *list = NULL;
  dist_status status = dist_value_create_tensor(strategy, &rows, &parts[0]);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &indices, &parts[1]);
  if (status == DIST_OK) status = dist_value_create_none(strategy, &parts[2]);
  if (status == DIST_OK)
    status = dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &scalar, &tensor);
  dist_value *items[] = {all->leaf != NULL ? all->leaf : slices, tensor};
  if (status == DIST_OK) status = dist_value_create_list(strategy, items, 2, &list);
  if (status == DIST_OK && all->gather)
    status = dist_all_gather_value(replica, list, NULL, &all->results[me]);
  if (status == DIST_OK && !all->gather)
    status = dist_all_reduce_value(replica, all->op, list, NULL, &all->results[me]);
  dist_value *mine[] = {parts[0], parts[1], parts[2], slices, tensor, list};
  for (size_t i = 0; i < COUNT_OF(mine); i++) dist_value_release(mine[i]);
  return status;
}

static dist_tensor part_of(const dist_value *slices, size_t part) {
  dist_tensor tensor;
  assert_ok(dist_value_tensor(dist_value_item(slices, part), &tensor));
  return tensor;
}

static void slices_are_joined_in_replica_order(void **state) {
  for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_MEAN; op++) {
    reducing all = {.op = op, .dtype = DIST_F32};
    assert_ok(dist_run(*state, reduce_slices, &all, NULL));
    for (int r = 0; r < R; r++) {
      const dist_value *slices = dist_value_item(all.results[r], 0);
      assert_int_equal(dist_value_kind_of(slices), DIST_VALUE_INDEXED_SLICES);
      const dist_tensor rows = part_of(slices, 0), indices = part_of(slices, 1);
      assert_int_equal(rows.shape[0], R);
      for (int k = 0; k < R; k++) {
        const float n = op == DIST_REDUCE_MEAN ? R : 1;
        assert_true(((float *)rows.data)[2 * k + 1] == ((float)k + 0.5f) / n);
        assert_int_equal(((int64_t *)indices.data)[k], k);
      }
      assert_true(*(float *)part_of(all.results[r], 1).data == (op == DIST_REDUCE_MEAN ? 1.0f : R));
      dist_value_release(all.results[r]);
    }
  }
  reducing whole = {.op = DIST_REDUCE_MEAN, .dtype = DIST_I32}; /* true division */
  assert_ok(dist_run(*state, reduce_slices, &whole, NULL));
  for (int r = 0; r < R; r++) {
    const dist_tensor rows = part_of(dist_value_item(whole.results[r], 0), 0);
    assert_int_equal(rows.dtype, DIST_F64);
    assert_true(((double *)rows.data)[2] == 1.0 / R);
    dist_value_release(whole.results[r]);
  }
}

static void what_collectives_do_not_take(void **state) {
  reducing all = {.op = DIST_REDUCE_MAX, .dtype = DIST_F32};
  assert_fails(dist_run(*state, reduce_slices, &all, NULL), DIST_UNIMPLEMENTED, "value[0] is indexed slices");
  all = (reducing){.dtype = DIST_F32, .gather = 1};
  assert_fails(dist_run(*state, reduce_slices, &all, NULL), DIST_UNIMPLEMENTED,
               "all_gather takes only tensors");
  dist_value *text = NULL;
  assert_ok(dist_value_create_text(*state, "one", &text));
  all = (reducing){.op = DIST_REDUCE_SUM, .dtype = DIST_F32, .leaf = text};
  assert_fails(dist_run(*state, reduce_slices, &all, NULL), DIST_INVALID_ARGUMENT, "value[0] is a text");
  dist_value_release(text);
  assert_healthy(DIST_THREADS_CALLER, *state);
}

static void the_one_replica_gets_back_what_it_gives(void **state) {
  (void)state;
  for (int32_t kind = DIST_STRATEGY_ONE_DEVICE; kind <= DIST_STRATEGY_DEFAULT; kind++) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = kind;
    dist_strategy *strategy = strategy_with(options);
    reducing all = {.op = DIST_REDUCE_MEAN, .dtype = DIST_I32};
    assert_ok(dist_run(strategy, reduce_slices, &all, NULL));
    const dist_tensor rows = part_of(dist_value_item(all.results[0], 0), 0);
    assert_int_equal(rows.dtype, DIST_I32); /* no division took place */
    assert_int_equal(((int32_t *)rows.data)[1], 1);
    dist_value_release(all.results[0]);
    all.op = 0;
    assert_fails(dist_run(strategy, reduce_slices, &all, NULL), DIST_INVALID_ARGUMENT, "op is 0");
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static int make_strategy(void **state) {
  *state = strategy_of(R, DIST_THREADS_CALLER);
  return 0;
}

static int end_strategy(void **state) { return dist_strategy_destroy(*state) == DIST_OK ? 0 : -1; }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_says_what_it_is),
      cmocka_unit_test(no_tensors),
      cmocka_unit_test(null_arguments),
      cmocka_unit_test(composites_are_made_of_their_parts),
      cmocka_unit_test(parts_that_do_not_fit),
      cmocka_unit_test(sparse_parts_agree_in_number),
      cmocka_unit_test(every_kind_passes_through_a_run),
      cmocka_unit_test(no_result_is_nothing_where_others_give_one),
      cmocka_unit_test(slices_are_joined_in_replica_order),
      cmocka_unit_test(what_collectives_do_not_take),
      cmocka_unit_test(the_one_replica_gets_back_what_it_gives),
  };
  return cmocka_run_group_tests_name("value_kinds", tests, make_strategy, end_strategy);
}
