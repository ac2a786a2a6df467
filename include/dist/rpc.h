/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Methods of other processes, as tf.distribute.experimental.rpc has them: a server offers functions of its host's by name, a
 * client calls them with a value and gets one back. Both go over gRPC (libdist-grpc.so), and begin no thread and no socket
 * before they are made.
 *
 *     dist_rpc_server_create("grpc", "127.0.0.1:29600", NULL, &server);       in one process
 *     dist_rpc_server_register(server, "add", add, NULL, NULL);
 *     dist_rpc_server_start(server);
 *
 *     dist_rpc_client_create("grpc", "127.0.0.1:29600", NULL, &client);       in another one
 *     dist_rpc_call(client, "add", arguments, NULL, &sum);
 *
 * The environment says how the job's processes speak, as workers.h has it: DIST_JOB_SECRET, DIST_TLS_CA,
 * DIST_TLS_CERTIFICATE and DIST_TLS_KEY, DIST_PLAINTEXT, DIST_LEASE_SECONDS, DIST_MODULE_FOLDER. Both ends have the same secret
 * and the same lease. Off loopback there must be TLS, or DIST_PLAINTEXT=1 and a secret. With TLS a client checks that the
 * server's certificate is for the host of its address; a client may have any certificate of the authority's.
 *
 * where `add` may be
 *
 *     static dist_status add(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result, void *user_data) {
 *       dist_tensor a, b;
 *       if (dist_value_tensor(dist_value_item(arguments, 0), &a) || dist_value_tensor(dist_value_item(arguments, 1), &b))
 *         return dist_fail(DIST_INVALID_ARGUMENT, "add takes two numbers");
 *       float sum = *(float *)a.data + *(float *)b.data;
 *       const dist_tensor result = {&sum, DIST_F32, 0, NULL, NULL};
 *       return dist_value_create_tensor(dist_get_strategy(), &result, out_result);
 *     }
 *
 * and the arguments a tuple of two such values, dist_value_create_tuple().
 *
 * Rules
 *   - A client may be made before its server is there. A call waits until it is, up to the call's deadline. Once its request
 *     has begun to go, the end of the server or of the connection ends the call with UNAVAILABLE: nobody knows whether the
 *     method has run. A server that says nothing for a lease has ended for its clients, and a client for its server.
 *   - gRPC is of no use in a forked child of a process that has used it: making a client, or starting a server, there is
 *     FAILED_PRECONDITION. Fork before, or have the child run a program.
 *   - What goes over: tensors, texts, nothing, composites, and lists, tuples and dictionaries of them. A variable goes as its
 *     value, and a strided tensor row-major. Values of several replicas and pointers of the host's are INVALID_ARGUMENT. Values
 *     that come are the receiver's, and their tensors are not copied.
 *   - A message has at most 256 MiB, its structure at most 1 MiB and 65,536 values; of one client a server takes 1,024 calls
 *     and 1 GiB of requests at a time. Beyond that a call is RESOURCE_EXHAUSTED. A 1,025th client is refused, UNAVAILABLE, until
 *     another one has ended. Large messages go in pieces
 *     of 512 KiB, in turns with others.
 */
#ifndef DIST_RPC_H
#define DIST_RPC_H

#include "types.h"

#endif /* DIST_RPC_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_RPC_EXPERIMENTAL_H)
#define DIST_RPC_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Who offers methods. */
typedef struct dist_rpc_server dist_rpc_server;
/** Who calls them. */
typedef struct dist_rpc_client dist_rpc_client;
/** What a call comes to, later. */
typedef struct dist_remote_value dist_remote_value;

/** What a method knows of a call; there during the call. */
typedef struct dist_rpc_context {
  const char *method; /* its name */
  dist_cancel *
      cancel; /* signalled when nobody waits for the result any more: for what the method waits in; borrowed */
  int64_t timeout_ns; /* how long the client waits in all; 0: without limit */
} dist_rpc_context;

/**
 * A method. `arguments` is what the client gave, borrowed: nothing as a value of kind DIST_VALUE_NONE. What is handed over in
 * *out_result goes back to it, and NULL is nothing. A status that is not DIST_OK goes back with the text that dist_fail() has
 * set. Called on threads of the server's, several at a time. Values are made with dist_get_strategy().
 */
typedef dist_status (*dist_rpc_fn)(const dist_rpc_context *context, dist_value *arguments,
                                   dist_value **out_result, void *user_data);

