/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: copying views with any dtype, rank, shape and strides. The target determines independently
 * whether a view is valid. A valid view gets exactly the memory that it covers, so that AddressSanitizer
 * detects accesses outside it, and its copy must have the same elements. All other views must be rejected.
 */
#include "tests/abi/common.h"
#include "tests/abi/fold.h"
#include "tests/fuzz/bytes.h"

enum { MOST_NDIM = DIST_MAX_NDIM + 2, MOST_ELEMENTS = 1 << 14 };

__extension__ typedef __int128 huge; /* sizes whose products overflow */

typedef struct hostile {
  dist_tensor tensor;
  int64_t shape[MOST_NDIM], strides[MOST_NDIM];
  int legal, undecided; /* undecided: valid only on a machine with so much memory */
  huge elements, lowest, highest;
  unsigned char* memory;
} hostile;

static void judge(hostile* h) {
  const dist_tensor* t = &h->tensor;
  h->legal = t->dtype >= DIST_F16 && t->dtype <= LAST_DTYPE && t->ndim >= 0 && t->ndim <= DIST_MAX_NDIM &&
             (t->ndim == 0 || t->shape != NULL);
  h->elements = 1;
  if (!h->legal) return;
  int empty = 0;
  for (int32_t d = 0; d < t->ndim; d++) {
    if (h->shape[d] < 0) h->legal = 0;
    if (h->shape[d] == 0) empty = 1;
  }
  huge step = 1, dense[MOST_NDIM];
  for (int32_t d = t->ndim - 1; h->legal && d >= 0; d--) {
    dense[d] = step;
    step *= h->shape[d] > 0 ? h->shape[d] : 1;
    if (step > INT64_MAX) h->undecided = 1, step = INT64_MAX; /* avoids an overflow of later products */
  }
  h->elements = empty ? 0 : step;
  for (int32_t d = 0; h->legal && !empty && d < t->ndim; d++) {
    const huge reach = (huge)(h->shape[d] - 1) * (t->strides != NULL ? h->strides[d] : dense[d]);
    if (reach > INT64_MAX || reach < INT64_MIN) {
      h->undecided = 1;
      break;
    }
    *(reach < 0 ? &h->lowest : &h->highest) += reach;
  }
  if (empty && h->undecided) return; /* an overflow before the product is 0: both are allowed */
  if (h->elements > MOST_ELEMENTS || h->highest - h->lowest > 16 * MOST_ELEMENTS) h->undecided = 1;
  if (h->elements > INT64_MAX / (int64_t)size_of(t->dtype))
    h->legal = h->undecided = 0; /* no memory can hold it, so it must be rejected */
}

static void decode(hostile* h, bytes* in) {
  memset(h, 0, sizeof *h);
  const uint8_t kind = take(in);
  dist_tensor* t = &h->tensor;
  t->dtype = kind < 224 ? 1 + kind % LAST_DTYPE : (int32_t)take_hostile(in);
  const uint8_t ndim = take(in);
  t->ndim = ndim < 224 ? ndim % 5 : ndim < 240 ? ndim - 224 + 3 : (int32_t)take_hostile(in);
  const uint8_t how = take(in);
  for (int32_t d = 0; d < t->ndim && d < MOST_NDIM; d++) h->shape[d] = take_hostile(in);
  for (int32_t d = 0; how & 1 && d < t->ndim && d < MOST_NDIM; d++) h->strides[d] = take_hostile(in);
  if (t->ndim != 0 && (how & 0xC0) != 0xC0) t->shape = h->shape;
  if (how & 1) t->strides = h->strides;
  judge(h);
  if (!h->legal || h->undecided) {
    t->data = h->memory = malloc(1);
    return;
  }
  const size_t size = size_of(t->dtype);
  const size_t room = h->elements == 0 ? 0 : (size_t)(h->highest - h->lowest + 1) * size;
  if (room == 0) return; /* data stays NULL, which is valid for an empty tensor */
  h->memory = malloc(room);
  fill_random(t->dtype, h->memory, room / size, take(in));
  t->data = h->memory + (size_t)-h->lowest * size;
}

