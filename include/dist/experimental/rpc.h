/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Remote procedure calls: call functions of another process, as with tf.distribute.experimental.rpc.
 *
 * A server registers functions (methods) by name. A client calls a method with a value and receives a value.
 *
 *     // a method of the server
 *     static dist_status add(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
 *                            void *user_data) {
 *       dist_tensor a, b;
 *       if (dist_value_tensor(dist_value_item(arguments, 0), &a) != DIST_OK ||
 *           dist_value_tensor(dist_value_item(arguments, 1), &b) != DIST_OK)
 *         return dist_fail(DIST_INVALID_ARGUMENT, "add takes two numbers");
 *       float sum = *(float *)a.data + *(float *)b.data;
 *       const dist_tensor result = {&sum, DIST_F32, 0, NULL, NULL};
 *       return dist_value_create_tensor(dist_get_strategy(), &result, out_result);
 *     }
 *
 *     // in one process
 *     dist_rpc_server *server = NULL;
 *     dist_rpc_server_create("grpc", "127.0.0.1:29600", NULL, &server);
 *     dist_rpc_server_register(server, "add", add, NULL, NULL);
 *     dist_rpc_server_start(server);
 *
 *     // in another one; arguments is a tuple of two tensors, see dist_value_create_tuple()
 *     dist_rpc_client *client = NULL;
 *     dist_value *sum = NULL;
 *     dist_rpc_client_create("grpc", "127.0.0.1:29600", NULL, &client);
 *     dist_rpc_call(client, "add", arguments, NULL, &sum);
 *
 * Servers and clients communicate over gRPC (libdist-grpc.so). libdist starts no threads and opens no sockets for them
 * before they are created. The environment variables are those of workers.h: DIST_JOB_SECRET, DIST_TLS_CA,
 * DIST_TLS_CERTIFICATE, DIST_TLS_KEY, DIST_PLAINTEXT, DIST_LEASE_SECONDS and DIST_MODULE_FOLDER. Both sides need the
 * same secret and the same lease. Addresses other than loopback require TLS, or DIST_PLAINTEXT=1 and a secret. With
 * TLS, the client checks that the server's certificate names the host of its address; a client can have any certificate
 * that the authority signed.
 *
 *   - A client can be created before its server starts. A call waits for the server until the call's deadline. Only a
 *     server that has proven that it knows the secret can reject the client earlier; anything else at the address, such
 *     as another job or a failed TLS handshake, is retried, and the message lists what was met. Once the call's
 *     request is being sent, the loss of the server or of the connection ends the call with UNAVAILABLE; the method may
 *     or may not have run. A side that is silent for a lease counts as lost.
 *   - With DIST_JOB_SECRET, processes that do not know the secret can neither fill a server's memory nor keep it from
 *     answering its clients. Without it, a server cannot tell clients from strangers: anyone who can connect (with TLS,
 *     anyone who has a certificate of the authority) can call its methods and make it use memory. It still limits
 *     connections that have not identified themselves as clients, to 256 or an eighth of the file descriptors. In both
 *     cases a server that had no file descriptors left accepts connections again when it has some.
 *   - gRPC cannot be used in a forked child of a process that has used it: creating a client or starting a server there
 *     fails with FAILED_PRECONDITION. Fork earlier, or let the child execute another program.
 *   - Values that can be sent are tensors, texts, NONE, composites, and lists, tuples and dictionaries of these. A
 *     variable is sent as its value, and a strided tensor in row-major order. Values with several replicas and host
 *     pointers fail with INVALID_ARGUMENT. The receiver owns received values; their tensors are not copied.
 *   - A message has at most 256 MiB. Its structure has at most 1 MiB and 65,536 values. A server accepts at most 1,024
 *     calls and 1 GiB of requests from one client at a time. Calls above these limits fail with RESOURCE_EXHAUSTED. A
 *     server accepts 1,024 clients; further ones are rejected with UNAVAILABLE until another one ends. Large messages
 *     are sent in pieces of 512 KiB, interleaved with others.
 *
 * This interface is experimental: it may change or be removed in any version.
 */
#ifndef DIST_EXPERIMENTAL_RPC_H
#define DIST_EXPERIMENTAL_RPC_H

#include "../types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A server: offers methods to clients. */
typedef struct dist_rpc_server dist_rpc_server;
/** A client: calls the methods of one server. */
typedef struct dist_rpc_client dist_rpc_client;
/** The future result of a call. */
typedef struct dist_remote_value dist_remote_value;

/** Information about a call, for its method; valid during the call. */
typedef struct dist_rpc_context {
  const char *method; /* name of the method */
  /* signalled when no client waits for the result any more; pass it to calls in which the method waits; borrowed */
  dist_cancel *cancel;
  int64_t timeout_ns; /* how long the client waits in total; 0 = it waits without limit */
} dist_rpc_context;

/**
 * A method. `arguments` is the client's value, borrowed; it has kind DIST_VALUE_NONE if the client passed none. The
 * method transfers its result to libdist in *out_result, which may be NULL for none. If it fails, the client receives
 * its status and the text set with dist_fail(). Methods run on threads of the server, several at a time. Use
 * dist_get_strategy() to create values.
 */
