/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Servers: the tasks of a cluster to which a coordinator (coordinator.h) sends work, like tf.distribute.Server.
 *
 * A parameter server is a task of job "ps" and stores variables. A worker is a task of job "worker" and runs closures:
 * functions that it registers by name, which read and change variables. All tasks run the same program:
 *
 *     static dist_status train(dist_closure *closure, dist_value *arguments, dist_value **out_result,
 *                              void *user_data) {
 *       const char *names[] = {"w"};
 *       dist_value *w = NULL, *gradient = NULL;
 *       dist_status status = dist_closure_read(closure, names, 1, &w);
 *       if (status == DIST_OK) status = compute(w, arguments, &gradient);
 *       if (status == DIST_OK) status = dist_closure_assign(closure, "w", DIST_ASSIGN_SUB, gradient);
 *       dist_value_release(gradient);
 *       dist_value_release(w);
 *       return status;
 *     }
 *
 *     dist_server *server = NULL;
 *     dist_server_create(NULL, NULL, DIST_TASK_UNSET, NULL, &server);    // the task that TF_CONFIG specifies
 *     dist_server_register(server, "train", train, NULL, NULL);
 *     dist_server_start(server);
 *     dist_server_join(server, DIST_NO_TIMEOUT, NULL);                   // until the coordinator ends the job
 *     status = dist_server_destroy(server);
 *
 * Servers and coordinators communicate over gRPC (libdist-grpc.so). The environment variables are those of workers.h:
 * DIST_JOB_SECRET, DIST_TLS_CA, DIST_TLS_CERTIFICATE, DIST_TLS_KEY, DIST_PLAINTEXT, DIST_BIND_ADDRESS,
 * DIST_LEASE_SECONDS and DIST_MODULE_FOLDER. All tasks need the same secret and the same lease.
 *
 *   - Effects are applied exactly once. libdist keeps a closure's changes on the worker until the function has returned
 *     DIST_OK. Then it sends them to each parameter server in one message, with the number of the closure. A parameter
 *     server applies such a message completely or not at all, and only the first time: if another worker runs the
 *     closure again, because its worker was lost, that run changes nothing there.
 *   - With several parameter servers, one may have the changes of one run of the closure and another those of the next
 *     run. If one of them rejects the changes, because an update function fails or memory is exhausted, others may have
 *     applied theirs although the closure has failed.
 *   - A closure's reads do not see its own changes.
 *   - If a server is silent for a lease, the coordinator considers it lost. A worker that was unreachable or stopped
 *     receives work again when it is back; a parameter server has lost its variables.
 *   - dist_server_join() returns when the coordinator ends, or has been silent for two leases, so it never waits
 *     forever. A server that starts while the coordinator is ending is notified too; one that starts later waits for
 *     start_timeout_ns.
 *   - A server has one coordinator in its lifetime. Calls of another coordinator fail with FAILED_PRECONDITION: at once
 *     while the first one is alive, and after one lease if the server has ended but is not destroyed or replaced by a
 *     new one at its address.
 *
 * This interface is experimental: it may change or be removed in any version.
 */
#ifndef DIST_EXPERIMENTAL_SERVER_H
#define DIST_EXPERIMENTAL_SERVER_H

#include "../cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A task to which a coordinator sends work. */
typedef struct dist_server dist_server;
/** A running closure on a worker. */
typedef struct dist_closure dist_closure;

/**
 * A closure: a function that workers run. `arguments` is the value that was scheduled with it, borrowed; it has kind
 * DIST_VALUE_NONE if there is none. The function transfers its result to libdist in *out_result, which may be NULL for
 * none. If it fails, no parameter server changes anything, and the coordinator receives the status and the text set
 * with dist_fail(). Use dist_get_strategy() to create values.
 */
typedef dist_status (*dist_closure_fn)(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                                       void *user_data);