static void check_copy(const hostile* h, const dist_tensor* copy) {
  const dist_tensor* t = &h->tensor;
  assert_int_equal(copy->dtype, t->dtype);
  assert_int_equal(copy->ndim, t->ndim);
  for (int32_t d = 0; d < t->ndim; d++) assert_true(copy->shape[d] == h->shape[d]);
  assert_true(copy->strides == NULL || h->elements == 0 || t->ndim == 0 || copy->strides[t->ndim - 1] == 1);
  const size_t size = size_of(t->dtype);
  for (int64_t i = 0; i < (int64_t)h->elements; i++) {
    int64_t offset = 0, rest = i, step = 1;
    for (int32_t d = t->ndim - 1; d >= 0; d--) {
      const int64_t length = h->shape[d] > 0 ? h->shape[d] : 1; /* lengths are not 0 if there are elements */
      offset += rest % length * (t->strides != NULL ? h->strides[d] : step);
      rest /= length;
      step *= length;
    }
    assert_memory_equal((const char*)copy->data + (size_t)i * size,
                        (const char*)t->data + offset * (int64_t)size, size);
  }
}

static void check_status(const hostile* h, dist_status status) {
  if (h->legal && status != DIST_OK) fail_msg("a legal tensor is refused: %s", dist_last_error());
  if (!h->legal && status != DIST_INVALID_ARGUMENT)
    fail_msg("an illegal tensor: %s instead of INVALID_ARGUMENT", dist_status_name(status));
}

/* Checks that an iteration over the dataset yields all rows in order. */
static void check_dataset(dist_strategy* strategy, const hostile* h, const dist_dataset_options* options) {
  dist_dataset* dataset = NULL;
  const dist_status status = dist_dataset_create_from_tensors(strategy, &h->tensor, 1, options, &dataset);
  const int rows = h->legal && h->tensor.ndim > 0;
  if (!rows) {
    assert_int_equal(status, DIST_INVALID_ARGUMENT);
    return;
  }
  if (status != DIST_OK) {
    assert_int_equal(status, DIST_INVALID_ARGUMENT);
    assert_true(options->global_batch_size < 0);
    return;
  }
  dist_iterator* iterator = NULL;
  const dist_status begun = dist_iterator_create(dataset, &iterator);
  dist_dataset_destroy(dataset);
  if (options->global_batch_size == 0 && h->tensor.ndim < 2) { /* scalars cannot be split */
    assert_int_equal(begun, DIST_INVALID_ARGUMENT);
    return;
  }
  assert_ok(begun);
  dist_value* batch = NULL;
  int64_t batches = 0;
  dist_status next;
  while ((next = dist_iterator_next(iterator, &batch)) == DIST_OK && batch != NULL) {
    batches++;
    dist_value_release(batch);
  }
  if (next != DIST_OK) fail_msg("a pass ends with %s: %s", dist_status_name(next), dist_last_error());
  const int64_t rows_of = h->shape[0], of_batch = options->global_batch_size;
  const int64_t wanted = of_batch == 0             ? rows_of
                         : options->drop_remainder ? rows_of / of_batch
                                                   : rows_of / of_batch + (rows_of % of_batch != 0);
  if (batches != wanted) fail_msg("%lld batches instead of %lld", (long long)batches, (long long)wanted);
  dist_iterator_destroy(iterator);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static dist_strategy* strategy;
  if (strategy == NULL) strategy = strategy_of(2, DIST_THREADS_CALLER);
  bytes in = {data, size};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  const uint8_t flags = take(&in);
  options.drop_remainder = flags & 1;
  options.shuffle = flags >> 1 & 1;
  options.prefetch = flags >> 2 & 1 ? -1 : flags >> 3 & 3;
  options.global_batch_size = flags >> 5 == 7 ? take_hostile(&in) : flags >> 5;
  hostile h;
  decode(&h, &in);
  /* Many rows without elements need no memory, but iterating over them would take too long. */
  const int many_rows = h.legal && h.tensor.ndim > 0 && h.shape[0] > MOST_ELEMENTS;
  if (!h.undecided && !many_rows) {
    dist_value* value = NULL;
    const dist_status status = dist_value_create_tensor(strategy, &h.tensor, &value);
    check_status(&h, status);
    if (status == DIST_OK) {
      dist_tensor copy;
      assert_ok(dist_value_tensor(value, &copy));
      check_copy(&h, &copy);
      dist_value_release(value);
    }
    dist_variable* variable = NULL;
    check_status(&h, dist_variable_create(strategy, &h.tensor, NULL, &variable));
    dist_variable_destroy(variable);
    check_dataset(strategy, &h, &options);
  }
  if (h.undecided && h.elements == 0) { /* no elements and an overflowing product: both results are allowed */
    dist_value* value = NULL;
    if (dist_value_create_tensor(strategy, &h.tensor, &value) == DIST_OK) dist_value_release(value);
  }
  free(h.memory);
  return 0;
}