typedef struct dist_rpc_server_options {
  uint32_t struct_size;
  int32_t reserved;    /* 0 */
  int32_t num_threads; /* on which methods run; 0: 4 */
  int32_t max_queued;  /* calls that wait for one of them; beyond it a call is RESOURCE_EXHAUSTED; 0: 1,024 */
  dist_allocator allocator; /* all zero: malloc and free */
} dist_rpc_server_options;
#define DIST_RPC_SERVER_OPTIONS_INIT                      \
  {                                                       \
    sizeof(dist_rpc_server_options), 0, 0, 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_rpc_server_options. */
DIST_API void dist_rpc_server_options_init(dist_rpc_server_options *options, uint32_t struct_size_bytes);

/**
 * Makes a server, which does not listen before dist_rpc_server_start().
 *
 * `rpc_layer` is "grpc", or "" or NULL, which mean it. `address` is "host:port" or "[v6]:port"; with port 0 the system chooses one.
 *
 * Owns     *out_server is the caller's: dist_rpc_server_destroy().
 * Errors   INVALID_ARGUMENT    NULL; another rpc_layer; no address; an option is out of its range.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_create(const char *rpc_layer, const char *address,
                                                           const dist_rpc_server_options *options,
                                                           dist_rpc_server **out_server);

/**
 * Offers a method, under a name of up to 255 bytes that does not begin with "dist.".
 *
 * Context  Any, serialized.
 * Owns     user_data is used until release(user_data), at the server's end; release may be NULL. On an error it is not called.
 * Errors   INVALID_ARGUMENT     NULL; the name.
 *          ALREADY_EXISTS       there is such a method.
 *          FAILED_PRECONDITION  the server has been started.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_register(dist_rpc_server *server, const char *method,
                                                             dist_rpc_fn fn, void *user_data,
                                                             dist_release_fn release);

/**
 * Listens, and makes the threads.
 *
 * Context  Any, serialized.
 * Blocks   Until it listens.
 * Errors   FAILED_PRECONDITION  it has been started before; off loopback neither TLS nor, with DIST_PLAINTEXT=1, a secret; a
 *                               forked child.
 *          UNAVAILABLE          the address cannot be listened on, or libdist-grpc.so is not installed.
 *          INVALID_ARGUMENT     a variable of the environment has no value that it can have.
 *          RESOURCE_EXHAUSTED   no memory, or no further thread.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_start(dist_rpc_server *server);

/**
 * Where clients find it: "host:port", with the port that the system has chosen. "" for NULL.
 *
 * Owns     Borrowed: valid while the server is, and until it is started.
 */
DIST_API const char *dist_rpc_server_address(const dist_rpc_server *server);

/**
 * Ends the server: what comes is refused, calls that wait for a thread are UNAVAILABLE, and of those that run the cancel
 * object is signalled.
 *
 * Context  Any, serialized. NULL is fine. In a forked child nothing is done.
 * Blocks   Until methods that run have returned, and for a lease at most until what they gave is on its way.
 * Owns     Takes the server, unless it fails.
 * Errors   FAILED_PRECONDITION  inside one of its methods.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_server_destroy(dist_rpc_server *server);

typedef struct dist_rpc_client_options {
  uint32_t struct_size;
  int32_t reserved;         /* 0 */
  int64_t timeout_ns;       /* of calls that have none of their own; 0: 600 s; < 0: no limit */
  dist_allocator allocator; /* all zero: malloc and free */
} dist_rpc_client_options;
#define DIST_RPC_CLIENT_OPTIONS_INIT                   \
  {                                                    \
    sizeof(dist_rpc_client_options), 0, 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_rpc_client_options. */
DIST_API void dist_rpc_client_options_init(dist_rpc_client_options *options, uint32_t struct_size_bytes);

/**
 * Makes a client of the server at `address`, which need not be there yet: nothing is sent before the first call.
 *
 * Owns     *out_client is the caller's: dist_rpc_client_destroy().
 * Errors   INVALID_ARGUMENT     NULL; another rpc_layer; no address.
 *          FAILED_PRECONDITION  off loopback neither TLS nor, with DIST_PLAINTEXT=1, a secret; a forked child.
 *          UNAVAILABLE          libdist-grpc.so is not installed.
 *          RESOURCE_EXHAUSTED   no memory, or no further thread.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_client_create(const char *rpc_layer, const char *address,
                                                           const dist_rpc_client_options *options,
                                                           dist_rpc_client **out_client);

/**
 * Ends the client. Calls that have no answer are CANCELLED; remote values stay readable. NULL is fine.
 *
 * Context  Any, serialized. In a forked child nothing is done.
 * Owns     Takes the client.
 */
DIST_API void dist_rpc_client_destroy(dist_rpc_client *client);

typedef struct dist_rpc_call_options {
  uint32_t struct_size;
  int32_t reserved;    /* 0 */
  int64_t timeout_ns;  /* from the call to its answer; 0: the client's; < 0: no limit */
  dist_cancel *cancel; /* ends the call with CANCELLED; held until it has ended; may be NULL */
} dist_rpc_call_options;
#define DIST_RPC_CALL_OPTIONS_INIT \
  { sizeof(dist_rpc_call_options), 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_rpc_call_options. */
DIST_API void dist_rpc_call_options_init(dist_rpc_call_options *options, uint32_t struct_size_bytes);

/**
 * Calls a method and waits for its result. `arguments` NULL is nothing.
 *
 * Blocks   Until there is a result, at most the call's time-out.
 * Owns     *out_result is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL; the name; a value that cannot be sent.
 *          NOT_FOUND            the server has no such method.
 *          DEADLINE_EXCEEDED    no answer in time; the text says whether the server could be reached.
 *          CANCELLED            options->cancel, or the end of the client.
 *          UNAVAILABLE          the server has ended, is silent, or refuses this client.
 *          RESOURCE_EXHAUSTED   a limit of the server's or the client's; no memory.
 *          any                  what the method returned, with its text.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_call(dist_rpc_client *client, const char *method,
                                                  dist_value *arguments, const dist_rpc_call_options *options,
                                                  dist_value **out_result);

/**
 * As dist_rpc_call(), without waiting: what the call comes to is in *out_remote, errors of the server's too.
 *
 * Owns     *out_remote is the caller's: dist_remote_value_release(). `arguments` is held until it has been sent.
 * Errors   INVALID_ARGUMENT    NULL; the name; a value that cannot be sent.
 *          CANCELLED           options->cancel was signalled before.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_begin(dist_rpc_client *client, const char *method,
                                                   dist_value *arguments,
                                                   const dist_rpc_call_options *options,
                                                   dist_remote_value **out_remote);

/**
 * The names of the server's methods, as a list of texts, sorted.
 *
 * Blocks   As dist_rpc_call().
 * Owns     *out_names is the caller's: dist_value_release().
 * Errors   As dist_rpc_call().
 */
DIST_API DIST_NODISCARD dist_status dist_rpc_client_methods(dist_rpc_client *client,
                                                            const dist_rpc_call_options *options,
                                                            dist_value **out_names);

/**
 * Waits for what a call comes to: its value, or its error. May be asked again, by any thread, and gives the same.
 *
 * Blocks   Until it is there: at most timeout_ns (0: not at all; < 0: without limit), and the call's own time-out.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT   NULL.
 *          DEADLINE_EXCEEDED  not within timeout_ns: the call goes on; or not within the call's own.
 *          Others             as dist_rpc_call().
 */
DIST_API DIST_NODISCARD dist_status dist_remote_value_get(dist_remote_value *remote, int64_t timeout_ns,
                                                          dist_value **out_value);

/** 1 where dist_remote_value_get() would not wait, else 0; 0 for NULL. */
DIST_API int32_t dist_remote_value_ready(dist_remote_value *remote);

/**
 * Ends the call with CANCELLED, unless it has ended, and tells the server. NULL is ignored. Of a closure that runs it ends the
 * wait alone (coordinator.h).
 */
DIST_API void dist_remote_value_cancel(dist_remote_value *remote);

/**
 * One reference more; returns its argument. NULL is fine.
 *
 * Owns     The caller owes one dist_remote_value_release() more.
 */
DIST_API dist_remote_value *dist_remote_value_retain(dist_remote_value *remote);

/**
 * One reference fewer. With the last one a call that is under way is given up, but no closure. NULL is fine.
 *
 * Owns     Takes a reference.
 */
DIST_API void dist_remote_value_release(dist_remote_value *remote);

#ifdef __cplusplus
}
#endif
#endif /* DIST_RPC_EXPERIMENTAL_H */
