/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Strategies: R replicas, the threads that run them, and the rules by which they work together.
 *
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.num_replicas = 4;
 *     dist_strategy *strategy = NULL;
 *     dist_status status = dist_strategy_create(&options, &strategy);      // NULL selects all defaults
 *     if (status == DIST_OK) status = dist_run(strategy, step, data, NULL);
 *     ...
 *     dist_strategy_destroy(strategy);
 *
 * A process can hold any number of strategies. To define a strategy of your own, pass a table of functions in
 * dist_strategy_options.functions; see dist_strategy_functions.
 */
#ifndef DIST_STRATEGY_H
#define DIST_STRATEGY_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A named axis of a replica's logical devices, and its size. The product of all sizes is D. */
typedef struct dist_mesh_axis {
  const char *name;
  int32_t size;
} dist_mesh_axis;

/** The function that an executor calls: task(task_data). */
typedef void (*dist_task_fn)(void *task_data);

/**
 * Schedules task(task_data) to run exactly once, on any thread and at any later time, possibly after the strategy was
 * destroyed. Returns 0 on success. If it returns anything else, it must not call the task, and the loop runs without
 * that helper. libdist calls it on the thread that starts a loop, once for each helper. It must not wait for the task
 * and must not throw C++ exceptions.
 */
typedef int32_t (*dist_execute_fn)(dist_task_fn task, void *task_data, void *user_data);

/**
 * The host's own threads for loops, in place of oneTBB. They are used by dist_replica_parallel_for() in replicas, and
 * for reducing, gathering, assigning and loading from outside. The thread that starts a loop takes part in it and never
 * waits for a task that has not started. A busy executor therefore makes a loop slower but cannot block it, even if all
 * its threads are inside such loops themselves. Results have the same bits.
 */
typedef struct dist_executor {
  uint32_t struct_size;
  /* maximum number of threads that help with a loop, not counting the one that starts it: 1 to 65535 */
  int32_t num_threads;
  dist_execute_fn execute;
  void *user_data; /* must stay valid until the strategy is destroyed */
} dist_executor;
#define DIST_EXECUTOR_INIT \
  { sizeof(dist_executor), 0, 0, 0 }

