/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Strategies: R replicas, their threads, and how these work together. dist_strategy_create() makes one, with options or
 * without. A strategy of the host's own is a table of functions, which comes last.
 */
#ifndef DIST_STRATEGY_H
#define DIST_STRATEGY_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A direction in which the logical devices of a replica lie, and how many of them do; the product of all is D. */
typedef struct dist_mesh_axis {
  const char *name;
  int32_t size;
} dist_mesh_axis;

/** What an executor is to call: task(task_data). */
typedef void (*dist_task_fn)(void *task_data);

/**
 * Has task(task_data) called, once and on any thread, now or at any later time, also after the strategy has ended. Returns 0;
 * or anything else where it will not be called, and the loop does without. It is called on the thread that begins a loop, for
 * each thread that may help, and must not wait for the task to end. C++ exceptions must not leave it.
 */
typedef int32_t (*dist_execute_fn)(dist_task_fn task, void *task_data, void *user_data);

/**
 * The host's own threads for loops, in place of oneTBB's: dist_parallel_for() in replicas, and what is reduced, gathered,
 * assigned and loaded from outside. Whoever begins a loop takes part in it and never waits for a task that has not begun, so
 * that an executor that is busy, or gives only threads that are in such loops themselves, makes it slower and nothing else.
 * The bits of results are the same.
 */