/**
 * An update function, with which a parameter server changes variables. `variables` are n tensors that are colocated
 * (with the same parts on the same servers); the function writes their elements. For a partitioned variable it is
 * called for each part. `arguments` is the value that was passed with the update, borrowed; tensors in it that have the
 * shape of the partitioned variable are replaced by the rows of this part. Called on oneTBB threads, one call at a
 * time.
 *
 * If the function fails, nothing changes on this server, nor on servers that need not call a function. If several
 * servers must call one, for parts of a partitioned variable or for several updates of a closure, others may have
 * changed.
 */
typedef dist_status (*dist_server_update_fn)(dist_tensor *variables, size_t n, dist_value *arguments,
                                             void *user_data);

/** Options of dist_server_create() and dist_server_create_local(). */
typedef struct dist_server_options {
  uint32_t struct_size;
  int32_t num_threads; /* closures that a worker runs at the same time, 1 to 1,024; 0 = default (1) */
  /* address to listen on; NULL = DIST_BIND_ADDRESS. If that is not set either, the server listens on the port of the
     task's address: only on that address if it is localhost or a loopback address, otherwise on all interfaces */
  const char *bind_address;
  /* how long dist_server_join() waits for a coordinator to connect; 0 = default (600 s), DIST_NO_TIMEOUT = no limit */
  int64_t start_timeout_ns;
  /* maximum size of a message, and so of one part of a variable, up to 64 GiB; 0 = default (1 GiB) */
  size_t max_message_bytes;
  dist_allocator allocator; /* all zero = malloc() and free() */
} dist_server_options;
#define DIST_SERVER_OPTIONS_INIT                         \
  {                                                      \
    sizeof(dist_server_options), 0, 0, 0, 0, { 0, 0, 0 } \
  }

/** Initializes a dist_server_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_server_options_init(dist_server_options *options, uint32_t struct_size_bytes);

/**
 * Creates the server of a task. It does not listen before dist_server_start(). Its address is that of the task; with
 * port 0, the system chooses a port.
 *
 * If `cluster` and `job` are NULL and `index` is DIST_TASK_UNSET, they are taken from TF_CONFIG.
 *
 * Owns     The caller owns *out_server and destroys it with dist_server_destroy(). The cluster is not used after the
 *          call.
 * Errors   INVALID_ARGUMENT    out_server is NULL, there is no such task, its address is not host:port, an option is
 *                              out of range, or TF_CONFIG is invalid.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_server_create(const dist_cluster_spec *cluster, const char *job,
                                                       int32_t index, const dist_server_options *options,
                                                       dist_server **out_server);

/**
 * Creates a server for experiments, on 127.0.0.1 and a port that the system chooses when the server starts. A
 * coordinator can use it as any worker or parameter server of its cluster.
 *
 * Owns     Like dist_server_create().
 * Errors   Like dist_server_create().
 */
DIST_API DIST_NODISCARD dist_status dist_server_create_local(const dist_server_options *options,
                                                             dist_server **out_server);

/**
 * Registers a closure under a name of up to 255 bytes.
 *
 * Context  Any, serialized.
 * Owns     user_data is used until the server is destroyed and calls release(user_data); release may be NULL. If this
 *          function fails, release is not called.
 * Errors   INVALID_ARGUMENT     server, name or fn is NULL, or the name is invalid.
 *          ALREADY_EXISTS       a closure with this name exists.
 *          FAILED_PRECONDITION  the server has been started.
 */
DIST_API DIST_NODISCARD dist_status dist_server_register(dist_server *server, const char *name,
                                                         dist_closure_fn fn, void *user_data,
                                                         dist_release_fn release);

/**
 * Registers an update function, with which a parameter server changes variables. Otherwise like dist_server_register().
 *
 * Context  Any, serialized.
 * Owns     Like dist_server_register().
 * Errors   Like dist_server_register().
 */
DIST_API DIST_NODISCARD dist_status dist_server_register_update(dist_server *server, const char *name,
                                                                dist_server_update_fn fn, void *user_data,
                                                                dist_release_fn release);