/** Initializes a dist_executor to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_executor_init(dist_executor *executor, uint32_t struct_size_bytes);

/** The CPUs and threads of a strategy. */
typedef struct dist_cpu_options {
  uint32_t struct_size;
  dist_placement placement; /* 0 = DIST_PLACEMENT_FREE */
  /* CPU numbers (as the system counts them) on which the strategy's threads may run: library threads of replicas and
     logical devices, threads that serve dist_submit(), and oneTBB threads while they help. Host threads and those of
     gRPC and Gloo are not affected. DIST_PLACEMENT_CORES chooses among these CPUs, and num_replicas = 0 counts them.
     Copied. Each CPU must be in the affinity mask of the calling thread or of the process's first thread. NULL = mask
     of the calling thread */
  const int32_t *cpus;
  size_t num_cpus; /* length of cpus; 0 = same as NULL */
  /* stack size of each library thread, 256 KiB to 1 TiB, and more for more than 64 replicas; 0 = system default.
     dist_replica_enter() states how much of it collectives need */
  size_t stack_size_bytes;
  /* limit on threads shared with other strategies, for runs and requests; retained. NULL = no limit */
  dist_budget *budget;
  /* 1 = a host thread that is a replica (including the caller of dist_run()) may be moved if it repeatedly shares a CPU
     with another replica: to a CPU without a replica that is in its own affinity mask and in cpus. Its affinity mask
     does not change; see dist_replica_enter(). 0 = host threads are never moved; dist_strategy_explain() reports how
     often a move would have helped. Not allowed with DIST_THREADS_LIBRARY */
  int32_t move_host_threads;
  int32_t reserved; /* must be 0 */
} dist_cpu_options;
#define DIST_CPU_OPTIONS_INIT \
  { sizeof(dist_cpu_options), DIST_PLACEMENT_FREE, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_cpu_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_cpu_options_init(dist_cpu_options *options, uint32_t struct_size_bytes);

/** Memory, log, clock and threads that the host provides for a strategy, and settings that depend on the host. */
typedef struct dist_host_options {
  uint32_t struct_size;
  /* DIST_THREADS_HOST: 1 = oneTBB threads may help with loops and asynchronous collectives and prepare batches ahead of
     time, as in other strategies; 0 = only features with an option of their own may start threads */
  int32_t helper_threads;
  dist_allocator allocator; /* all zero = malloc() and free() */
  dist_log_fn log;          /* receives log lines; NULL = none */
  void *log_user_data;
  dist_clock_fn clock; /* for deadlines; NULL = the system's steady clock */
  void *clock_user_data;
  const dist_executor *executor; /* the host's threads for loops; copied. NULL = oneTBB */
  /* events per replica that are kept for dist_strategy_write_trace(), 1 to 2^20, rounded up to a power of two; 0 =
     default (1024). Each reserves 128 bytes of address space, which use memory once they are written */
  int32_t recorded_events;
  /* 1 = the host destroys objects after the strategy, for example in a garbage collector: dist_strategy_destroy() logs
     no warning about them */
  int32_t late_destroys;
} dist_host_options;
#define DIST_HOST_OPTIONS_INIT \
  { sizeof(dist_host_options), 0, {0, 0, 0}, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_host_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_host_options_init(dist_host_options *options, uint32_t struct_size_bytes);

/** The logical devices of a DIST_STRATEGY_MESH. */
typedef struct dist_mesh_options {
  uint32_t struct_size;
  /* 1 = one program runs on all devices; dist_assign_to_logical_device() is then rejected */
  int32_t use_spmd_partitioning;
  /* assigns devices to replicas, and so sets the number of replicas and of logical devices; retained */
  const dist_device_assignment *device_assignment;
  /* axes over the logical devices of a replica; the last axis varies fastest; copied */
  const dist_mesh_axis *axes;
  size_t num_axes; /* 0 = default axes, see dist_device_axis() */
} dist_mesh_options;
#define DIST_MESH_OPTIONS_INIT \
  { sizeof(dist_mesh_options), 0, 0, 0, 0 }

/** Initializes a dist_mesh_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_mesh_options_init(dist_mesh_options *options, uint32_t struct_size_bytes);

/** The cluster of a strategy, and its communication with other workers: workers.h. */
typedef struct dist_worker_options {
  uint32_t struct_size;
  /* MULTI_WORKER_MIRRORED: transport between workers that are processes; 0 = DIST_TRANSPORT_AUTO */
  dist_transport transport;
  /* description of the cluster, returned by dist_strategy_cluster_resolver(); retained. MULTI_WORKER_MIRRORED: gives
     this worker's place in the cluster. PARAMETER_SERVER: gives the servers; NULL = TF_CONFIG. Strategies of other
     kinds stay within one process */
  dist_cluster_resolver *cluster_resolver;
  /* MULTI_WORKER_MIRRORED: connects workers within one process; retained. NULL = use `transport` */
  dist_network *network;
  /* MULTI_WORKER_MIRRORED: number of replicas of each worker; NULL = the same number as this worker */
  const int32_t *replicas_of_workers;
  size_t num_workers; /* length of replicas_of_workers; 0 = same as NULL */
  /* MULTI_WORKER_MIRRORED: maximum size in bytes of tensor data in transit to and from this worker at one time; 0 =
     default (64 MiB). Larger tensors are sent in pieces, with the same bits. The smallest value of all workers
     applies */
  size_t staging_bytes;
  dist_reform reform; /* MULTI_WORKER_MIRRORED: when the workers re-form; 0 = DIST_REFORM_EXPLICIT */
  int32_t reserved;   /* must be 0 */
} dist_worker_options;
#define DIST_WORKER_OPTIONS_INIT \
  { sizeof(dist_worker_options), DIST_TRANSPORT_AUTO, 0, 0, 0, 0, 0, DIST_REFORM_EXPLICIT, 0 }

/** Initializes a dist_worker_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_worker_options_init(dist_worker_options *options, uint32_t struct_size_bytes);

/**
 * The options that most programs need, and pointers to further ones by subject. libdist reads all of them during
 * dist_strategy_create() only.
 */
typedef struct dist_strategy_options {
  uint32_t struct_size;
  dist_strategy_kind kind; /* kind of strategy; 0 = DIST_STRATEGY_MIRRORED */
  /* number of replicas; 0 = number of CPUs available to the process (affinity, cgroup quota) */
  int32_t num_replicas;
  dist_threads threads; /* threads that run the replicas; 0 = DIST_THREADS_CALLER */
  /* for reductions inside replicas whose own options do not set it, and for reductions outside runs: dist_reduce() and
     similar functions, assignments to variables, and functions that read variables. 0 = DIST_NUMERICS_ORDERED */
  dist_numerics numerics;
  int32_t reserved; /* must be 0 */
  /* longest wait for a peer in one collective; 0 = default (600 s), DIST_NO_TIMEOUT = no limit */
  int64_t timeout_ns;
  /* memory limit for queued asynchronous collectives; 0 = default (64 MiB, or 2 MiB per replica if that is more) */
  size_t async_bytes;
  /* device names in replica order, "CPU:1" or longer; NULL = CPU:0, CPU:1, ... */
  const char *const *devices;
  /* length of devices: the number of replicas; 0 = same as devices = NULL */
  size_t num_devices;
  /* CENTRAL_STORAGE: device that holds the variables; NULL = CPU:0 */
  const char *parameter_device;
  /* options of collectives and reductions; a timeout that they set replaces timeout_ns */
  const struct dist_communication_options *communication;
  /* implementation for reducing values outside runs; retained; NULL = DIST_CROSS_DEVICE_DEFAULT */
  dist_cross_device *cross_device;
  const struct dist_strategy_functions
      *functions;              /* the host's own strategy; copied; kind must be the default */
  void *functions_user_data;   /* must stay valid until the strategy is destroyed */
  const dist_cpu_options *cpu; /* NULL = defaults, like each of the following */
  const dist_host_options *host;
  const dist_mesh_options *mesh;
  const dist_worker_options *worker;
} dist_strategy_options;
#define DIST_STRATEGY_OPTIONS_INIT                                                                           \
  {                                                                                                          \
    sizeof(dist_strategy_options), DIST_STRATEGY_MIRRORED, 0, DIST_THREADS_CALLER, DIST_NUMERICS_DEFAULT, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                                \
  }

/**
 * Sets all fields to their defaults and struct_size to `struct_size_bytes`, which must be the size that the caller was
 * compiled with: sizeof(dist_strategy_options). Does nothing if `options` is NULL or if no version of libdist has that
 * size (below 4 or above 4096 bytes). If the size is not a multiple of the struct's alignment, libdist ignores the
 * bytes after the last such multiple.
 */
DIST_API void dist_strategy_options_init(dist_strategy_options *options, uint32_t struct_size_bytes);

/**
 * Creates a strategy and its threads, which sleep until the first run.
 *
 * libdist reads here which CPUs the process may use (affinity mask, cgroup quota). If they change later, the strategy
 * keeps its number of replicas and the way its threads wait: results stay the same, only the speed changes. A strategy
 * created afterwards uses the new CPUs. DIST_PLACEMENT_CORES also chooses CPUs here, based on the library threads that
 * exist at this moment, so strategies created at the same time may choose the same CPUs. dist_strategy_explain() shows
 * where each thread was placed, and why.
 *
 * Blocks   Until the threads have been created; workers that meet at DIST_RENDEZVOUS (workers.h) wait for each other
 *          first, up to options->timeout_ns.
 * Owns     The caller owns *out_strategy and destroys it with dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT     out_strategy is NULL, an option is out of range, options contradict each other, a
 *                               device name is invalid or used twice, the cluster or an environment variable is
 *                               invalid, or an option that this version does not know is set (struct_size is larger,
 *                               and the rest is not zero).
 *          FAILED_PRECONDITION  called in a forked child of the process that created the budget; or several workers
 *                               need a transport, but DIST_TRANSPORT is none, or their IP addresses are off loopback,
 *                               with neither TLS nor DIST_PLAINTEXT=1 and a secret.
 *          NOT_FOUND            with several workers: a file named by an environment variable does not exist.
 *          UNIMPLEMENTED        several workers with logical devices, with host functions, or, if they are strategies
 *                               of one process, with DIST_REFORM_AT_NEXT_RUN.
 *          UNAVAILABLE          with several workers: this worker cannot listen on its address, or libdist-grpc.so or
 *                               the link module cannot be loaded.
 *          RESOURCE_EXHAUSTED   out of memory, or the system cannot create another thread. Nothing is leaked.
 *          any                  if workers meet first, an error of the rendezvous (experimental/rendezvous.h).
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_create(const dist_strategy_options *options,
                                                         dist_strategy **out_strategy);

/**
 * Destroys a strategy and ends its threads; after dist_strategy_shutdown() even if runs, groups or works still exist.
 * Values, variables and datasets that were created with it stay readable until they are released or destroyed. Does
 * nothing if `strategy` is NULL, or in a forked child.
 *
 * If variables, datasets, iterators or metrics have not been destroyed, one DIST_LOG_WARNING states how many of each
 * kind, and the name of the first variable. They may be leaks. If you destroy them later, set
 * dist_host_options.late_destroys. Variables that dist_replica_variable() creates belong to the strategy and do not
 * count. Go, Java and Python set the option, because their garbage collectors destroy objects at any time.
 *
 * Context  Strategy, serialized.
 * Blocks   Until the threads have ended; with several workers also until the peers have received everything that this
 *          worker sent, for up to one lease (workers.h).
 * Owns     Takes ownership of the strategy, unless it fails.
 * Errors   FAILED_PRECONDITION  a run or a request is in progress; groups, works or the coordinator of the strategy
 *                               still exist; this thread is in the strategy's scope, or in a callback of a call on
 *                               it; another thread is re-forming the strategy or waits in dist_strategy_reform_due();
 *                               or it is a thread's default strategy. The strategy is unchanged.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_destroy(dist_strategy *strategy);

/**
 * Cancels the run in progress. Every replica that waits in a collective, now or later in that run, returns CANCELLED,
 * and dist_run() returns CANCELLED after the replica functions have returned. Without a run in progress, nothing
 * happens. Host threads that have left a run which other replicas have not yet entered return at once.
 *
 * Context  Any, concurrent; also from inside a replica.
 * Errors   INVALID_ARGUMENT     strategy is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cancel(dist_strategy *strategy);

/**
 * Returns the number of replicas in sync, R; 0 for NULL. Over several workers it counts the replicas of all of them.
 */
DIST_API int32_t dist_strategy_num_replicas(const dist_strategy *strategy);

/**
 * Functions of a custom strategy. Each function that is not NULL replaces the one of libdist. libdist calls
 * copy_of_replica() and device_of_replica() only while it creates the strategy; it calls the others whenever values
 * outside runs are reduced, broadcast or gathered. Collectives between replicas, and the code that keeps the copies of
 * a variable equal, cannot be replaced.
 */
typedef struct dist_strategy_functions {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* returns the copy of a variable that a replica uses: its own id for every replica, or 0 for every replica (one
     shared copy) */
  int32_t (*copy_of_replica)(int32_t replica_id, int32_t num_replicas, void *user_data);
  /* returns the name of a replica's device; copied */
  const char *(*device_of_replica)(int32_t replica_id, void *user_data);
  dist_reduce_values_fn reduce;
  dist_broadcast_values_fn broadcast;
  dist_gather_values_fn gather;
} dist_strategy_functions;
#define DIST_STRATEGY_FUNCTIONS_INIT \
  { sizeof(dist_strategy_functions), 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_strategy_functions to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_strategy_functions_init(dist_strategy_functions *functions, uint32_t struct_size_bytes);

/**
 * Stops a strategy even if replica functions do not return. It rejects new runs, cancels queued runs and the one in
 * progress, and waits up to `timeout_ns` for their functions (0: does not wait). Then it ends the threads.
 *
 * The handle stays valid until dist_strategy_destroy(), so other threads may still use it: their runs fail with
 * CANCELLED. If a function has not returned in time, its collectives fail with CANCELLED too, and
 * dist_strategy_destroy() does not wait for it: everything that it uses stays valid until it returns, and the last such
 * thread frees it. That can be a library thread, a caller of dist_run() (whose call returns when its functions have),
 * or a host thread in dist_replica_leave(). Does nothing if `strategy` is NULL, or in a forked child.
 *
 * Context  Strategy, serialized, except that runs may begin, be queued or be in progress. Not inside a function of the
 *          strategy's replicas, nor in its scope.
 * Blocks   Up to timeout_ns.
 * Errors   INVALID_ARGUMENT     timeout_ns is below DIST_NO_TIMEOUT.
 *          DEADLINE_EXCEEDED    some functions have not returned; the message names the replicas, or an update.
 *          FAILED_PRECONDITION  called inside a function of the strategy (of a replica, merge or update), its scope, a
 *                               dist_done_fn, a dataset's source or another callback of a call on the strategy; its
 *                               coordinator still exists; it has been shut down before; or it is a thread's default
 *                               strategy. The strategy is unchanged.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_shutdown(dist_strategy *strategy, int64_t timeout_ns);

/** Returns the kind of a strategy; 0 for NULL. */
DIST_API dist_strategy_kind dist_strategy_kind_of(const dist_strategy *strategy);

/**
 * Returns the full name of a replica's device, such as "/job:localhost/replica:0/task:0/device:CPU:1". The name
 * identifies a replica's place, whatever device type it states: replicas always run on host threads and use host
 * memory.
 *
 * Owns     *out_name is borrowed: valid while the strategy exists.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or replica_id is not in 0 .. R-1.
 *          FAILED_PRECONDITION  this is the default strategy, which names no devices.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_device(const dist_strategy *strategy, int32_t replica_id,
                                                         const char **out_name);

/**
 * Returns the full name of a device that holds variables: the single device of central storage, or else the device of
 * replica `index`.
 *
 * Owns     *out_name is borrowed: valid while the strategy exists.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or index is not in 0 ..
 *                               dist_strategy_properties.num_parameter_devices - 1.
 *          FAILED_PRECONDITION  this is the default strategy.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_parameter_device(const dist_strategy *strategy,
                                                                   int32_t index, const char **out_name);

/**
 * Writes the full form of a device name, as dist_strategy_device() returns it. Parts that `name` omits are taken from
 * the full name of CPU:0, so "" is CPU:0. The same holds wherever libdist takes a device name.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, name is not a device name or names a device of another process, or
 *                            size_bytes is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_canonical_device(const char *name, char *out_name,
                                                          size_t size_bytes);

/** The properties of a strategy, named as in TensorFlow's tf.distribute.StrategyExtended; flags are 0 or 1. */
typedef struct dist_strategy_properties {
  uint32_t struct_size;
  dist_strategy_kind kind;
  int32_t num_replicas; /* of all workers */
  int32_t num_parameter_devices;
  int32_t num_workers;           /* 1 except for MULTI_WORKER_MIRRORED */
  int32_t in_multi_worker_mode;  /* 1 = the strategy is a task of a cluster, even if it is the only one */
  int32_t require_static_shapes; /* always 0: sizes of batches and of gathered values may vary */
  int32_t use_merge_call;        /* always 1: replicas may call dist_merge_call() */
  /* 1 = variables are apart from the replicas, or each worker runs its own program */
  int32_t between_graph;
  int32_t should_init;         /* always 1: every worker initializes its variables */
  int32_t should_checkpoint;   /* 1 = this worker writes checkpoints: the chief */
  int32_t should_save_summary; /* 1 = this worker writes summaries: the chief */
  int32_t global_batch_size;   /* always 1: a batch is for all replicas together and is divided among them */
  int32_t worker;              /* number of this worker, 0 for the chief; reports use these numbers */
  int32_t num_local_replicas;  /* of this worker */
  int32_t first_replica;       /* id of this worker's first replica */
  int32_t generation;          /* number of times the workers have re-formed: dist_strategy_reform() */
  int32_t num_joined;          /* workers that were not in the previous generation */
  /* workers of the previous generation that are not in this one; 0 on a worker that has joined */
  int32_t num_left;
  int32_t max_contributions; /* limit for the tensors in one sum: dist_collective_options.contributions */
} dist_strategy_properties;
#define DIST_STRATEGY_PROPERTIES_INIT                                                                      \
  {                                                                                                        \
    sizeof(dist_strategy_properties), DIST_STRATEGY_MIRRORED, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0                                                                                            \
  }

/**
 * Writes the properties of a strategy. The caller sets `out_properties->struct_size`, which limits how much is written.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, or struct_size is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_query(const dist_strategy *strategy,
                                                        dist_strategy_properties *out_properties);

/**
 * Returns the resolver that describes the strategy's cluster: dist_worker_options.cluster_resolver if it was set. If
 * not, strategies of kind MULTI_WORKER_MIRRORED and PARAMETER_SERVER return the one that libdist created, for TF_CONFIG
 * or for the rendezvous, and others return NULL.
 *
 * Owns     *out_resolver is borrowed: valid while the strategy exists.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_cluster_resolver(const dist_strategy *strategy,
                                                                   dist_cluster_resolver **out_resolver);

#ifdef __cplusplus
}
#endif
#endif /* DIST_STRATEGY_H */
