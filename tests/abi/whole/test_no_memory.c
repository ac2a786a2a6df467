/* SPDX-License-Identifier: Apache-2.0
 *
 * malloc() itself fails once, at every place at which a piece of work calls it: in libdist, oneTBB and the
 * C++ library. What was created must work afterwards, and what was not created can be created again. Each
 * trial is a process, which an alarm ends if it hangs.
 */
#include "tests/abi/common.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers replace malloc(). */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long countdown = -1; /* 0 = the next call fails; < 0 = no call fails */

static int only_here; /* calls on other threads do not count */
static _Thread_local int here;

static int fails(void) {
  if (only_here && !here) return 0;
  return atomic_load(&countdown) >= 0 && atomic_fetch_sub(&countdown, 1) == 0;
}

void *malloc(size_t size) { return fails() ? (errno = ENOMEM, (void *)0) : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? (errno = ENOMEM, (void *)0) : __libc_calloc(n, size); }
void *aligned_alloc(size_t align, size_t size) {
  return fails() ? (errno = ENOMEM, (void *)0) : __libc_memalign(align, size);
}
void *memalign(size_t align, size_t size) { return aligned_alloc(align, size); }
int posix_memalign(void **out, size_t align, size_t size) {
  return fails() || (*out = __libc_memalign(align, size)) == NULL ? ENOMEM : 0;
}

typedef struct things {
  dist_strategy *strategy;
  dist_dataset *dataset;
  dist_iterator *iterator;
  dist_completions *completions;
  dist_batcher *batcher;
} things;

static dist_status make_strategy(things *t) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_LIBRARY;
  return dist_strategy_create(&options, &t->strategy);
}

/* ---- A pass with prefetching ---- */

static dist_status four_numbers(dist_strategy *strategy, int64_t index, dist_value **out_element,
                                void *user_data) {
  (void)strategy;
  const things *t = user_data;
  float numbers[4] = {(float)index};
  const int64_t four = 4;
  const dist_tensor tensor = {numbers, DIST_F32, 1, &four, NULL};
  return index < 100 ? dist_value_create_tensor(t->strategy, &tensor, out_element) : DIST_OUT_OF_RANGE;
}

static dist_status make_dataset(things *t) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  options.prefetch = 2;
  dist_status status = make_strategy(t);
  if (status == DIST_OK)
    status = dist_dataset_create_from_callback(t->strategy, four_numbers, t, NULL, &options, &t->dataset);
  return status;
}

static dist_status make_iterator(things *t) { return dist_iterator_create(t->dataset, &t->iterator); }

static dist_status take_batches(things *t) {
  dist_status status = DIST_OK;
  for (int k = 0; k < 3 && status == DIST_OK; k++) {
    dist_value *batch = NULL;
    status = dist_iterator_next(t->iterator, &batch);
    dist_value_release(batch);
  }
  /* A source or an iterator that has failed stays failed, as documented; a new pass works. */
  if (status != DIST_OK) {
    dist_iterator_destroy(t->iterator);
    t->iterator = NULL;
    const long left = atomic_exchange(&countdown, -1);
    const dist_status again = make_iterator(t);
    atomic_store(&countdown, left);
    if (again != DIST_OK) return DIST_INTERNAL;
  }
  return status;
}

static void end_dataset(things *t) {
  dist_iterator_destroy(t->iterator);
  dist_dataset_destroy(t->dataset);
}

/* ---- Batches of items ---- */

static dist_status emit_one(dist_replica *replica, dist_batch *batch, void *user_data) {
  (void)replica, (void)user_data;
  dist_status status = DIST_OK;
  for (size_t i = 0; i < dist_batch_size(batch); i++) status = dist_batch_emit(batch, i, &countdown);
  return status;
}

static dist_status make_batcher(things *t) {
  dist_status status = dist_completions_create(NULL, &t->completions);
  if (status == DIST_OK) status = dist_batcher_create(t->strategy, emit_one, NULL, NULL, &t->batcher);
  if (status != DIST_OK) {
    dist_completions_destroy(t->completions);
    t->completions = NULL;
  }
  return status;
}

static dist_status submit_items(things *t) {
  dist_item_options options = DIST_ITEM_OPTIONS_INIT;
  options.completions = t->completions;
  dist_status status = dist_batcher_submit(t->batcher, t, &options, NULL);
  for (int32_t done = status != DIST_OK; !done;) {
    dist_request *work = NULL;
    void *result = NULL;
    if (dist_completions_next(t->completions, -1, &work) != DIST_OK || work == NULL) return DIST_INTERNAL;
    while (dist_request_take(work, 0, &result) == DIST_OK && result != NULL) {
    }
    const dist_status ended = dist_request_test(work, &done);
    if (ended != DIST_OK) done = 1, status = ended;
    dist_request_destroy(work);
  }
  return status;
}