typedef dist_status (*dist_rpc_fn)(const dist_rpc_context *context, dist_value *arguments,
                                   dist_value **out_result, void *user_data);

/** Options of dist_rpc_server_create(). */
typedef struct dist_rpc_server_options {
  uint32_t struct_size;
  int32_t reserved;    /* must be 0 */
  int32_t num_threads; /* number of threads that run methods, 1 to 1,024; 0 = default (4) */
  /* maximum number of calls waiting for a thread, 1 to 2^20; further ones fail with RESOURCE_EXHAUSTED; 0 = default
     (1024) */
  int32_t max_queued;
  dist_allocator allocator; /* all zero = malloc() and free() */
} dist_rpc_server_options;
#define DIST_RPC_SERVER_OPTIONS_INIT                      \
  {                                                       \
    sizeof(dist_rpc_server_options), 0, 0, 0, { 0, 0, 0 } \
  }

/** Initializes a dist_rpc_server_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_rpc_server_options_init(dist_rpc_server_options *options, uint32_t struct_size_bytes);

/**
 * Creates a server. It does not listen before dist_rpc_server_start().
 *
 * `rpc_layer` is "grpc"; "" and NULL mean the same. `address` is "host:port" or "[v6]:port"; with port 0, the system
 * chooses a port. If the host is an IP address or localhost, the server listens on it, or on all interfaces for 0.0.0.0
 * and [::]. If the host is another name, the server listens on all interfaces and does not resolve the name.
 *
 * Owns     The caller owns *out_server and destroys it with dist_rpc_server_destroy().
 * Errors   INVALID_ARGUMENT    a required argument is NULL, the rpc_layer is unknown, the address is invalid, or an
 *                              option is out of range.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_create(const char *rpc_layer, const char *address,
                                                           const dist_rpc_server_options *options,
                                                           dist_rpc_server **out_server);

/**
 * Registers a method under a name of up to 255 bytes, which must not begin with "dist.".
 *
 * Context  Any, serialized.
 * Owns     user_data is used until the server is destroyed and calls release(user_data); release may be NULL. If this
 *          function fails, release is not called.
 * Errors   INVALID_ARGUMENT     server, method or fn is NULL, or the name is invalid.
 *          ALREADY_EXISTS       a method with this name exists.
 *          FAILED_PRECONDITION  the server has been started.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_register(dist_rpc_server *server, const char *method,
                                                             dist_rpc_fn fn, void *user_data,
                                                             dist_release_fn release);

/**
 * Starts the server: creates its threads and listens.
 *
 * Context  Any, serialized.
 * Blocks   Until the server listens.
 * Errors   FAILED_PRECONDITION  the server has already been started; the address is not loopback and has neither TLS
 *                               nor DIST_PLAINTEXT=1 with a secret; or this is a forked child.
 *          UNAVAILABLE          the server cannot listen on the address, or libdist-grpc.so is not installed.
 *          INVALID_ARGUMENT     server is NULL, or an environment variable has an invalid value.
 *          NOT_FOUND            a file named by an environment variable does not exist.
 *          RESOURCE_EXHAUSTED   out of memory, or the system cannot create another thread.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_start(dist_rpc_server *server);

/**
 * Returns the address for clients, "host:port", with the port that the system has chosen; "" for NULL.
 *
 * Owns     The result is borrowed: valid while the server exists. dist_rpc_server_start() invalidates earlier results.
 */
DIST_API const char *dist_rpc_server_address(const dist_rpc_server *server);

/**
 * Stops and destroys a server. New calls are rejected, calls that wait for a thread fail with UNAVAILABLE, and the
 * cancel objects of running methods are signalled. Does nothing if `server` is NULL, or in a forked child.
 *
 * Context  Any, serialized.
 * Blocks   Until running methods have returned, and for up to a lease until their results have been sent.
 * Owns     Takes ownership of the server, unless it fails.
 * Errors   FAILED_PRECONDITION  called inside one of the server's methods.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_destroy(dist_rpc_server *server);

/** Options of dist_rpc_client_create(). */
typedef struct dist_rpc_client_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* timeout of calls that do not set their own; 0 = default (600 s), DIST_NO_TIMEOUT = no limit. Timeouts of more than
   * 2^48 ns (78 hours) count as 2^48 ns. */
  int64_t timeout_ns;
  dist_allocator allocator; /* all zero = malloc() and free() */
} dist_rpc_client_options;
#define DIST_RPC_CLIENT_OPTIONS_INIT                   \
  {                                                    \
    sizeof(dist_rpc_client_options), 0, 0, { 0, 0, 0 } \
  }

