/* SPDX-License-Identifier: Apache-2.0
 *
 * dist/dist.h: libdist's C API. It reads from top to bottom like a manual.
 *
 *    1  A program                     6  Inside a replica: collectives
 *    2  Version, errors               7  Values
 *    3  Strategies                    8  Variables
 *    4  Running replicas              9  From outside: reduce, update
 *    5  Inside a replica: who am I   10  Datasets
 *                                    11  Looking inside
 *
 * ---- 1. A program ----------------------------------------------------------------------------------
 *
 *     static dist_status step(dist_replica *replica, void *user_data) {
 *       int64_t shape[] = {3};
 *       float gradient[3] = {1, 2, 3};
 *       dist_tensor t = {gradient, DIST_F32, 1, shape, NULL};
 *       return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL);
 *     }
 *
 *     dist_strategy *strategy;
 *     if (dist_strategy_create(NULL, &strategy)) return fail(dist_last_error());
 *     if (dist_run(strategy, step, NULL)) return fail(dist_last_error());
 *     dist_strategy_destroy(strategy);
 *
 * A strategy holds R replicas: threads that run the same function, each on its part of the input, and
 * meet in collectives. dist_run() calls the function once on every replica and returns when all are back.
 *
 * Rules that hold for every function:
 *   - The first parameter names the context. A dist_strategy * is the cross-replica context: outside the
 *     replica function, or inside a merge function. A dist_replica * is the replica context.
 *   - What can fail returns a dist_status. Outputs (`out_...`) are written on DIST_OK only.
 *     dist_last_error() says in words what was wrong, what was expected and what to try.
 *   - Options may be NULL, and a zero field means the default. Begin with DIST_..._OPTIONS_INIT, or
 *     from another language dist_..._options_init().
 *   - One owner: what a create function gives is ended by dist_..._destroy(); NULL is fine there. Values
 *     are counted instead: retain and release. Strings and tensors in are copied unless "wrap" is in the
 *     name; strings and shapes out are borrowed from their object.
 *   - libdist never aborts, exits, forks, raises, installs a signal handler, changes the environment or
 *     writes to stdout or stderr.
 *
 * Words after "Context": Strategy, cross-replica context; Replica, inside the replica function, with that
 * replica's own handle; Any, either. Words about threads: "concurrent" may be called from several threads
 * at once; "serialized", from any thread, but one call at a time on the same object.
 */
#ifndef DIST_DIST_H
#define DIST_DIST_H

#include "types.h" /* statuses, dtypes, operators, tensors, the kinds of strategies, threads and values */