/**
 * Starts the server: creates the threads for closures and listens.
 *
 * Context  Any, serialized.
 * Blocks   Until the server listens.
 * Errors   FAILED_PRECONDITION  the server has already been started; the address is not loopback and has neither TLS
 *                               nor DIST_PLAINTEXT=1 with a secret; or this is a forked child.
 *          UNAVAILABLE          the server cannot listen on the address, or libdist-grpc.so is not installed.
 *          INVALID_ARGUMENT     server is NULL, or an environment variable has an invalid value.
 *          NOT_FOUND            a file that an environment variable names does not exist.
 *          RESOURCE_EXHAUSTED   out of memory, or the system cannot create another thread.
 */
DIST_API DIST_NODISCARD dist_status dist_server_start(dist_server *server);

/**
 * Returns the address for coordinators, "grpc://host:port", with the port that the system has chosen; "" for NULL.
 *
 * Owns     The result is borrowed: valid while the server exists. dist_server_start() invalidates earlier results.
 */
DIST_API const char *dist_server_target(const dist_server *server);

/**
 * Waits until the coordinator ends, or dist_server_stop() is called. The server continues to listen until
 * dist_server_destroy().
 *
 * Blocks   Up to timeout_ns (0: does not wait).
 * Errors   DEADLINE_EXCEEDED    timeout_ns expired, or no coordinator connected within start_timeout_ns.
 *          UNAVAILABLE          the coordinator has been silent for two leases.
 *          CANCELLED            `cancel`, which may be NULL, was signalled.
 *          FAILED_PRECONDITION  the server has not been started, or the call is made inside one of its functions or in
 *                               a forked child.
 *          INVALID_ARGUMENT     server is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 */
DIST_API DIST_NODISCARD dist_status dist_server_join(dist_server *server, int64_t timeout_ns,
                                                     dist_cancel *cancel);

/**
 * Writes a trace of what the server has done, in Chrome's trace-event format for Perfetto, like
 * dist_strategy_write_trace(). It contains the latest 16,384 intervals.
 *
 * For a worker, there is one row per thread with a slice for each closure, which contains slices for reading and
 * changing variables. For a parameter server, there is one row with a slice for each call; its arguments are the
 * closure's id, the status, and how long the call waited for earlier ones. A repeated commit that had already been
 * applied is named "commit of before". Times are those of the steady clock, and process numbers differ between tasks,
 * so you can merge the traces of all tasks of a job; dist_strategy_write_trace() describes how.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT     server or fn is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_server_write_trace(dist_server *server, dist_text_fn fn,
                                                            void *user_data);

/** Makes dist_server_join() return DIST_OK. Does nothing if `server` is NULL. */
DIST_API void dist_server_stop(dist_server *server);

/**
 * Stops and destroys a server. Its coordinator loses it, and the cancel objects of running closures are signalled. Does
 * nothing if `server` is NULL, or in a forked child.
 *
 * Context  Any, serialized.
 * Blocks   Until running functions have returned, and for up to a lease until their answers have been sent.
 * Owns     Takes ownership of the server, unless it fails.
 * Errors   FAILED_PRECONDITION  called inside one of the server's functions.
 */
DIST_API DIST_NODISCARD dist_status dist_server_destroy(dist_server *server);

/* ---- Inside closures: by the thread that runs the function, while it runs ---- */

/**
 * Returns the name under which the closure was scheduled; "" for NULL.
 *
 * Owns     The result is borrowed: valid while the function runs.
 */
DIST_API const char *dist_closure_name(const dist_closure *closure);

/**
 * Returns the number of the closure: how many closures the coordinator scheduled before it. -1 for NULL, and if the
 * function creates a per-worker value (dist_coordinator_create_per_worker()).
 */
DIST_API int64_t dist_closure_id(const dist_closure *closure);

/** Returns the index of the task that runs the closure; -1 for NULL. */
DIST_API int32_t dist_closure_worker(const dist_closure *closure);

/**
 * Returns a cancel object that is signalled when the closure's result is no longer needed, because another closure has
 * failed or the coordinator is gone. Pass it to calls in which the function waits.
 *
 * Owns     The result is borrowed: valid while the function runs.
 */
