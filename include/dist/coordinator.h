/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The coordinator of a job with parameter servers: it keeps variables on the tasks of job "ps", and gives closures to those of
 * job "worker" (server.h), as TensorFlow's ClusterCoordinator does with a ParameterServerStrategy. Closures run side by side and
 * wait for nobody: training is asynchronous.
 *
 *     options.kind = DIST_STRATEGY_PARAMETER_SERVER;                        TF_CONFIG says which servers there are
 *     dist_strategy_create(&options, &strategy);
 *     dist_coordinator_create(strategy, NULL, &coordinator);
 *     dist_coordinator_create_variable(coordinator, "w", &zeros, NULL);     goes to /job:ps/task:0, the next one to task:1, ...
 *
 *     for (step = 0; step < 1000; ++step)
 *       dist_coordinator_schedule(coordinator, "train", batch, NULL, NULL);
 *     dist_coordinator_join(coordinator, -1, NULL);
 *     dist_coordinator_read(coordinator, names, 1, &w);
 *
 *     dist_coordinator_destroy(coordinator);                                the servers end too
 *
 *     dist-launch --ps 2 --workers 3 -- ./program
 *
 * Rules
 *   - Creating a coordinator waits for nobody; what needs the parameter servers waits until all are there.
 *   - A worker that is lost gives its closures back. They go to other workers first, after a pause of 0.1 s that doubles with
 *     each loss of the same closure, up to 10 s; a worker that returns has work again. A closure that is lost once
 *     more than max_losses times has failed, ABORTED.
 *   - What a closure changes, it changes once on each parameter server, however often it is run: server.h.
 *   - A closure that fails cancels those that wait, and its error comes out of the next dist_coordinator_schedule(), join() or
 *     done(), once. dist_remote_value_get() gives it always.
 *   - What a closure comes to is a dist_remote_value. dist_remote_value_cancel() takes back one that no worker has; one that runs
 *     goes on and has its effects, and only its result is lost. dist_remote_value_release() takes back nothing.
 *   - A parameter server that is lost has lost its variables: everything is ABORTED from then on, and says so. A program that is
 *     started again restores a checkpoint: dist_coordinator_restore().
 */
#ifndef DIST_COORDINATOR_H
#define DIST_COORDINATOR_H

#include "types.h"

#endif /* DIST_COORDINATOR_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_COORDINATOR_EXPERIMENTAL_H)
#define DIST_COORDINATOR_EXPERIMENTAL_H

#include "rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Who schedules closures, and keeps variables on parameter servers. */
typedef struct dist_coordinator dist_coordinator;

/**
 * Into how many parts each dimension of a variable is divided: out_partitions has a number for each, the first at least 1 and
 * the others 1, as the functions of partitioner.h give it. `spec` has no data. Not called for scalars. It may not
 * create variables, save or restore: FAILED_PRECONDITION.
 */
typedef dist_status (*dist_partition_fn)(const dist_tensor *spec, int64_t *out_partitions, void *user_data);

