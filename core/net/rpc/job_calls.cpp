// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/job_calls.hpp"

#include <cstring>

#include "core/base/text.hpp"
#include "core/cluster/job_settings.hpp"

namespace dist {

Status create_job_calls(Memory& memory, const JobCallOptions& options, Ref<GrpcCalls>* out) {
  JobSettings settings(memory);
  DIST_TRY(read_job_settings(&settings));
  GrpcCallOptions calls{settings.security.view()};
  calls.bind_address = options.address;
  calls.bind_name = options.name;
  calls.bind_value = options.value;
  std::pmr::string bind_address(&memory);
  if (options.of_cluster) {
    bind_address =
        settings.bind_address.empty() ? default_bind_address(memory, options.address) : settings.bind_address;
    calls.bind_address = bind_address.c_str();
    if (settings.bind_address.empty()) {
      calls.bind_value = options.address;
    } else {
      calls.bind_name = "DIST_BIND_ADDRESS";
    }
  }
  calls.handler = options.handler;
  calls.limits = options.limits;
  if (!settings.module_folder.empty()) calls.module_folder = settings.module_folder.c_str();
  return GrpcCalls::create(memory, calls, out);
}

Status check_rpc_layer(const char* call, const char* rpc_layer) noexcept {
  if (rpc_layer == nullptr || *rpc_layer == '\0' || std::strcmp(rpc_layer, "grpc") == 0) return kOk;
  return invalid_argument("`%s()`: `rpc_layer` is \"%s\", but must be grpc", call, Shown(rpc_layer).c_str());
}

}  // namespace dist
