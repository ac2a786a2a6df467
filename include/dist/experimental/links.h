/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Link modules: other ways to move data between worker processes.
 *
 * A link module moves bytes between two workers, for example over TCP or a network adapter of its own kind. libdist
 * does everything else: it finds out who the workers are and which of them are alive (over gRPC), makes both ends prove
 * that they know the job's secret, and divides the bytes into messages. Gloo's module (DIST_TRANSPORT_GLOO) uses this
 * interface; examples/link_module contains a module for plain TCP sockets.
 *
 *     static const dist_link_functions kTcp = {.struct_size = sizeof kTcp, .name = "tcp", .open = open_tcp, ...};
 *
 *     dist_transport transport = DIST_TRANSPORT_AUTO;
 *     dist_link_register(&kTcp, &transport);       // in each worker, before it creates its strategy
 *     dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
 *     worker.transport = transport;                // or set the environment variable DIST_TRANSPORT=tcp
 *
 * A program needs no such call if the module is a shared library `libdist-NAME.so` beside libdist-grpc.so, or in
 * DIST_MODULE_FOLDER, that exports the function DIST_LINK_MODULE_ENTRY. DIST_TRANSPORT=NAME then loads it.
 *
 * A link is one connection for the messages from one worker to another. Both ends call `listen`, exchange the addresses
 * over gRPC, and call `connect` with the other end's address. Exactly one end has `initiates` set. A module may let
 * that end connect and the other one accept. From then on the connection is an ordered, reliable stream of bytes in
 * both directions. libdist calls `write` and `read` to move as many bytes as possible without waiting. The module calls
 * `ready` whenever another attempt may succeed.
 *
 * Security: libdist treats the data of every module as unencrypted. It refuses to use a module together with TLS
 * certificates, and outside loopback unless DIST_PLAINTEXT=1. A module may accept a connection from anybody: libdist
 * reads a proof of fixed size first, cuts connections that fail it, and tries again with a new connection.
 *
 * This interface is experimental: it may change or be removed in any version.
 */
#ifndef DIST_EXPERIMENTAL_LINKS_H
#define DIST_EXPERIMENTAL_LINKS_H

#include "../types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** libdist's end of a link. */
typedef struct dist_link dist_link;

/** One block of memory. */
typedef struct dist_link_block {
  void *data;
  size_t size_bytes;
} dist_link_block;

/** The maximum number of blocks in one call of `write` or `read`. */
#define DIST_LINK_MAX_BLOCKS 3

/** The maximum size of an address, in bytes. */
#define DIST_LINK_MAX_ADDRESS_BYTES 256

/**
 * The functions that a module calls. They may be called by any thread of the module, but not inside one of its
 * functions.
 */
typedef struct dist_link_callbacks {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /**
   * The connection has been established, or there may be bytes to read or room to write. Before this returns, libdist
   * calls `read` until it returns 0, and `write` until it moves less than the whole or nothing is left, or leaves that
   * to another thread that is calling them. So edge-triggered events are sufficient. The caller must not hold a lock
   * that `read`, `write`, `listen`, `connect` or `cut` acquire.
   */
  void (*ready)(dist_link *link);
  /**
   * The connection has ended: after `cut`, because the peer is gone, or because of an error. The last call for this
   * link. `reason` is the text of an error, valid during the call; NULL or "" if the peer is gone or libdist has cut
   * the link.
   */
  void (*ended)(dist_link *link, const char *reason);
} dist_link_callbacks;

/** The options of a worker's links. Valid during the call. */
typedef struct dist_link_module_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* the IP address of this machine on which links will listen; NULL if it depends on the peer */
  const char *host;
  /* how long the peer's system may leave data unacknowledged before the connection must end, in nanoseconds */
  int64_t lease_ns;
  const dist_link_callbacks *callbacks; /* valid until `close` */
} dist_link_module_options;

/** One end of a link. Valid during the call. */
typedef struct dist_link_options {
  uint32_t struct_size;
  int32_t initiates; /* 1 at one end and 0 at the other */
  /* the IP address of this machine to listen on, of the same family as the peer's */
  const char *host;
  dist_link *link; /* for the callbacks */
} dist_link_options;

/**
 * How a module whose processes already belong to one job lets the workers meet. libdist sets struct_size, `round`,
 * `has_text` and, on rank 0, `text`; the module sets the rest.
 */
typedef struct dist_link_meeting {
  uint32_t struct_size;
  int32_t rank; /* of this process; -1 = not known yet, and nothing else is set */
  int32_t size; /* number of processes of the job, which all become workers */
  /* rank 0: 1 = `text` is to be sent; other ranks: set to 1 when `text` is that of rank 0 */
  int32_t has_text;
  /* 0 in the first call for a meeting; the module then stores its number, 1 for the first meeting */
  int64_t round;
  /* the host name or IP address at which the others reach this process */
  char host[DIST_LINK_MAX_ADDRESS_BYTES];
  char text[DIST_LINK_MAX_ADDRESS_BYTES];
} dist_link_meeting;

