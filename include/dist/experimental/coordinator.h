/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The coordinator of a job with parameter servers: it keeps variables on the tasks of job "ps" and runs closures on the
 * tasks of job "worker" (server.h), like TensorFlow's ClusterCoordinator with a ParameterServerStrategy.
 *
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.kind = DIST_STRATEGY_PARAMETER_SERVER;                           // TF_CONFIG lists the servers
 *     dist_strategy_create(&options, &strategy);
 *     dist_coordinator *coordinator = NULL;
 *     dist_coordinator_create(strategy, NULL, &coordinator);
 *     dist_coordinator_create_variable(coordinator, "w", &zeros, NULL);        // on ps 0; the next one on ps 1, ...
 *
 *     for (int step = 0; step < 1000; ++step)
 *       dist_coordinator_schedule(coordinator, "train", batch, NULL, NULL);
 *     dist_coordinator_join(coordinator, DIST_NO_TIMEOUT, NULL);
 *     const char *names[] = {"w"};
 *     dist_value *w = NULL;
 *     dist_coordinator_read(coordinator, names, 1, &w);
 *
 *     dist_coordinator_destroy(coordinator);                                   // also stops the servers
 *
 * `dist-launch --ps 2 --workers 3 -- ./program` starts such a job.
 *
 * Closures run concurrently and do not wait for each other: training is asynchronous.
 *
 * Rules
 *
 *   - Creating a coordinator does not block. Calls that need the parameter servers wait until all of them are
 *     available.
 *   - If a worker is lost, its closures are rescheduled, ahead of the queued ones. The pause before a retry is 0.1 s
 *     and doubles with each loss of the same closure, up to 10 s. A worker that returns gets work again. A closure that
 *     has been lost more than max_losses times fails with ABORTED.
 *   - The effects of a closure are applied exactly once on each parameter server, however often the closure runs; see
 *     server.h.
 *   - If a closure fails, the queued closures are cancelled, and the next call of dist_coordinator_schedule(), join()
 *     or done() returns the error, once. dist_remote_value_get() returns it always.
 *   - The result of a closure is a dist_remote_value. dist_remote_value_cancel() cancels a closure that no worker has
 *     yet; a running one continues and has its effects, and only its result is discarded. dist_remote_value_release()
 *     cancels nothing.
 *   - If a parameter server is lost, its variables are lost, and all further calls fail with ABORTED. A restarted
 *     program restores a checkpoint with dist_coordinator_restore().
 *
 * This interface is experimental: it may change or be removed in any version.
 */
#ifndef DIST_EXPERIMENTAL_COORDINATOR_H
#define DIST_EXPERIMENTAL_COORDINATOR_H

#include "rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Schedules closures on workers and keeps variables on parameter servers. */
typedef struct dist_coordinator dist_coordinator;

/**
 * Decides how a variable is split into parts.
 *
 * The function writes the number of parts for each dimension to out_partitions: at least 1 for the first dimension, and
 * 1 for the others. The functions of partitioner.h compute such numbers. `spec` has no data. The function is not called
 * for scalars. Creating variables, saving and restoring inside it fails with FAILED_PRECONDITION.
 */
typedef dist_status (*dist_partition_fn)(const dist_tensor *spec, int64_t *out_partitions, void *user_data);