/** Initializes a dist_rpc_client_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_rpc_client_options_init(dist_rpc_client_options *options, uint32_t struct_size_bytes);

/**
 * Creates a client of the server at `address`. The server need not exist yet: nothing is sent before the first call.
 *
 * Owns     The caller owns *out_client and destroys it with dist_rpc_client_destroy().
 * Errors   INVALID_ARGUMENT     a required argument is NULL, the rpc_layer is unknown, the address or an environment
 *                               variable is invalid, or an option is out of range.
 *          NOT_FOUND            a file named by an environment variable does not exist.
 *          FAILED_PRECONDITION  the address is not loopback and has neither TLS nor DIST_PLAINTEXT=1 with a secret; or
 *                               this is a forked child.
 *          UNAVAILABLE          libdist-grpc.so is not installed.
 *          RESOURCE_EXHAUSTED   out of memory, or the system cannot create another thread.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_client_create(const char *rpc_layer, const char *address,
                                                           const dist_rpc_client_options *options,
                                                           dist_rpc_client **out_client);

/**
 * Destroys a client. Calls without an answer complete with CANCELLED; remote values stay readable. Does nothing if
 * `client` is NULL, or in a forked child.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the client.
 */
DIST_API void dist_rpc_client_destroy(dist_rpc_client *client);

/** Options of dist_rpc_call(), dist_rpc_begin() and dist_rpc_client_methods(). */
typedef struct dist_rpc_call_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  int64_t
      timeout_ns; /* time limit from the call to its answer; 0 = the client's timeout, DIST_NO_TIMEOUT = no limit */
  dist_cancel *cancel; /* cancels the call; retained until the call has completed; may be NULL */
} dist_rpc_call_options;
#define DIST_RPC_CALL_OPTIONS_INIT \
  { sizeof(dist_rpc_call_options), 0, 0, 0 }

/** Initializes a dist_rpc_call_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_rpc_call_options_init(dist_rpc_call_options *options, uint32_t struct_size_bytes);

/**
 * Calls a method and waits for its result. `arguments` may be NULL for none.
 *
 * Blocks   Until the result arrives, up to the call's timeout.
 * Owns     The caller owns *out_result and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT    a required argument is NULL, the name is invalid, or the value cannot be sent.
 *          NOT_FOUND           the server has no such method.
 *          DEADLINE_EXCEEDED   there was no answer in time; the text states whether the server could be reached.
 *          CANCELLED           options->cancel was signalled, or the client was destroyed.
 *          UNAVAILABLE         the server has ended, is silent, or rejects this client.
 *          RESOURCE_EXHAUSTED  a limit of the server or the client was exceeded, or libdist is out of memory.
 *          any                 the status that the method returned, with its text.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_call(dist_rpc_client *client, const char *method,
                                                  dist_value *arguments, const dist_rpc_call_options *options,
                                                  dist_value **out_result);

/**
 * Calls a method without waiting. *out_remote receives the result later, including errors of the server.
 *
 * Owns     The caller owns *out_remote and releases it with dist_remote_value_release(). `arguments` is retained until
 *          it has been sent.
 * Errors   INVALID_ARGUMENT    a required argument is NULL, the name is invalid, or the value cannot be sent.
 *          CANCELLED           options->cancel was already signalled.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_begin(dist_rpc_client *client, const char *method,
                                                   dist_value *arguments,
                                                   const dist_rpc_call_options *options,
                                                   dist_remote_value **out_remote);

/**
 * Returns the names of the server's methods, as a sorted list of texts.
 *
 * Blocks   Like dist_rpc_call().
 * Owns     The caller owns *out_names and releases it with dist_value_release().
 * Errors   Like dist_rpc_call().
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_client_methods(dist_rpc_client *client,
                                                            const dist_rpc_call_options *options,
                                                            dist_value **out_names);

/**
 * Waits for a call to complete and returns its value or its error. It can be called repeatedly, by any thread, and
 * always returns the same result.
 *
 * Blocks   Until the call completes, up to timeout_ns (0: does not wait) and the call's own timeout.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_rpc_call(), and
 *          INVALID_ARGUMENT   an argument is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          DEADLINE_EXCEEDED  not completed within timeout_ns (the call continues), or within the call's own timeout.
 */
DIST_API DIST_NODISCARD dist_status dist_remote_value_get(dist_remote_value *remote, int64_t timeout_ns,
                                                          dist_value **out_value);

/** Returns 1 if dist_remote_value_get() would not wait, else 0; 0 for NULL. */
DIST_API int32_t dist_remote_value_ready(dist_remote_value *remote);

/**
 * Cancels the call and notifies the server; the call completes with CANCELLED. If it has already completed, nothing
 * happens. For a running closure (coordinator.h), only the wait is cancelled. Does nothing if `remote` is NULL.
 */
DIST_API void dist_remote_value_cancel(dist_remote_value *remote);

/**
 * Adds a reference and returns its argument. Does nothing for NULL.
 *
 * Owns     The caller must call dist_remote_value_release() once more.
 */
DIST_API dist_remote_value *dist_remote_value_retain(dist_remote_value *remote);

/**
 * Removes a reference. The last one cancels a call in progress, but not a closure. Does nothing for NULL.
 *
 * Owns     Takes a reference.
 */
DIST_API void dist_remote_value_release(dist_remote_value *remote);

#ifdef __cplusplus
}
#endif
#endif /* DIST_EXPERIMENTAL_RPC_H */