typedef struct dist_executor {
  uint32_t struct_size;
  int32_t num_threads; /* how many help a loop at most, beside the one that begins it: 1 to 65535 */
  dist_execute_fn execute;
  void *user_data; /* used until the strategy has ended */
} dist_executor;
#define DIST_EXECUTOR_INIT \
  { sizeof(dist_executor), 0, 0, 0 }

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
  const struct dist_communication_options *communication; /* its timeout counts before timeout_ns */
  dist_cross_device *cross_device;                        /* who reduces values from outside; NULL: DEFAULT */
  const struct dist_strategy_functions *functions;        /* of the host's own; copied; kind is then 0 */
  void *functions_user_data;                              /* used until the strategy has ended */
  /* MESH: which devices are whose, and so how many replicas and logical devices there are; kept */
  const dist_device_assignment *device_assignment;
  const dist_mesh_axis *axes; /* MESH: of a replica's logical devices, the last running fastest; copied */
  size_t num_axes;            /* 0: the default, see dist_device_axis() */
  /* MESH: 1: one program for all devices: dist_assign_to_logical_device() is refused */
  int32_t use_spmd_partitioning;
  int32_t reform; /* MULTI_WORKER_MIRRORED: DIST_REFORM_... */
  /* of each library thread; 0: the system's default; else 256 KiB to 1 TiB. What collectives take:
     dist_replica_enter() */
  int64_t stack_size_bytes;
  int64_t async_bytes; /* most that queued asynchronous collectives may take; 0: see work.h */
  /* what describes the cluster, for dist_strategy_cluster_resolver(); held. MULTI_WORKER_MIRRORED: where the strategy
     is in it, PARAMETER_SERVER: which servers it has, and NULL is TF_CONFIG; every other kind stays of one process */
  dist_cluster_resolver *cluster_resolver;
  /* MULTI_WORKER_MIRRORED: how the other workers are reached: dist_network_create(); held. NULL: as transport says */
  dist_network *network;
  const int32_t
      *replicas_of_workers; /* MULTI_WORKER_MIRRORED: how many each has; NULL: all as many as this one */
  size_t num_workers;       /* how many workers these are of; 0: as if it were NULL */
  /* DIST_NUMERICS_... of what its replicas reduce where a call's own options do not say, and of what is reduced from
     outside: dist_reduce() and the like, assignments to variables, and what reads them */
  int32_t numerics;
  int32_t transport; /* MULTI_WORKER_MIRRORED: DIST_TRANSPORT_..., where network is NULL */
  /* MULTI_WORKER_MIRRORED: most of the elements of tensors on their way to and from this worker at a time, in bytes; 0:
     64 MiB. What is larger goes in pieces, with the same bits; the least of all workers' counts */
  int64_t staging_bytes;
  /* where its threads may be, by the system's numbers: library threads, of replicas and of logical devices, those of
     dist_submit(), and oneTBB's while they help; not the host's, which stay where they are, nor those of gRPC and Gloo.
     DIST_PLACEMENT_CORES chooses among them, and num_replicas 0 counts them. Copied. Each is in the affinity mask of the
     calling thread, or of the process's first one. NULL: the calling thread's mask */
  const int32_t *cpus;
  size_t num_cpus; /* 0: as if it were NULL */
  /* whose threads its runs and requests take, as other strategies' do; held. NULL: they begin whatever others do */
  dist_budget *budget;
  const dist_executor *executor; /* of the host's, for loops; copied. NULL: oneTBB */
  /* DIST_THREADS_HOST: 1: oneTBB's threads may help, with loops and asynchronous collectives, and make batches ahead, as
     with other strategies; 0: nothing starts a thread but what asks for it by an option of its own */
  int32_t helper_threads;
  /* 1: a thread of the host's that is a replica (dist_run()'s caller, too) and keeps meeting another replica on its CPU
     moves to one that no replica is on, of its own affinity mask and of cpus; the mask stays as it is: dist_replica_enter().
     0: it never moves; dist_explain() says how often it might have. Not with DIST_THREADS_LIBRARY */
  int32_t move_host_threads;
  /* how many events the flight recorder keeps of each replica (inspect.h), rounded up to a power of two: 1 to 2^20. 0:
     1,024. Each takes 128 bytes of address space now, and of memory once it is written */
  int32_t recorded_events;
  int32_t reserved2; /* 0 */
} dist_strategy_options;
#define DIST_STRATEGY_OPTIONS_INIT                                                                           \
  {                                                                                                          \
    sizeof(dist_strategy_options), 0, 0, 0, 0, 0, 0, {0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                 \
  }

/**
 * Sets all fields to their defaults, and struct_size to `struct_size_bytes`: the size that the caller was
 * compiled with, sizeof(dist_strategy_options). NULL is ignored, and so is a size that no version has (below 4 or above
 * 4,096 bytes). Of options whose size is no multiple of their alignment, the bytes behind the last such multiple are not read.
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
 * Blocks   Until the threads are made.
 * Owns     The caller owns *out_strategy: dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT    out_strategy is NULL, an option is out of its range, a device has no name, or one that
 *                              another replica has, or an option from the future is set (struct_size is larger and
 *                              the rest is not zero).
 *          FAILED_PRECONDITION this is a forked child of the process that made the budget.
 *          RESOURCE_EXHAUSTED  no memory, or the system gives no further thread. Nothing is left behind.
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
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_destroy(dist_strategy *strategy);

/**
 * Ends the run that is under way: every replica that waits in a collective, now or later in that run,
 * returns CANCELLED, and so does dist_run() once the replica functions are back. No run: nothing happens. Of host
 * threads, those that have left a run to which others have not come return at once.
 *
 * Context  Any thread, concurrent; also from inside a replica.
 * Errors   INVALID_ARGUMENT  NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cancel(dist_strategy *strategy);

/** How many replicas are in sync: R. 0 for NULL. */
DIST_API int32_t dist_strategy_num_replicas(const dist_strategy *strategy);

/**
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
  dist_reduce_values_fn reduce;
  dist_broadcast_values_fn broadcast;
  dist_gather_values_fn gather;
} dist_strategy_functions;
#define DIST_STRATEGY_FUNCTIONS_INIT \
  { sizeof(dist_strategy_functions), 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_strategy_functions. */
DIST_API void dist_strategy_functions_init(dist_strategy_functions *functions, uint32_t struct_size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* DIST_STRATEGY_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_STRATEGY_EXPERIMENTAL_H)
#define DIST_STRATEGY_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As dist_strategy_options_init(), of dist_executor. */
DIST_API void dist_executor_init(dist_executor *executor, uint32_t struct_size_bytes);

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
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_shutdown(dist_strategy *strategy, int64_t timeout_ns);

/** How values and variables are placed: a DIST_STRATEGY_...; -1 for NULL. */
DIST_API int32_t dist_strategy_kind(const dist_strategy *strategy);

/**
 * The name of a replica's device, in full: "/job:localhost/replica:0/task:0/device:CPU:1". It is a name for the place
 * of a replica, whatever its type says: what runs is a host thread, and all memory is the host's.
 *
 * Owns     *out_name is the strategy's.
 * Errors   INVALID_ARGUMENT     NULL, or replica_id is not in 0 .. R-1.
 *          FAILED_PRECONDITION  the default strategy, which names no devices.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_device(const dist_strategy *strategy, int32_t replica_id,
                                                         const char **out_name);

/**
 * As dist_strategy_device(), of the devices that variables are on: one for central storage, else the replicas'.
 *
 * Owns     *out_name is the strategy's.
 * Errors   INVALID_ARGUMENT     NULL, or index is not below dist_strategy_properties.num_parameter_devices.
 *          FAILED_PRECONDITION  the default strategy.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_parameter_device(const dist_strategy *strategy,
                                                                   int32_t index, const char **out_name);

/**
 * Writes a device's name in full, as dist_strategy_device() gives it; what `name` leaves out is as in CPU:0.
 *
 * Errors   INVALID_ARGUMENT  NULL, no device's name, a device of another process, or size_bytes is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_canonical_device(const char *name, char *out_name,
                                                          size_t size_bytes);

/** What a strategy is, in TensorFlow's words (of tf.distribute.StrategyExtended); flags are 0 or 1. */
typedef struct dist_strategy_properties {
  uint32_t struct_size;
  int32_t kind;         /* DIST_STRATEGY_... */
  int32_t num_replicas; /* of all workers */
  int32_t num_parameter_devices;
  int32_t num_workers;           /* 1 but for MULTI_WORKER_MIRRORED */
  int32_t in_multi_worker_mode;  /* it is a task of a cluster, though there may be no other */
  int32_t require_static_shapes; /* 0: batches and gathered values may differ in size */
  int32_t use_merge_call;        /* 1: replicas may call dist_merge_call() */
  int32_t
      between_graph; /* variables are kept away from the replicas, or each worker has a program of its own */
  int32_t should_init;         /* this worker initializes variables */
  int32_t should_checkpoint;   /* this worker writes checkpoints: the chief */
  int32_t should_save_summary; /* this worker writes summaries: the chief */
  int32_t global_batch_size;   /* 1: a batch is for all replicas together, and is divided */
  int32_t worker;              /* which of the cluster's this is, 0 for the chief; reports name workers so */
  int32_t num_local_replicas;  /* of this worker */
  int32_t first_replica;       /* the id of the first of these */
  int32_t generation;          /* how often its workers have re-formed: dist_strategy_reform() */
  int32_t num_joined;          /* workers that were not in the generation before */
  int32_t num_left;            /* and those of it that are not in this one; 0 on one that has joined */
  int32_t reserved;            /* 0 */
} dist_strategy_properties;
#define DIST_STRATEGY_PROPERTIES_INIT \
  { sizeof(dist_strategy_properties), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * What the strategy is. `out_properties->struct_size` says how much of it to write.
 *
 * Errors   INVALID_ARGUMENT  NULL, or struct_size is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_query(const dist_strategy *strategy,
                                                        dist_strategy_properties *out_properties);

/**
 * What describes the cluster that the strategy is part of: dist_strategy_options.cluster_resolver; NULL where that was not
 * given.
 *
 * Owns     *out_resolver is the strategy's.
 * Errors   INVALID_ARGUMENT  NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cluster_resolver(const dist_strategy *strategy,
                                                                   dist_cluster_resolver **out_resolver);

#ifdef __cplusplus
}
#endif
#endif /* DIST_STRATEGY_EXPERIMENTAL_H */
