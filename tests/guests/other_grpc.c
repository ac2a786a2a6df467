/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for a library that contains parts of another gRPC and of another TLS library and exports them, like
 * TensorFlow's. A library that calls these functions instead of those of its own gRPC aborts the process.
 */
#include <stdlib.h>

#define TRAP(name)                                        \
  __attribute__((visibility("default"))) void name(void); \
  void name(void) { abort(); }

TRAP(grpc_init)
TRAP(grpc_completion_queue_next)
TRAP(grpc_channel_create)
TRAP(grpc_server_create)
TRAP(grpc_slice_malloc)
TRAP(gpr_malloc)
TRAP(gpr_mu_lock)
TRAP(SSL_new)
TRAP(SSL_CTX_new)
TRAP(ares_library_init)
TRAP(_ZN9grpc_core7ExecCtx5FlushEv)
