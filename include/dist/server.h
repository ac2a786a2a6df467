/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Servers: the tasks of a cluster that a coordinator (coordinator.h) gives work to, as tf.distribute.Server is. A parameter
 * server, a task of job "ps", keeps variables. A worker, a task of job "worker", runs closures: functions that it registers by
 * name, that read variables and change them.
 *
 *     dist_server_create(cluster, "worker", 0, NULL, &server);      every task runs the same program
 *     dist_server_register(server, "train", train, NULL, NULL);
 *     dist_server_start(server);
 *     dist_server_join(server, -1, NULL);                           until the coordinator says that it is over
 *     dist_server_destroy(server);
 *
 * where `train` may be
 *
 *     static dist_status train(dist_closure *closure, dist_value *arguments, dist_value **out_result, void *user_data) {
 *       const char *names[] = {"w"};
 *       dist_value *w, *gradient;
 *       dist_status status = dist_closure_read(closure, names, 1, &w);
 *       if (status == DIST_OK) status = compute(w, arguments, &gradient);
 *       if (status == DIST_OK) status = dist_closure_assign(closure, "w", DIST_ASSIGN_SUB, gradient);
 *       ...
 *       return status;
 *     }
 *
 * Servers and coordinators speak by gRPC (libdist-grpc.so), and the environment says how, as workers.h has it:
 * DIST_JOB_SECRET, DIST_TLS_CA, DIST_TLS_CERTIFICATE and DIST_TLS_KEY, DIST_PLAINTEXT, DIST_BIND_ADDRESS, DIST_LEASE_SECONDS,
 * DIST_MODULE_FOLDER. All tasks have the same secret and the same lease.
 *
 * Rules
 *   - Effects are exactly once. What a closure changes is kept on its worker until its function has returned DIST_OK, and goes
 *     then to each parameter server in one message, with the closure's number. A parameter server does what such a message says
 *     all at once or not at all, and the first time alone: whoever runs the closure again, because its worker was lost, changes
 *     nothing there a second time. Of several parameter servers one may have the changes of one run of the closure, and another
 *     those of the next run; and where one of them refuses, because an update function fails or memory is short, others may have
 *     changed although the closure has failed.
 *   - So a closure's reads do not see its own changes.
 *   - A server ends for its coordinator when nothing is heard of it for a lease. A worker that has been cut off, or stopped, has
 *     work again when it is back; a parameter server has lost its variables.
 *   - dist_server_join() ends when the coordinator ends, or is not heard of for two leases, and never waits for ever. A server
 *     that begins while the coordinator ends hears of it, too; one that begins later waits for start_timeout_ns.
 *   - A server has one coordinator in its life. Another one, at the same time or afterwards, finds nobody there, and says so when
 *     its time is over.
 */
#ifndef DIST_SERVER_H
#define DIST_SERVER_H

#include "types.h"

#endif /* DIST_SERVER_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_SERVER_EXPERIMENTAL_H)
#define DIST_SERVER_EXPERIMENTAL_H

#include "cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A task that a coordinator gives work to. */
typedef struct dist_server dist_server;
/** A function of a worker's, while it runs. */
typedef struct dist_closure dist_closure;

/**
 * A function that workers run. `arguments` is what was scheduled with it, borrowed: nothing as a value of kind
 * DIST_VALUE_NONE. What is handed over in *out_result is the closure's result, and NULL is nothing. With a status that is not
 * DIST_OK nothing changes on any parameter server, and the coordinator hears it with the text that dist_fail() has set. Values
 * are made with dist_get_strategy().
 */
typedef dist_status (*dist_closure_fn)(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                                       void *user_data);

/**
 * How a parameter server changes variables: `variables` are n tensors that lie there alike, of which the function writes the
 * elements; of a divided variable it is called for each part. `arguments` is what was given with the update, borrowed: of a
 * divided variable, tensors in it that have the variable's shape are the rows of this part. Called on oneTBB's threads, one at
 * a time. With a status that is not DIST_OK nothing has changed on this server, nor on those that are to call no function.
 * Where several are to call one, for parts of a divided variable or by several updates of a closure, others may have changed.
 */
typedef dist_status (*dist_server_update_fn)(dist_tensor *variables, size_t n, dist_value *arguments,
                                             void *user_data);

