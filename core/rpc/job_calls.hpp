// SPDX-License-Identifier: Apache-2.0
// The network of calls of this process, as the environment says that the job's processes speak: with which secret, which
// certificates, and how long one lives that says nothing (core/cluster/job_settings.hpp).
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/grpc_calls.hpp"

namespace dist {

struct JobCallOptions {
  const char* address = nullptr;   // where it listens; NULL: it does not
  bool of_environment = false;     // DIST_BIND_ADDRESS, where that is set, counts before the address
  CallHandler* handler = nullptr;  // of one that listens
  CallLimits limits;
};

// Errors as read_job_settings() and GrpcCalls::create().
Status create_job_calls(Memory& memory, const JobCallOptions& options, Ref<GrpcCalls>* out);

// OK for what names the way of calls, as TensorFlow's rpc_layer: "grpc", or NULL or "", which mean it.
Status check_rpc_layer(const char* call, const char* rpc_layer) noexcept;

}  // namespace dist