DIST_API dist_cancel *dist_closure_cancel(const dist_closure *closure);

/**
 * Reads n variables. The values are current, or older by at most max_staleness of this worker's closures
 * (dist_ps_variable_options). The values from one parameter server are consistent with each other.
 *
 * Shape    That of each variable.
 * Blocks   Until the parameter servers have answered.
 * Owns     The caller owns each out_values[i] and releases it with dist_value_release(). Its elements must not be
 *          written.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          NOT_FOUND           there is no such variable.
 *          ABORTED             a parameter server is lost. Return this status: the coordinator handles it.
 *          CANCELLED           the closure's cancel object was signalled.
 *          RESOURCE_EXHAUSTED  out of memory, or the values exceed the size of a message.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_read(dist_closure *closure, const char *const *names,
                                                      size_t n, dist_value **out_values);

/**
 * Reads rows of a variable, for example of an embedding.
 *
 *     (*out_value)[k] = variable[indices[k]]
 *
 * Shape    indices: i32 or i64 [k]; the variable: [n, rest]; *out_value: [k, rest].
 * Blocks   Like dist_closure_read(). Rows are not cached.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_closure_read(), and
 *          INVALID_ARGUMENT  an index is not in 0 .. n-1.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_read_rows(dist_closure *closure, const char *name,
                                                           dist_value *indices, dist_value **out_value);

/**
 * Changes a variable after the closure has succeeded.
 *
 *     variable = value      (or variable + value, variable - value: DIST_ASSIGN, DIST_ASSIGN_ADD, DIST_ASSIGN_SUB)
 *
 * Shape    The variable's shape and dtype.
 * Order    The changes of one closure in the order of the calls; those of different closures in the order in which they
 *          end.
 * Owns     The value is retained until the closure has ended, and its elements must not change until then.
 * Errors   INVALID_ARGUMENT     an argument is NULL, `how` is unknown, or the shape or dtype differs.
 *          NOT_FOUND            there is no such variable.
 *          FAILED_PRECONDITION  called in a function that creates a per-worker value.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_assign(dist_closure *closure, const char *name,
                                                        dist_assign_op how, dist_value *value);

/**
 * Changes rows of a variable after the closure has succeeded, as dist_variable_scatter() does.
 *
 *     k = 0, 1, ...:   variable[indices[k]] = op(variable[indices[k]], values[k])
 *
 * Shape    Indexed slices: values [k, rest] and indices [k] for a variable [n, rest].
 * Order    Like dist_closure_assign(); row by row in the given order.
 * Owns     Like dist_closure_assign().
 * Errors   Like dist_closure_assign(), and
 *          UNIMPLEMENTED  `how` is DIST_SCATTER_BATCH_UPDATE.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_scatter(dist_closure *closure, const char *name,
                                                         dist_scatter_op how, dist_value *slices);

/**
 * Changes n colocated variables, after the closure has succeeded, with a function that the parameter servers have
 * registered (dist_server_register_update()). An optimizer can use this to keep its state next to its variable; see
 * options.colocate_with.
 *
 * Order    Like dist_closure_assign().
 * Owns     `arguments` is retained as the value of dist_closure_assign() is; it may be NULL.
 * Errors   Like dist_closure_assign(), and
 *          INVALID_ARGUMENT  the variables are not colocated (with the same parts on the same servers). If the function
 *                            does not exist (NOT_FOUND) or fails, the closure fails with that status when it ends.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_update(dist_closure *closure, const char *function,
                                                        const char *const *names, size_t n,
                                                        dist_value *arguments);

/**
 * Returns the value that dist_coordinator_create_per_worker() created on this worker: any value that its function
 * returned, including host pointers.
 *
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 *          NOT_FOUND         there is no value with this name.
 */
DIST_API DIST_NODISCARD dist_status dist_closure_per_worker(dist_closure *closure, const char *name,
                                                            dist_value **out_value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_EXPERIMENTAL_SERVER_H */