/**
 * A link module. The table must stay valid until the process ends.
 *
 * `module` is what `open` has created, and `connection` what `listen` has created. Functions that can fail store a text
 * of at most `error_size` bytes in `error`, terminated by a zero, and return a status other than DIST_OK. libdist calls
 * all functions except `open`, `close` and `destroy` also inside the callbacks, so they must not wait for the thread
 * that makes these. No function may wait for a peer, raise a signal, throw an exception, or call libdist except through
 * the callbacks. Threads that the module creates should block all signals.
 */
typedef struct dist_link_functions {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* what DIST_TRANSPORT selects: 1 to 15 lower-case letters, digits, hyphens and underscores */
  const char *name;
  /* completes the sentence "processes that communicate by gRPC, with data over ..." of dist_strategy_explain() */
  const char *description;

  /** Called once for each strategy. On failure, the strategy cannot be created. */
  dist_status (*open)(const dist_link_module_options *options, void **out_module, char *error,
                      size_t error_size);
  /** Called after all connections have been destroyed. */
  void (*close)(void *module);

  /**
   * Creates one end of a link and stores its address, `*address_size` bytes of at most DIST_LINK_MAX_ADDRESS_BYTES,
   * which has a meaning only for the module's `connect`. The address may be empty at an end that does not listen.
   */
  dist_status (*listen)(void *module, const dist_link_options *options, void **out_connection, void *address,
                        size_t *address_size, char *error, size_t error_size);
  /**
   * Begins to connect to the other end, or to wait for its connection. The module reports the outcome by `ready` or
   * `ended`. libdist limits the time itself, and then calls `cut`. Called at most once, possibly after `cut`, and then
   * only `ended` must follow.
   */
  void (*connect)(void *connection, const void *address, size_t address_size);

  /**
   * Writes or reads as many bytes as possible without waiting, in the order of the blocks: the first bytes of the first
   * block first. Returns how many, 0 if none can be moved now, or -1 if the connection is gone; libdist then cuts it. A
   * `write` that returned less than the whole is continued after `ready` by one with the bytes that follow. The memory
   * may be used only during the call, because the transfer may be cancelled afterwards.
   *
   * Each is called by one thread at a time, but both may be called at once, and before the connection is established.
   * If the peer has ended the connection, `read` must return the bytes that arrived before and only then -1.
   */
  ptrdiff_t (*write)(void *connection, const dist_link_block *blocks, size_t num_blocks);
  ptrdiff_t (*read)(void *connection, const dist_link_block *blocks, size_t num_blocks);

  /**
   * Ends the connection without waiting. Called by any thread, at any time, any number of times. `ended` follows if
   * `connect` was called.
   */
  void (*cut)(void *connection);
  /**
   * Cuts the connection if necessary, waits until `ended` has returned (if `connect` was called) and no thread of the
   * module uses the connection or the link any longer, and frees it.
   */
  void (*destroy)(void *connection);

  /**
   * Optional; may be NULL, and absent from a table with a smaller struct_size. With this function, workers that use the
   * module need neither TF_CONFIG nor DIST_RENDEZVOUS, because the module knows their ranks and sends all of them the
   * address at which worker 0 listens.
   *
   * libdist calls it, possibly before `open`, until the rank is known, then on rank 0 once with the text, and on the
   * other ranks until the text of this round has arrived. It must not wait. The n-th meeting of a rank belongs to the
   * n-th meeting of rank 0.
   */
  dist_status (*meet)(dist_link_meeting *meeting, char *error, size_t error_size);
} dist_link_functions;

/** The function that a module's shared library exports: `const dist_link_functions *dist_link_module(void)`. */
#define DIST_LINK_MODULE_ENTRY dist_link_module

/**
 * Registers a link module under its name, for this process. Stores a value for dist_worker_options.transport in
 * *out_transport, which may be NULL. Registering the same table again returns the same value.
 *
 * Errors   INVALID_ARGUMENT    `functions` is NULL, its struct_size is too small, reserved is not 0, one of its
 *                              functions other than `meet` is NULL, its name is invalid, or its description is not one
 *                              line of UTF-8.
 *          ALREADY_EXISTS      another table is registered under this name, or libdist reserves the name ("auto",
 *                              "none", "grpc", "gloo", "shm").
 *          RESOURCE_EXHAUSTED  16 modules are registered.
 */
DIST_API DIST_NODISCARD dist_status dist_link_register(const dist_link_functions *functions,
                                                       dist_transport *out_transport);

#ifdef __cplusplus
}
#endif

#endif /* DIST_EXPERIMENTAL_LINKS_H */