#ifdef __cplusplus
extern "C" {
#endif

/** R replicas, their threads and their group. */
typedef struct dist_strategy dist_strategy;
/** One copy of the host's function: its id, and its side of every collective. */
typedef struct dist_replica dist_replica;
/** Some of a strategy's replicas, which meet without the others. */
typedef struct dist_group dist_group;
/** A collective that is under way, or planned. */
typedef struct dist_work dist_work;
/** A tensor, or a list or dictionary of values, or one value for each replica. Immutable, counted. */
typedef struct dist_value dist_value;
/** A tensor that outlives runs, with one copy for each replica. */
typedef struct dist_variable dist_variable;
/** A source of batches, each split over the replicas. */
typedef struct dist_dataset dist_dataset;
/** One pass over a dataset. */
typedef struct dist_iterator dist_iterator;

/* ==== 2. Version, errors ============================================================================ */

#define DIST_VERSION_MAJOR 0
#define DIST_VERSION_MINOR 1
#define DIST_VERSION_PATCH 0

/**
 * The version of the library that runs: major * 10000 + minor * 100 + patch.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_version(void);

/**
 * Whether this build has an optional feature: 1 or 0; 0 for a name it does not know.
 * Names: "numa" (hwloc was there when it was built), "pinning".
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_has_feature(const char *name);

/**
 * A status as a word, "INVALID_ARGUMENT"; "UNKNOWN_STATUS" for a number that this version does not have.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The text is static.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_status_name(dist_status status);

/**
 * What this thread's latest failing call has to say: UTF-8, never NULL, "" before the first failure.
 * After dist_run() failed it is the text of the replica that failed first, or the report on a collective
 * that did not come together.
 *
 * Context  Any, concurrent: every thread has its own.
 * Blocks   Never.
 * Owns     The library's; valid until this thread's next failing call.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_last_error(void);

/** The latest error as fields. Texts are never NULL; "" where there is nothing to say. */
typedef struct dist_error_info {
  uint32_t struct_size;
  dist_status code;
  int32_t worker;       /* the culprit's process; 0 in a strategy of one process */
  int32_t replica;      /* the culprit's id; -1: no replica is to blame */
  int32_t collective;   /* a DIST_COLLECTIVE_... */
  int32_t group;        /* which group of replicas met; 0: all */
  int64_t sequence;     /* the collective's number in this run, from 1; 0: outside a collective */
  const char *message;  /* dist_last_error() */
  const char *tag;      /* of the collective */
  const char *expected; /* what the majority, or the lowest id, asked for */
  const char *received; /* what the culprit asked for, or that it left or did not come */
  const char *hint;     /* what to try */
} dist_error_info;
#define DIST_ERROR_INFO_INIT \
  { sizeof(dist_error_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * This thread's latest error as fields. `out_info->struct_size` says how much of it to write.
 *
 * Context  Any, concurrent: every thread has its own.
 * Blocks   Never.
 * Owns     The texts are the library's; valid until this thread's next failing call.
 * Errors   INVALID_ARGUMENT  out_info is NULL or its struct_size is too small. The error stays as it was.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_last_error_info(dist_error_info *out_info);

/**
 * Sets this thread's error text and returns `status`: `return dist_fail(DIST_NOT_FOUND, "no row 7");` in a
 * callback makes that text the one which dist_run()'s caller sees.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The text is copied, and cut at 1,023 bytes.
 * Errors   `status`, or INVALID_ARGUMENT where that is DIST_OK.
 * Since    0.1
 */
DIST_API dist_status dist_fail(dist_status status, const char *message);

/* ==== 3. Strategies ================================================================================= */

typedef struct dist_strategy_options {
  uint32_t struct_size;
  int32_t kind;             /* DIST_STRATEGY_... */
  int32_t num_replicas;     /* 0: as many as this process may use CPUs (affinity, cgroup quota) */
  int32_t threads;          /* DIST_THREADS_... */
  int32_t placement;        /* DIST_PLACEMENT_... */
  int32_t reserved;         /* 0 */
  int64_t timeout_ns;       /* longest wait for a peer in one collective; 0: 600 s; < 0: no limit */
  dist_allocator allocator; /* all zero: malloc and free */
  dist_log_fn log;          /* NULL: silent */
  void *log_user_data;
  dist_clock_fn clock; /* for deadlines; NULL: the system's steady clock */
  void *clock_user_data;
} dist_strategy_options;
#define DIST_STRATEGY_OPTIONS_INIT \
  { sizeof(dist_strategy_options), 0, 0, 0, 0, 0, 0, {0, 0, 0}, 0, 0, 0, 0 }

/**
 * Sets all fields to their defaults, and struct_size to `struct_size_bytes`: the size that the caller was
 * compiled with, sizeof(dist_strategy_options).
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None; NULL is ignored.
 * Since    0.1
 */
DIST_API void dist_strategy_options_init(dist_strategy_options *options, uint32_t struct_size_bytes);

/**
 * Makes a strategy and its threads, which sleep until the first run. Any number may live side by side.
 *
 * The CPUs that the process may use (affinity mask, cgroup quota) are read here. If they change later, the strategy keeps
 * its number of replicas and its way of waiting: results stay the same, only speed changes. A strategy made afterwards
 * sees the change.
 *
 * Context  Any, concurrent.
 * Blocks   Until the threads are made.
 * Owns     The caller owns *out_strategy: dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT    out_strategy is NULL, an option is out of its range, or an option from the
 *                              future is set (struct_size is larger and the rest is not zero).
 *          RESOURCE_EXHAUSTED  no memory, or the system gives no further thread. Nothing is left behind.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_create(const dist_strategy_options *options,
                                                         dist_strategy **out_strategy);

/**
 * Ends the threads. Values, variables and datasets made with the strategy stay readable until they end.
 *
 * Context  Strategy, serialized. NULL is fine. In a forked child nothing is done.
 * Blocks   Until the threads have ended.
 * Owns     Takes the strategy, unless it fails.
 * Errors   FAILED_PRECONDITION  a run is under way, or groups or works are left; the strategy is as it was.
 * Since    0.1
 */
DIST_API dist_status dist_strategy_destroy(dist_strategy *strategy);

/**
 * How many replicas are in sync: the R of this page. 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_strategy_num_replicas(const dist_strategy *strategy);

/**
 * Ends the run that is under way: every replica that waits in a collective, now or later in that run,
 * returns CANCELLED, and so does dist_run() once the replica functions are back. No run: nothing happens.
 *
 * Context  Any thread, concurrent; also from inside a replica.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cancel(dist_strategy *strategy);

/* ==== 4. Running replicas =========================================================================== */

/**
 * The host's function, called once on each replica, on that replica's thread, concurrently. Its status is
 * the replica's: anything but DIST_OK ends the run for all. It must not throw or longjmp out.
 */
typedef dist_status (*dist_replica_fn)(dist_replica *replica, void *user_data);

/**
 * Calls `fn` once on every replica and waits for all of them.
 *
 *     for r in 0 .. R-1, at the same time:   status[r] = fn(replica[r], user_data)
 *
 * If a replica fails, its peers' pending and later collectives return ABORTED at once with its report; the
 * result is the status of the lowest replica whose failure was its own. The next run starts clean.
 *
 * Context  Strategy, concurrent: several callers are served one after another. Not inside a replica.
 * Blocks   Until every replica's function has returned.
 * Owns     Nothing; fn and user_data are used until return.
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL.
 *          FAILED_PRECONDITION  inside a replica function or merge function; the strategy has host threads;
 *                               this is a forked child of the strategy's process.
 *          any                  what the first failing replica returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_run(dist_strategy *strategy, dist_replica_fn fn, void *user_data);

typedef struct dist_run_options {
  uint32_t struct_size;
  int32_t reserved;   /* 0 */
  int64_t timeout_ns; /* of the whole run; 0: none */
} dist_run_options;
#define DIST_RUN_OPTIONS_INIT \
  { sizeof(dist_run_options), 0, 0 }

/** As dist_strategy_options_init(), of dist_run_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_run_options_init(dist_run_options *options, uint32_t struct_size_bytes);

/**
 * A replica function on values. `args` is a list, `kwargs` a dictionary (or NULL); wherever the caller put a
 * per-replica or mirrored value, at any depth, this replica finds its own component. Both are borrowed.
 * *out_result is NULL before the call (no result) and is taken over with its reference.
 */
typedef dist_status (*dist_values_fn)(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                      dist_value **out_result, void *user_data);

/**
 * dist_run() with arguments and results.
 *
 *     for r in 0 .. R-1, at the same time:   result[r] = fn(replica[r], component(args, r), component(kwargs, r))
 *     *out_result = merge(result[0], ..., result[R-1])
 *
 * Results of the same structure (kind, length, keys) merge leaf by leaf: where all replicas hold the same
 * dist_value, that value as it is; otherwise one per-replica value. One replica: its result as it is.
 *
 * Context  Strategy, as dist_run().
 * Blocks   Until every replica's function has returned, or options->timeout_ns is over. Then replicas in
 *          collectives return at once, and the call returns (where the caller is replica 0: when its own function
 *          does); the strategy refuses runs until those still inside are out.
 * Owns     args and kwargs (both may be NULL) are borrowed. *out_result is the caller's: dist_value_release();
 *          NULL if no replica gave a result. out_result may be NULL: results are dropped. After a deadline fn and
 *          user_data are in use until those still inside are out.
 * Errors   As dist_run(), and
 *          INVALID_ARGUMENT   args is no list or kwargs no dictionary; the results differ in structure (the
 *                             message has the path), or only some replicas gave one.
 *          DEADLINE_EXCEEDED  options->timeout_ns is over; the message names the replicas still inside.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_run_values(dist_strategy *strategy, dist_values_fn fn,
                                                    void *user_data, dist_value *args, dist_value *kwargs,
                                                    const dist_run_options *options, dist_value **out_result);

/**
 * The calling thread becomes replica `replica_id` of a strategy with DIST_THREADS_HOST. The first to enter
 * begins a run, and each replica enters it once; the run ends when all R have entered and left. The thread
 * may use *out_replica until dist_replica_leave().
 *
 * Context  Strategy, concurrent; one thread a replica.
 * Blocks   While an earlier run has not ended, at most the strategy's timeout_ns.
 * Owns     *out_replica is the strategy's.
 * Errors   INVALID_ARGUMENT     replica_id is not in 0 .. R-1; NULL.
 *          FAILED_PRECONDITION  the strategy has library threads; this thread is a replica already; that
 *                               replica is inside now.
 *          DEADLINE_EXCEEDED    an earlier run did not end in time; the message names who is still inside.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_enter(dist_strategy *strategy, int32_t replica_id,
                                                       dist_replica **out_replica);

/**
 * This host thread's replica ends its part of the run with `status`. Ending the thread instead, without this
 * call, is seen as a failure of that replica: peers do not hang.
 *
 * Context  Replica, on the thread that entered.
 * Blocks   Until all replicas of the run have left.
 * Owns     Ends the handle's use.
 * Errors   As dist_run(): every replica's thread gets the run's status.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_leave(dist_replica *replica, dist_status status);

/* ==== 5. Inside a replica: who am I ================================================================= */

/**
 * This replica's id in 0 .. R-1, its rank in every collective; -1 for NULL.
 *
 * Context  Replica.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_replica_id(const dist_replica *replica);

/**
 * How many replicas are in sync; 0 for NULL.
 *
 * Context  Replica.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_replica_num_replicas(const dist_replica *replica);

/**
 * The strategy that runs this replica, for functions that make values; NULL for NULL.
 *
 * Context  Replica.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_strategy *dist_replica_strategy(const dist_replica *replica);

/** Takes the part [begin, end) of a loop. Called from several threads at once; must not call collectives. */
typedef void (*dist_range_fn)(int64_t begin, int64_t end, void *user_data);

/**
 * Runs a loop on this replica's share of the cores (by oneTBB), in pieces of at least `grain` iterations.
 *
 *     for i in begin .. end-1, in any order, some at the same time:   fn(i, i + 1, user_data)
 *
 * Shape    begin <= end; grain >= 1.
 * Order    Pieces run in any order: fn must give the same bits whichever way the range is cut.
 * Context  Replica.
 * Blocks   Until the loop is done. Waits for no peer.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT    NULL, end < begin, grain < 1.
 *          RESOURCE_EXHAUSTED  oneTBB could not start; no part of the loop has run.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_parallel_for(dist_replica *replica, int64_t begin, int64_t end,
                                                      int64_t grain, dist_range_fn fn, void *user_data);

/* ---- Groups ---- */

/**
 * Some replicas of a strategy, for collectives among them: dist_collective_options.group. Groups may overlap and
 * meet at the same time. Members that wait for each other in different groups get an error, not a hang.
 *
 * Shape    1 <= n <= R ids in 0 .. R-1, ascending: the rank in the group is the position, so that sums keep the
 *          order of ids.
 * Context  Strategy, concurrent; not while a run is under way.
 * Blocks   Never.
 * Owns     *out_group is the caller's: dist_group_destroy(), before dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT     NULL, n, or an id that is out of range or not above the one before.
 *          FAILED_PRECONDITION  a run is under way; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_group_create(dist_strategy *strategy, const int32_t *replica_ids,
                                                      size_t n, dist_group **out_group);

/**
 * Ends a group. NULL is fine.
 *
 * Context  Strategy, concurrent; not while a run is under way.
 * Blocks   Never.
 * Owns     Takes the group, unless it fails.
 * Errors   FAILED_PRECONDITION  a run is under way, or work of the group is left; the group is as it was.
 * Since    0.1
 */
DIST_API dist_status dist_group_destroy(dist_group *group);

/**
 * How many replicas it has; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_group_size(const dist_group *group);

/**
 * The rank of a replica in the group; -1 where it is no member, or for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_group_rank(const dist_group *group, int32_t replica_id);

/* ==== 6. Inside a replica: collectives ============================================================== */
/*
 * Every replica of the run makes the same collectives in the same order. On arrival each states what it came
 * for; if the others came for something else, left, failed, or do not come in time, then every member gets an
 * error at once, the same report for all, and the later collectives of that group fail with it too until the run
 * has ended. Nobody hangs.
 * When a collective returns, for whatever reason, no peer touches its buffers any longer; after an error the
 * contents of its outputs are unspecified.
 */

/**
 * The host's own operator, for DIST_REDUCE_USER: for i in 0 .. count-1: acc[i] = op(acc[i], in[i]). Called on pieces of
 * a tensor, from several threads at once; it must not call libdist and must give the same bits wherever a tensor is cut.
 */
typedef void (*dist_reduce_fn)(void *acc, const void *in, size_t count, dist_dtype dtype, void *user_data);

typedef struct dist_collective_options {
  uint32_t struct_size;
  int32_t numerics;   /* DIST_NUMERICS_... */
  const char *tag;    /* a name for reports, equal on all members; NULL: none */
  int64_t timeout_ns; /* longest wait for a peer; 0: the strategy's; < 0: no limit */
  const dist_group
      *group; /* who meets; NULL: all replicas. Below, R is its size; r, p and root are ranks in it */
  const double *weights;    /* MEAN: one weight (>= 0) a contribution, given by all members or by none */
  size_t contributions;     /* tensors that this replica adds to each sum; 0, on all members: one */
  dist_reduce_fn reduce_fn; /* DIST_REDUCE_USER's operator; the same on all members */
  void *reduce_user_data;
  const int64_t *splits; /* all_to_all: R sizes along the axis, which `in` is cut into; NULL: equal ones */
  int32_t axis;          /* the dimension that parts are cut from or joined along; < 0 counts from the end */
  int32_t planned;       /* 1: *out_work is a plan, which dist_work_start() begins, any number of times */
  dist_work *
      *out_work; /* not NULL: the call returns at once, and the work is under way; see dist_work_wait() */
  int64_t bytes_per_pack; /* a planned list is cut into packs of about this size; 0: one pack */
} dist_collective_options;
#define DIST_COLLECTIVE_OPTIONS_INIT \
  { sizeof(dist_collective_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_collective_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_collective_options_init(dist_collective_options *options, uint32_t struct_size_bytes);

/**
 * Reduces n tensors over all replicas; every replica gets the results.
 *
 *     for t in 0 .. n-1, every element i, every replica r:
 *       acc = in[0][t][i];   for p in 1 .. R-1:   acc = op(acc, in[p][t][i]);   out[r][t][i] = acc
 *
 * With options->contributions = k, `in` holds k lists one after another, and replica p's contributions in[p][j*n + t]
 * enter the fold in the order of j; k may differ between replicas. With weights w, MEAN is
 * (sum of w[p][j] * in[p][j*n + t][i]) / (sum of w[p][j]): a replica whose batch is empty gives weight 0. If all
 * weights are 0 the result is NaN.
 *
 * Shape    in[t] and out[t] have equal shapes and dtypes, and in[t] the same on every replica. Any strides; without
 *          gaps is fastest. n = 0 and tensors without elements are legal. out == in, or out[t] the same view as in[t],
 *          is in place; any other overlap is an error, where it can be seen: tensors of one list are not compared
 *          with each other. All replicas may pass one and the same out buffer: it is written once.
 * Order    ORDERED: left to right by replica id: the same bits on every replica, in every run, whatever the size.
 *          f16 and bf16 accumulate in f32 and round once. MEAN divides the folded sum by the number of contributions
 *          before that rounding; of integers it is out of place only, into f64 (from i32, u32, i64, u64) or f32 (from
 *          the smaller ones). A weighted product is rounded in the accumulator. Integers wrap. MIN and MAX give NaN
 *          if any is NaN; min(-0, +0) is -0. COMPLEX64 has SUM, MEAN, PROD; BOOL has MIN (and), MAX (or).
 *          REPRODUCIBLE: SUM and MEAN of f16, bf16, f32, f64, and what is exact anyway (integers, MIN, MAX). The
 *          contributions are added exactly and rounded once: SUM is the correctly rounded sum. MEAN divides in f64 the
 *          sum that is rounded to f64 (to odd; of f64 to nearest). A weighted product is rounded to f64 first.
 * Context  Replica. Collective.
 * Blocks   Until every member has come, or the deadline, or a failure of one.
 * Owns     Nothing; buffers are used until return.
 * Errors   INVALID_ARGUMENT   NULL, a bad dtype, op, shape, weight or overlap here; or the replicas disagree.
 *          DEADLINE_EXCEEDED  not all came in time; the report lists who did not.
 *          ABORTED            a replica failed or left; the report names it. Or all wait for each other in different
 *                             groups; the report has the cycle.
 *          CANCELLED          dist_strategy_cancel().
 *          FAILED_PRECONDITION  the replica's run has ended.
 *          UNIMPLEMENTED      REPRODUCIBLE of PROD, USER, weighted integers, complex64, or of a scan.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_all_reduce(dist_replica *replica, dist_reduce_op op,
                                                    const dist_tensor *in, dist_tensor *out, size_t n,
                                                    const dist_collective_options *options);

/**
 * Reduces n tensors over all replicas; the root gets the results.
 *
 *     out[root][t] = what dist_all_reduce() gives
 *
 * Shape    As dist_all_reduce(); `out` is written on the root alone and may be NULL elsewhere.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to_root(dist_replica *replica, dist_reduce_op op,
                                                        int32_t root, const dist_tensor *in, dist_tensor *out,
                                                        size_t n, const dist_collective_options *options);

/**
 * Reduces n tensors over all replicas; every replica gets a part of each result.
 *
 *     whole = what dist_all_reduce() gives for tensor t;   m[r] = out[r][t].shape[axis]
 *     out[r][t] = whole[m[0] + ... + m[r-1]  up to  m[0] + ... + m[r]] along the axis
 *
 * Shape    in[t] as in dist_all_reduce(). out[r][t] has its shape but along options->axis, where the sizes of all
 *          members, which may differ and be 0, add up to in[t]'s. Out of place only.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where the sizes do not add up.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_scatter(dist_replica *replica, dist_reduce_op op,
                                                        const dist_tensor *in, dist_tensor *out, size_t n,
                                                        const dist_collective_options *options);

/**
 * Joins the tensors of all replicas; every replica gets the results.
 *
 *     for t in 0 .. n-1, every replica r:   out[r][t] = concatenation of in[0][t], ..., in[R-1][t] along the axis
 *
 * Shape    in[p][t] have equal dtypes and ranks >= 1, and equal shapes but along options->axis, where they may differ
 *          (and be 0); there out[t]'s size is their sum. Out of place, but in[t] may be its own place in out[t].
 *          Any strides.
 * Order    Bits are copied, in the order of ranks.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for a scalar, or where the sizes do not add up.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_all_gather(dist_replica *replica, const dist_tensor *in,
                                                    dist_tensor *out, size_t n,
                                                    const dist_collective_options *options);

/**
 * Joins the tensors of all replicas; the root gets the results.
 *
 *     out[root][t] = what dist_all_gather() gives
 *
 * Shape    As dist_all_gather(); `out` is written on the root alone and may be NULL elsewhere.
 * Order    As dist_all_gather().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_gather(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_gather_to_root(dist_replica *replica, int32_t root,
                                                        const dist_tensor *in, dist_tensor *out, size_t n,
                                                        const dist_collective_options *options);

/**
 * Gives every replica the root's tensors.
 *
 *     for t in 0 .. n-1, every element i, every replica r:   out[r][t][i] = in[root][t][i]
 *
 * Shape    As dist_all_reduce(). `in` is read on the root alone and may be NULL elsewhere; the root may pass
 *          out == in.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_broadcast(dist_replica *replica, int32_t root, const dist_tensor *in,
                                                   dist_tensor *out, size_t n,
                                                   const dist_collective_options *options);

/**
 * Gives every replica a part of each of the root's tensors.
 *
 *     m[r] = out[r][t].shape[axis];   out[r][t] = in[root][t][m[0] + ... + m[r-1]  up to  m[0] + ... + m[r]]
 *
 * Shape    As dist_reduce_scatter(). `in` is read on the root alone and may be NULL elsewhere. Out of place, but
 *          the root's out[t] may be its own place in in[t].
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_reduce_scatter(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_scatter_from_root(dist_replica *replica, int32_t root,
                                                           const dist_tensor *in, dist_tensor *out, size_t n,
                                                           const dist_collective_options *options);

/**
 * Every replica gives every replica a part of its tensors.
 *
 *     in[p][t] is cut along the axis into R parts, of sizes options->splits[0 .. R-1], or equal ones
 *     for t in 0 .. n-1, every replica r:   out[r][t] = concatenation of part r of in[0][t], ..., of in[R-1][t]
 *
 * Shape    in[p][t] have equal dtypes and ranks >= 1, and equal shapes but along options->axis. Without splits their
 *          size there is a multiple of R; with them it is their sum, for each of the n tensors. out[r][t]'s size is
 *          the sum of the parts that r gets. Out of place only.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_gather().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_all_to_all(dist_replica *replica, const dist_tensor *in,
                                                    dist_tensor *out, size_t n,
                                                    const dist_collective_options *options);

/**
 * Reduces n tensors over the replicas up to each one.
 *
 *     INCLUSIVE:   out[r][t] = op(in[0][t], ..., in[r][t])
 *     EXCLUSIVE:   out[r][t] = op(in[0][t], ..., in[r-1][t]);   out[0][t] = what op leaves unchanged: 0 for SUM, 1 for
 *                  PROD, the largest (inf, true) for MIN, the smallest for MAX; for USER it stays as it is
 *
 * Shape    As dist_all_reduce(); each replica has an out of its own.
 * Order    As dist_all_reduce(), ORDERED; every result is rounded once from the accumulator. No MEAN.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for an unknown kind.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_scan(dist_replica *replica, dist_reduce_op op, int32_t kind,
                                              const dist_tensor *in, dist_tensor *out, size_t n,
                                              const dist_collective_options *options);

/**
 * Every replica gives its tensors to one other.
 *
 *     for t in 0 .. n-1, every replica r:   out[r][t] = in[source[r]][t];   where source[r] is -1: out[r][t] = 0
 *
 * `destination` is who gets this replica's tensors, `source` whose it gets; -1: nobody. They must fit together:
 * destination[p] is r exactly where source[r] is p. A replica may be its own.
 *
 * Shape    in[t] and out[t] have equal shapes and dtypes, the same on every replica. Out of place only.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where a rank is not in -1 .. R-1 or the pairs do not fit.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_permute(dist_replica *replica, int32_t destination, int32_t source,
                                                 const dist_tensor *in, dist_tensor *out, size_t n,
                                                 const dist_collective_options *options);

/**
 * Returns when every member has come. What each wrote before, all can read after.
 *
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing.
 * Errors   As dist_all_reduce().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_barrier(dist_replica *replica,
                                                 const dist_collective_options *options);

/**
 * dist_all_reduce() on a nest: every leaf is reduced, and the result has the value's structure.
 *
 * Shape    A tensor, or lists and dictionaries of tensors, the same structure on all replicas. Of a per-replica or
 *          mirrored value, or a variable, this replica's component is meant.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     value is borrowed. *out_value is the caller's: dist_value_release().
 * Errors   As dist_all_reduce(); RESOURCE_EXHAUSTED no memory; INVALID_ARGUMENT also for out_work or contributions.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_all_reduce_value(dist_replica *replica, dist_reduce_op op,
                                                          dist_value *value,
                                                          const dist_collective_options *options,
                                                          dist_value **out_value);

/**
 * dist_all_gather() on a nest: every leaf is joined, and the result has the value's structure. Two meetings: one for
 * the sizes.
 *
 * Shape    As dist_all_reduce_value(); leaves as in dist_all_gather().
 * Order    As dist_all_gather().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     value is borrowed. *out_value is the caller's: dist_value_release().
 * Errors   As dist_all_reduce_value().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_all_gather_value(dist_replica *replica, dist_value *value,
                                                          const dist_collective_options *options,
                                                          dist_value **out_value);

typedef struct dist_apply_options {
  uint32_t struct_size;
  int32_t kind;         /* DIST_APPLY_... */
  double learning_rate; /* SGD */
  double momentum;      /* SGD; 0: none, and no states */
  double clip_norm; /* > 0: gradients are scaled down to this global norm where it is larger; 0: no clip */
  const dist_tensor
      *states; /* num_states lists of n tensors like the parameters; SGD with momentum: one list */
  size_t num_states;
  dist_apply_fn fn; /* CALLBACK */
  void *user_data;
  double *out_norm; /* clip_norm > 0: the norm before the clip; NULL: not wanted */
} dist_apply_options;
#define DIST_APPLY_OPTIONS_INIT \
  { sizeof(dist_apply_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_apply_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_apply_options_init(dist_apply_options *options, uint32_t struct_size_bytes);

/**
 * Reduces gradients and updates parameters with them in one pass, block by block while a block is in cache.
 *
 *     for t in 0 .. n-1:   g[t] = what dist_all_reduce() gives of gradients[t]
 *     clip_norm > 0:       norm = sqrt(sum over t, i of g[t][i]^2);   g = g * (clip_norm / norm) where norm is larger
 *     SGD:                 state[t] = momentum * state[t] - learning_rate * g[t];   parameter[t] = parameter[t] + state[t]
 *                          (momentum 0:  parameter[t] = parameter[t] - learning_rate * g[t])
 *     CALLBACK:            fn(block, user_data) for each piece of each tensor
 *
 * Parameters and states are mirrored: every replica gives its own copy, equal to the others' (replica 0's is read), or
 * all give one and the same; afterwards all are equal again. With a clip `gradients` are used as scratch
 * memory, and are each replica's own.
 *
 * Shape    gradients, parameters and states of tensor t have one shape, row-major without gaps. gradients as in
 *          dist_all_reduce(), contributions too; parameters of what MEAN or SUM give. SGD: f32 and f64.
 * Order    g as in dist_all_reduce(). The norm is added in f64 in an order that depends on the list alone. SGD in the
 *          parameter's type, each operation rounded.
 * Context  Replica. Collective: the same options on all members, replica 0's fn and user_data are used.
 * Blocks   As dist_all_reduce(); twice with a clip.
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for options out of range. RESOURCE_EXHAUSTED no
 *          memory, with a clip. UNIMPLEMENTED for SGD of another dtype.
 *          After an error parameters and states are unspecified.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_apply(dist_replica *replica, dist_reduce_op op,
                                                      dist_tensor *gradients, dist_tensor *parameters,
                                                      size_t n, const dist_apply_options *apply,
                                                      const dist_collective_options *options);

/* ---- Work ---- */
/*
 * With options->out_work a collective returns at once: it is under way, and its tensors are the library's until it has
 * ended. It begins when all members have come, and is done on oneTBB's threads beside the replicas, and by members that
 * wait or ask (with DIST_THREADS_HOST by these alone). Every member makes its asynchronous collectives of a group in the
 * same order; blocking ones are counted by themselves. Descriptions of tensors, options and splits are copied.
 *
 * With options->planned too, nothing begins: the call, which is collective and blocks, makes a plan, and each
 * dist_work_start() on all members is one round of it, without any further check or allocation:
 *
 *     options.out_work = &plan;   options.planned = 1;   options.bytes_per_pack = 4 << 20;
 *     dist_all_reduce(replica, DIST_REDUCE_SUM, gradients, gradients, n, &options);
 *     every step:   for t in n-1 .. 0:  (compute gradient t)   dist_work_ready(plan, t);
 *                   dist_work_wait(plan, 0);
 *
 * A pack of the list (tensors in a row, of bytes_per_pack together) begins when all its tensors are ready on all
 * members. A run whose collectives failed ends the plans made
 * before it. Work that a function leaves under way is brought to its end
 * before the replica is; its failure is the replica's.
 */

/**
 * Begins a round of planned work: all tensors that are not ready yet are from now on.
 *
 * Context  Replica, the one that planned it.
 * Blocks   Never.
 * Owns     The tensors are the library's until the round has ended.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION the round is under way, it was not planned, or a run has failed
 *          since. Else the run's trouble, as dist_all_reduce().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_work_start(dist_work *work);

/**
 * One tensor of the planned list is ready; the first of a round begins it.
 *
 * Context  Replica, the one that planned it.
 * Blocks   Never.
 * Owns     The tensor is the library's until the round has ended.
 * Errors   As dist_work_start(); INVALID_ARGUMENT no such tensor; FAILED_PRECONDITION it is ready already.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_work_ready(dist_work *work, size_t tensor);

/**
 * Whether the work has ended: *out_done is 1 or 0. Does a part of it where there is one to do.
 *
 * Context  Replica, the one that began it.
 * Blocks   Never waits for a peer.
 * Owns     –
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION it is another replica's. How the work failed, once it has: but
 *          that a peer does not come in time is seen by dist_work_wait() alone.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_work_test(dist_work *work, int32_t *out_done);

/**
 * Waits until the work has ended, and says how. Work that is not under way ended before.
 *
 * Context  Replica, the one that began it.
 * Blocks   Until every member has come, at most timeout_ns (0: that of the collective's options; < 0: no limit), and
 *          the work is done; or a failure of one.
 * Owns     Afterwards no peer touches the tensors.
 * Errors   INVALID_ARGUMENT NULL. Else as dist_all_reduce().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_work_wait(dist_work *work, int64_t timeout_ns);

/**
 * Waits until one of n works has ended: works[*out_index], and says how.
 *
 * Context  Replica, the one that began them.
 * Blocks   As dist_work_wait().
 * Owns     As dist_work_wait(), of that work.
 * Errors   INVALID_ARGUMENT NULL or n = 0. How that work failed; *out_index is written then too.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_work_wait_any(dist_work *const *works, size_t n, int64_t timeout_ns,
                                                       size_t *out_index);

/**
 * Ends the work that is under way, and with it all meetings of its group in this run, on every member: CANCELLED. Work
 * that has ended: nothing happens.
 *
 * Context  Replica, the one that began it.
 * Blocks   Never.
 * Owns     –
 * Errors   INVALID_ARGUMENT NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_work_cancel(dist_work *work);

/**
 * Gives up the handle, before dist_strategy_destroy(). NULL is fine.
 *
 * Context  Replica, the one that began it; or, where it has ended, any, serialized.
 * Blocks   As dist_work_wait(work, 0) where it is under way.
 * Owns     Takes the work.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_work_destroy(dist_work *work);

/**
 * Runs once, in cross-replica context, on replica 0's thread, while all replicas wait. `args` is a list whose
 * items are merged as dist_run_values() merges results; borrowed. *out_result as in dist_values_fn.
 */
typedef dist_status (*dist_merge_fn)(dist_strategy *strategy, dist_value *args, dist_value **out_result,
                                     void *user_data);

/**
 * All replicas meet, and `fn` runs once for all of them.
 *
 *     result = fn(strategy, merge(args[0], ..., args[R-1]));   every replica r:  *out_result = component(result, r)
 *
 * Inside fn the strategy's functions are open (dist_reduce_to(), dist_update(), ...); dist_run() is not.
 *
 * Context  Replica. Collective: the same fn and tag on all replicas. user_data is replica 0's.
 * Blocks   Until every replica has come (as dist_all_reduce()) and fn has returned.
 * Owns     args (a list, or NULL) is borrowed. *out_result is the caller's (NULL: fn gave none); out_result may
 *          be NULL.
 * Errors   As dist_all_reduce(); and what fn returned, on every replica.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_merge_call(dist_replica *replica, dist_merge_fn fn, void *user_data,
                                                    dist_value *args, const dist_collective_options *options,
                                                    dist_value **out_result);

/* ==== 7. Values ===================================================================================== */

/**
 * A copy of a tensor, row-major.
 *
 * Shape    Any, strided too.
 * Order    Bits are copied.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT    NULL, a bad dtype, a negative size, a product that overflows.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_tensor(dist_strategy *strategy,
                                                             const dist_tensor *tensor,
                                                             dist_value **out_value);

/**
 * A value that borrows the caller's memory until `release` is called (at once, if this fails: never).
 *
 * Shape    Any, strided too. The shape and strides are copied, the data are not.
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     tensor->data stays the caller's until release(user_data); release may be NULL.
 * Errors   As dist_value_create_tensor().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_wrap_tensor(dist_strategy *strategy, const dist_tensor *tensor,
                                                           dist_release_fn release, void *user_data,
                                                           dist_value **out_value);

/**
 * A value of R components, items[r] for replica r; wherever a replica receives it, it finds its own.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT    NULL, n is not R, or an item holds per-replica values itself.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_per_replica(dist_strategy *strategy,
                                                                  dist_value *const *items, size_t n,
                                                                  dist_value **out_value);

/**
 * As dist_value_create_per_replica(), for components that the caller knows to be equal.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   As dist_value_create_per_replica().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_mirrored(dist_strategy *strategy,
                                                               dist_value *const *items, size_t n,
                                                               dist_value **out_value);

/**
 * A list of n values.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL; nested deeper than 64. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_list(dist_strategy *strategy, dist_value *const *items,
                                                           size_t n, dist_value **out_value);

/**
 * A dictionary of n values; keys are different UTF-8 texts and come back sorted by their bytes.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Copies the keys, keeps a reference to each item. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL, a key twice; nested deeper than 64. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_dict(dist_strategy *strategy, const char *const *keys,
                                                           dist_value *const *items, size_t n,
                                                           dist_value **out_value);

/**
 * A variable as a value, to pass it to a run.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_value is the caller's; it keeps the variable's memory.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_variable(dist_variable *variable,
                                                               dist_value **out_value);

/**
 * One more reference; returns its argument. NULL is fine.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The caller owes one dist_value_release() more.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_value *dist_value_retain(dist_value *value);

/**
 * One reference fewer; with the last one the value ends. NULL is fine.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Takes a reference.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_value_release(dist_value *value);

/**
 * A DIST_VALUE_...; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_value_kind(const dist_value *value);

/**
 * How many items: components, or list or dictionary entries; 0 for a tensor, a variable, NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API size_t dist_value_size(const dist_value *value);

/**
 * Item `index`, or NULL where there is none.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed from `value`.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_value *dist_value_item(const dist_value *value, size_t index);

/**
 * The key of item `index` of a dictionary, or NULL where there is none.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed from `value`.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_value_key(const dist_value *value, size_t index);

/**
 * The item of a dictionary under `key`, or NULL where there is none.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed from `value`.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_value *dist_value_get(const dist_value *value, const char *key);

/**
 * The tensor that a value is; of a variable, replica 0's copy.
 *
 * Shape    The view's shape and strides are borrowed from the value.
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the value is.
 * Errors   INVALID_ARGUMENT  NULL, or not a tensor; the message says what it is.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_tensor(const dist_value *value, dist_tensor *out_tensor);

/**
 * The variable behind a variable's value, or NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_variable *dist_value_variable(const dist_value *value);

struct DLManagedTensor;

/**
 * Takes over a DLPack tensor (dlpack.h, version 0.x/1.x unversioned struct) in host memory, without a copy.
 *
 * Shape    As the DLPack tensor says, strides too.
 * Order    Bits are shared.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     On DIST_OK the value calls the tensor's deleter at its end; on an error the caller keeps it.
 * Errors   INVALID_ARGUMENT  NULL; more than DIST_MAX_NDIM dimensions.
 *          UNIMPLEMENTED     not host memory, or a type that libdist has not.
 *          RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_from_dlpack(dist_strategy *strategy,
                                                           struct DLManagedTensor *managed,
                                                           dist_value **out_value);

/**
 * Shares a tensor's memory as a DLPack tensor.
 *
 * Shape    The value's; strides are always given.
 * Order    Bits are shared.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The caller calls (*out_managed)->deleter at the end; until then it holds a reference to the value.
 * Errors   INVALID_ARGUMENT NULL or no tensor. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_to_dlpack(dist_value *value,
                                                         struct DLManagedTensor **out_managed);

/* ==== 8. Variables ================================================================================== */

typedef struct dist_variable_options {
  uint32_t struct_size;
  int32_t aggregation; /* DIST_AGGREGATION_... */
  const char *name;    /* for messages; NULL: "Variable" */
} dist_variable_options;
#define DIST_VARIABLE_OPTIONS_INIT \
  { sizeof(dist_variable_options), 0, 0 }

/** As dist_strategy_options_init(), of dist_variable_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_variable_options_init(dist_variable_options *options, uint32_t struct_size_bytes);

/**
 * A variable with one copy for each replica, all equal to `initial`.
 *
 * Shape    Any; the copies are row-major.
 * Order    Bits are copied.
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     *out_variable is the caller's: dist_variable_destroy().
 * Errors   INVALID_ARGUMENT    NULL; a bad tensor; MEAN of a dtype that is not floating point.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_create(dist_strategy *strategy, const dist_tensor *initial,
                                                         const dist_variable_options *options,
                                                         dist_variable **out_variable);

/**
 * Ends a variable; values made of it keep its memory until they end. NULL is fine.
 *
 * Context  Strategy, serialized; not while a run uses it.
 * Blocks   Never.
 * Owns     Takes the variable.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_variable_destroy(dist_variable *variable);

/**
 * The variable's name; "" for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_variable_name(const dist_variable *variable);

/**
 * A view of replica `replica_id`'s copy. A replica may write to its own; that all copies stay equal is then
 * its affair (the same all-reduced gradient on every replica does it).
 *
 * Shape    The variable's, row-major.
 * Order    –
 * Context  Any, concurrent; writing: by that replica alone, or outside runs.
 * Blocks   Never.
 * Owns     Borrowed: valid while the variable is.
 * Errors   INVALID_ARGUMENT  NULL, or replica_id is not in 0 .. R-1.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_component(const dist_variable *variable, int32_t replica_id,
                                                            dist_tensor *out_tensor);

/**
 * Assigns to every copy: a tensor to all, a per-replica or mirrored value to each its own.
 *
 *     every replica r:   copy[r] = value      (or copy[r] + value, copy[r] - value)
 *
 * Shape    The variable's shape and dtype.
 * Order    One operation an element.
 * Context  Strategy, serialized.
 * Blocks   Until all copies are written.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, an unknown `how`, another shape or dtype: nothing is written.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_assign(dist_strategy *strategy, dist_variable *variable,
                                                         int32_t how, dist_value *value);

/**
 * Assigns inside replicas, by the variable's aggregation.
 *
 *     NONE:                 copy[r] = value[r], and nobody waits
 *     SUM, MEAN:            every replica r:   copy[r] = fold of value[0 .. R-1], as dist_all_reduce()
 *     ONLY_FIRST_REPLICA:   every replica r:   copy[r] = value[0]
 *     (or copy[r] + ..., copy[r] - ...)
 *
 * Shape    The variable's shape and dtype.
 * Order    As dist_all_reduce(), then one operation an element.
 * Context  Replica. Collective, unless the aggregation is NONE.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for another shape or dtype.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign(dist_replica *replica, dist_variable *variable,
                                                        int32_t how, const dist_tensor *value,
                                                        const dist_collective_options *options);

/* ==== 9. From outside: reduce, update =============================================================== */

/**
 * Reduces a per-replica value to one tensor (of a list or dictionary: each leaf).
 *
 *     axes NULL:   out[i]  = fold over r of value[r][i]
 *     with axes:   out[..] = fold over r of (fold over the axes of value[r]);  MEAN divides by the number of
 *                  elements along the axes over all replicas
 *
 * A mirrored value: MEAN gives its component, SUM is an error, as in TensorFlow. A value that is not distributed:
 * MEAN gives it back, SUM is an error; with axes it counts as given to every replica. One replica: as it is.
 *
 * Shape    Without axes all components have one shape. With axes sizes may differ along those axes only; an
 *          axis counts from the end where it is negative. op is SUM or MEAN.
 * Order    By replica id, left to right; f16 and bf16 as in dist_all_reduce(). MEAN of integers gives f64
 *          (from i32, u32, i64, u64) or f32.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done (oneTBB shares the work).
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL, op, SUM of a value that is not distributed, shapes or dtypes that differ, an
 *                               axis out of range or twice.
 *          FAILED_PRECONDITION  inside a replica function: use dist_all_reduce() or dist_merge_call().
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce(dist_strategy *strategy, dist_reduce_op op, dist_value *value,
                                                const int32_t *axes, size_t num_axes, dist_value **out_value);

/** Where a reduction's result is wanted: at most one field is set. None: on every replica. */
typedef struct dist_destination {
  dist_variable *variable; /* where this variable's copies are */
  dist_value *value;       /* where this value's components are */
  const char *device;      /* a device by name: "replica:0" ... */
} dist_destination;

/**
 * Reduces a per-replica value to where it is wanted.
 *
 *     *out_value = mirrored over the destination's replicas (one replica: a tensor) of  fold over r of value[r]
 *
 * A tensor, which every replica has in common, is taken as it is for MEAN, and as R contributions for SUM.
 *
 * Shape    All components have one shape. op is SUM or MEAN.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release(). destination may be NULL.
 * Errors   As dist_reduce(); NOT_FOUND for a device that the strategy has not.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                   dist_value *value, const dist_destination *destination,
                                                   dist_value **out_value);

/**
 * n times dist_reduce_to() in one pass: out_values[k] is the result of values[k] at destinations[k].
 *
 * Shape    As dist_reduce_to(); n = 0 is legal.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until all are done.
 * Owns     The out_values are the caller's. destinations may be NULL. On an error none is written.
 * Errors   As dist_reduce_to().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_batch_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                         dist_value *const *values,
                                                         const dist_destination *destinations, size_t n,
                                                         dist_value **out_values);

/** Changes one copy of a variable. `args` is a list that holds this copy's components; borrowed. */
typedef dist_status (*dist_update_fn)(dist_tensor *copy, dist_value *args, void *user_data);

/**
 * Calls `fn` on every copy of a variable, with that replica's components of `args`, some at the same time.
 *
 *     every replica r:   fn(copy[r], component(args, r), user_data)
 *
 * Shape    –
 * Order    –
 * Context  Strategy, serialized for a variable; also inside a merge function.
 * Blocks   Until all calls have returned.
 * Owns     args (a list, or NULL) is borrowed.
 * Errors   INVALID_ARGUMENT NULL or args is no list. Else what fn returned for the lowest replica that failed.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_update(dist_strategy *strategy, dist_variable *variable,
                                                dist_update_fn fn, void *user_data, dist_value *args);

/**
 * A list of a value's components in this process, in replica order; of a variable its copies; of any other value
 * a list of itself.
 *
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     *out_list is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_local_results(dist_strategy *strategy, dist_value *value,
                                                       dist_value **out_list);

/* ==== 10. Datasets ================================================================================== */

typedef struct dist_dataset_options {
  uint32_t struct_size;
  int32_t drop_remainder;    /* 1: leave out a last batch that is not full */
  int64_t global_batch_size; /* elements of a batch for all replicas together; 0: the source's elements are
                                global batches already, and are split as they are */
  int32_t shuffle;           /* 1: another order in every pass, drawn from seed and the pass's number */
  int32_t prefetch;          /* batches made ahead by oneTBB; 0: one; < 0: none */
  uint64_t seed;
} dist_dataset_options;
#define DIST_DATASET_OPTIONS_INIT \
  { sizeof(dist_dataset_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_dataset_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_dataset_options_init(dist_dataset_options *options, uint32_t struct_size_bytes);

/**
 * A dataset of rows: element i is row i of each of n tensors (features, labels, ...).
 *
 *     a batch of m elements, q = ceil(m / R):   replica r gets elements [r*q, min(m, (r+1)*q)) of it, maybe none
 *
 * Shape    n >= 1 tensors with equal first dimensions (the number of elements).
 * Order    Without shuffle the tensors' own; with it a permutation that depends on seed and pass alone.
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     The data are copied. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     NULL, n = 0, a scalar, first dimensions that differ, a batch size < 0, or 0 where
 *                               a row has no dimension to be split along.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_tensors(dist_strategy *strategy,
                                                                     const dist_tensor *tensors, size_t n,
                                                                     const dist_dataset_options *options,
                                                                     dist_dataset **out_dataset);

/**
 * Makes element `index` (0, 1, 2, ... in each pass) and hands it over: a tensor, or a list or dictionary of
 * tensors, with its reference. DIST_OUT_OF_RANGE ends the pass. Called from one thread at a time, maybe not
 * the caller's; must not call collectives and must not throw.
 */
typedef dist_status (*dist_source_fn)(int64_t index, dist_value **out_element, void *user_data);

/**
 * A dataset whose elements a callback makes. With a global batch size, that many elements of equal structure,
 * dtypes and shapes are stacked along a new first dimension; without, each element is a batch.
 *
 * Shape    As dist_dataset_create_from_tensors(). `shuffle` must be 0: the source has its own order.
 * Order    The source's.
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     fn and user_data are used until the dataset and its iterators have ended; then release(user_data),
 *          unless release is NULL. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     NULL; shuffle is set; a batch size < 0.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_callback(dist_strategy *strategy,
                                                                      dist_source_fn fn, void *user_data,
                                                                      dist_release_fn release,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/**
 * Ends a dataset; its iterators go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Never.
 * Owns     Takes the dataset.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_dataset_destroy(dist_dataset *dataset);

/**
 * Begins a pass: the first of this dataset is pass 0, the next one pass 1, ... Iterators are independent.
 *
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     *out_iterator is the caller's: dist_iterator_destroy().
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create(dist_dataset *dataset, dist_iterator **out_iterator);

/**
 * The next batch: the element's structure with a per-replica value at each leaf (one replica: a tensor). With
 * several tensors in memory it is a list of them, with one that one.
 *
 * Shape    [elements of that replica, ...]; 0 elements where a batch was smaller than R.
 * Order    –
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made.
 * Owns     *out_batch is the caller's: dist_value_release().
 * Errors   OUT_OF_RANGE      the pass is over; again on every further call.
 *          INVALID_ARGUMENT  NULL; elements of a batch differ; an element is a scalar that cannot be split.
 *          FAILED_PRECONDITION  a forked child.
 *          any               what the source returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next(dist_iterator *iterator, dist_value **out_batch);

/**
 * Ends a pass. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Until a batch that is being made ahead is done.
 * Owns     Takes the iterator.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_iterator_destroy(dist_iterator *iterator);

/* ==== 11. Looking inside ============================================================================ */
/*
 * A flight recorder is always on. Each replica keeps its last 1,024 runs and collectives: when it came, when all had
 * come, when it went on, and with what; and sums over all that it ever did. That costs some nanoseconds a collective,
 * no allocation, lock or system call; reading disturbs nobody, so that it is fine while replicas run, or hang. The
 * memory comes from the strategy's allocator when the strategy is created.
 */

/**
 * Takes the next piece of a text: UTF-8 without an end mark. Called on the caller's thread, before the call that it was
 * given to returns; must not throw, and must not destroy the strategy.
 */
typedef void (*dist_text_fn)(const char *text, size_t size_bytes, void *user_data);

/**
 * Writes what the recorder holds as a trace: JSON of Chrome's trace-event format, to be opened in Perfetto
 * (ui.perfetto.dev) or chrome://tracing.
 *
 * One thread a replica; a slice for each run and each collective in it (arguments: sequence number, group, op, dtype,
 * bytes, tag, status, who came last and how much later than all others), in that a slice "wait" until all had come, and
 * an arrow from the last to come to who waited longest. What has only begun is there too, with the replicas that it
 * waits for. Asynchronous collectives have rows of their own. Times are the system's steady clock.
 *
 * Context  Any, concurrent.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory; then some of the
 *          text may have been written.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_write_trace(dist_strategy *strategy, dist_text_fn fn,
                                                     void *user_data);

/**
 * Writes counters and gauges in Prometheus' text exposition format, a page for a scrape.
 *
 *     dist_info, dist_replicas, dist_memory_held_bytes
 *     dist_runs_total, dist_run_seconds_total, dist_run_errors_total{status}                  for each replica
 *     dist_collectives_total, dist_collective_bytes_total{collective},
 *     dist_collective_errors_total{status}, dist_collective_wait_seconds_total                for each replica
 *
 * `name` becomes the label `strategy` of every sample, for processes that have several; NULL: no such label.
 *
 * Context  Any, concurrent.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_write_metrics(dist_strategy *strategy, const char *name,
                                                       dist_text_fn fn, void *user_data);

/** How often a replica was the last to come to the meetings of one tag, collective and group. */
typedef struct dist_straggler {
  int32_t collective; /* a DIST_COLLECTIVE_... */
  int32_t group;      /* which group of replicas met; 0: all */
  int32_t replica;
  int32_t reserved;   /* 0 */
  int64_t meetings;   /* of this tag, collective and group, whoever was last */
  int64_t times_last; /* at least 1 */
  int64_t
      mean_late_ns; /* how long all others, all there, waited for it: the mean of those times, and the longest */
  int64_t max_late_ns;
  char tag[DIST_MAX_TAG_BYTES]; /* "" where there was none */
} dist_straggler;

/**
 * Who comes last: a table over the meetings that the recorder still holds and that went well, most often last first.
 *
 * `out` has room for `capacity` rows of `row_bytes` bytes, sizeof(dist_straggler) of the caller; *out_n is how many
 * rows there are, which may be more.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL (`out` may be where capacity is 0), or row_bytes is no size of a row.
 *          FAILED_PRECONDITION  a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_stragglers(dist_strategy *strategy, dist_straggler *out,
                                                    size_t row_bytes, size_t capacity, size_t *out_n);

/**
 * Writes what the strategy came to on this machine, and why: how many replicas, on which CPUs and threads, how they
 * wait, which algorithm serves which size, the SIMD target, the groups, the memory held. Lines of "subject: words", for
 * people: the words may change in any version.
 *
 * Context  Any, concurrent.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_explain(dist_strategy *strategy, dist_text_fn fn, void *user_data);

#ifdef __cplusplus
}
#endif
#endif /* DIST_DIST_H */