typedef struct dist_coordinator_options {
  uint32_t struct_size;
  int32_t max_queued; /* closures that have no end; beyond it dist_coordinator_schedule() waits; 0: 262,144 */
  int32_t closures_per_worker; /* that a worker has at a time; 0: 1 */
  int32_t max_losses;          /* how often one closure may be lost with its worker; 0: 16 */
  int64_t timeout_ns; /* of calls that have none of their own; 0: the strategy's timeout_ns; < 0: no limit */
  int64_t max_message_bytes;     /* of one message; 0: 1 GiB */
  dist_partition_fn partitioner; /* of variables that do not say it; NULL: they stay whole */
  void *partitioner_user_data;   /* used until the coordinator has ended */
} dist_coordinator_options;
#define DIST_COORDINATOR_OPTIONS_INIT \
  { sizeof(dist_coordinator_options), 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_coordinator_options. */
DIST_API void dist_coordinator_options_init(dist_coordinator_options *options, uint32_t struct_size_bytes);

/**
 * Makes the coordinator of a strategy of kind DIST_STRATEGY_PARAMETER_SERVER, whose resolver says which servers there are. A
 * strategy has one: where there is one already, that is what comes, and options are not read.
 *
 * Owns     *out_coordinator is the caller's: dist_coordinator_destroy(), once for each time that it came, and before the
 *          strategy's end.
 * Errors   INVALID_ARGUMENT     NULL; a strategy of another kind; no ps or no worker in the cluster; an option, or a
 *                               variable of the environment, is out of its range.
 *          NOT_FOUND            a file that a variable of the environment names is not there.
 *          FAILED_PRECONDITION  off loopback neither TLS nor, with DIST_PLAINTEXT=1, a secret; a forked child; the strategy's
 *                               coordinator is just ending, on another thread.
 *          UNAVAILABLE          libdist-grpc.so is not installed.
 *          RESOURCE_EXHAUSTED   no memory, or no further thread.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_create(dist_strategy *strategy,
                                                            const dist_coordinator_options *options,
                                                            dist_coordinator **out_coordinator);

/**
 * Ends the coordinator, once everybody who has it has called this: closures that have no end are CANCELLED, and servers are
 * told to end. Remote values stay readable.
 *
 * Context  Any, serialized. NULL is fine. In a forked child nothing is done. Calls of other threads that are inside are
 *          CANCELLED.
 * Blocks   Until the servers have answered, 5 s at most, and those calls have returned.
 * Owns     Takes the coordinator.
 */
DIST_API void dist_coordinator_destroy(dist_coordinator *coordinator);

/* ---- Variables ---- */

typedef struct dist_ps_variable_options {
  uint32_t struct_size;
  int32_t max_staleness; /* how many of a worker's closures a cached read may be old; 0: nothing is cached */
  const int64_t *
      partitions; /* into how many parts each dimension is divided, as dist_partition_fn; NULL: the partitioner */
  size_t num_partitions; /* dimensions; 0: as if it were NULL */
  const char *
      colocate_with; /* the parts lie with those of this variable, as an optimizer's state does; may be NULL */
} dist_ps_variable_options;
#define DIST_PS_VARIABLE_OPTIONS_INIT \
  { sizeof(dist_ps_variable_options), 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_ps_variable_options. */
DIST_API void dist_ps_variable_options_init(dist_ps_variable_options *options, uint32_t struct_size_bytes);

/**
 * Creates a variable on the parameter servers. Variables, and the parts of divided ones, go to the servers in turn, in the
 * order in which they are created (TensorFlow's order).
 *
 * Shape    `initial` is the variable's.
 * Order    Bits are copied.
 * Blocks   Until the parameter servers are there and have it, at most options.timeout_ns.
 * Errors   INVALID_ARGUMENT    NULL; the name; partitions that are not those of a dist_partition_fn, or more parts than rows.
 *          ALREADY_EXISTS      there is such a variable.
 *          NOT_FOUND           options->colocate_with.
 *          DEADLINE_EXCEEDED   not in time: the text names a server that is not there.
 *          ABORTED             a parameter server is lost.
 *          CANCELLED           the coordinator has ended.
 *          RESOURCE_EXHAUSTED  no memory, here or there; more bytes than a message may have.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_create_variable(dist_coordinator *coordinator,
                                                                     const char *name,
                                                                     const dist_tensor *initial,
                                                                     const dist_ps_variable_options *options);

/** How many variables there are; 0 for NULL. */
DIST_API size_t dist_coordinator_num_variables(const dist_coordinator *coordinator);

/**
 * The name of variable `index`, in the order of their creation; "" for NULL, and where there is none.
 *
 * Owns     Borrowed: valid while the coordinator is.
 */
DIST_API const char *dist_coordinator_variable_name(const dist_coordinator *coordinator, size_t index);

/**
 * A variable's dtype and shape, without its data (NULL), and into how many parts it is divided.
 *
 * Shape    The variable's.
 * Order    –
 * Owns     The shape is borrowed: valid while the coordinator is.
 * Errors   INVALID_ARGUMENT  NULL.
 *          NOT_FOUND         no such variable.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_variable_spec(const dist_coordinator *coordinator,
                                                                   const char *name, dist_tensor *out_spec,
                                                                   int64_t *out_num_parts);

/**
 * Where a part of a variable lies: "/job:ps/replica:0/task:1/device:CPU:0", and which rows it has.
 *
 * Owns     *out_device is borrowed: valid while the coordinator is.
 * Errors   INVALID_ARGUMENT  NULL, or there is no such part.
 *          NOT_FOUND         no such variable.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_variable_part(const dist_coordinator *coordinator,
                                                                   const char *name, int64_t part,
                                                                   const char **out_device,
                                                                   int64_t *out_begin, int64_t *out_rows);

/**
 * Reads n variables. Those of one parameter server are of one moment.
 *
 * Shape    The variables'.
 * Blocks   Until the parameter servers have answered, at most options.timeout_ns.
 * Owns     out_values[i] is the caller's: dist_value_release(). Its elements must not be written.
 * Errors   INVALID_ARGUMENT  NULL.
 *          NOT_FOUND         no such variable.
 *          Others            as dist_coordinator_create_variable().
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_read(dist_coordinator *coordinator,
                                                          const char *const *names, size_t n,
                                                          dist_value **out_values);

/**
 * As dist_closure_read_rows(), outside of closures.
 *
 * Shape    indices i32 or i64 [k], the variable [n, rest], *out_value [k, rest].
 * Blocks   As dist_coordinator_read().
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_coordinator_read(); INVALID_ARGUMENT also for an index that is not in 0 .. n-1.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_read_rows(dist_coordinator *coordinator,
                                                               const char *name, dist_value *indices,
                                                               dist_value **out_value);

/**
 * As dist_closure_assign(), outside of closures, and at once.
 *
 * Shape    The variable's shape and dtype.
 * Order    Among closures as it comes.
 * Blocks   As dist_coordinator_read().
 * Errors   As dist_coordinator_read(); INVALID_ARGUMENT also for an unknown `how`, another shape or dtype.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_assign(dist_coordinator *coordinator, const char *name,
                                                            int32_t how, dist_value *value);

/**
 * As dist_closure_scatter(), outside of closures, and at once.
 *
 * Shape    Indexed slices: values [k, rest] and indices [k] for a variable [n, rest].
 * Order    As dist_coordinator_assign(); row by row as given.
 * Blocks   As dist_coordinator_read().
 * Errors   As dist_coordinator_assign(); UNIMPLEMENTED of DIST_SCATTER_BATCH_UPDATE.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_scatter(dist_coordinator *coordinator, const char *name,
                                                             int32_t how, dist_value *slices);

/**
 * As dist_closure_update(), outside of closures, and at once.
 *
 * Order    As dist_coordinator_assign().
 * Blocks   As dist_coordinator_read().
 * Errors   As dist_coordinator_read(); INVALID_ARGUMENT also where the variables do not lie alike; NOT_FOUND also where there
 *          is no such function; what the function fails with.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_update(dist_coordinator *coordinator,
                                                            const char *function, const char *const *names,
                                                            size_t n, dist_value *arguments);

/**
 * Writes a checkpoint of all variables, as checkpoint.h has them: a divided variable is one tensor. Closures go on meanwhile:
 * the file has, for each parameter server, the variables of one moment, and which closures they have in them.
 *
 * Blocks   Until the file is on the disk.
 * Errors   As dist_coordinator_read(), and those of dist_checkpoint_save() for the file.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_save(dist_coordinator *coordinator, const char *path);

/**
 * Gives all variables the values that a checkpoint has for them, before the first closure. Closures are numbered on from the
 * mark that was saved, *out_mark: all below it had ended. A program that schedules its closures again from that one on, in the
 * same order, has each of them have its effects once: what a parameter server had of a later one is in the file, and is not
 * done again. *out_mark is 0 for files of other programs.
 *
 * Context  Any, serialized.
 * Blocks   Until the parameter servers have the values.
 * Errors   As dist_coordinator_read(); INVALID_ARGUMENT also for a tensor of another dtype or shape; NOT_FOUND also where the
 *          file has no such tensor, or is not there; DATA_LOSS, as dist_checkpoint_load().
 *          FAILED_PRECONDITION  closures have been scheduled; the file was saved while closures were under way, and the
 *                               variables lie on other parameter servers now: save such a file after dist_coordinator_join().
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_restore(dist_coordinator *coordinator, const char *path,
                                                             int64_t *out_mark);

/* ---- Closures ---- */

typedef struct dist_schedule_options {
  uint32_t struct_size;
  int32_t reserved;    /* 0 */
  int64_t timeout_ns;  /* longest wait for a place in the queue; 0: the coordinator's; < 0: no limit */
  dist_cancel *cancel; /* ends the wait with CANCELLED; may be NULL */
} dist_schedule_options;
#define DIST_SCHEDULE_OPTIONS_INIT \
  { sizeof(dist_schedule_options), 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_schedule_options. */
DIST_API void dist_schedule_options_init(dist_schedule_options *options, uint32_t struct_size_bytes);

/**
 * Has a worker run the closure that it has registered as `function`, with `arguments`, which may be NULL: nothing.
 *
 * Blocks   While there are max_queued closures that have no end.
 * Owns     *out_remote is the caller's: dist_remote_value_release(); out_remote may be NULL. `arguments` is held until the
 *          closure has ended, and its elements must stay as they are.
 * Errors   INVALID_ARGUMENT   NULL; a value that cannot be sent.
 *          DEADLINE_EXCEEDED  no place in time.
 *          CANCELLED          options->cancel, or the coordinator has ended.
 *          ABORTED            a parameter server is lost.
 *          any                what an earlier closure failed with, which comes out once. Nothing has been scheduled then.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_schedule(dist_coordinator *coordinator,
                                                              const char *function, dist_value *arguments,
                                                              const dist_schedule_options *options,
                                                              dist_remote_value **out_remote);

/**
 * Waits until all closures have ended.
 *
 * Blocks   At most timeout_ns (0: the coordinator's; < 0: without limit). `cancel`, which may be NULL, ends it.
 * Errors   INVALID_ARGUMENT   NULL.
 *          DEADLINE_EXCEEDED  not in time: the text names a server that is not there.
 *          Others             as dist_coordinator_schedule().
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_join(dist_coordinator *coordinator, int64_t timeout_ns,
                                                          dist_cancel *cancel);

/**
 * Whether all closures have ended: *out_done is 1 or 0.
 *
 * Errors   As dist_coordinator_schedule(), without a wait.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_done(dist_coordinator *coordinator, int32_t *out_done);

/**
 * Has each worker run the closure `function`, once and before any further one, and keep its result under `name` for its closures:
 * dist_closure_per_worker(). So each has a dataset or a buffer of its own. A worker that returns runs it again. The result is not
 * sent, so that it may be anything.
 *
 * Blocks   Until the workers that are there have it, at most the coordinator's timeout_ns.
 * Owns     As dist_coordinator_schedule().
 * Errors   INVALID_ARGUMENT  NULL; a value that cannot be sent.
 *          ALREADY_EXISTS    there is one of this name.
 *          Others            as dist_coordinator_schedule(); what the function fails with. Where it fails on a worker that comes
 *                            later, that comes out as a closure's error.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_create_per_worker(dist_coordinator *coordinator,
                                                                       const char *name, const char *function,
                                                                       dist_value *arguments);

/** What a coordinator does, in numbers. */
typedef struct dist_coordinator_stats {
  uint32_t struct_size;
  int32_t num_ps;
  int32_t num_workers;
  int32_t workers_up; /* that have work, or may have it */
  int64_t queued;     /* closures that no worker has */
  int64_t in_flight;  /* that one has */
  int64_t scheduled;  /* in all */
  int64_t completed;  /* that ended well */
  int64_t failed;
  int64_t cancelled;
  int64_t losses;      /* how often a closure came back from a worker */
  int64_t mark;        /* all closures below have ended */
  uint64_t bytes_sent; /* to all servers: messages, without what gRPC adds */
  uint64_t bytes_received;
} dist_coordinator_stats;
#define DIST_COORDINATOR_STATS_INIT \
  { sizeof(dist_coordinator_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * What the coordinator does now. `out_stats->struct_size` says how much of it to write.
 *
 * Errors   INVALID_ARGUMENT  NULL, or struct_size is too small. FAILED_PRECONDITION a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_query(const dist_coordinator *coordinator,
                                                           dist_coordinator_stats *out_stats);

/**
 * Writes the latest 16,384 closures in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) opens: a row for each
 * worker, on which a slice is the time from when a closure was sent until its end; where a worker has several closures at a
 * time they overlap. Times are the steady clock's. dist_write_trace() of the coordinator's strategy has the same beside the
 * collectives, and dist_server_write_trace() what each server did meanwhile.
 *
 * Blocks   For fn.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_coordinator_write_trace(const dist_coordinator *coordinator,
                                                                 dist_text_fn fn, void *user_data);

#ifdef __cplusplus
}
#endif
#endif /* DIST_COORDINATOR_EXPERIMENTAL_H */
