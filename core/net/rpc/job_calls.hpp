// SPDX-License-Identifier: Apache-2.0
// The network for calls of this process, configured from the job's environment: the secret, the certificates,
// and the lease after which a process that sends nothing is considered lost (core/cluster/job_settings.hpp).
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/grpc_calls.hpp"

namespace dist {

struct JobCallOptions {
  const char* address = nullptr;              // address to listen on; NULL: do not listen
  const char* name = "the server's address";  // what specified the address, for messages
  const char* value = nullptr;                // the value that was specified; NULL: the address itself
  bool of_cluster = false;  // this is a task's address: listen on DIST_BIND_ADDRESS or default_bind_address()
  CallHandler* handler = nullptr;  // required if it listens
  CallLimits limits;
};

// The errors are those of read_job_settings() and GrpcCalls::create().
Status create_job_calls(Memory& memory, const JobCallOptions& options, Ref<GrpcCalls>* out);

// Checks the name of the RPC layer, as in TensorFlow's rpc_layer: "grpc", or NULL or "" for the default.
Status check_rpc_layer(const char* call, const char* rpc_layer) noexcept;

}  // namespace dist