/** Options of a coordinator. */
typedef struct dist_coordinator_options {
  uint32_t struct_size;
  /* maximum number of unfinished closures; at this limit dist_coordinator_schedule() waits; 0 = default (262,144),
   * at most 4,194,304 */
  int32_t max_queued;
  int32_t closures_per_worker; /* closures that a worker has at a time; 0 = default (1), at most 1024 */
  int32_t max_losses;          /* how often a closure may be lost with its worker; 0 = default (16) */
  int64_t timeout_ns;          /* default timeout of calls; 0 = the strategy's, DIST_NO_TIMEOUT = no limit */
  size_t max_message_bytes;    /* maximum size of a message, up to 64 GiB; 0 = default (1 GiB) */
  dist_partition_fn partitioner; /* for variables without partitions of their own; NULL = not split */
  void *partitioner_user_data;   /* must stay valid until the coordinator is destroyed */
} dist_coordinator_options;
#define DIST_COORDINATOR_OPTIONS_INIT \
  { sizeof(dist_coordinator_options), 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_coordinator_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_coordinator_options_init(dist_coordinator_options *options, uint32_t struct_size_bytes);

/**
 * Creates the coordinator of a strategy of kind DIST_STRATEGY_PARAMETER_SERVER, whose resolver lists the servers. A
 * strategy has one coordinator: if it already exists, the call returns it and ignores the options.
 *
 * Owns     The caller owns *out_coordinator and destroys it with dist_coordinator_destroy(), once per successful call,
 *          before the strategy is destroyed.
 * Errors   INVALID_ARGUMENT     an argument is NULL; a strategy of another kind; the cluster has no ps or no worker, or
 *                               more than 4096 of one; an option or an environment variable is out of range.
 *          NOT_FOUND            a file named by an environment variable does not exist.
 *          FAILED_PRECONDITION  an address is not on loopback, and there is neither TLS nor DIST_PLAINTEXT=1 with a
 *                               secret; a forked child; another thread is destroying the strategy's coordinator.
 *          UNAVAILABLE          libdist-grpc.so is not installed.
 *          RESOURCE_EXHAUSTED   out of memory, or no thread can be created.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_create(dist_strategy *strategy,
                                                            const dist_coordinator_options *options,
                                                            dist_coordinator **out_coordinator);

/**
 * Destroys the coordinator, once every owner has called this. Unfinished closures fail with CANCELLED, and libdist
 * asks the servers to stop. Remote values stay readable. Does nothing if `coordinator` is NULL, or in a forked child.
 *
 * Context  Any, serialized. Calls that are in progress on other threads fail with CANCELLED.
 * Blocks   Until the servers have answered, at most 5 s, and the calls in progress have returned.
 * Owns     Takes ownership of the coordinator.
 */
DIST_API void dist_coordinator_destroy(dist_coordinator *coordinator);

/* ---- Variables ---- */

/** Options of a variable on parameter servers. */
typedef struct dist_ps_variable_options {
  uint32_t struct_size;
  int32_t max_staleness; /* maximum age of a cached read, in closures of a worker; 0 = no caching */
  /* number of parts per dimension, like dist_partition_fn; NULL = use the partitioner */
  const int64_t *partitions;
  size_t num_partitions; /* number of dimensions; 0 = as if partitions were NULL */
  /* place the parts with those of this variable, for optimizer states, or the whole variable with one part of another
   * one, by a name like "w/part_1"; may be NULL */
  const char *colocate_with;
} dist_ps_variable_options;
#define DIST_PS_VARIABLE_OPTIONS_INIT \
  { sizeof(dist_ps_variable_options), 0, 0, 0, 0 }

/** Initializes a dist_ps_variable_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_ps_variable_options_init(dist_ps_variable_options *options, uint32_t struct_size_bytes);

/**
 * Creates a variable on the parameter servers. Variables, and the parts of split variables, are placed on the servers
 * in turn, in the order of their creation, as in TensorFlow.
 *
 * Shape    `initial` has the variable's shape and dtype.
 * Order    Bits are copied.
 * Blocks   Until the parameter servers are available and have the variable, at most for the coordinator's timeout_ns.
 * Errors   INVALID_ARGUMENT    an argument is NULL; the name is invalid; the partitions are invalid
 *                              (dist_partition_fn), or there are more parts than rows.
 *          ALREADY_EXISTS      the variable exists.
 *          NOT_FOUND           the variable options->colocate_with does not exist.
 *          DEADLINE_EXCEEDED   the timeout expired; the message names a server that is not available.
 *          ABORTED             a parameter server is lost.
 *          CANCELLED           the coordinator has been destroyed.
 *          RESOURCE_EXHAUSTED  out of memory, here or on the server; the variable exceeds the maximum size of a
 *                              message.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_create_variable(dist_coordinator *coordinator,
                                                                     const char *name,
                                                                     const dist_tensor *initial,
                                                                     const dist_ps_variable_options *options);

/** Returns the number of variables; 0 for NULL. */
DIST_API size_t dist_coordinator_num_variables(const dist_coordinator *coordinator);

/**
 * Returns the name of variable `index`, in the order of creation; "" for NULL or an invalid index.
 *
 * Owns     The result is borrowed: valid until the coordinator is destroyed.
 */
DIST_API const char *dist_coordinator_variable_name(const dist_coordinator *coordinator, size_t index);

/**
 * Returns the dtype and shape of a variable and the number of its parts. The data of *out_spec are NULL.
 *
 * Shape    That of the variable.
 * Order    –
 * Owns     The shape is borrowed: valid until the coordinator is destroyed.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 *          NOT_FOUND         the variable does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_variable_spec(const dist_coordinator *coordinator,
                                                                   const char *name, dist_tensor *out_spec,
                                                                   int64_t *out_num_parts);

/**
 * Returns the device of a part of a variable, "/job:ps/replica:0/task:1/device:CPU:0", and the rows that it has.
 *
 * Owns     *out_device is borrowed: valid until the coordinator is destroyed.
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the part does not exist.
 *          NOT_FOUND         the variable does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_variable_part(const dist_coordinator *coordinator,
                                                                   const char *name, int64_t part,
                                                                   const char **out_device,
                                                                   int64_t *out_begin, int64_t *out_rows);

/**
 * Reads n variables. All variables on one parameter server are read at the same moment.
 *
 * Shape    That of the variables.
 * Blocks   Until the parameter servers have answered, at most for the coordinator's timeout_ns.
 * Owns     The caller owns each out_values[i] and releases it with dist_value_release(). The elements must not be
 *          written.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 *          NOT_FOUND         a variable does not exist.
 *          any               like dist_coordinator_create_variable().
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_read(dist_coordinator *coordinator,
                                                          const char *const *names, size_t n,
                                                          dist_value **out_values);

/**
 * Reads rows of a variable. Inside closures, use dist_closure_read_rows().
 *
 * Shape    indices i32 or i64 [k], the variable [n, rest], *out_value [k, rest].
 * Blocks   Like dist_coordinator_read().
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_coordinator_read(); also INVALID_ARGUMENT for an index that is not in 0 .. n-1.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_read_rows(dist_coordinator *coordinator,
                                                               const char *name, dist_value *indices,
                                                               dist_value **out_value);

/**
 * Assigns a value to a variable immediately. `how` is DIST_ASSIGN, DIST_ASSIGN_ADD or DIST_ASSIGN_SUB. Inside closures,
 * use dist_closure_assign().
 *
 * Shape    That of the variable, with the same dtype.
 * Order    Unspecified relative to closures.
 * Blocks   Like dist_coordinator_read().
 * Errors   Like dist_coordinator_read(); also INVALID_ARGUMENT for an unknown `how`, another shape or another dtype.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_assign(dist_coordinator *coordinator, const char *name,
                                                            dist_assign_op how, dist_value *value);

/**
 * Changes rows of a variable immediately. `how` is one of DIST_SCATTER_... (types.h). Inside closures, use
 * dist_closure_scatter().
 *
 * Shape    Indexed slices: values [k, rest] and indices [k] for a variable [n, rest].
 * Order    Unspecified relative to closures; row by row in the given order.
 * Blocks   Like dist_coordinator_read().
 * Errors   Like dist_coordinator_assign(); also UNIMPLEMENTED for DIST_SCATTER_BATCH_UPDATE.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_scatter(dist_coordinator *coordinator, const char *name,
                                                             dist_scatter_op how, dist_value *slices);

/**
 * Updates n variables immediately with a function that the parameter servers have registered. Inside closures, use
 * dist_closure_update().
 *
 * Order    Unspecified relative to closures.
 * Blocks   Like dist_coordinator_read().
 * Errors   Like dist_coordinator_read(), and
 *          INVALID_ARGUMENT  the variables are not placed in the same way.
 *          NOT_FOUND         the function does not exist.
 *          any               the status that the function returned.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_update(dist_coordinator *coordinator,
                                                            const char *function, const char *const *names,
                                                            size_t n, dist_value *arguments);

/**
 * Writes a checkpoint of all variables (checkpoint.h). A split variable is one tensor. Closures continue meanwhile: for
 * each parameter server, the file has the variables of a single moment and the closures whose effects they include.
 *
 * Blocks   Until the file is on disk.
 * Errors   Like dist_coordinator_read(), and those of dist_checkpoint_save() for the file.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_save(dist_coordinator *coordinator, const char *path);

/**
 * Restores all variables from a checkpoint. Call this before scheduling the first closure.
 *
 * *out_mark is the saved position: all closures with lower numbers had finished, and new closures are numbered from it.
 * If the program schedules its closures again from that number, in the same order, the effects of each closure are
 * applied once: effects of later closures that the file already includes are not applied again. *out_mark is 0 for
 * files of other programs.
 *
 * Context  Any, serialized.
 * Blocks   Until the parameter servers have the values.
 * Errors   Like dist_coordinator_read(), and
 *          INVALID_ARGUMENT     a tensor has another dtype or shape.
 *          NOT_FOUND            the file or a tensor in it does not exist.
 *          DATA_LOSS            like dist_checkpoint_load().
 *          FAILED_PRECONDITION  closures have been scheduled; the file was saved while closures were running, and the
 *                               variables are now on other parameter servers (to move variables, save after
 *                               dist_coordinator_join()).
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_restore(dist_coordinator *coordinator, const char *path,
                                                             int64_t *out_mark);

/* ---- Closures ---- */

/** Options of dist_coordinator_schedule(). */
typedef struct dist_schedule_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  int64_t
      timeout_ns; /* longest wait for a place in the queue; 0 = the coordinator's timeout, DIST_NO_TIMEOUT = no limit */
  dist_cancel *cancel; /* cancels the wait; may be NULL */
} dist_schedule_options;
#define DIST_SCHEDULE_OPTIONS_INIT \
  { sizeof(dist_schedule_options), 0, 0, 0 }

