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
 *                                    12  Metrics and losses
 *                                    13  Scopes
 *                                    14  Checkpoints
 *                                    15  Logical devices
 *
 * ---- 1. A program ----------------------------------------------------------------------------------
 *
 *     #include <dist/dist.h>
 *     #include <stdio.h>
 *
 *     static dist_status step(dist_replica *replica, void *user_data) {
 *       int64_t shape[] = {3};
 *       float gradient[3] = {1, 2, 3};
 *       dist_tensor t = {gradient, DIST_F32, 1, shape, NULL};
 *       return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, NULL);
 *     }
 *
 *     int main(void) {
 *       dist_strategy *strategy = NULL;
 *       dist_status status = dist_strategy_create(NULL, &strategy);
 *       if (status == DIST_OK) status = dist_run(strategy, step, NULL, NULL);
 *       if (status != DIST_OK) fprintf(stderr, "%s: %s\n", dist_status_name(status), dist_last_error());
 *       dist_strategy_destroy(strategy);
 *       return status == DIST_OK ? 0 : 1;
 *     }
 *
 * A strategy holds R replicas: threads that run the same function, each on its part of the input, and
 * meet in collectives. dist_run() calls the function once on every replica and returns when all are back.
 *
 * Rules that hold for every function:
 *   - The first parameter names the context. A dist_strategy * is the cross-replica context: outside the
 *     replica function, or inside a merge function. A dist_replica * is the replica context.
 *   - A replica's handle is for the thread that its function runs on: on any other thread, in another replica's
 *     function too, what can fail returns FAILED_PRECONDITION. Its id, number and strategy may be asked for by any
 *     thread while the function runs. Not promised is what becomes of handles after their destroy function, and of
 *     one that is kept from an earlier run of the same replica.
 *   - In a forked child of the strategy's process nothing waits: what would run, meet, make or change something
 *     returns FAILED_PRECONDITION, dist_run() too where the child comes out of a replica function; destroy functions
 *     leave things as they are. A child may make strategies of its own.
 *   - What reads or writes variables from outside (read, assign, scatter, update, drift, checkpoints, metrics; reduce and
 *     gather where a variable is part of the value) takes its turn among the strategy's runs, so that nobody sees half of
 *     a value: it waits for the run that is under way, at most the strategy's timeout_ns (DEADLINE_EXCEEDED), and holds
 *     off the next. A merge function goes ahead, since its run waits for it. Pointers to copies
 *     (dist_variable_component()) know no turns, nor do descriptions (dist_variable_describe()) and another strategy's
 *     run that reads the variable.
 *   - What can fail returns a dist_status. Outputs (`out_...`) are written on DIST_OK only.
 *     dist_last_error() says in words what was wrong, what was expected and what to try.
 *   - Options may be NULL, and a zero field means the default. Begin with DIST_..._OPTIONS_INIT, or
 *     from another language dist_..._options_init().
 *   - One owner: what a create function gives is ended by dist_..._destroy(); NULL is fine there. Values
 *     are counted instead: retain and release. Strings and tensors in are copied unless "wrap" is in the
 *     name; strings and shapes out are borrowed from their object.
 *   - A callback returns a status: it must not throw or longjmp out. What it hands over through a pointer is taken
 *     whatever it returns, and released where that is a failure.
 *   - A list that is given with its length: a length that no memory holds is an error, and nothing is read.
 *   - A tensor may lie in memory in any way, backwards too. Of one that is read, elements may share a place (stride
 *     0); of one that is written, each stride must step over all that the smaller ones span.
 *   - Texts that come out are UTF-8 without control characters, whatever the host put into tags and messages: a byte
 *     that is no UTF-8 becomes U+FFFD, a control character \n, \t or \x and two digits. An error's message may have
 *     several lines. Texts and keys of values stay as they are. Names (of variables, metrics, axes and jobs) must be
 *     one line of UTF-8.
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
/** Asks runs, collectives and works to end early, from any thread. */
typedef struct dist_cancel dist_cancel;
/** A tensor, or a list or dictionary of values, or one value for each replica. Immutable, counted. */
typedef struct dist_value dist_value;
/** A tensor that outlives runs, with one copy for each replica. */
typedef struct dist_variable dist_variable;
/** A source of batches, each split over the replicas. */
typedef struct dist_dataset dist_dataset;
/** One pass over a dataset. */
typedef struct dist_iterator dist_iterator;
/** Who reduces, broadcasts and gathers values from outside runs, and how. Immutable, counted. */
typedef struct dist_cross_device dist_cross_device;
/** What describes a cluster of processes. */
typedef struct dist_cluster_resolver dist_cluster_resolver;
/** A number that is gathered over the updates of all replicas, step after step. */
typedef struct dist_metric dist_metric;
/** A file of tensors, open for reading. */
typedef struct dist_checkpoint dist_checkpoint;
/** A mesh of devices, and where in it each is. Immutable. */
typedef struct dist_topology dist_topology;
/** Which devices of a topology are the logical devices of which replica. Immutable. */
typedef struct dist_device_assignment dist_device_assignment;

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
  int32_t worker;         /* the culprit's process; 0 in a strategy of one process */
  int32_t replica;        /* the culprit's id; -1: no replica is to blame */
  int32_t collective;     /* a DIST_COLLECTIVE_... */
  int32_t group;          /* which group of replicas met; 0: all */
  int64_t sequence;       /* the collective's number in this run, from 1; 0: outside a collective */
  const char *message;    /* dist_last_error() */
  const char *tag;        /* of the collective */
  const char *expected;   /* what the majority, or the lowest id, asked for */
  const char *received;   /* what the culprit asked for, or that it left or did not come */
  const char *hint;       /* what to try */
  int32_t logical_device; /* which of the culprit's; -1: the replica as a whole */
  int32_t inside;         /* a run past its deadline: how many of its functions had not returned; else 0 */
} dist_error_info;
#define DIST_ERROR_INFO_INIT \
  { sizeof(dist_error_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

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

/* How a program asks its collectives to be done (TensorFlow: CommunicationOptions, CollectiveHints). */
typedef struct dist_communication_options {
  uint32_t struct_size;
  int32_t implementation; /* DIST_COMMUNICATION_... */
  int64_t bytes_per_pack; /* a planned list is cut into packs of about this size; 0: not given */
  int64_t timeout_ns;  /* longest wait for a peer; < 0: no limit; 0: not given, unless has_timeout says so */
  int32_t has_timeout; /* 1: timeout_ns is given even where it is 0, which is no limit too */
  int32_t reserved;    /* 0 */
} dist_communication_options;
#define DIST_COMMUNICATION_OPTIONS_INIT \
  { sizeof(dist_communication_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_communication_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_communication_options_init(dist_communication_options *options,
                                              uint32_t struct_size_bytes);

/**
 * One set of options overridden by another: what `over` gives (an implementation that is not AUTO, a size of packs, a
 * timeout), else what `base` does. A collective's own options override its strategy's by this rule. `over` may be NULL:
 * a checked copy of `base`.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing. out_options, whose struct_size is set, may be base or over.
 * Errors   INVALID_ARGUMENT  base or out_options is NULL, an unknown implementation, a negative bytes_per_pack.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_communication_options_merge(const dist_communication_options *base,
                                                                     const dist_communication_options *over,
                                                                     dist_communication_options *out_options);

/**
 * Writes the options as TensorFlow prints them, "Options(bytes_per_pack=0,timeout_seconds=None,
 * implementation=CommunicationImplementation.AUTO)", as text with an end mark, cut to `size_bytes`.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   As dist_communication_options_merge(); also size_bytes = 0.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_communication_options_describe(
    const dist_communication_options *options, char *out_text, size_t size_bytes);

/* The host's own functions for dist_cross_device_options. Each gets n tensors and writes those that libdist has made. */
typedef struct dist_cross_device_functions {
  uint32_t struct_size;
  int32_t reserved; /* 0 */
  /* out = components[0] op ... op components[n-1]; out has the shape, and the dtype that MEAN gives */
  dist_status (*reduce)(dist_reduce_op op, const dist_tensor *components, size_t n, dist_tensor *out,
                        void *user_data);
  /* copies[r] = value, for each of n; NULL: all replicas share the value, which does not change */
  dist_status (*broadcast)(const dist_tensor *value, dist_tensor *copies, size_t n, void *user_data);
  /* out = the components one after another along axis >= 0; NULL: libdist's */
  dist_status (*gather)(const dist_tensor *components, size_t n, int32_t axis, dist_tensor *out,
                        void *user_data);
} dist_cross_device_functions;
#define DIST_CROSS_DEVICE_FUNCTIONS_INIT \
  { sizeof(dist_cross_device_functions), 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_cross_device_functions. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_cross_device_functions_init(dist_cross_device_functions *functions,
                                               uint32_t struct_size_bytes);

/**
 * The host's own operator, for DIST_REDUCE_USER and DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE:
 * for i in 0 .. count-1: acc[i] = op(acc[i], in[i]). `count` is of the operator's elements: of the dtype, or of
 * reduce_element_bytes (accumulate_element_bytes), and no cut is inside one. Called on pieces, from several threads; it must
 * not call libdist and must give the same bits wherever a tensor is cut.
 */
typedef void (*dist_reduce_fn)(void *acc, const void *in, size_t count, dist_dtype dtype, void *user_data);

typedef struct dist_cross_device_options {
  uint32_t struct_size;
  int32_t kind;                 /* DIST_CROSS_DEVICE_... */
  int32_t num_packs;            /* taken, and of no consequence: values from outside runs travel nowhere */
  int32_t reserved;             /* 0 */
  const char *reduce_to_device; /* REDUCTION_TO_ONE_DEVICE: a device's name; NULL: any */
  dist_reduce_fn accumulate;    /* REDUCTION_TO_ONE_DEVICE: instead of +; MEAN divides by n afterwards */
  void *accumulate_user_data;
  const dist_cross_device_functions *functions; /* HOST: copied; `reduce` is required */
  void *functions_user_data;
  dist_allocator allocator;        /* all zero: malloc and free */
  size_t accumulate_element_bytes; /* of one element of `accumulate`; 0: the dtype's */
} dist_cross_device_options;
#define DIST_CROSS_DEVICE_OPTIONS_INIT \
  { sizeof(dist_cross_device_options), 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}, 0 }

/** As dist_strategy_options_init(), of dist_cross_device_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_cross_device_options_init(dist_cross_device_options *options, uint32_t struct_size_bytes);

/**
 * Makes cross-device operations (TensorFlow: CrossDeviceOps), for a strategy's options or for use without one:
 * dist_cross_device_reduce() and its like. TensorFlow's kinds are names for what libdist does anyway, to the bit.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_cross_device is the caller's: dist_cross_device_destroy(). user_data is used until it has ended, and the
 *          strategies that were made with it.
 * Errors   INVALID_ARGUMENT    NULL, an unknown kind, num_packs < 0, a field that is another kind's, no device's name.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_create(const dist_cross_device_options *options,
                                                             dist_cross_device **out_cross_device);

/**
 * Ends them for the caller; strategies made with them go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Never.
 * Owns     Takes the object.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_cross_device_destroy(dist_cross_device *cross_device);

/**
 * A DIST_CROSS_DEVICE_...; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_cross_device_kind(const dist_cross_device *cross_device);

/**
 * The num_packs that they were made with; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_cross_device_num_packs(const dist_cross_device *cross_device);

/**
 * The full name of the reduce_to_device that they were made with; NULL where there is none, or for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_cross_device_device(const dist_cross_device *cross_device);

/*
 * A strategy of the host's own: these functions take the place of libdist's where they are not NULL. copy_of_replica()
 * and device_of_replica() are asked once, when the strategy is created, the others whenever values from outside runs are
 * reduced, broadcast or gathered. What replicas do among themselves, and how the copies of a variable are kept equal,
 * stays libdist's.
 */
typedef struct dist_strategy_functions {
  uint32_t struct_size;
  int32_t reserved; /* 0 */
  /* which copy of a variable a replica has: its own id for all of them, or 0 for all (one shared copy) */
  int32_t (*copy_of_replica)(int32_t replica_id, int32_t num_replicas, void *user_data);
  /* the name of its device; copied */
  const char *(*device_of_replica)(int32_t replica_id, void *user_data);
  /* as in dist_cross_device_functions */
  dist_status (*reduce)(dist_reduce_op op, const dist_tensor *components, size_t n, dist_tensor *out,
                        void *user_data);
  dist_status (*broadcast)(const dist_tensor *value, dist_tensor *copies, size_t n, void *user_data);
  dist_status (*gather)(const dist_tensor *components, size_t n, int32_t axis, dist_tensor *out,
                        void *user_data);
} dist_strategy_functions;
#define DIST_STRATEGY_FUNCTIONS_INIT \
  { sizeof(dist_strategy_functions), 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_strategy_functions. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_strategy_functions_init(dist_strategy_functions *functions, uint32_t struct_size_bytes);

/** A direction in which the logical devices of a replica lie, and how many of them do; the product of all is D. */
typedef struct dist_mesh_axis {
  const char *name;
  int32_t size;
} dist_mesh_axis;

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
  const char *const *devices;   /* names in replica order, "CPU:1" or longer; NULL: CPU:0, CPU:1, ... */
  size_t num_devices;           /* how many; 0: as if devices were NULL; else the number of replicas */
  const char *parameter_device; /* central storage: where variables are; NULL: CPU:0 */
  const dist_communication_options *communication; /* its timeout counts before timeout_ns */
  dist_cross_device *cross_device;                 /* who reduces values from outside; NULL: DEFAULT */
  const dist_strategy_functions *functions;        /* of the host's own; copied; kind is then 0 */
  void *functions_user_data;                       /* used until the strategy has ended */
  /* MESH: which devices are whose, and so how many replicas and logical devices there are; kept */
  const dist_device_assignment *device_assignment;
  const dist_mesh_axis *axes; /* MESH: of a replica's logical devices, the last running fastest; copied */
  size_t num_axes;            /* 0: the default, see dist_device_axis() */
  int32_t
      use_spmd_partitioning; /* MESH: 1: one program for all devices: dist_assign_to_logical_device() is refused */
  int32_t reserved2;         /* 0 */
  /* of each library thread; 0: the system's default; else 256 KiB to 1 TiB. What collectives take:
     dist_replica_enter() */
  int64_t stack_size_bytes;
  int64_t async_bytes; /* most that queued asynchronous collectives may take; 0: see Work, below */
} dist_strategy_options;
#define DIST_STRATEGY_OPTIONS_INIT                                                                           \
  {                                                                                                          \
    sizeof(dist_strategy_options), 0, 0, 0, 0, 0, 0, {0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0                                                                                              \
  }

/**
 * Sets all fields to their defaults, and struct_size to `struct_size_bytes`: the size that the caller was
 * compiled with, sizeof(dist_strategy_options).
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None; NULL is ignored, and so is a size that no version has (above 4,096 bytes).
 * Since    0.1
 */
DIST_API void dist_strategy_options_init(dist_strategy_options *options, uint32_t struct_size_bytes);

/**
 * Makes a strategy and its threads, which sleep until the first run. Any number may live side by side.
 *
 * The CPUs that the process may use (affinity mask, cgroup quota) are read here. If they change later, the strategy keeps
 * its number of replicas and its way of waiting: results stay the same, only speed changes. A strategy made afterwards
 * sees the change. DIST_PLACEMENT_CORES is decided here too, by the library threads that there are then: strategies that
 * are created at the same time may choose the same CPUs. Which threads are where, and why, says dist_explain().
 *
 * Context  Any, concurrent.
 * Blocks   Until the threads are made.
 * Owns     The caller owns *out_strategy: dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT    out_strategy is NULL, an option is out of its range, a device has no name, or one that
 *                              another replica has, or an option from the future is set (struct_size is larger and
 *                              the rest is not zero).
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
 * Ends a strategy whatever its replicas do: refuses new runs, cancels those that wait and the one under way, and waits
 * for their functions up to `timeout_ns` (< 0: no limit; 0: not at all). Then its threads end, and groups that are
 * left with it.
 *
 * A function that has not returned by then is left alone: collectives in it fail with CANCELLED, everything that it uses
 * stays until it returns, and the last such thread frees it. That may be a thread of the library, a caller of
 * dist_run(), whose call returns when its functions have, or a host's thread, by dist_replica_leave(). Values,
 * variables and works may be released before and after, as after dist_strategy_destroy().
 *
 * Context  Strategy, serialized, but for runs that wait or are under way; not inside a function of its replicas, nor in
 *          its scope. NULL is fine. In a forked child nothing is done.
 * Blocks   Up to timeout_ns.
 * Owns     Takes the strategy, also where DEADLINE_EXCEEDED says that functions are still inside.
 * Errors   DEADLINE_EXCEEDED    the message names the replicas, or an update, whose functions have not returned.
 *          FAILED_PRECONDITION  inside a function of the strategy's (of a replica, merge, update) or its scope; a thread's
 *                               default strategy. The strategy is as it was.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_shutdown(dist_strategy *strategy, int64_t timeout_ns);

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
 * How values and variables are placed: a DIST_STRATEGY_...; -1 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_strategy_kind(const dist_strategy *strategy);

/**
 * The name of a replica's device, in full: "/job:localhost/replica:0/task:0/device:CPU:1". It is a name for the place
 * of a replica, whatever its type says: what runs is a host thread, and all memory is the host's.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_name is the strategy's.
 * Errors   INVALID_ARGUMENT     NULL, or replica_id is not in 0 .. R-1.
 *          FAILED_PRECONDITION  the default strategy, which names no devices.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_device(const dist_strategy *strategy, int32_t replica_id,
                                                         const char **out_name);

/**
 * As dist_strategy_device(), of the devices that variables are on: one for central storage, else the replicas'.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_name is the strategy's.
 * Errors   INVALID_ARGUMENT     NULL, or index is not below dist_strategy_properties.num_parameter_devices.
 *          FAILED_PRECONDITION  the default strategy.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_parameter_device(const dist_strategy *strategy,
                                                                   int32_t index, const char **out_name);

/**
 * Writes a device's name in full, as dist_strategy_device() gives it; what `name` leaves out is as in CPU:0.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, no device's name, a device of another process, or size_bytes is too small.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_canonical_device(const char *name, char *out_name,
                                                          size_t size_bytes);

/** What a strategy is, in TensorFlow's words (of tf.distribute.StrategyExtended); flags are 0 or 1. */
typedef struct dist_strategy_properties {
  uint32_t struct_size;
  int32_t kind; /* DIST_STRATEGY_... */
  int32_t num_replicas;
  int32_t num_parameter_devices;
  int32_t num_workers;           /* processes: 1 */
  int32_t in_multi_worker_mode;  /* more than one process */
  int32_t require_static_shapes; /* 0: batches and gathered values may differ in size */
  int32_t use_merge_call;        /* 1: replicas may call dist_merge_call() */
  int32_t between_graph;         /* variables are kept away from the replicas: central storage */
  int32_t should_init;           /* this process initializes variables */
  int32_t should_checkpoint;     /* this process writes checkpoints */
  int32_t should_save_summary;   /* this process writes summaries */
  int32_t global_batch_size;     /* 1: a batch is for all replicas together, and is divided */
  int32_t reserved;              /* 0 */
} dist_strategy_properties;
#define DIST_STRATEGY_PROPERTIES_INIT \
  { sizeof(dist_strategy_properties), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * What the strategy is. `out_properties->struct_size` says how much of it to write.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, or struct_size is too small.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_query(const dist_strategy *strategy,
                                                        dist_strategy_properties *out_properties);

/**
 * What describes the cluster that the strategy is part of: NULL where it is of one process.
 *
 * Context  Any, concurrent; also inside a replica.
 * Blocks   Never.
 * Owns     *out_resolver is the strategy's.
 * Errors   INVALID_ARGUMENT  NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cluster_resolver(const dist_strategy *strategy,
                                                                   dist_cluster_resolver **out_resolver);

/* ---- Names of what dist/types.h numbers, as TensorFlow has them ---- */

/**
 * The names of TensorFlow's enumerators: "MEAN", "RING", "ON_READ", "ONLY_FIRST_REPLICA", "PER_WORKER", "AUTO",
 * "HIERARCHICAL_COPY" ...; NULL for a number that has none. dist_reduce_op_name() also names libdist's further operators.
 *
 * Shape    –
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The text is static.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_reduce_op_name(dist_reduce_op op);
/** As dist_reduce_op_name(), of DIST_COMMUNICATION_.... Context Any. Blocks never. Since 0.1. */
DIST_API const char *dist_communication_name(int32_t implementation);
/** As dist_reduce_op_name(), of DIST_CROSS_DEVICE_.... Context Any. Blocks never. Since 0.1. */
DIST_API const char *dist_cross_device_name(int32_t kind);
/** As dist_reduce_op_name(), of DIST_SYNCHRONIZATION_.... Context Any. Blocks never. Since 0.1. */
DIST_API const char *dist_synchronization_name(int32_t synchronization);
/** As dist_reduce_op_name(), of DIST_AGGREGATION_.... Context Any. Blocks never. Since 0.1. */
DIST_API const char *dist_aggregation_name(int32_t aggregation);
/** As dist_reduce_op_name(), of DIST_INPUT_.... Context Any. Blocks never. Since 0.1. */
DIST_API const char *dist_input_mode_name(int32_t mode);
/** As dist_reduce_op_name(), of DIST_SHARD_.... Context Any. Blocks never. Since 0.1. */
DIST_API const char *dist_shard_policy_name(int32_t policy);

/**
 * The number of such a name, in any case: for settings that are read from a file or a command line.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, or another name; the message says which there are.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_communication_from_name(const char *name,
                                                                 int32_t *out_implementation);
/** As dist_communication_from_name(), of DIST_SYNCHRONIZATION_.... Context Any. Blocks never. Since 0.1. */
DIST_API DIST_NODISCARD dist_status dist_synchronization_from_name(const char *name,
                                                                   int32_t *out_synchronization);
/** As dist_communication_from_name(), of DIST_AGGREGATION_.... Context Any. Blocks never. Since 0.1. */
DIST_API DIST_NODISCARD dist_status dist_aggregation_from_name(const char *name, int32_t *out_aggregation);
/** As dist_communication_from_name(), of DIST_INPUT_.... Context Any. Blocks never. Since 0.1. */
DIST_API DIST_NODISCARD dist_status dist_input_mode_from_name(const char *name, int32_t *out_mode);
/** As dist_communication_from_name(), of DIST_SHARD_.... Context Any. Blocks never. Since 0.1. */
DIST_API DIST_NODISCARD dist_status dist_shard_policy_from_name(const char *name, int32_t *out_policy);

/**
 * Ends the run that is under way: every replica that waits in a collective, now or later in that run,
 * returns CANCELLED, and so does dist_run() once the replica functions are back. No run: nothing happens. Of host
 * threads, those that have left a run to which others have not come return at once.
 *
 * Context  Any thread, concurrent; also from inside a replica.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cancel(dist_strategy *strategy);

/**
 * An object by which any thread can ask what was begun with it to end early: dist_run_options.cancel,
 * dist_collective_options.cancel, dist_devices_options.cancel. One may serve any number of calls, of any
 * strategies, at the same time; what was begun without it, or with another one, goes on.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_cancel is the caller's: dist_cancel_destroy(). `allocator` may be NULL: malloc() and free().
 * Errors   INVALID_ARGUMENT    out_cancel is NULL; one of the allocator's functions is there without the other.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cancel_create(const dist_allocator *allocator,
                                                       dist_cancel **out_cancel);

/**
 * Asks, for good: what was begun with the object ends with CANCELLED, and so does, at once, what is begun with it
 * later. A run that waits for earlier ones never begins. A run under way ends as by dist_strategy_cancel(). A
 * collective, blocking, under way or planned, ends its group's meetings in that run, on every member.
 *
 * Each report has `reason`. A second signal changes nothing. Nothing is left over for later: a run that has
 * ended, or a work that has, is not touched, nor any that comes after it.
 *
 * Context  Any thread, concurrent; also inside a replica, a merge function, an operator, and what it ends. Not
 *          inside an allocator's functions.
 * Blocks   Never for a function of the host's, nor for a peer.
 * Owns     `reason` is copied, and cut at 255 bytes; NULL: none.
 * Errors   INVALID_ARGUMENT     cancel is NULL.
 *          FAILED_PRECONDITION  this is a forked child of the process that made it.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cancel_signal(dist_cancel *cancel, const char *reason);

/**
 * Whether it has been signalled, and all that this ends has been told: 1 or 0; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_cancel_signalled(const dist_cancel *cancel);

/**
 * Gives up the handle; what was begun with it goes on, and cannot be asked to end any more. NULL is fine.
 *
 * Context  Any thread; not while another thread is in a call that gets this handle as its own argument or is about to
 *          hand it to one: a call that has begun with it in its options holds on to it.
 * Blocks   Never.
 * Owns     Takes the handle.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_cancel_destroy(dist_cancel *cancel);

/* ==== 4. Running replicas =========================================================================== */

/**
 * The host's function, called once on each replica, on that replica's thread, concurrently. Its status is
 * the replica's: anything but DIST_OK ends the run for all. It must not throw or longjmp out.
 */
typedef dist_status (*dist_replica_fn)(dist_replica *replica, void *user_data);

typedef struct dist_run_options {
  uint32_t struct_size;
  int32_t reserved;   /* 0 */
  int64_t timeout_ns; /* of waiting for earlier runs and of the run; 0: none */
  /* TensorFlow's RunOptions, accepted without effect: here every size may differ from run to run. */
  int32_t enable_dynamic_batch_size; /* 0: the default, on; 1: on; -1: off */
  int32_t bucketizing_dynamic_shape; /* 0: off, 1: on */
  dist_cancel *cancel;               /* ends this run, and no other; NULL: none */
} dist_run_options;
#define DIST_RUN_OPTIONS_INIT \
  { sizeof(dist_run_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_run_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_run_options_init(dist_run_options *options, uint32_t struct_size_bytes);

/**
 * Calls `fn` once on every replica and waits for all of them.
 *
 *     for r in 0 .. R-1, at the same time:   status[r] = fn(replica[r], user_data)
 *
 * If a replica fails, its peers' pending and later collectives return ABORTED at once with its report; the
 * result is the status of the lowest replica whose failure was its own. The next run starts clean.
 *
 * Inside a merge function of the same strategy the run has replicas of its own, since those of the outer run wait:
 * the caller's thread is replica 0, the others are threads made at the first such run. Groups are not theirs, and
 * dist_write_trace() and its like do not show it.
 *
 * Context  Strategy, concurrent: several callers are served one after another, in the order of coming. Not inside a
 *          replica.
 * Blocks   Until earlier callers' runs have ended and every replica's function has returned, or options->timeout_ns is
 *          over. Then replicas in collectives return at once, and so does the call (where the caller is replica 0: when
 *          its own function does); a run that comes while one is still inside waits a moment, then it is refused.
 * Owns     Nothing; fn and user_data are used until return, after a deadline until those still inside are out.
 *          options may be NULL.
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL, an option is out of its range.
 *          FAILED_PRECONDITION  inside a replica function, also a detached one; inside another strategy's scope or merge
 *                               function; host threads; a forked child; an earlier run's functions are still inside.
 *          DEADLINE_EXCEEDED    options->timeout_ns is over: while earlier runs were under way, or the message names the
 *                               replicas still inside.
 *          CANCELLED            options->cancel, at once where the run has not begun; dist_strategy_cancel().
 *          any                  what the first failing replica returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_run(dist_strategy *strategy, dist_replica_fn fn, void *user_data,
                                             const dist_run_options *options);

/**
 * A replica function on values. `args` is a list or tuple, `kwargs` a dictionary (or NULL); wherever the caller put a
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
 * dist_value, that value as it is; otherwise one per-replica value. Leaves may be of different kinds. All nothings
 * are one; NULL is nothing where another replica gives a result. One replica: its result as it is.
 *
 * Context  Strategy, as dist_run().
 * Blocks   As dist_run().
 * Owns     args and kwargs (both may be NULL) are borrowed. *out_result is the caller's: dist_value_release();
 *          NULL if no replica gave a result. out_result may be NULL: results are dropped. After a deadline fn and
 *          user_data are in use until those still inside are out.
 * Errors   As dist_run(), and
 *          INVALID_ARGUMENT   args is no list or tuple, kwargs no dictionary; the results differ in structure (the
 *                             message has the path).
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
 * A run that is not complete within timeout_ns, or cancelled before all have come, is given up: those who have left get
 * its report. Who comes late comes into it, and gets the report too, until somebody who was in it comes back: that begins
 * the next run, as soon as nobody is inside.
 *
 * Entering, leaving, collectives of any kind and size, their works and fused steps take at most 32 KiB of the thread's
 * stack (64-bit Linux), where they report an error too; functions of the host's that they call (operators, merge and update
 * functions) come on top of that, and so does a signal's handler.
 *
 * Context  Strategy, concurrent; one thread a replica.
 * Blocks   While an earlier run that this replica was in has not ended, at most the strategy's timeout_ns.
 * Owns     *out_replica is the strategy's.
 * Errors   INVALID_ARGUMENT     replica_id is not in 0 .. R-1; NULL.
 *          FAILED_PRECONDITION  the strategy has library threads; this thread is a replica already; that
 *                               replica is inside now.
 *          DEADLINE_EXCEEDED    an earlier run did not end in time; the message names who has not come or left.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_enter(dist_strategy *strategy, int32_t replica_id,
                                                       dist_replica **out_replica);

/**
 * This host thread's replica ends its part of the run with `status`. Ending the thread instead, without this
 * call, is seen as a failure of that replica: peers do not hang.
 *
 * Context  Replica, of one that came by dist_replica_enter().
 * Blocks   Until all replicas of the run have left, or it is given up: dist_replica_enter().
 * Owns     Ends the handle's use.
 * Errors   FAILED_PRECONDITION  the replica has not come by dist_replica_enter(): functions of dist_run() and its like
 *                               end by returning; inside a merge function, or one on logical devices.
 *          any                  as dist_run(): every replica's thread gets the run's status.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_leave(dist_replica *replica, dist_status status);

/**
 * The calling thread lets go of the replica whose function it is in, so that another thread can go on as that replica:
 * dist_replica_attach(). What the first thread did is seen by the second. For hosts whose functions change threads (a
 * goroutine, a fiber): the thread that libdist called waits for the other one, and attaches again before it returns.
 *
 * Context  Replica, or logical device.
 * Blocks   Never. A function that returns while another thread is attached waits until that one detaches or ends.
 * Owns     Nothing.
 * Errors   FAILED_PRECONDITION  the handle is none of the calling thread's function.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_detach(dist_replica *replica);

/**
 * The calling thread goes on as a replica that another one has let go by dist_replica_detach(). The end of a thread
 * that is attached detaches it; a host's thread that ends detached leaves its replica inside, until another attaches.
 *
 * Context  Any thread that is in no replica's function and in no scope.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   FAILED_PRECONDITION  the replica is not detached, or not running; this thread is in a function or scope.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_attach(dist_replica *replica);

/* ==== 5. Inside a replica: who am I ================================================================= */

/**
 * This replica's id in 0 .. R-1, its rank in every collective; -1 for NULL.
 *
 * Context  Any thread, while the replica's function runs.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_replica_id(const dist_replica *replica);

/**
 * How many replicas are in sync; 0 for NULL.
 *
 * Context  Any thread, while the replica's function runs.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_replica_num_replicas(const dist_replica *replica);

/**
 * The strategy that runs this replica, for functions that make values; NULL for NULL.
 *
 * Context  Any thread, while the replica's function runs.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_strategy *dist_replica_strategy(const dist_replica *replica);

/** Takes the part [begin, end) of a loop. Called from several threads at once; must not call collectives. */
typedef void (*dist_range_fn)(int64_t begin, int64_t end, void *user_data);

/**
 * Runs a loop on this replica's share of the cores (by oneTBB), in pieces of at least `grain` iterations. With
 * DIST_THREADS_HOST libdist starts no thread: the calling one runs all of it. Where there are several NUMA domains and
 * the share fits into one, oneTBB's workers run their pieces there: in the domain of the replica's CPU where it is kept
 * on one, else replicas take the domains in turn. The calling thread's affinity stays as it is.
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

typedef struct dist_collective_options {
  uint32_t struct_size;
  int32_t numerics;   /* DIST_NUMERICS_... */
  const char *tag;    /* a name for reports, equal on all members; NULL: none */
  int64_t timeout_ns; /* longest wait for a peer; 0: the strategy's; < 0: no limit */
  /* who meets; NULL: all replicas. Below, R is its size; r, p and root are ranks in it */
  const dist_group *group;
  const double *weights;    /* MEAN: one weight (>= 0) a contribution, given by all members or by none */
  size_t contributions;     /* tensors that this replica adds to each sum; 0, on all members: one */
  dist_reduce_fn reduce_fn; /* DIST_REDUCE_USER's operator; the same on all members */
  void *reduce_user_data;
  const int64_t *splits; /* all_to_all: R sizes along the axis, which `in` is cut into; NULL: equal ones */
  int32_t axis;          /* the dimension that parts are cut from or joined along; < 0 counts from the end */
  int32_t planned;       /* 1: *out_work is a plan, which dist_work_start() begins, any number of times */
  /* not NULL: the call returns at once, and the work is under way; see dist_work_wait() */
  dist_work **out_work;
  int64_t bytes_per_pack; /* about how much a pack of a planned list has; 0: the strategy's, else all */
  int32_t implementation; /* DIST_COMMUNICATION_...: taken, and of no consequence for the bits */
  int32_t reserved;       /* 0 */
  dist_cancel *cancel;    /* ends the group's meetings in this run, for all members; NULL: none */
  /* DIST_REDUCE_USER: of one element of reduce_fn, the same on all members; 0: the dtype's. At most 4,096, and a
     multiple of each tensor's dtype. Tensors hold whole elements: none may have a gap inside, or a cut along the axis */
  size_t reduce_element_bytes;
} dist_collective_options;
#define DIST_COLLECTIVE_OPTIONS_INIT \
  { sizeof(dist_collective_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

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
 *          is in place; any other overlap of in[t] and out[t] is an error, but for views that interlock (even and odd
 *          elements). Tensors of one list are not compared. All replicas may pass one out buffer: it is written once.
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
 *          CANCELLED          a cancel object, of this member's options or a peer's, or of the run; dist_strategy_cancel().
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
 * dist_all_reduce() on a nest: every leaf is reduced, and the result has the value's structure. Indexed slices are
 * joined instead: the rows and indices of all replicas, one after another, the rows of a MEAN divided by R; an index
 * that several replicas have comes several times.
 *
 * The one-device and default strategies have nobody to meet: tensors are given back as they are, of whatever dtype.
 *
 * Shape    A tensor, or lists, tuples and dictionaries of tensors and indexed slices, the same structure on all
 *          replicas. Of a per-replica or mirrored value, or a variable, this replica's component is meant.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     value is borrowed. *out_value is the caller's: dist_value_release().
 * Errors   As dist_all_reduce(); RESOURCE_EXHAUSTED no memory; INVALID_ARGUMENT also for out_work or contributions,
 *          and for a leaf that is no tensor; UNIMPLEMENTED for other operators, or weights, on indexed slices.
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
 * Errors   As dist_all_reduce_value(); UNIMPLEMENTED for indexed slices.
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
  /* num_states lists of n tensors like the parameters; SGD with momentum: one list */
  const dist_tensor *states;
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
 * ended. It begins when all members have come. Every member makes its asynchronous collectives of a group in the
 * same order; blocking ones are counted by themselves. Descriptions of tensors, options and splits are copied.
 *
 * Who does the work: the last member to come, where it is up to 64 KiB; else oneTBB's threads beside the replicas, and
 * members that wait for it or ask after it. With DIST_THREADS_HOST libdist has no threads: then members alone do it, in
 * dist_work_test(), dist_work_wait(), dist_work_wait_any() and dist_work_destroy(), as they arrive at a blocking
 * collective, and when their function has returned. Nobody who does a part of it waits for a peer meanwhile.
 *
 * Any number may be under way: one that waits for a late member is queued, and costs the others nothing. What is queued
 * in a strategy takes at most dist_strategy_options.async_bytes (default: 64 MiB, or 2 MiB a replica where that is
 * more): one collective of R members 1.2 KiB + R * 1.3 KiB, handles and copies included, and for a list whose
 * description is above 512 bytes a member, that too (64 bytes a tensor and 16 a dimension). So by default there is room
 * for 17,000 with 2 replicas, and 10,000 with 4. Memory is taken in steps of 8 collectives and serves again; 8 of each
 * group are always granted. Where it is used up, the call that issues one more waits until this member's oldest is done,
 * takes part in that, and can end as dist_work_wait() of the oldest can: within options->timeout_ns, with a report that
 * names who has not come. What is complete is no longer queued: its handle is the host's until dist_work_destroy().
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
 * Runs once, in cross-replica context, on replica 0's thread, while all replicas wait. `args` is the given list or
 * tuple, whose items are merged as dist_run_values() merges results; borrowed. *out_result as in dist_values_fn.
 */
typedef dist_status (*dist_merge_fn)(dist_strategy *strategy, dist_value *args, dist_value **out_result,
                                     void *user_data);

/**
 * All replicas meet, and `fn` runs once for all of them.
 *
 *     result = fn(strategy, merge(args[0], ..., args[R-1]));   every replica r:  *out_result = component(result, r)
 *
 * Inside fn the strategy's functions are open: dist_reduce_to(), dist_update(), dist_run() too. Named arguments are
 * the entries of a dictionary among args.
 *
 * Context  Replica. Collective: the same fn and tag on all replicas. user_data is replica 0's.
 * Blocks   Until every replica has come (as dist_all_reduce()) and fn has returned.
 * Owns     args (a list, a tuple, or NULL) is borrowed. *out_result is the caller's (NULL: fn gave none); out_result
 *          may be NULL.
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
 * As dist_value_create_list(), of the other kind of sequence: replicas that give a list and a tuple do not agree.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   As dist_value_create_list().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_tuple(dist_strategy *strategy, dist_value *const *items,
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
 * Nothing, as a value of its own: as the result of every replica it merges to itself.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_none(dist_strategy *strategy, dist_value **out_value);

/**
 * A text: passed through runs and merging, never computed with.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Copies the text. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_text(dist_strategy *strategy, const char *text,
                                                           dist_value **out_value);

/**
 * A pointer of the host's (not NULL), passed through runs and merging: what libdist has no kind for.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *object stays the caller's until release(object), which is never called on an error; release may be
 *          NULL. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_wrap_object(dist_strategy *strategy, void *object,
                                                           dist_release_fn release, dist_value **out_value);

/**
 * One thing made of several tensors. Runs, merging and local results pass it whole; dist_value_item() gives
 * its parts:
 *
 *     DIST_VALUE_INDEXED_SLICES  values [k, ...], indices [k], dense shape [values.ndim] or a NONE value
 *     DIST_VALUE_RAGGED          values [k, ...], row splits from the outside in (one or several)
 *     DIST_VALUE_SPARSE          indices [k, d], values [k], dense shape [d]
 *
 * Indices, shapes and splits are I32 or I64.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Keeps a reference to each part. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT    NULL, another kind, or parts that do not fit each other; the message says which.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_composite(dist_strategy *strategy, int32_t kind,
                                                                dist_value *const *parts, size_t n,
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

/** For whom a component is made. */
typedef struct dist_value_context {
  int32_t replica_id_in_sync_group;
  int32_t num_replicas_in_sync;
} dist_value_context;

/** Makes one replica's component and hands it over; NULL is nothing. *context is there during the call. */
typedef dist_status (*dist_value_fn)(const dist_value_context *context, dist_value **out_value,
                                     void *user_data);

/**
 * A value of what a function makes for each replica (TensorFlow: experimental_distribute_values_from_function).
 *
 *     for r in 0 .. R-1, one after another:   value[r] = fn({r, R})
 *     *out_value = the structure of value[0], with a per-replica value at each leaf
 *
 * A leaf is a per-replica value also where all components are the same dist_value. The one-device and default
 * strategies have nothing to distribute: *out_value is value[0].
 *
 * Context  Strategy, concurrent; of the one-device and default strategies also inside a replica. fn is called on this
 *          thread, in the context that the thread is in.
 * Blocks   As fn does.
 * Owns     *out_value is the caller's: dist_value_release(). fn and user_data are used until return.
 * Errors   INVALID_ARGUMENT     NULL; the components differ in structure (the message has the path).
 *          FAILED_PRECONDITION  inside a replica function; inside another strategy's scope; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  what fn returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_values_from_function(dist_strategy *strategy, dist_value_fn fn,
                                                              void *user_data, dist_value **out_value);

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
 * How many items: components, entries of a list, tuple or dictionary, parts of a composite; 0 for all else.
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
 * The tensor that a value is; of a variable, replica 0's copy; of a sharded tensor, the whole.
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

/**
 * The text that a value is, or NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the value is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_value_text(const dist_value *value);

/**
 * The host's pointer that a value wraps, or NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the value is.
 * Errors   None.
 * Since    0.1
 */
DIST_API void *dist_value_object(const dist_value *value);

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

/** Gives a variable's first value, by dist_value_create_tensor() and its like. The reference is handed over. */
typedef dist_status (*dist_initial_fn)(dist_value **out_value, void *user_data);

typedef struct dist_variable_options {
  uint32_t struct_size;
  int32_t aggregation;        /* DIST_AGGREGATION_... */
  const char *name;           /* NULL: "Variable" */
  int32_t synchronization;    /* DIST_SYNCHRONIZATION_... */
  int32_t trainable;          /* 1: yes; -1: no; 0: yes, unless it is synchronized on reading */
  int32_t partitions;         /* 0 or 1: the variable is in one piece */
  int32_t reserved;           /* 0 */
  dist_initial_fn initial_fn; /* instead of an initial tensor: called once, on the calling thread */
  void *initial_user_data;
} dist_variable_options;
#define DIST_VARIABLE_OPTIONS_INIT \
  { sizeof(dist_variable_options), 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_variable_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_variable_options_init(dist_variable_options *options, uint32_t struct_size_bytes);

/**
 * A variable whose copies are all equal to `initial`. How many there are, and what the options mean, is the strategy's
 * affair; dist_variable_class() tells which of the four kinds it became:
 *
 *     mirrored, ON_WRITE or AUTO  MirroredVariable     a copy for each replica; assignments are aggregated, and all
 *                                                      copies stay equal (but for aggregation NONE)
 *     mirrored, ON_READ           SyncOnReadVariable   a copy for each replica, written by it alone; reads from outside
 *                                                      are aggregated
 *     central storage             AggregatingVariable  one copy; assignments are aggregated
 *     one device, default         Variable             one copy; nothing is to be aggregated
 *
 * Shape    Any; the copies are row-major.
 * Order    Bits are copied.
 * Context  Strategy, concurrent.
 * Blocks   Never, but for initial_fn.
 * Owns     *out_variable is the caller's: dist_variable_destroy().
 * Errors   INVALID_ARGUMENT    NULL, or both an initial tensor and a function; a bad tensor or option. With a mirrored
 *                              strategy also synchronization NONE, and MEAN of a dtype that is not floating point.
 *          UNIMPLEMENTED       partitions > 1: variables in pieces live on parameter servers.
 *          RESOURCE_EXHAUSTED  no memory. Else what initial_fn returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_create(dist_strategy *strategy, const dist_tensor *initial,
                                                         const dist_variable_options *options,
                                                         dist_variable **out_variable);

/**
 * The strategy's variable of this name: made by the first run whose replicas ask for it, with replica 0's initial value,
 * and found again by later ones.
 *
 * Shape    As dist_variable_create(); an initial tensor has the variable's shape and dtype also where it is not used.
 * Order    Bits are copied.
 * Context  Replica. Collective: all replicas ask for the same name, with the same options (options->name is not read).
 * Blocks   As dist_merge_call().
 * Owns     *out_variable is the strategy's and ends with it, or by dist_variable_destroy().
 * Errors   As dist_variable_create(); INVALID_ARGUMENT also where the variable is there and of another shape, dtype or
 *          options; those of dist_merge_call().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_variable(dist_replica *replica, const char *name,
                                                          const dist_tensor *initial,
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
 * "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable": see dist_variable_create(). "" for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed; it never ends.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_variable_class(const dist_variable *variable);

/**
 * The DIST_SYNCHRONIZATION_... that the variable has: AUTO has become what the strategy chose, where it had a choice.
 * -1 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_variable_synchronization(const dist_variable *variable);

/**
 * The variable's DIST_AGGREGATION_...; -1 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_variable_aggregation(const dist_variable *variable);

/**
 * Whether the variable is for training to change: 1 or 0; 0 for NULL. libdist makes no difference.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_variable_trainable(const dist_variable *variable);

/**
 * How many copies the variable has: one for each replica, or one. 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_variable_num_copies(const dist_variable *variable);

/**
 * The name of a copy: "w", "w/replica_1", "w/replica_2" ... ; "" for NULL, and where there is no such copy.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_variable_copy_name(const dist_variable *variable, int32_t copy);

/**
 * The device that a copy is on, as dist_strategy_parameter_device() names it: that of copy r is replica r's. With a
 * default strategy, which names none, it is CPU:0.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_name is the strategy's.
 * Errors   INVALID_ARGUMENT     NULL, or there is no such copy.
 *          FAILED_PRECONDITION  another strategy's variable.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_device(const dist_strategy *strategy,
                                                         const dist_variable *variable, int32_t copy,
                                                         const char **out_name);

/**
 * Whether this strategy made a variable: of a variable's value, or of one of its copies as dist_local_results() gives
 * them.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL, or neither a variable nor a copy of one.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_created_in_scope(dist_strategy *strategy,
                                                                   const dist_value *variable,
                                                                   int32_t *out_created);

/**
 * Variables that this thread makes next are placed with another (TensorFlow: colocate_vars_with), until
 * dist_colocate_exit(). They always are: copy r of every variable of a strategy is replica r's. What is checked is that
 * they could be.
 *
 * Context  A thread that is in the strategy's scope (dist_scope_enter()) or run; with a default strategy, any.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL; not a variable of this strategy (where variables have one copy, that copy will do;
 *                               a default strategy takes anything).
 *          FAILED_PRECONDITION  outside the strategy's scope.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_colocate_enter(dist_strategy *strategy, const dist_value *variable);

/**
 * Ends what this thread's latest dist_colocate_enter() began.
 *
 * Context  As dist_colocate_enter().
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  outside the strategy's scope; this thread has begun none.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_colocate_exit(dist_strategy *strategy);

/**
 * A view of what replica `replica_id` has of the variable: its own copy, or the one that all share. A replica may write
 * to its own; that all copies stay equal is then its affair (the same all-reduced gradient on every replica does it).
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
 * The variable's value as the cross-replica context sees it, as a new tensor. It is what a checkpoint saves;
 * dist_variable_assign() of it restores the variable, under any strategy and number of replicas.
 *
 *     SyncOnReadVariable:  SUM, MEAN            fold of copy[0 .. R-1], as dist_reduce()
 *                          ONLY_FIRST_REPLICA   copy[0]
 *     all others:          copy[0]
 *
 * Shape    The variable's.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is under way.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL; a SyncOnReadVariable with aggregation NONE, or SUM of bool.
 *          FAILED_PRECONDITION  inside a replica function (dist_replica_read()); another strategy's variable.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_read(dist_strategy *strategy, dist_variable *variable,
                                                       dist_value **out_value);

/**
 * Assigns to every copy: a tensor to all, a per-replica or mirrored value to each its own (to a single copy, the first).
 *
 *     every copy r:   copy[r] = value      (or copy[r] + value, copy[r] - value)
 *
 * A SyncOnReadVariable takes one value, not a per-replica one, so that reading it gives the value: with SUM
 * copy[r] = value / R, and no adding (of integers the first value mod R copies have one more); with MEAN and
 * ONLY_FIRST_REPLICA as above. dist_update() writes to the copies themselves.
 *
 * Shape    The variable's shape and dtype.
 * Order    One operation an element.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is under way, then until all copies are written.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL, an unknown `how`, another shape or dtype; for a SyncOnReadVariable also aggregation
 *                               NONE, a per-replica value, and adding with SUM.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable. Nothing is written on an error.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_assign(dist_strategy *strategy, dist_variable *variable,
                                                         int32_t how, dist_value *value);

/**
 * Changes rows of every copy: indexed slices for all, or per-replica ones, each replica's for its own copy (of a single
 * copy, the first).
 *
 *     every copy c, k = 0, 1, ...:   c[indices[k]] = op(c[indices[k]], values[k])
 *
 * Shape    values [k, rest], indices [k], the variable [n, rest] and of the values' dtype. BATCH_UPDATE also takes a list
 *          {values [b, k, rest], indices [b, k]} for a variable [b, n, rest], where b is any number of dimensions.
 * Order    Row by row as given: of an index that comes twice both count, one after the other.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is under way, then until all copies are written.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL, an unknown `how`, shapes or dtypes that do not fit, an index outside the variable,
 *                               an integer division by 0, min or max of complex64.
 *          UNIMPLEMENTED        of a SyncOnReadVariable; BATCH_UPDATE of a MirroredVariable; UPDATE, MIN, MAX of one with
 *                               aggregation SUM or MEAN.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable. Nothing is written on an error.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_scatter(dist_strategy *strategy, dist_variable *variable,
                                                          int32_t how, dist_value *slices);

/**
 * This replica's copy of a variable as a new tensor (dist_variable_component() gives a view of it).
 *
 * Shape    The variable's.
 * Order    Bits are copied.
 * Context  Replica.
 * Blocks   Never.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  not inside this replica's function; another strategy's variable, unless it is a "Variable".
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_read(dist_replica *replica, dist_variable *variable,
                                                      dist_value **out_value);

/**
 * Assigns inside replicas, by the variable's aggregation.
 *
 *     NONE:                 copy[r] = value[r], and nobody waits (an AggregatingVariable refuses it)
 *     SUM, MEAN:            every copy r:   copy[r] = fold of value[0 .. R-1], as dist_all_reduce()
 *     ONLY_FIRST_REPLICA:   every copy r:   copy[r] = value[0]
 *     (or copy[r] + ..., copy[r] - ...)
 *
 * A SyncOnReadVariable and a strategy with one replica do as with NONE, whatever the aggregation.
 *
 * Shape    The variable's shape and dtype.
 * Order    As dist_all_reduce(), then one operation an element.
 * Context  Replica. Collective, unless each replica keeps to its own copy.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for another shape or dtype, and for an AggregatingVariable with
 *          NONE, or with the MEAN of integers; FAILED_PRECONDITION for another strategy's variable.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign(dist_replica *replica, dist_variable *variable,
                                                        int32_t how, const dist_tensor *value,
                                                        const dist_collective_options *options);

/**
 * As dist_replica_assign(), of a value, whose identity counts as in TensorFlow: where all replicas give the same
 * dist_value it is one number for all of them, which MEAN and ONLY_FIRST_REPLICA assign, and of which SUM is an error.
 *
 * Shape    The variable's shape and dtype.
 * Order    As dist_reduce(), then one operation an element.
 * Context  Replica. Collective, unless each replica keeps to its own copy.
 * Blocks   As dist_merge_call(): replica 0's thread reduces for all.
 * Owns     Nothing.
 * Errors   As dist_replica_assign().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign_value(dist_replica *replica, dist_variable *variable,
                                                              int32_t how, dist_value *value,
                                                              const dist_collective_options *options);

/**
 * Changes rows inside replicas, by the variable's aggregation: dist_variable_scatter() of
 *
 *     NONE:                 copy[r] by slices[r], and nobody waits
 *     SUM:                  every copy by slices[0], slices[1], ... slices[R-1], one after the other
 *     MEAN:                 the same, of values / R
 *     ONLY_FIRST_REPLICA:   every copy by slices[0]
 *     AggregatingVariable:  its copy by slices[0], slices[1], ... slices[R-1], whatever the aggregation
 *
 * Where all replicas give the same dist_value, SUM is an error, and MEAN does as ONLY_FIRST_REPLICA.
 *
 * Shape    As dist_variable_scatter().
 * Order    By replica id, then row by row as given.
 * Context  Replica. Collective, unless each replica keeps to its own copy.
 * Blocks   As dist_merge_call().
 * Owns     Nothing.
 * Errors   As dist_variable_scatter(), and those of dist_merge_call().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_scatter(dist_replica *replica, dist_variable *variable,
                                                         int32_t how, dist_value *slices,
                                                         const dist_collective_options *options);

/* ==== 9. From outside: reduce, update =============================================================== */

/**
 * TensorFlow's name of a reduction, "SUM" or "MEAN" in any case, as an operator. The names of collectives' further
 * operators (MIN, MAX, ...) are no reduction of values from outside, there as here, and are errors.
 *
 * Shape    –
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, or another name.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_op_from_name(const char *name, dist_reduce_op *out_op);

/**
 * The operator by which a variable of this aggregation is reduced.
 *
 * Shape    –
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, or an aggregation that is no reduction: NONE, ONLY_FIRST_REPLICA.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_op_from_aggregation(int32_t aggregation,
                                                                    dist_reduce_op *out_op);

/**
 * Reduces a per-replica value to one tensor (of a nest: each leaf, without axes).
 *
 *     axes NULL:   out[i]  = fold over r of value[r][i]
 *     with axes:   out[..] = fold over r of (fold over the axes of value[r]);  MEAN divides by the number of
 *                  elements along the axes over all replicas
 *
 * A mirrored value or variable: MEAN gives its first component, SUM is an error, as in TensorFlow. A value that is not
 * distributed: MEAN gives it back, SUM is an error; with axes it counts as given to every replica. One replica: as it
 * is, without axes. Indexed slices are joined, not added: the rows and indices of replica 0, then those of replica 1
 * ..., and MEAN divides the rows by R. Of a variable synchronized on reading every copy is a contribution.
 *
 * Shape    Without axes all components have one shape. With axes sizes may differ along those axes only; an
 *          axis counts from the end where it is negative. op is SUM or MEAN.
 * Order    By replica id, left to right; f16 and bf16 as in dist_all_reduce(). MEAN of integers gives f64
 *          (from i32, u32, i64, u64) or f32.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done (oneTBB shares the work).
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL, op, SUM of a value that is not distributed, shapes or dtypes that differ, an
 *                               axis out of range or twice, a nest with axes, a per-replica value of texts and the
 *                               like.
 *          UNIMPLEMENTED        ragged and sparse values; indexed slices with axes.
 *          FAILED_PRECONDITION  inside a replica function: use dist_all_reduce() or dist_merge_call().
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce(dist_strategy *strategy, dist_reduce_op op, dist_value *value,
                                                const int32_t *axes, size_t num_axes, dist_value **out_value);

/** Where a reduction's result is wanted: exactly one field is set. No destination at all (NULL): on every replica. */
typedef struct dist_destination {
  dist_variable *variable; /* where this variable's copies are */
  dist_value *value;       /* where this value's components are; a tensor is in one place */
  const char *device;      /* a device by name: "CPU:1", or longer; "replica:1": that of replica 1 */
} dist_destination;

/**
 * Reduces a per-replica value to where it is wanted (of a list or dictionary: each leaf).
 *
 *     *out_value = fold over r of value[r]:   a mirrored value where the destination is on every replica, as a mirrored
 *                  strategy's variables are; a tensor where it is a device, or central storage's variable
 *
 * What is not distributed, or mirrored already, every replica has in common: MEAN gives it back, SUM is an error. In
 * dist_batch_reduce_to() on central storage it counts as one contribution instead, as in TensorFlow. One replica:
 * everything as it is. Indexed slices are joined as by dist_reduce().
 *
 * Shape    All components have one shape. op is SUM or MEAN.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release(). destination and options may be NULL. The options are
 *          TensorFlow's, checked and of no consequence: values from outside runs travel nowhere.
 * Errors   As dist_reduce(); INVALID_ARGUMENT also for a destination that says nothing, says two things, is a list or
 *          has no device's name, and for an option that is out of its range; NOT_FOUND for "replica:r" of no replica.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                   dist_value *value, const dist_destination *destination,
                                                   const dist_communication_options *options,
                                                   dist_value **out_value);

/**
 * n times dist_reduce_to() in one pass: out_values[k] is the result of values[k] at destinations[k]. An operator that
 * the strategy's cross-device operations have takes the place of SUM's.
 *
 * Shape    As dist_reduce_to(); n = 0 is legal.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until all are done.
 * Owns     The out_values are the caller's. destinations and options may be NULL. On an error none is written.
 * Errors   As dist_reduce_to().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_batch_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                         dist_value *const *values,
                                                         const dist_destination *destinations, size_t n,
                                                         const dist_communication_options *options,
                                                         dist_value **out_values);

/**
 * One value where it is wanted: mirrored where that is on every replica, else as it is. The replicas share it.
 *
 * Shape    Any.
 * Order    –
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Never.
 * Owns     *out_value is the caller's: dist_value_release(). destination may be NULL: every replica.
 * Errors   INVALID_ARGUMENT     NULL, a per-replica or mirrored value, a bad destination (see dist_reduce_to()).
 *          FAILED_PRECONDITION  inside a replica function: use dist_broadcast().
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_broadcast_to(dist_strategy *strategy, dist_value *value,
                                                      const dist_destination *destination,
                                                      dist_value **out_value);

/**
 * Joins the components of a per-replica value (of a list or dictionary: each leaf) to one tensor.
 *
 *     out = value[0], ..., value[R-1], one after another along `axis`
 *
 * Of a variable the copies are joined. What else is not distributed is given back as it is. One replica: as it is.
 *
 * Shape    Sizes may differ along the axis only; it counts from the end where it is negative.
 * Order    By replica id; bits are copied.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL, an axis out of range, scalars, shapes or dtypes that differ, what is no tensor.
 *          UNIMPLEMENTED        indexed slices.
 *          FAILED_PRECONDITION  inside a replica function: use dist_all_gather_value().
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_gather(dist_strategy *strategy, dist_value *value, int32_t axis,
                                                dist_value **out_value);

/**
 * Writes the name, in full, of the device that a destination is on. One replica: always that replica's.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, a bad destination, one on every replica, or size_bytes is too small.
 *          NOT_FOUND         "replica:r" of no replica.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_destination_device(dist_strategy *strategy,
                                                            const dist_destination *destination,
                                                            char *out_name, size_t size_bytes);

/**
 * dist_reduce_to() by cross-device operations without a strategy: there are as many replicas as the value has
 * components. What is not distributed is one contribution, and is given back. The operator, or the functions, that the
 * operations were made with are used.
 *
 * Shape    As dist_reduce_to().
 * Order    As dist_reduce().
 * Context  Any, concurrent.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_reduce_to(); INVALID_ARGUMENT also where destination is NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_reduce(dist_cross_device *cross_device,
                                                             dist_reduce_op op, dist_value *value,
                                                             const dist_destination *destination,
                                                             dist_value **out_value);

/**
 * dist_batch_reduce_to() by cross-device operations without a strategy; see dist_cross_device_reduce().
 *
 * Shape    As dist_reduce_to(); all values have as many components. n = 0 is legal.
 * Order    As dist_reduce().
 * Context  Any, concurrent.
 * Blocks   Until all are done.
 * Owns     The out_values are the caller's. On an error none is written.
 * Errors   As dist_cross_device_reduce().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_batch_reduce(dist_cross_device *cross_device,
                                                                   dist_reduce_op op,
                                                                   dist_value *const *values,
                                                                   const dist_destination *destinations,
                                                                   size_t n, dist_value **out_values);

/**
 * dist_broadcast_to() by cross-device operations without a strategy: to as many replicas as the destination has.
 *
 * Context  Any, concurrent.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_broadcast_to(); INVALID_ARGUMENT also where destination is NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_broadcast(dist_cross_device *cross_device,
                                                                dist_value *value,
                                                                const dist_destination *destination,
                                                                dist_value **out_value);

/**
 * dist_gather() by cross-device operations without a strategy.
 *
 * Context  Any, concurrent.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_gather().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_gather(dist_cross_device *cross_device,
                                                             dist_value *value, int32_t axis,
                                                             dist_value **out_value);

/** Changes one copy of a variable. `args` is a list that holds this copy's components; borrowed. */
typedef dist_status (*dist_update_fn)(dist_tensor *copy, dist_value *args, void *user_data);

/**
 * Calls `fn` on every copy of a variable, with that replica's components of `args`, some at the same time.
 *
 *     every replica r:   fn(copy[r], component(args, r), user_data)
 *
 * Shape    –
 * Order    –
 * Context  Strategy, concurrent; also inside a merge function. fn may read variables, and begins no run.
 * Blocks   While a run is under way, then until all calls have returned.
 * Owns     args (a list, a tuple, or NULL) is borrowed.
 * Errors   INVALID_ARGUMENT NULL or args is no list or tuple. Else what fn returned for the lowest replica that failed.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_update(dist_strategy *strategy, dist_variable *variable,
                                                dist_update_fn fn, void *user_data, dist_value *args);

/** What one call of an update function is for. */
typedef struct dist_update_place {
  uint32_t struct_size;
  int32_t replica;    /* whose copy it is; -1: no replica's in particular, as central storage's */
  const char *device; /* its name, as dist_strategy_parameter_device(); "" for the default strategy */
  dist_tensor *copy;  /* to be changed; NULL in dist_update_non_slot() */
} dist_update_place;

/**
 * Changes one copy of a variable, as dist_update_fn, with named arguments and a result. It is called in the
 * cross-replica context, in the strategy's scope, and may reduce and run there. args and kwargs hold this copy's
 * components, and are borrowed; *out_result is NULL before the call and is taken over with its reference.
 */
typedef dist_status (*dist_update_values_fn)(const dist_update_place *place, dist_value *args,
                                             dist_value *kwargs, dist_value **out_result, void *user_data);

typedef struct dist_update_options {
  uint32_t struct_size;
  /* 1: each leaf of the result becomes a tuple of what the calls gave, one where all gave one object */
  int32_t ungrouped;
} dist_update_options;
#define DIST_UPDATE_OPTIONS_INIT \
  { sizeof(dist_update_options), 0 }

/** As dist_strategy_options_init(), of dist_update_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_update_options_init(dist_update_options *options, uint32_t struct_size_bytes);

/**
 * dist_update() with named arguments and results: one call after another, on the caller's thread.
 *
 *     for c in 0 .. copies-1:   result[c] = fn(copy[c], component(args, c), component(kwargs, c))
 *     *out_result = merge(result[0], ..., result[copies-1]), mirrored where they differ
 *
 * Context  Strategy, serialized for a variable; also inside a merge function. Inside replicas: dist_replica_update().
 * Blocks   Until all calls have returned.
 * Owns     args (a list or tuple, or NULL) and kwargs (a dictionary, or NULL) are borrowed. *out_result is the caller's:
 *          dist_value_release(); NULL if no call gave a result. out_result may be NULL: results are dropped.
 * Errors   INVALID_ARGUMENT     NULL; args or kwargs of another kind; a variable made outside a mirrored strategy, which
 *                               has no copies of it; results that differ in structure.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  what fn returned: the first failure ends the update.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_update_values(dist_strategy *strategy, dist_variable *variable,
                                                       dist_update_values_fn fn, void *user_data,
                                                       dist_value *args, dist_value *kwargs,
                                                       const dist_update_options *options,
                                                       dist_value **out_result);

/**
 * As dist_update_values(), of what is no variable: once for each device that variables are on.
 *
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until all calls have returned.
 * Owns     As dist_update_values().
 * Errors   As dist_update_values().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_update_non_slot(dist_strategy *strategy, dist_update_values_fn fn,
                                                         void *user_data, dist_value *args,
                                                         dist_value *kwargs,
                                                         const dist_update_options *options,
                                                         dist_value **out_result);

/**
 * dist_update_values() from inside replicas: all of them meet, as in dist_merge_call(), and what they give as arguments
 * is merged; replica 0's function is used. *out_result is this replica's component of the result.
 *
 * Context  Replica. Collective.
 * Blocks   As dist_merge_call().
 * Owns     As dist_update_values().
 * Errors   As dist_merge_call() and dist_update_values().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replica_update(dist_replica *replica, dist_variable *variable,
                                                        dist_update_values_fn fn, void *user_data,
                                                        dist_value *args, dist_value *kwargs,
                                                        const dist_update_options *options,
                                                        dist_value **out_result);

/**
 * The variable that a value is, or is a copy of (as dist_local_results() gives them); NULL for other values.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_variable *dist_value_container(const dist_value *value);

/**
 * A tuple of a value's components in this process, in replica order; of a variable its copies; of a list, tuple or
 * dictionary what each replica would find of it; of any other value a tuple of itself.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_list is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_local_results(dist_strategy *strategy, dist_value *value,
                                                       dist_value **out_list);

/* ==== 10. Datasets ================================================================================== */

/*
 * A source has elements; batches are made of them; each batch is cut up for the replicas of all workers. What TensorFlow
 * has as transformations of a dataset (map, filter, zip, repeat, ...) is the host's own program in a source.
 */
typedef struct dist_dataset_options {
  uint32_t struct_size;
  int32_t drop_remainder;    /* 1: leave out a last batch that is not full */
  int64_t global_batch_size; /* elements of a batch for all replicas together; 0: the source's elements are
                                global batches already, and are split as they are */
  int32_t shuffle;           /* 1: another order in every pass, drawn from seed and the pass's number */
  int32_t prefetch;          /* batches made ahead by oneTBB; 0: one; < 0: none
                                (TensorFlow: experimental_per_replica_buffer_size, where none is 0) */
  uint64_t seed;
  int32_t shard_policy; /* DIST_SHARD_...: what of the source goes to which worker */
  int32_t num_workers;  /* that read this dataset together, each with as many replicas as this one; 0: 1 */
  int32_t worker_index; /* which of them this one is */
  /* 1: global_batch_size counts what one worker gets of a batch, and with DIST_SHARD_DATA whole batches are
   * dealt out; 0: every batch is cut up for all workers */
  int32_t worker_batches;
  /* 1: the source wants to be sharded element by element, before batches are made of them; only
   * DIST_SHARD_HINT does so, all else fails */
  int32_t shard_hint;
  int32_t interleave; /* files that are read in turn, an element each; 0 or 1: one file after another */
  /* 1: every batch has the same shape; -1: the last ones may be smaller; 0: as it follows from
   * drop_remainder, for rows of tensors that are batches, 1 */
  int32_t static_shapes;
  int32_t replication_mode; /* DIST_INPUT_...; PER_REPLICA only of a function, on mirrored strategies */
  int32_t fetch_to_device;  /* 1, 0: yes, -1: no. Batches lie in the memory that replicas read anyway */
  /* 1: yes; of a function only with PER_REPLICA and fetch_to_device -1. No effect: the device is the host */
  int32_t place_dataset_on_device;
  /* examples of the 1st, 2nd, ... piece, again from the first after the last: the source's examples are cut
   * anew, whatever batches they came in, and replica r of step k gets piece k*R + r. NULL: batches are cut
   * evenly. Copied */
  const int64_t *batch_sizes;
  size_t num_batch_sizes;
} dist_dataset_options;
#define DIST_DATASET_OPTIONS_INIT \
  { sizeof(dist_dataset_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0 }

/** As dist_strategy_options_init(), of dist_dataset_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_dataset_options_init(dist_dataset_options *options, uint32_t struct_size_bytes);

/**
 * A dataset of rows: element i is row i of each of n tensors (features, labels, ...).
 *
 *     a batch of m elements, q = ceil(m / R):   replica r gets elements [r*q, min(m, (r+1)*q)) of it, maybe none
 *
 * A partial last batch is cut by its own size: 10 elements in batches of 8 on 2 replicas are 4 and 4, then 1 and 1. Of
 * several workers (options.num_workers = W, > 1), with q = ceil(m / (W*R)), replica r of worker w gets piece r*W + w
 * (DIST_SHARD_DATA); where workers read different elements, or all of them everything, batches are cut anew to the sizes
 * of dist_batch_sizes_for_worker(). With one replica and one worker nothing is cut: an element that is a batch may be
 * anything, a scalar too.
 *
 * Shape    n >= 1 tensors with equal first dimensions (the number of elements).
 * Order    Without shuffle the tensors' own; with it a permutation that depends on seed and pass alone.
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     The data are copied. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     NULL, n = 0, a scalar, first dimensions that differ, a batch size < 0, a worker's index
 *                               outside 0 .. num_workers-1 (but for DIST_SHARD_OFF).
 *          NOT_FOUND            DIST_SHARD_FILE of several workers: the source has no files.
 *          UNIMPLEMENTED        replication_mode is DIST_INPUT_PER_REPLICA.
 *          FAILED_PRECONDITION  inside a replica function; a forked child; shard_hint without DIST_SHARD_HINT.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_tensors(dist_strategy *strategy,
                                                                     const dist_tensor *tensors, size_t n,
                                                                     const dist_dataset_options *options,
                                                                     dist_dataset **out_dataset);

/**
 * Makes element `index` (0, 1, 2, ... in each pass; one that continues at a position begins there) and hands it over with
 * its reference: a tensor, or a list, tuple or dictionary of elements. DIST_OUT_OF_RANGE ends the pass. Called from one
 * thread at a time, maybe not the caller's. It must not throw; runs, variables and iterators are refused there.
 */
typedef dist_status (*dist_source_fn)(int64_t index, dist_value **out_element, void *user_data);

/**
 * A dataset whose elements a callback makes. With a global batch size, that many elements of equal structure,
 * dtypes and shapes are stacked along a new first dimension; without, each element is a batch. Texts and objects of the
 * host's stack to lists of them; nothing (DIST_VALUE_NONE) stays nothing. Ragged and sparse tensors are cut by rows.
 *
 * Shape    As dist_dataset_create_from_tensors(). `shuffle` must be 0: the source has its own order.
 * Order    The source's.
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     fn and user_data are used until the dataset and its iterators have ended; then release(user_data),
 *          unless release is NULL. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   As dist_dataset_create_from_tensors(); INVALID_ARGUMENT also where shuffle is set.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_callback(dist_strategy *strategy,
                                                                      dist_source_fn fn, void *user_data,
                                                                      dist_release_fn release,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/**
 * Makes element `index` (0, 1, 2, ... each time that the file is read) of the file with number `file` in the list, whose
 * name is `name`. DIST_OUT_OF_RANGE ends the file. Otherwise as dist_source_fn: the host opens and reads files.
 */
typedef dist_status (*dist_file_source_fn)(size_t file, const char *name, int64_t index,
                                           dist_value **out_element, void *user_data);

/**
 * A dataset of the elements of n files. Several workers get whole files, file i worker i mod W (DIST_SHARD_FILE, and what
 * DIST_SHARD_AUTO means for files). options.interleave = c reads c files in turn, an element each, as TensorFlow's
 * interleave(cycle_length=c).
 *
 * Shape    As dist_dataset_create_from_callback().
 * Order    The files' in the list, and within a file the host's.
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     The names are copied; fn, user_data and release as in dist_dataset_create_from_callback().
 * Errors   As dist_dataset_create_from_callback(); INVALID_ARGUMENT also where there are fewer files than workers.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_files(
    dist_strategy *strategy, const char *const *names, size_t n, dist_file_source_fn fn, void *user_data,
    dist_release_fn release, const dist_dataset_options *options, dist_dataset **out_dataset);

/** For which part of the input a function makes a dataset (TensorFlow: tf.distribute.InputContext). */
typedef struct dist_input_context {
  int32_t num_input_pipelines; /* one a worker, or one a replica */
  int32_t input_pipeline_id;
  int32_t num_replicas_in_sync;
} dist_input_context;
#define DIST_INPUT_CONTEXT_INIT \
  { 1, 0, 1 }

/**
 * What one replica gets of a global batch.
 *
 *     *out_size = global_batch_size / context->num_replicas_in_sync
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, a size that is no multiple of the number of replicas, no replicas.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_input_context_per_replica_batch_size(
    const dist_input_context *context, int64_t global_batch_size, int64_t *out_size);

/**
 * Makes the dataset of one input pipeline and hands it over. Its batches are given to replicas whole, so that
 * global_batch_size is there what one replica gets; its own prefetch is not used. *context is there during the call.
 */
typedef dist_status (*dist_dataset_fn)(const dist_input_context *context, dist_dataset **out_dataset,
                                       void *user_data);

/**
 * A dataset of what a function makes (TensorFlow: distribute_datasets_from_function). The function is called once, here,
 * and its batches are dealt out: replica r of step k gets batch k*R + r. A last step for which batches are missing has
 * empty tensors in their place; where all batches have the same shape (options.static_shapes of the function's dataset)
 * an empty one would be a different shape, and the step is left out, its data too.
 *
 * With options.replication_mode DIST_INPUT_PER_REPLICA the function is called R times, with input_pipeline_id r of R, and
 * replica r of step k gets batch k of dataset r.
 *
 * Only prefetch and the three options about replication and devices are read, all others must be 0.
 *
 * Shape    The batches of a step have one structure.
 * Order    The function's datasets'.
 * Context  Strategy, concurrent.
 * Blocks   While fn runs.
 * Owns     Takes the function's datasets. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     NULL; fn made no dataset; options that do not go together.
 *          UNIMPLEMENTED        DIST_INPUT_PER_REPLICA on another than a mirrored strategy.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  what fn returned, in its own words where it had some (dist_fail()).
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_function(dist_strategy *strategy,
                                                                      dist_dataset_fn fn, void *user_data,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/**
 * The sizes of the pieces that one of W workers with R replicas each cuts its batches to.
 *
 *     N = W*R, q = floor(global_batch_size / N), i = 0 .. N-1:
 *     out_sizes[i] = q + 1 where (i + worker*R) mod N < global_batch_size mod N, else q
 *
 * Step k of all workers together has global_batch_size examples, and after W steps every worker has had as many.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, a number < 0 (workers, replicas: < 1), a worker that is none of them, n is not W*R.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_batch_sizes_for_worker(int64_t global_batch_size,
                                                                int32_t num_workers,
                                                                int32_t num_replicas_per_worker,
                                                                int32_t worker, int64_t *out_sizes, size_t n);

/**
 * What batches are like: their structure, with a text "f32[?, 4]" for each tensor of each replica; "?" is a size that
 * may differ from batch to batch. A source of the host's is asked for its first element.
 *
 * Context  Strategy, concurrent.
 * Blocks   While the source makes an element.
 * Owns     *out_spec is the caller's: dist_value_release().
 * Errors   As dist_iterator_next(): OUT_OF_RANGE where a source of the host's has no element.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_element_spec(dist_dataset *dataset, dist_value **out_spec);

/**
 * Takes what was made of all batches so far (in the first call: the initial state) and the next batch, and hands over
 * what they are together, with its reference: maybe the state it was given, retained.
 */
typedef dist_status (*dist_dataset_reduce_fn)(dist_value *state, dist_value *batch, dist_value **out_state,
                                              void *user_data);

/**
 * Makes one value of a whole pass.
 *
 *     state = initial;   for each batch: state = fn(state, batch)
 *
 * Context  Strategy, concurrent.
 * Blocks   Until the pass is over.
 * Owns     *out_state is the caller's: dist_value_release(). initial may be NULL, and then *out_state too.
 * Errors   INVALID_ARGUMENT NULL. any: as dist_iterator_create(), dist_iterator_next() (but for OUT_OF_RANGE) or fn.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_reduce(dist_dataset *dataset, dist_value *initial,
                                                        dist_dataset_reduce_fn fn, void *user_data,
                                                        dist_value **out_state);

/**
 * Reads what each of the dataset's workers would read in one pass, and checks that every example of the source comes
 * exactly once. Of a source of the host's all elements are made, but not more than `limit` (0: no limit).
 *
 * Context  Strategy, concurrent.
 * Blocks   Until the source is read num_workers times.
 * Owns     Nothing.
 * Errors   DATA_LOSS      an example that no worker gets, or several: dist_last_error() names the first, and whose.
 *          UNIMPLEMENTED  the dataset is of a function, which alone knows what it would make for other workers.
 *          any            as dist_iterator_next().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_check_shards(dist_dataset *dataset, int64_t limit);

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
 * Errors   INVALID_ARGUMENT     NULL, a handle of something else; global_batch_size is 0 and a row has no dimension that
 *                               could be cut, or rows of different lengths.
 *          FAILED_PRECONDITION  a forked child; inside a replica function, where the dataset is for several.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create(dist_dataset *dataset, dist_iterator **out_iterator);

/** Where a pass is: plain numbers, to be kept wherever the program likes. */
typedef struct dist_position {
  uint32_t struct_size;
  int32_t reserved;
  int64_t pass;     /* its number: shuffled orders depend on it */
  int64_t elements; /* of the source, that are used up */
  int64_t examples; /* of the element after them, where one is cut into several batches */
  int64_t batches;  /* made of them */
} dist_position;
#define DIST_POSITION_INIT \
  { sizeof(dist_position), 0, 0, 0, 0, 0 }

/**
 * Where the next batch of a pass begins. Batches that are made ahead do not count.
 *
 * Context  Strategy, serialized.
 * Blocks   Never.
 * Owns     Nothing. out_position->struct_size says how much of it to write.
 * Errors   INVALID_ARGUMENT NULL, a struct_size that is none. FAILED_PRECONDITION a forked child.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_position(dist_iterator *iterator,
                                                           dist_position *out_position);

/**
 * Begins a pass in its middle: what follows is what would have followed there, also with another number of replicas or
 * another batch size. The dataset must have the same source and seed; where workers read different elements, the same
 * workers. Passes that dist_iterator_create() begins later are numbered on from there.
 *
 * Context  Strategy, concurrent.
 * Blocks   While files are read up to the position; a source of one callback is asked for that element at once.
 * Owns     *out_iterator is the caller's: dist_iterator_destroy().
 * Errors   As dist_iterator_create(); INVALID_ARGUMENT also for a position that the dataset has not, and for a number of it
 *          that is below 0 or above 2^62.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create_at(dist_dataset *dataset,
                                                            const dist_position *position,
                                                            dist_iterator **out_iterator);

/**
 * The next batch: the element's structure with a per-replica value at each leaf (one replica: a tensor). With
 * several tensors in memory it is a list of them, with one that one.
 *
 * Shape    [elements of that replica, ...]; 0 elements where a batch was smaller than R.
 * Order    –
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made; in a merge function at most until what ends the run.
 * Owns     *out_batch is the caller's: dist_value_release().
 * Errors   OUT_OF_RANGE      the pass is over; again on every further call.
 *          INVALID_ARGUMENT  NULL; elements of a batch differ; an element is a scalar that cannot be split.
 *          FAILED_PRECONDITION  a forked child; inside a replica function, where the dataset is for several.
 *          any               what the source returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next(dist_iterator *iterator, dist_value **out_batch);

/**
 * dist_iterator_next() whose end is no error (TensorFlow: get_next_as_optional): at the end *out_batch becomes NULL.
 *
 * Shape    As dist_iterator_next().
 * Order    –
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made.
 * Owns     *out_batch is the caller's: dist_value_release().
 * Errors   As dist_iterator_next(), but for OUT_OF_RANGE.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next_optional(dist_iterator *iterator,
                                                                dist_value **out_batch);

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
  /* how long all others, all there, waited for it: the mean of those times, and the longest */
  int64_t mean_late_ns;
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

/**
 * Writes as text who reads what of a dataset: its source, how batches are made of it, what of them this worker and each
 * of its replicas get, and what is lost at the end.
 *
 * Context  Any, concurrent.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_explain(dist_dataset *dataset, dist_text_fn fn,
                                                         void *user_data);

/**
 * Writes a value as text, on one line, the same on every machine and in every locale:
 *
 *     a tensor            f32 1.5      i64[2, 2] [[1, 2], [3, 4]]      bool[2, 0] []
 *     distributed         PerReplica: 0: f32 1, 1: f32 2     Mirrored: 0: ..., 1: ...
 *     a variable          as dist_variable_describe()
 *     list, tuple, dict   [f32 1, None]      (f32 1, "text")      {"loss": f32 1}
 *     composites          IndexedSlices(values: ..., indices: ..., dense_shape: ...), Ragged(...), Sparse(...)
 *     the host's pointer  Object
 *
 * A distributed value inside another value stands in braces. Numbers are the shortest that read back as the same bits.
 * Of more than 1,000 elements, or items, each dimension shows the first three and the last three.
 *
 * Context  Any, concurrent; a variable's copies are read as dist_variable_describe() reads them.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_describe(const dist_value *value, dist_text_fn fn,
                                                        void *user_data);

/**
 * Writes a variable's copies as text, on one line, as dist_value_describe() does:
 *
 *     MirroredVariable: 0: "w" f32[2] [1, 2], 1: "w/replica_1" f32[2] [1, 2]
 *
 * SyncOnReadVariable where it is synchronized on reading; AggregatingVariable with the one copy of central storage;
 * Variable where the strategy is one-device or the default.
 *
 * It takes no turn among the strategy's runs: while a run or an assignment writes the variable, the numbers may be of
 * before and of after it, in one copy too, as may the halves of one number. dist_variable_read() waits for its turn.
 *
 * Context  Any, concurrent; the copies are read without waiting for who writes them.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_describe(const dist_variable *variable, dist_text_fn fn,
                                                           void *user_data);

/** Where the copies of a variable are no longer equal. */
typedef struct dist_drift {
  uint32_t struct_size;
  /* that were compared; 0: the variable is synchronized on reading, its copies need not be equal */
  int32_t num_copies;
  int32_t replica;          /* whose copy differs from most others'; -1: all are equal */
  int32_t expected_replica; /* the first whose copy has what most have; -1: all are equal */
  int64_t element;          /* the first that differs, counted row-major; -1: all are equal */
} dist_drift;
#define DIST_DRIFT_INIT \
  { sizeof(dist_drift), 0, 0, 0, 0 }

/**
 * Whether the copies of a variable are still equal, as they are where every replica computed the same. At the first
 * element that differs, what most copies have counts as right (a tie: what the lowest replica has), and the lowest
 * replica that has something else is reported.
 *
 * Bits are compared: -0 is not 0. But every NaN equals every NaN, and every true bool every true one.
 *
 * Context  Strategy, serialized for a variable; also inside a merge function.
 * Blocks   Until it is done (oneTBB shares the work on large variables).
 * Owns     Nothing. out_drift may be NULL; else its struct_size says how much of it to write. It is written on DIST_OK
 *          and on DATA_LOSS.
 * Errors   DATA_LOSS            the copies differ. dist_last_error_info() has the replica, the variable's name as tag, and
 *                               the two elements as expected and received.
 *          INVALID_ARGUMENT     NULL, a struct_size that is none, another strategy's variable.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_variable_check_drift(dist_strategy *strategy,
                                                              dist_variable *variable, dist_drift *out_drift);

/* ==== 12. Metrics and losses ======================================================================== */
/*
 * A metric's state is synchronized on reading: each replica adds to its own copy and waits for nobody; the result is
 * made of all copies. It has one copy a replica under every strategy, central storage too.
 */

/**
 * Makes a metric without any update.
 *
 *     DIST_METRIC_SUM       sum of w * x over all updates, all replicas and all elements
 *     DIST_METRIC_MEAN      that, divided by the sum of w
 *     DIST_METRIC_ACCURACY  MEAN of x = 1 where prediction and label are equal, else x = 0
 *
 * Context  Strategy, concurrent.
 * Blocks   Never.
 * Owns     The name (for messages; NULL: that of the kind, "mean") is copied. *out_metric is the caller's:
 *          dist_metric_destroy().
 * Errors   INVALID_ARGUMENT     NULL, no such kind.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_metric_create(dist_strategy *strategy, int32_t kind,
                                                       const char *name, dist_metric **out_metric);

/**
 * Adds a batch to this replica's copy.
 *
 * Shape    values: any; no element is fine. labels: NULL but for ACCURACY; there the predictions' shape, or values has
 *          one dimension more, which holds a score for each class: then the prediction is the index of the largest (the
 *          first of equals; a NaN is never it). weights: NULL (all 1), a scalar, or of the shape of what is weighted,
 *          where a dimension may be 1 or the last one missing: one weight for all elements along it. Numbers of any
 *          dtype but complex64.
 * Order    None: elements and products w * x are taken as f64 and added exactly.
 * Context  Replica; no meeting: replicas may update as often as they like.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL, shapes that do not fit, complex64, a label that is missing or too much,
 *                               another strategy's metric. Nothing is added then.
 *          FAILED_PRECONDITION  not inside this replica's function.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_metric_update(dist_replica *replica, dist_metric *metric,
                                                       const dist_tensor *values, const dist_tensor *labels,
                                                       const dist_tensor *weights);

/**
 * The metric over all updates of all replicas since it was made or reset; 0 for a MEAN or ACCURACY without weight.
 *
 *     *out_result = round(exact sum over r of total[r])      (divided by round(exact sum over r of weight[r]))
 *
 * The bits depend on what was added alone, not on who added it, in which order, or on how many replicas there are.
 *
 * Context  Strategy, serialized for a metric: after a run, or inside a merge function.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL, another strategy's metric.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_metric_result(dist_strategy *strategy, dist_metric *metric,
                                                       double *out_result);

/**
 * Forgets all updates of all replicas.
 *
 * Context  Strategy, serialized for a metric: between runs, or inside a merge function.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   As dist_metric_result().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_metric_reset(dist_strategy *strategy, dist_metric *metric);

/**
 * A DIST_METRIC_...; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_metric_kind(const dist_metric *metric);

/**
 * The metric's name; "" for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_metric_name(const dist_metric *metric);

/**
 * The variable that holds a metric's state, for checkpoints: loaded with any number of replicas and any strategy, it gives
 * the same result to the bit, and goes on from there. Its elements are libdist's affair. NULL for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the metric is.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_variable *dist_metric_variable(const dist_metric *metric);

/**
 * Ends a metric. NULL is fine.
 *
 * Context  Any, serialized; not while a run uses it.
 * Blocks   Never.
 * Owns     Takes the metric.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_metric_destroy(dist_metric *metric);

/**
 * A replica's share of the loss (TensorFlow: tf.nn.compute_average_loss); the sum over the replicas is the average over
 * the global batch.
 *
 *     *out = sum over i of w[i] * loss[i]  / global_batch_size
 *
 * Where global_batch_size is 0 it is the size of the loss's first dimension times R; an empty batch gives 0.
 *
 * Shape    per_example_loss: one dimension or more, of f16, bf16, f32 or f64. sample_weight: NULL or as in
 *          dist_metric_update(). out: a scalar of the loss's dtype.
 * Order    None: w * loss is taken as f64 and added exactly; the sum is rounded to f64, divided, rounded to the dtype.
 * Context  Replica. With a global_batch_size replica may be NULL: then anywhere.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL, a scalar loss, another dtype, shapes that do not fit, a negative size.
 *          FAILED_PRECONDITION  not inside this replica's function; also where replica is NULL, the cross-replica
 *                               context's dist_get_replica(), and there is no global_batch_size.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_average_loss(dist_replica *replica,
                                                      const dist_tensor *per_example_loss,
                                                      const dist_tensor *sample_weight,
                                                      int64_t global_batch_size, dist_tensor *out);

/**
 * A replica's share of a loss that every replica has whole (TensorFlow: tf.nn.scale_regularization_loss).
 *
 *     *out = sum over i of loss[i]  / R
 *
 * Shape    loss: any, of f16, bf16, f32 or f64. out: a scalar of its dtype.
 * Order    As dist_average_loss().
 * Context  Replica.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL loss or out, another dtype.
 *          FAILED_PRECONDITION  not inside this replica's function; also where replica is NULL, the cross-replica
 *                               context's dist_get_replica().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_scale_regularization_loss(dist_replica *replica,
                                                                   const dist_tensor *loss, dist_tensor *out);

/* ==== 13. Scopes ==================================================================================== */
/*
 * Every function of libdist is told its strategy or replica. For programs that would rather not hand them around, a
 * thread knows which it is with: tf.distribute's current strategy. All of it is the calling thread's alone, and a
 * strategy is in force on the threads that have entered its scope, no others.
 *
 * Outside of scopes and functions a thread is replica 0 of a default strategy of its own, made at the first question
 * and ended with the thread. Being with a default strategy is no different from being outside.
 */

/**
 * From now on this thread is in the strategy's scope, and in the cross-replica context. The same strategy's scope may
 * be entered again; each entry has its exit. Inside, functions of other strategies are refused.
 *
 * Context  Strategy; inside a replica function only scopes of, and in those of, default strategies.
 * Blocks   Never.
 * Owns     Nothing: exit before the strategy is destroyed. A function of a run or merge that returns inside a scope
 *          has left it.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  inside another strategy's scope or function; inside a replica function; a forked
 *                               child.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_scope_enter(dist_strategy *strategy);

/**
 * Leaves the scope that this thread has entered last.
 *
 * Context  The thread that entered, in the same function.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  the scope entered last is not this strategy's.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_scope_exit(dist_strategy *strategy);

/**
 * Makes a strategy this thread's own outside scopes (TensorFlow: experimental_set_strategy): as in its scope, until
 * another is set. NULL, or a default strategy: none any more.
 *
 * Context  Outside scopes and functions of runs.
 * Blocks   Never.
 * Owns     Nothing: set another before the strategy is destroyed.
 * Errors   FAILED_PRECONDITION  inside a scope, a replica function or a merge function; a forked child.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_set_strategy(dist_strategy *strategy);

/**
 * The strategy of the scope or function that this thread is in, else that of dist_set_strategy(), else the thread's
 * default one.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed. The default one ends with the thread, and cannot be destroyed; values made from it live on.
 * Errors   NULL where the thread's default strategy could not be made: dist_last_error().
 * Since    0.1
 */
DIST_API dist_strategy *dist_get_strategy(void);

/**
 * 1 where dist_get_strategy() is not a default strategy, else 0.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_has_strategy(void);

/**
 * 1 in a merge function, in a scope, and after dist_set_strategy(); 0 in a replica function and outside of all.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_in_cross_replica_context(void);

/**
 * The replica whose function this thread is in; outside of all, the thread's default strategy's replica 0, which meets
 * nobody; NULL in the cross-replica context.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid inside the function; the default one's until the thread ends.
 * Errors   NULL also where the thread's default strategy could not be made: dist_last_error().
 * Since    0.1
 */
DIST_API dist_replica *dist_get_replica(void);

/* ==== 14. Checkpoints =============================================================================== */
/*
 * A checkpoint is one safetensors file, which many programs read: a tensor for each variable, under its name, and texts,
 * its metadata. libdist's own begin with "libdist.": where the input was ("libdist.position.pass", ...), and checksums,
 * which are compared when a file is read. "libdist.crc32:NAME" is the CRC-32 (zlib's) of the data of tensor NAME,
 * "libdist.crc32" that of the header, where 0 stands for its own 8 digits. Files of other programs have none and are read
 * all the same; a program that changes a file and keeps its metadata has to leave libdist's out.
 *
 * A file is written under another name in the same folder, ".dist-<16 hexadecimal digits>.tmp", brought to the disk, and
 * put in the place of the old one in one step: whenever a process ends or a machine stops, the old file or the new one is
 * there, whole. Who is killed may leave the other name behind: nothing reads it, and it can be deleted.
 */

typedef struct dist_checkpoint_options {
  uint32_t struct_size;
  int32_t reserved;         /* 0 */
  const char *const *names; /* of the n variables in the file; NULL: their own */
  dist_position *position;  /* saving: where the input is; loading: is set to where it was; NULL: left out */
  /* Saving: texts of the host's for the file, each under a key. Loading: not read, see
   * dist_checkpoint_metadata(). */
  const char *const *metadata_keys;
  const char *const *metadata_texts;
  size_t num_metadata;
} dist_checkpoint_options;
#define DIST_CHECKPOINT_OPTIONS_INIT \
  { sizeof(dist_checkpoint_options), 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_checkpoint_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_checkpoint_options_init(dist_checkpoint_options *options, uint32_t struct_size_bytes);

/**
 * Writes a checkpoint. Its file may be loaded with any number of replicas and any strategy.
 *
 *     for i in 0 .. n-1:   tensor names[i] of the file = what dist_variable_read() gives of variables[i]
 *
 * Data go to the file straight from the variable's memory; only a variable whose value is made of its copies is held
 * once more, one at a time. A file that is there is replaced, with access rights as for a new one; a symbolic link is
 * replaced itself, not what it points to.
 *
 * Context  Strategy, concurrent; nobody writes to the variables meanwhile. Also inside a merge function.
 * Blocks   Until the file is on the disk.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL; two variables of one name, a name or text that is not UTF-8, a key that is there
 *                               twice or begins with "libdist."; the path is a folder, FIFO or device; a variable that
 *                               has no one value, as dist_variable_read().
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable; a forked child.
 *          NOT_FOUND            the folder is not there.
 *          PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space, no memory, a file larger than the process may make one, which
 *          ends no process by SIGXFSZ), DATA_LOSS (a broken disk), UNAVAILABLE: in the system's words. What was at the path
 *          is still there, and nothing else is left.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_save(dist_strategy *strategy, const char *path,
                                                         dist_variable *const *variables, size_t n,
                                                         const dist_checkpoint_options *options);

/**
 * Gives variables the values that a file has for them. The file may have more tensors.
 *
 *     for i in 0 .. n-1:   dist_variable_assign(variables[i], DIST_ASSIGN, tensor names[i] of the file)
 *
 * The bits of the file come to every copy; of a sum over copies each gets its part. Everything is checked first, the
 * checksums too: on an error no variable has changed, unless the disk failed or somebody wrote into the file between its
 * two readings, when those from the named one on are unspecified.
 *
 * Context  Strategy, serialized for a variable. Also inside a merge function.
 * Blocks   Until all copies are written.
 * Owns     Nothing. options->position->struct_size says how much of it to write.
 * Errors   INVALID_ARGUMENT     NULL; a tensor of another dtype or shape than its variable; the path is a folder, FIFO
 *                               or device; a variable that takes no one value, as dist_variable_assign().
 *          NOT_FOUND            no such file, no such tensor in it, or no position.
 *          DATA_LOSS            not a safetensors file, or cut short, or changed: the message names the tensor.
 *          UNIMPLEMENTED        a tensor of the file has more than DIST_MAX_NDIM dimensions.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable; a forked child.
 *          PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE: in the system's words.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_load(dist_strategy *strategy, const char *path,
                                                         dist_variable *const *variables, size_t n,
                                                         const dist_checkpoint_options *options);

/**
 * Opens a safetensors file to see what is in it. If the file is replaced meanwhile, the old one is read on.
 *
 * Context  Strategy, concurrent.
 * Blocks   While the header is read.
 * Owns     *out_checkpoint is the caller's: dist_checkpoint_destroy(). It may outlive the strategy.
 * Errors   As dist_checkpoint_load(), of the file.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_open(dist_strategy *strategy, const char *path,
                                                         dist_checkpoint **out_checkpoint);

/**
 * How many tensors the file has; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API size_t dist_checkpoint_size(const dist_checkpoint *checkpoint);

/**
 * The name of tensor `index`, in the order of their data; "" for NULL, and where there is none.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the checkpoint is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_checkpoint_name(const dist_checkpoint *checkpoint, size_t index);

/**
 * A tensor's dtype and shape, without its data (NULL). dtype 0: one that libdist has not (8-bit floats and smaller).
 *
 * Shape    The tensor's.
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The shape is borrowed: valid while the checkpoint is.
 * Errors   INVALID_ARGUMENT  NULL.
 *          NOT_FOUND         no such tensor.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_spec(const dist_checkpoint *checkpoint, const char *name,
                                                         dist_tensor *out_spec);

/**
 * Reads a tensor.
 *
 * Shape    The tensor's.
 * Order    The file's bits.
 * Context  Any, concurrent.
 * Blocks   While it is read.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT    NULL.
 *          NOT_FOUND           no such tensor.
 *          UNIMPLEMENTED       a dtype that libdist has not.
 *          DATA_LOSS           not the data that were written.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_read(const dist_checkpoint *checkpoint, const char *name,
                                                         dist_value **out_value);

/**
 * How many metadata the file has, libdist's among them; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API size_t dist_checkpoint_num_metadata(const dist_checkpoint *checkpoint);

/**
 * The key of text `index`, in the order of the file; "" for NULL, and where there is none.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the checkpoint is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_checkpoint_metadata_key(const dist_checkpoint *checkpoint, size_t index);

/**
 * The text under a key; NULL where there is none, and for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the checkpoint is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const char *dist_checkpoint_metadata(const dist_checkpoint *checkpoint, const char *key);

/**
 * Closes the file. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Never.
 * Owns     Takes the checkpoint.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_checkpoint_destroy(dist_checkpoint *checkpoint);

/* ==== 15. Logical devices =========================================================================== */
/*
 * A replica may be made of several logical devices, which share its work. Three things say how, each by itself pure
 * arithmetic, with TensorFlow's answers:
 *
 *     topology            where devices are: positions (x, y, z, core) of a mesh, each device in a task
 *     device assignment   which of them are logical device 0, 1, ... of replica 0, 1, ...
 *     partition           which part of a tensor each logical device of a replica has
 *
 * For one replica on two cores of this host:
 *
 *     const int32_t block[] = {1, 1, 2, 1};
 *     dist_topology_from_host(NULL, &topology);
 *     dist_device_assignment_build(topology, block, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, &assignment);
 *
 * Coordinates are arrays of 4 int32_t, and arrays of coordinates flat and row-major. A coordinate of -1 is the last one
 * in its direction, -2 the one before it, as in Python; so are the indices of replicas and logical devices.
 */

typedef struct dist_topology_options {
  uint32_t struct_size;
  int32_t reserved;         /* 0 */
  dist_allocator allocator; /* all zero: malloc and free. Also of the assignments that are made with it */
} dist_topology_options;
#define DIST_TOPOLOGY_OPTIONS_INIT                \
  {                                               \
    sizeof(dist_topology_options), 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_topology_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_topology_options_init(dist_topology_options *options, uint32_t struct_size_bytes);

/**
 * Makes a topology by hand (TensorFlow: Topology(mesh_shape=..., device_coordinates=...)).
 *
 * Positions may be without a device: they are missing. Of two devices at one position the later one is there.
 *
 * Shape    mesh_shape: [rank], rank is 4. device_coordinates: [num_tasks, num_devices_per_task, rank]; NULL where there
 *          is no device.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Both arrays are copied. *out_topology is the caller's: dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    NULL, another rank, a size below 1, a negative number, coordinates outside the mesh, more
 *                              than DIST_MAX_MESH_POSITIONS positions or devices.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_create(const int32_t *mesh_shape, size_t rank,
                                                         const int32_t *device_coordinates, int32_t num_tasks,
                                                         int32_t num_devices_per_task,
                                                         const dist_topology_options *options,
                                                         dist_topology **out_topology);

/**
 * Makes a topology of what dist_topology_serialized() gave, here or in TensorFlow: a TopologyProto. Any bytes may come:
 * at most 16 MiB, and no more devices than DIST_MAX_MESH_POSITIONS.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The bytes are copied. *out_topology is the caller's: dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    NULL; no TopologyProto; one that dist_topology_create() would refuse, or with a negative
 *                              coordinate, or of another number of coordinates than its devices have.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_from_serialized(const void *bytes, size_t size_bytes,
                                                                  const dist_topology_options *options,
                                                                  dist_topology **out_topology);

/**
 * Makes a topology of the CPUs that this process may use (its affinity mask): what resolving, connecting to and
 * initializing a TPU system come to on a host.
 *
 *     x: package     y: NUMA domain in it     z: core in that     core: hardware thread of the core
 *
 * One task, 0, whose devices are the CPUs in the order of their coordinates. What the process may not use is left out,
 * and the rest counted from 0; positions are missing where one package, domain or core has fewer CPUs than another.
 * Without hwloc (dist_has_feature("numa")) every CPU is taken for a core of one package; dist_topology_explain() says so.
 * A strategy over an assignment of these devices keeps the thread of each on its CPU if it has DIST_PLACEMENT_CORES.
 *
 * Context  Any, concurrent.
 * Blocks   While hwloc looks at the machine: some milliseconds.
 * Owns     *out_topology is the caller's: dist_topology_destroy().
 * Errors   INVALID_ARGUMENT    NULL.
 *          UNAVAILABLE         the system does not say which CPUs there are.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_from_host(const dist_topology_options *options,
                                                            dist_topology **out_topology);

/**
 * Ends a topology for the caller; assignments made with it go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Never.
 * Owns     Takes the topology.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_topology_destroy(dist_topology *topology);

/**
 * The number of dimensions of the mesh, 4; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_topology_mesh_rank(const dist_topology *topology);

/**
 * The size of the mesh in each direction; NULL for NULL.
 *
 * Shape    [4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the topology is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const int32_t *dist_topology_mesh_shape(const dist_topology *topology);

/**
 * The number of tasks; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_topology_num_tasks(const dist_topology *topology);

/**
 * The number of devices of each task; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_topology_num_devices_per_task(const dist_topology *topology);

/**
 * Where each device is, as it was given; NULL for NULL, and where there is no device.
 *
 * Shape    [num_tasks, num_devices_per_task, 4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the topology is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const int32_t *dist_topology_device_coordinates(const dist_topology *topology);

/**
 * The number of positions without a device; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API size_t dist_topology_num_missing_devices(const dist_topology *topology);

/**
 * The positions without a device, row-major; NULL for NULL, and where there is none.
 *
 * Shape    [dist_topology_num_missing_devices(), 4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the topology is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const int32_t *dist_topology_missing_devices(const dist_topology *topology);

/**
 * The topology as a TopologyProto, in TensorFlow's bytes; one that was made of bytes has those. NULL for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the topology is. *out_size_bytes is written; it may be NULL.
 * Errors   None.
 * Since    0.1
 */
DIST_API const uint8_t *dist_topology_serialized(const dist_topology *topology, size_t *out_size_bytes);

/**
 * Which task the device at a position belongs to; -1 where it is missing.
 *
 * Shape    coordinates: [4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, coordinates outside the mesh.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_task_at(const dist_topology *topology,
                                                          const int32_t *coordinates, int32_t *out_task);

/**
 * Which device of its task is at a position; -1 where it is missing.
 *
 * Shape    coordinates: [4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   As dist_topology_task_at().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_device_at(const dist_topology *topology,
                                                            const int32_t *coordinates, int32_t *out_device);

/**
 * Which CPU, by the system's number, is the device at a position of dist_topology_from_host(); -1 where it is missing.
 *
 * Shape    coordinates: [4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     as dist_topology_task_at().
 *          FAILED_PRECONDITION  a topology whose devices are not this host's CPUs.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_cpu_at(const dist_topology *topology,
                                                         const int32_t *coordinates, int32_t *out_cpu);

/**
 * Writes the name of the device at a position, with an end mark: "/job:worker/task:0/device:TPU:1", or without a job
 * (NULL) "/task:0/device:TPU:1". The type is TensorFlow's; a missing device has the numbers -1.
 *
 * Shape    coordinates: [4]; out_name: `size_bytes` bytes
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL (job may be), coordinates outside the mesh, no room for the name.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_device_name_at(const dist_topology *topology,
                                                                 const int32_t *coordinates, const char *job,
                                                                 char *out_name, size_t size_bytes);

/**
 * Writes the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0".
 *
 * Shape    As dist_topology_device_name_at().
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   As dist_topology_device_name_at().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_host_name_at(const dist_topology *topology,
                                                               const int32_t *coordinates, const char *job,
                                                               char *out_name, size_t size_bytes);

/**
 * Writes what a topology is, and of a host's how that was found, and which CPU is where. Lines of "subject: words", for
 * people: the words may change in any version.
 *
 * Context  Any, concurrent.
 * Blocks   Never, but for fn.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_topology_explain(const dist_topology *topology, dist_text_fn fn,
                                                          void *user_data);

/**
 * Lays replicas out over a topology (TensorFlow: DeviceAssignment.build): each gets a block of computation_shape devices,
 * computation_stride apart in each direction; NULL: 1 everywhere.
 *
 *   - DIST_DEVICE_ORDER_MESH: the replicas' blocks fill a box that is as close to a cube as there is room, in which
 *     the core runs fastest, then x, y, z. Logical devices run through a block with the core fastest, then z, y, x.
 *   - DIST_DEVICE_ORDER_RING: replicas, and inside them chips, follow one another as neighbours in a ring. For blocks with
 *     all cores of their chips and without stride, and as many replicas as fit. Where a size above 1 is odd there
 *     is no such ring, and the order is x, y, z.
 *   - DIST_DEVICE_ORDER_AUTO: RING where it may be asked for, else MESH. Any other number: MESH, as in TensorFlow.
 *   - Where devices are missing, whatever the order: replicas take devices task by task.
 *
 * Shape    computation_shape, computation_stride: [rank], rank is 4; not read where both are NULL.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_assignment is the caller's: dist_device_assignment_destroy(). It holds the topology.
 * Errors   INVALID_ARGUMENT    NULL topology or out_assignment; another rank; a number below 1; blocks that do not fit the
 *                              mesh, or not so often; a negative number of replicas; RING where it may not be asked for;
 *                              where devices are missing, a stride, no replica, or fewer devices than are wanted.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_build(
    dist_topology *topology, const int32_t *computation_shape, const int32_t *computation_stride, size_t rank,
    int32_t num_replicas, int32_t device_order, dist_device_assignment **out_assignment);

/**
 * Makes an assignment by hand (TensorFlow: DeviceAssignment(topology, core_assignment)). A device may be given to several,
 * and may be one that is missing.
 *
 * Shape    core_assignment: [num_replicas, num_logical_devices, rank], rank is 4; NULL where that is empty.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     The array is copied. *out_assignment is the caller's: dist_device_assignment_destroy(). It holds the topology.
 * Errors   INVALID_ARGUMENT    NULL, another rank, a negative number, coordinates outside the mesh, more devices than
 *                              DIST_MAX_MESH_POSITIONS.
 *          RESOURCE_EXHAUSTED  no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_create(dist_topology *topology,
                                                                  const int32_t *core_assignment,
                                                                  int32_t num_replicas,
                                                                  int32_t num_logical_devices, size_t rank,
                                                                  dist_device_assignment **out_assignment);

/**
 * One replica of one logical device, at (0, 0, 0, 0) (TensorFlow: SINGLE_CORE_ASSIGNMENT).
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     *out_assignment is the caller's: dist_device_assignment_destroy(). It holds the topology.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status
dist_device_assignment_create_single(dist_topology *topology, dist_device_assignment **out_assignment);

/**
 * Ends an assignment for the caller. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Never.
 * Owns     Takes the assignment.
 * Errors   None.
 * Since    0.1
 */
DIST_API void dist_device_assignment_destroy(dist_device_assignment *assignment);

/**
 * The topology that it was made with; NULL for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the assignment is.
 * Errors   None.
 * Since    0.1
 */
DIST_API dist_topology *dist_device_assignment_topology(const dist_device_assignment *assignment);

/**
 * The number of replicas; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_device_assignment_num_replicas(const dist_device_assignment *assignment);

/**
 * The number of logical devices of each replica (TensorFlow: num_cores_per_replica); 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_device_assignment_num_logical_devices(const dist_device_assignment *assignment);

/**
 * Where each logical device of each replica is; NULL for NULL, and where there is none.
 *
 * Shape    [num_replicas, num_logical_devices, 4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the assignment is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const int32_t *dist_device_assignment_core_assignment(const dist_device_assignment *assignment);

/**
 * Where one logical device is.
 *
 * Shape    out_coordinates: [4]
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, no such replica or logical device.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status
dist_device_assignment_coordinates(const dist_device_assignment *assignment, int32_t replica,
                                   int32_t logical_device, int32_t *out_coordinates);

/**
 * Which device of its task a logical device is (TensorFlow: tpu_ordinal); -1 where it is missing.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   As dist_device_assignment_coordinates().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_device(const dist_device_assignment *assignment,
                                                                  int32_t replica, int32_t logical_device,
                                                                  int32_t *out_device);

/**
 * Writes a logical device's name (TensorFlow: tpu_device), as dist_topology_device_name_at() does.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL (job may be), no such replica or logical device, no room for the name.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_device_name(
    const dist_device_assignment *assignment, int32_t replica, int32_t logical_device, const char *job,
    char *out_name, size_t size_bytes);

/**
 * Writes the name of a logical device's host (TensorFlow: host_device), as dist_topology_host_name_at() does.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   As dist_device_assignment_device_name().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_host_name(const dist_device_assignment *assignment,
                                                                     int32_t replica, int32_t logical_device,
                                                                     const char *job, char *out_name,
                                                                     size_t size_bytes);

/**
 * Which replicas have their logical device `logical_device` in a task, ascending. These two are no indices from the end.
 *
 * Shape    out_replicas: [capacity]; *out_n is how many there are, which may be more.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL (out_replicas may be where capacity is 0), or there is none.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_assignment_lookup_replicas(
    const dist_device_assignment *assignment, int32_t task, int32_t logical_device, int32_t *out_replicas,
    size_t capacity, size_t *out_n);

/** Which part of a tensor each logical device of a replica has. */
typedef struct dist_partition {
  uint32_t struct_size;
  int32_t kind;         /* DIST_PARTITION_... */
  const int64_t *shape; /* of the tensor: [ndim]; -1: a size that is not known */
  size_t ndim;
  const int64_t *dimensions; /* SPLIT: into how many parts each dimension is split: [num_dimensions] */
  size_t num_dimensions;
  int32_t num_logical_devices; /* of a replica */
  int32_t logical_device;      /* ASSIGN: which of them has the tensor */
  int32_t uneven;              /* SPLIT: 1: sizes that do not divide are split as evenly as possible */
  int32_t spmd;                /* 1: one program runs on all logical devices, so that ASSIGN is refused */
} dist_partition;
#define DIST_PARTITION_INIT \
  { sizeof(dist_partition), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_partition. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_partition_init(dist_partition *partition, uint32_t struct_size_bytes);

/**
 * Whether a tensor can be partitioned so, by TensorFlow's checks in its order.
 *
 *     SPLIT    num_dimensions is ndim, and not 0; each known size is divisible by its dimension's parts (unless
 *              uneven); the parts are num_logical_devices in all
 *     ASSIGN   not spmd; 0 <= logical_device < num_logical_devices
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  one of these does not hold; NULL, an unknown kind, more than DIST_MAX_NDIM dimensions, a size
 *                            below -1, more elements than 64 bits count, num_logical_devices below 1.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_partition_check(const dist_partition *partition);

/**
 * What a logical device has of the tensor: size[i] elements from begin[i] on in dimension i.
 *
 * Under SPLIT it is the tile whose index is out_tile, where the last dimension's index runs fastest from one device to the
 * next. Part k of a size n in p parts has n / p elements, one more where k < n % p: that is at most one more than
 * any other part; parts come in order without gaps, and some are empty where n < p. Under ASSIGN the device has everything
 * or nothing, under REPLICATE everything.
 *
 * Shape    out_tile, out_begin, out_size: [ndim]. out_tile and out_elements (how many elements the shard has) may be NULL.
 *          What depends on an unknown size is -1.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  as dist_partition_check(); NULL (out_begin, out_size: only where ndim > 0); no such device.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_partition_shard(const dist_partition *partition,
                                                         int32_t logical_device, int64_t *out_tile,
                                                         int64_t *out_begin, int64_t *out_size,
                                                         int64_t *out_elements);

/* ---- Replicas of logical devices ---- */
/*
 * A strategy with DIST_STRATEGY_MESH (TensorFlow: TPUStrategy) has R replicas of D logical devices each: as many as its
 * device assignment says, else D is 1. It treats values, variables, input and reductions as the mirrored strategy does.
 * A replica's function runs on logical device 0; there it divides tensors over its devices, and runs functions on all
 * of them, which meet in collectives of their own:
 *
 *     dist_split_to_logical_devices(replica, image, parts, 4, NULL, &split);    a tensor, and who has which part of it
 *     dist_run_on_devices(replica, fn, NULL, args, NULL, NULL, &result);        fn(device d, shard d), on every device
 *
 * A logical device's handle is a dist_replica * as well, with dist_replica_id() the logical device: it has dist_parallel_for(),
 * and the collectives and works of section 6, among its replica's devices. What concerns whole replicas (merge calls,
 * assignments, metrics) is refused there; it may read variables: its replica's copy. With DIST_PLACEMENT_CORES, and
 * an assignment made from dist_topology_from_host(), each device's thread is kept on the CPU that the device is; the
 * caller's thread, which may be device 0 of replica 0, is never moved. Reports call the members logical devices,
 * and dist_error_info.logical_device is the culprit. dist_write_trace() and its like show replicas only.
 */

/**
 * How many logical devices each replica has: D. 1 for strategies of other kinds; 0 for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_strategy_num_logical_devices(const dist_strategy *strategy);

/**
 * The device assignment that the strategy was made with; NULL where there is none, or for NULL.
 *
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the strategy is.
 * Errors   None.
 * Since    0.1
 */
DIST_API const dist_device_assignment *dist_strategy_device_assignment(const dist_strategy *strategy);

typedef struct dist_split_options {
  uint32_t struct_size;
  int32_t
      uneven; /* 1: sizes that do not divide are split as evenly as possible, as dist_partition_shard() says */
} dist_split_options;
#define DIST_SPLIT_OPTIONS_INIT \
  { sizeof(dist_split_options), 0 }

/** As dist_strategy_options_init(), of dist_split_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_split_options_init(dist_split_options *options, uint32_t struct_size_bytes);

/**
 * Splits a tensor over the replica's logical devices (TensorFlow: experimental_split_to_logical_devices): logical device d
 * has the tile that dist_partition_shard() says. The result is a DIST_VALUE_SHARDED: it still reads as the whole
 * tensor, wherever a tensor does; its items, and dist_value_shard(), are the shards. Nothing is copied.
 *
 * Shape    value: a tensor of rank n, a sharded one (which is split anew), a variable (the replica's copy), or a nest of
 *          them: each leaf is split. Nothings stay. Each of its sizes is divisible by its number of parts, unless
 *          options->uneven; the product of the parts is D.
 * Context  Replica.
 * Blocks   Never.
 * Owns     The result keeps the tensor's memory. *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     as dist_partition_check(), in its order; NULL; a leaf that is no tensor.
 *          FAILED_PRECONDITION  not a DIST_STRATEGY_MESH; outside the replica's function; on a logical device.
 *          RESOURCE_EXHAUSTED   no memory.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_split_to_logical_devices(dist_replica *replica, dist_value *value,
                                                                  const int64_t *partition_dimensions,
                                                                  size_t n, const dist_split_options *options,
                                                                  dist_value **out_value);

/**
 * Gives a tensor to one logical device (TensorFlow: experimental_assign_to_logical_device); the others have nothing.
 *
 * Shape    value: as dist_split_to_logical_devices(), of any rank. 0 <= logical_device < D.
 * Context  Replica.
 * Blocks   Never.
 * Owns     As dist_split_to_logical_devices().
 * Errors   As dist_split_to_logical_devices(); INVALID_ARGUMENT also where the strategy's use_spmd_partitioning is 1.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_assign_to_logical_device(dist_replica *replica, dist_value *value,
                                                                  int32_t logical_device,
                                                                  dist_value **out_value);

/**
 * Gives a tensor to each logical device (TensorFlow: experimental_replicate_to_logical_devices): all see the same memory.
 *
 * Shape    value: as dist_split_to_logical_devices(), of any rank.
 * Context  Replica.
 * Blocks   Never.
 * Owns     As dist_split_to_logical_devices().
 * Errors   As dist_split_to_logical_devices().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_replicate_to_logical_devices(dist_replica *replica,
                                                                      dist_value *value,
                                                                      dist_value **out_value);

/**
 * How a DIST_VALUE_SHARDED is divided. `uneven` is 1 where the shards' sizes are not what an even split gives: then
 * dist_value_shard() knows them.
 *
 * Shape    out_partition->shape and ->dimensions are borrowed from the value.
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the value is.
 * Errors   INVALID_ARGUMENT  NULL, no sharded tensor, or struct_size is too small.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_partition(const dist_value *value,
                                                         dist_partition *out_partition);

/**
 * What a logical device has of a DIST_VALUE_SHARDED: a view into the whole, and where in it that begins.
 *
 * Shape    out_begin: [ndim]; it may be NULL. The view's shape and strides are borrowed from the value.
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Borrowed: valid while the value is.
 * Errors   INVALID_ARGUMENT  NULL, no sharded tensor, no such logical device.
 *          NOT_FOUND         the tensor is assigned to another logical device.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_value_shard(const dist_value *value, int32_t logical_device,
                                                     int64_t *out_begin, dist_tensor *out_tensor);

typedef struct dist_devices_options {
  uint32_t struct_size;
  int32_t reserved;   /* 0 */
  int64_t timeout_ns; /* of the whole run on devices; 0: none */
  /* how results belong together: none, one for all leaves, or one for each in the order of the nest (dictionaries by
   * key); NULL: as fits, which takes results of the first split argument's tiling for tiles also where each is whole: say
   * REPLICATE then. Their shape is not read. */
  const dist_partition *const *results;
  size_t num_results;
  dist_cancel *cancel; /* ends this run on devices, and no other; NULL: none */
} dist_devices_options;
#define DIST_DEVICES_OPTIONS_INIT \
  { sizeof(dist_devices_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_devices_options. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_devices_options_init(dist_devices_options *options, uint32_t struct_size_bytes);

/**
 * Calls a function on every logical device of the replica and waits for all of them.
 *
 *     for d in 0 .. D-1, at the same time:   result[d] = fn(device[d], shard(args, d), shard(kwargs, d))
 *     *out_result = join(result[0], ..., result[D-1])
 *
 * Wherever `args` has a sharded tensor, at any depth, device d finds its shard, or nothing (DIST_VALUE_NONE) of a tensor
 * that is assigned to another; all else it finds as it is. Results of the same structure are joined leaf by leaf:
 *
 *     all gave the same dist_value, or nothing    that
 *     options->results says how                   a tensor divided so; REPLICATE: they have equal bits;
 *                                                 ASSIGN: that device's, whatever the others gave
 *     one gave a tensor, the others nothing       assigned to that device
 *     tensors that tile as the first split in     split so; the sizes of tiles may be others than those of the
 *       args (then in kwargs) does                arguments, as long as tiles in line have equal ones
 *     tensors with equal bits                     replicated
 *
 * With one logical device its result is as it is. Tiles are copied into a new whole, on this replica's cores; the
 * result is a DIST_VALUE_SHARDED of views of it.
 * If a device fails, the others' pending and later collectives return ABORTED at once with its report; the result is the
 * status of the lowest device whose failure was its own. That is no failure of the replica unless its function returns
 * it. A failure of another replica, the end of the run's deadline, and dist_strategy_cancel() end it too.
 *
 * Order    As dist_all_reduce(), by logical device: the same bits in every run.
 * Context  Replica; not on a logical device. Until it returns, the replica's own handle is refused everywhere.
 * Blocks   Until every device's function has returned, or options->timeout_ns is over; then as dist_run_values().
 * Owns     As dist_run_values().
 * Errors   INVALID_ARGUMENT     NULL replica or fn; args is no list or tuple, kwargs no dictionary; options->results;
 *                               results that differ in structure, or do not belong together.
 *          FAILED_PRECONDITION  not a DIST_STRATEGY_MESH; outside the replica's function; on a logical device; devices
 *                               are still inside after an earlier deadline.
 *          DEADLINE_EXCEEDED    options->timeout_ns is over.
 *          CANCELLED            options->cancel; the cancel object of the run of replicas; dist_strategy_cancel().
 *          any                  what the first failing device returned.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_run_on_devices(dist_replica *replica, dist_values_fn fn,
                                                        void *user_data, dist_value *args, dist_value *kwargs,
                                                        const dist_devices_options *options,
                                                        dist_value **out_result);

/**
 * The replica that a logical device is part of; -1 for the handle of a replica itself, or NULL.
 *
 * Context  Replica; a logical device.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   None.
 * Since    0.1
 */
DIST_API int32_t dist_device_replica(const dist_replica *device);

/**
 * Where in the topology's mesh a logical device is.
 *
 * Shape    out_coordinates: [4]
 * Context  Replica; a logical device.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  a replica's handle; the strategy has no device assignment.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_coordinates(dist_replica *device, int32_t *out_coordinates);

/**
 * Where along a named axis of its replica's devices a logical device is: dist_strategy_options.axes, whose last runs
 * fastest. Without them the axes are "x", "y", "z" and "core", where replicas are blocks of the mesh in which the core
 * runs fastest (DIST_DEVICE_ORDER_MESH); else one axis, "device".
 *
 * Context  Replica; a logical device.
 * Blocks   Never.
 * Owns     Nothing. out_size may be NULL.
 * Errors   INVALID_ARGUMENT     NULL; no such axis, and the message has those that there are.
 *          FAILED_PRECONDITION  a replica's handle.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_axis(dist_replica *device, const char *name,
                                                     int32_t *out_index, int32_t *out_size);

/**
 * The group of the logical devices that differ from this one in their place along an axis alone, for
 * dist_collective_options.group. The place along the axis is the rank in it.
 *
 * Context  Replica; a logical device.
 * Blocks   Never.
 * Owns     The strategy's: not to be destroyed.
 * Errors   As dist_device_axis().
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_device_axis_group(dist_replica *device, const char *name,
                                                           const dist_group **out_group);

/* ---- Between logical devices ---- */

/** How far around its tile of a tensor a member sees. An array may be NULL: zeros. */
typedef struct dist_halo {
  uint32_t struct_size;
  int32_t ndim;
  const int64_t *parts; /* [ndim]: into how many tiles each dimension is cut; not NULL. Their product is R */
  const int64_t *low;   /* [ndim]: how many elements before the tile */
  const int64_t *high;  /* [ndim]: how many elements behind it */
  const int32_t *edges; /* [ndim]: DIST_EDGE_...: what is beyond the edges of the whole */
} dist_halo;
#define DIST_HALO_INIT \
  { sizeof(dist_halo), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_halo. Context Any. Blocks never. Since 0.1. */
DIST_API void dist_halo_init(dist_halo *halo, uint32_t struct_size_bytes);

/**
 * A tile of a tensor with what surrounds it, out of the tiles of all members: rank r has the tile whose index is r's place
 * in a box of the shape `parts`, the last one running fastest, as dist_split_to_logical_devices() deals them.
 *
 *     w = the whole tensor; b, s = begin and size of this tile in it
 *     out[i] = w[b - low + i]   for each dimension, 0 <= i < low + s + high, where beyond w the edge says what w is
 *
 * A halo may be wider than the tiles beside it. With DIST_EDGE_NONE `out` ends where w does.
 *
 * Shape    in, out: ndim >= 1 dimensions, of one dtype, any strides; out of the sizes above. Tiles in line have equal
 *          sizes there, else any. out overlaps no member's in.
 * Order    Bits are copied.
 * Context  Replica; a logical device. Collective. Of `options` group, tag and timeout_ns count; out_work is NULL.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for parts whose product is not R, a negative width, an unknown
 *          edge, tiles that do not fit together, or an out of the wrong sizes.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_halo_exchange(dist_replica *device, const dist_tensor *in,
                                                       const dist_halo *halo, dist_tensor *out,
                                                       const dist_collective_options *options);

/**
 * What a member has of a tensor under one partition, out of what all have of it under another: any two kinds.
 *
 *     w = the whole tensor, of which in[p] is what dist_partition_shard(from, p) says
 *     out[r] = what dist_partition_shard(to, r) says
 *
 * Where all have everything (REPLICATE) each takes its own. From a replica, dist_split_to_logical_devices() and its like
 * divide a sharded tensor anew without moving anything.
 *
 * Shape    from, to: of one shape, whose sizes are known, over R logical devices. in and out: the shards' shapes, any
 *          strides; NULL where a member has nothing. out overlaps no member's in.
 * Order    Bits are copied.
 * Context  Replica; a logical device. Collective. Of `options` group, tag and timeout_ns count; out_work is NULL.
 * Blocks   As dist_all_reduce().
 * Owns     Nothing; buffers are used until return.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also as dist_partition_check(), and for a shard of another shape.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reshard(dist_replica *device, const dist_partition *from,
                                                 const dist_partition *to, const dist_tensor *in,
                                                 dist_tensor *out, const dist_collective_options *options);

/**
 * How many bytes dist_reshard() brings to a logical device from others; -1 as device: to all of them together.
 *
 * Shape    As dist_reshard().
 * Order    –
 * Context  Any, concurrent.
 * Blocks   Never.
 * Owns     Nothing.
 * Errors   INVALID_ARGUMENT  NULL, as dist_partition_check(), no dtype, no such device, partitions that dist_reshard()
 *                            would refuse, more bytes than 64 bits count.
 * Since    0.1
 */
DIST_API DIST_NODISCARD dist_status dist_reshard_bytes(const dist_partition *from, const dist_partition *to,
                                                       dist_dtype dtype, int32_t logical_device,
                                                       int64_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif /* DIST_DIST_H */