static void end_batcher(things *t) {
  if (t->batcher != NULL && dist_batcher_destroy(t->batcher) != DIST_OK) abort();
  dist_completions_destroy(t->completions);
}

/* ---- Collectives, and loops shared with oneTBB ---- */

static void touch(int64_t begin, int64_t end, void *user_data) {
  float *numbers = user_data;
  for (int64_t i = begin; i < end; i++) numbers[i] += 1;
}

enum { MANY = 1 << 18 };

static dist_status reduce_and_loop(dist_replica *replica, void *user_data) {
  static float numbers[2][MANY];
  (void)user_data;
  float *mine = numbers[dist_replica_id(replica)];
  const int64_t many = MANY;
  dist_tensor tensor = {mine, DIST_F32, 1, &many, NULL};
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  if (status == DIST_OK) status = dist_replica_parallel_for(replica, 0, MANY, 1000, touch, mine);
  return status;
}

static dist_status nothing(things *t) {
  (void)t;
  return DIST_OK;
}

static dist_status run_collectives(things *t) { return dist_run(t->strategy, reduce_and_loop, NULL, NULL); }

/* ---- Asynchronous collectives, which oneTBB threads process ---- */

static dist_status reduce_asynchronously(dist_replica *replica, void *user_data) {
  static float numbers[2][MANY];
  (void)user_data;
  float *mine = numbers[dist_replica_id(replica)];
  const int64_t many = MANY;
  dist_tensor tensor = {mine, DIST_F32, 1, &many, NULL};
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, -1);
  dist_work_destroy(work);
  return status;
}

static dist_status run_works(things *t) { return dist_run(t->strategy, reduce_asynchronously, NULL, NULL); }

static void end_nothing(things *t) { (void)t; }

/* ---- Trials ---- */

typedef struct piece {
  const char *name;
  dist_status (*prepare)(things *t);
  dist_status (*make)(things *t); /* must leave `t` unchanged if it fails */
  dist_status (*use)(things *t);
  void (*end)(things *t);
} piece;

static const piece kPieces[] = {
    {"a pass", make_dataset, make_iterator, take_batches, end_dataset},
    {"batches", make_strategy, make_batcher, submit_items, end_batcher},
    {"collectives", make_strategy, nothing, run_collectives, end_nothing},
    {"works", make_strategy, nothing, run_works, end_nothing},
    {"a strategy", nothing, make_strategy, run_collectives, end_nothing},
};

enum { NOT_REACHED = 1, FIRST_FAULT = 10 };

/* Runs in a separate process. Call `k` fails while the object is created or, with `while_used`, also while it
 * is used. */
static int trial(const piece *p, long k, int while_used) {
  static things t;
  alarm(30);
  here = 1;
  only_here = !while_used; /* a prefetched batch must not fail before it is taken */
  if (p->prepare(&t) != DIST_OK) return FIRST_FAULT;
  atomic_store(&countdown, k);
  dist_status status = p->make(&t);
  if (!while_used || status != DIST_OK) {
    const int reached = atomic_exchange(&countdown, -1) < 0;
    if (status != DIST_OK && status != DIST_RESOURCE_EXHAUSTED) return FIRST_FAULT + 1;
    if (status != DIST_OK && !reached) return FIRST_FAULT + 2;
    if (status != DIST_OK && p->make(&t) != DIST_OK) return FIRST_FAULT + 3;
    if (p->use(&t) != DIST_OK) return FIRST_FAULT + 4;
    if (!reached) return NOT_REACHED;
  } else {
    status = p->use(&t);
    const int reached = atomic_exchange(&countdown, -1) < 0;
    if (status != DIST_OK && !(reached && status == DIST_RESOURCE_EXHAUSTED)) return FIRST_FAULT + 5;
    /* A batch that was prefetched without memory may be reported only now. */
    if (p->use(&t) != DIST_OK && p->use(&t) != DIST_OK) return FIRST_FAULT + 6;
    if (!reached) return NOT_REACHED;
  }
  p->end(&t);
  return dist_strategy_destroy(t.strategy) == DIST_OK ? 0 : FIRST_FAULT + 7;
}

static void what_is_made_without_memory_works(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(kPieces); i++) {
    for (int while_used = 0; while_used < 2; while_used++) {
      int result = 0;
      for (long k = 0; result != NOT_REACHED; k++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(trial(&kPieces[i], k, while_used));
        int ended = 0;
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (!WIFEXITED(ended) || WEXITSTATUS(ended) >= FIRST_FAULT) {
          fail_msg("%s, call %ld of malloc() %s: %s %d", kPieces[i].name, k,
                   while_used ? "until it is used" : "", WIFEXITED(ended) ? "exit" : "signal",
                   WIFEXITED(ended) ? WEXITSTATUS(ended) : WTERMSIG(ended));
        }
        result = WEXITSTATUS(ended);
      }
    }
  }
}

#else

static void what_is_made_without_memory_works(void **state) { (void)state; }

#endif

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_made_without_memory_works)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