/** Initializes a dist_schedule_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_schedule_options_init(dist_schedule_options *options, uint32_t struct_size_bytes);

/**
 * Schedules a closure on a worker. `function` is the name under which the workers have registered it. `arguments` may
 * be NULL.
 *
 * Blocks   While there are max_queued unfinished closures.
 * Owns     The caller owns *out_remote and releases it with dist_remote_value_release(); out_remote may be NULL.
 *          libdist keeps a reference to `arguments` until the closure has finished; their elements must not change
 *          until then.
 * Errors   INVALID_ARGUMENT   an argument is NULL, or a value cannot be sent.
 *          DEADLINE_EXCEEDED  the queue had no room in time.
 *          CANCELLED          options->cancel was signalled, or the coordinator has been destroyed.
 *          ABORTED            a parameter server is lost.
 *          any                the error of an earlier closure, reported once. The new closure has not been scheduled
 *                             then.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_schedule(dist_coordinator *coordinator,
                                                              const char *function, dist_value *arguments,
                                                              const dist_schedule_options *options,
                                                              dist_remote_value **out_remote);

/**
 * Waits until all closures have finished.
 *
 * Blocks   Up to timeout_ns (0: does not wait). `cancel`, which may be NULL, cancels the wait.
 * Errors   INVALID_ARGUMENT   coordinator is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          DEADLINE_EXCEEDED  the timeout expired; the message names a server that is not available.
 *          any                like dist_coordinator_schedule().
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_join(dist_coordinator *coordinator, int64_t timeout_ns,
                                                          dist_cancel *cancel);

/**
 * Sets *out_done to 1 if all closures have finished, and to 0 otherwise.
 *
 * Errors   Like dist_coordinator_schedule(), except those of a wait.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_done(dist_coordinator *coordinator, int32_t *out_done);

/**
 * Runs the closure `function` once on each worker, before any further closure, and keeps its result on that worker
 * under `name`.
 *
 * Closures of the worker get the result with dist_closure_per_worker(), so each worker can have, for example, its own
 * dataset. A worker that returns runs the closure again. The result is not sent and can be of any kind.
 *
 * Blocks   Until the available workers have the result, at most for the coordinator's timeout_ns.
 * Owns     Like dist_coordinator_schedule().
 * Errors   INVALID_ARGUMENT  an argument is NULL, or a value cannot be sent.
 *          ALREADY_EXISTS    there is already a result of this name.
 *          any               like dist_coordinator_schedule(), or the status that the function returned. If it fails on
 *                            a worker that arrives later, the error is reported like that of a closure.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_create_per_worker(dist_coordinator *coordinator,
                                                                       const char *name, const char *function,
                                                                       dist_value *arguments);

/** Counters of a coordinator. */
typedef struct dist_coordinator_stats {
  uint32_t struct_size;
  int32_t num_ps;
  int32_t num_workers;
  int32_t workers_up; /* workers that have closures or can take some */
  int64_t queued;     /* closures that no worker has */
  int64_t in_flight;  /* closures that a worker has */
  int64_t scheduled;  /* total */
  int64_t completed;  /* finished without an error */
  int64_t failed;
  int64_t cancelled;
  int64_t losses;      /* how often a closure was lost with its worker */
  int64_t mark;        /* all closures with lower numbers have finished */
  uint64_t bytes_sent; /* message bytes to all servers, without the overhead of gRPC */
  uint64_t bytes_received;
} dist_coordinator_stats;
#define DIST_COORDINATOR_STATS_INIT \
  { sizeof(dist_coordinator_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Returns the counters of the coordinator. out_stats->struct_size limits how many bytes are written.
 *
 * Errors   INVALID_ARGUMENT     an argument is NULL, or struct_size is too small.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_query(const dist_coordinator *coordinator,
                                                           dist_coordinator_stats *out_stats);

/**
 * Writes the latest 16,384 closures as a trace in Chrome's trace-event format, for Perfetto (ui.perfetto.dev).
 *
 * Each worker has a row, on which a slice is the time from sending a closure until it finished. The slices overlap if a
 * worker has several closures at a time. Times are from the steady clock. dist_strategy_write_trace() for the
 * coordinator's strategy includes the same events next to the collectives, and dist_server_write_trace() shows what
 * each server did.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_write_trace(const dist_coordinator *coordinator,
                                                                 dist_text_fn fn, void *user_data);

#ifdef __cplusplus
}
#endif
#endif /* DIST_EXPERIMENTAL_COORDINATOR_H */