typedef struct dist_server_options {
  uint32_t struct_size;
  int32_t num_threads; /* closures that a worker runs at a time; 0: 1 */
  const char
      *bind_address; /* where it listens; NULL: DIST_BIND_ADDRESS, else the task's address in the cluster */
  int64_t
      start_timeout_ns; /* how long dist_server_join() waits for a coordinator that has not come; 0: 600 s; < 0: no limit */
  int64_t max_message_bytes; /* of one message, and so of one part of a variable; 0: 1 GiB */
  dist_allocator allocator;  /* all zero: malloc and free */
} dist_server_options;
#define DIST_SERVER_OPTIONS_INIT                         \
  {                                                      \
    sizeof(dist_server_options), 0, 0, 0, 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_server_options. */
DIST_API void dist_server_options_init(dist_server_options *options, uint32_t struct_size_bytes);

/**
 * Makes the server of a task, which does not listen before dist_server_start(). Its address is the task's; with port 0 the
 * system chooses one.
 *
 * `cluster` NULL, `job` NULL and `index` DIST_TASK_UNSET are as TF_CONFIG says.
 *
 * Owns     *out_server is the caller's: dist_server_destroy(). The cluster is not used after the call.
 * Errors   INVALID_ARGUMENT    out_server is NULL; no such task; its address is no host:port; an option is out of its range;
 *                              TF_CONFIG is none.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_server_create(const dist_cluster_spec *cluster, const char *job,
                                                       int32_t index, const dist_server_options *options,
                                                       dist_server **out_server);

/**
 * Makes a server for trying things out: at 127.0.0.1, on a port that the system chooses when it is started. A coordinator may
 * have it for any worker or parameter server of its cluster.
 *
 * Owns     As dist_server_create().
 * Errors   As dist_server_create().
 */
DIST_API DIST_NODISCARD dist_status dist_server_create_local(const dist_server_options *options,
                                                             dist_server **out_server);

/**
 * Registers a closure under a name of up to 255 bytes.
 *
 * Context  Any, serialized.
 * Owns     user_data is used until release(user_data), at the server's end; release may be NULL. On an error it is not called.
 * Errors   INVALID_ARGUMENT     NULL; the name.
 *          ALREADY_EXISTS       there is such a closure.
 *          FAILED_PRECONDITION  the server has been started.
 */
DIST_API DIST_NODISCARD dist_status dist_server_register(dist_server *server, const char *name,
                                                         dist_closure_fn fn, void *user_data,
                                                         dist_release_fn release);

/** As dist_server_register(), of a function by which a parameter server changes variables. */
DIST_API DIST_NODISCARD dist_status dist_server_register_update(dist_server *server, const char *name,
                                                                dist_server_update_fn fn, void *user_data,
                                                                dist_release_fn release);

/**
 * Listens, and makes the threads for closures.
 *
 * Context  Any, serialized.
 * Blocks   Until it listens.
 * Errors   FAILED_PRECONDITION  it has been started before; off loopback neither TLS nor, with DIST_PLAINTEXT=1, a secret; a
 *                               forked child.
 *          UNAVAILABLE          the address cannot be listened on, or libdist-grpc.so is not installed.
 *          INVALID_ARGUMENT     a variable of the environment has no value that it can have.
 *          NOT_FOUND            a file that such a variable names is not there.
 *          RESOURCE_EXHAUSTED   no memory, or no further thread.
 */
DIST_API DIST_NODISCARD dist_status dist_server_start(dist_server *server);

/**
 * Where coordinators find it: "grpc://host:port", with the port that the system has chosen. "" for NULL.
 *
 * Owns     Borrowed: valid while the server is, and until it is started.
 */
DIST_API const char *dist_server_target(const dist_server *server);

/**
 * Waits for the server's end: that of its coordinator, or dist_server_stop(). The server goes on listening until
 * dist_server_destroy().
 *
 * Blocks   At most timeout_ns (0: not at all; < 0: without limit).
 * Errors   DEADLINE_EXCEEDED    not within timeout_ns; or no coordinator has come within start_timeout_ns.
 *          UNAVAILABLE          the coordinator has not been heard of for two leases.
 *          CANCELLED            `cancel`, which may be NULL.
 *          FAILED_PRECONDITION  it has not been started; inside one of its functions; a forked child.
 *          INVALID_ARGUMENT     NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_server_join(dist_server *server, int64_t timeout_ns,
                                                     dist_cancel *cancel);

/**
 * Writes what the server has done, the latest 16,384 stretches of time, in Chrome's trace-event format for Perfetto, as
 * dist_write_trace() has it: of a worker a row for each thread, with a slice for each closure and in it those of reading and
 * changing variables; of a parameter server one row with a slice for each call (arguments: the closure's id, the status,
 * how long the call waited for those before it). A commit that had been applied before is "commit of before". Times are the
 * steady clock's, and no process has the number of another task's, so that the traces of a job's servers and of its coordinator
 * can be joined as dist_write_trace() says.
 *
 * Blocks   For fn.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_server_write_trace(dist_server *server, dist_text_fn fn,
                                                            void *user_data);

/** Ends dist_server_join(), which returns DIST_OK. NULL is ignored. */
DIST_API void dist_server_stop(dist_server *server);

/**
 * Ends the server: its coordinator loses it, and of closures that run the cancel object is signalled.
 *
 * Context  Any, serialized. NULL is fine. In a forked child nothing is done.
 * Blocks   Until functions that run have returned, and for a lease at most until answers are on their way.
 * Owns     Takes the server, unless it fails.
 * Errors   FAILED_PRECONDITION  inside one of its functions.
 */
DIST_API DIST_NODISCARD dist_status dist_server_destroy(dist_server *server);

/* ---- Inside closures: by the thread that runs the function, while it runs ---- */

/** The name by which it was scheduled. */
DIST_API const char *dist_closure_name(const dist_closure *closure);

/**
 * Its number: how many closures the coordinator has scheduled before it. -1 for NULL, and where the function makes a per-worker
 * value: dist_coordinator_create_per_worker().
 */
DIST_API int64_t dist_closure_id(const dist_closure *closure);

/** Which worker runs it: the index of its task. -1 for NULL. */
DIST_API int32_t dist_closure_worker(const dist_closure *closure);

/**
 * Signalled when nobody wants its result any more: another closure has failed, or the coordinator is gone. For what the
 * function waits in.
 *
 * Owns     Borrowed: valid while the function runs.
 */
DIST_API dist_cancel *dist_closure_cancel(const dist_closure *closure);

/**
 * Reads n variables: what they are now, or were at most max_staleness of this worker's closures ago
 * (dist_ps_variable_options). Those of one parameter server are of one moment.
 *
 * Shape    The variables'.
 * Blocks   Until the parameter servers have answered.
 * Owns     out_values[i] is the caller's: dist_value_release(). Its elements must not be written.
 * Errors   INVALID_ARGUMENT    NULL.
 *          NOT_FOUND           no such variable.
 *          ABORTED             a parameter server is lost. Return it: the coordinator knows what to do.
 *          CANCELLED           the closure's cancel object.
 *          RESOURCE_EXHAUSTED  no memory; more bytes than a message may have.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_read(dist_closure *closure, const char *const *names,
                                                      size_t n, dist_value **out_values);

/**
 * Reads rows of a variable, as an embedding is looked up.
 *
 *     (*out_value)[k] = variable[indices[k]]
 *
 * Shape    indices i32 or i64 [k], the variable [n, rest], *out_value [k, rest].
 * Blocks   As dist_closure_read(), and nothing is cached.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_closure_read(); INVALID_ARGUMENT also for an index that is not in 0 .. n-1.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_read_rows(dist_closure *closure, const char *name,
                                                           dist_value *indices, dist_value **out_value);

/**
 * Changes a variable, once the closure has ended well.
 *
 *     variable = value      (or variable + value, variable - value: DIST_ASSIGN, DIST_ASSIGN_ADD, DIST_ASSIGN_SUB)
 *
 * Shape    The variable's shape and dtype.
 * Order    A closure's changes in the order of the calls; those of closures in the order in which they end.
 * Owns     The value is held until the closure has ended, and its elements must stay as they are.
 * Errors   INVALID_ARGUMENT     NULL, an unknown `how`, another shape or dtype.
 *          NOT_FOUND            no such variable.
 *          FAILED_PRECONDITION  in a function that makes a per-worker value.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_assign(dist_closure *closure, const char *name, int32_t how,
                                                        dist_value *value);

/**
 * Changes rows of a variable, once the closure has ended well, as dist_variable_scatter() does.
 *
 *     k = 0, 1, ...:   variable[indices[k]] = op(variable[indices[k]], values[k])
 *
 * Shape    Indexed slices: values [k, rest] and indices [k] for a variable [n, rest].
 * Order    As dist_closure_assign(); row by row as given.
 * Owns     As dist_closure_assign().
 * Errors   As dist_closure_assign(); UNIMPLEMENTED of DIST_SCATTER_BATCH_UPDATE.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_scatter(dist_closure *closure, const char *name, int32_t how,
                                                         dist_value *slices);

/**
 * Changes n variables that lie alike, once the closure has ended well, by a function that the parameter servers have
 * registered: dist_server_register_update(). So an optimizer's state stays with its variable: options.colocate_with.
 *
 * Order    As dist_closure_assign().
 * Owns     `arguments`, which may be NULL, as the value of dist_closure_assign().
 * Errors   As dist_closure_assign(); INVALID_ARGUMENT also where the variables do not lie alike. That there is no such
 *          function is NOT_FOUND, and an error of the closure's at its end, as are the function's own.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_update(dist_closure *closure, const char *function,
                                                        const char *const *names, size_t n,
                                                        dist_value *arguments);

/**
 * What dist_coordinator_create_per_worker() has made on this worker: whatever its function gave, pointers of the host's too.
 *
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT  NULL.
 *          NOT_FOUND         there is none of this name.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_per_worker(dist_closure *closure, const char *name,
                                                            dist_value **out_value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_SERVER_EXPERIMENTAL_H */
