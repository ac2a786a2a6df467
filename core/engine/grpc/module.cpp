// SPDX-License-Identifier: Apache-2.0
// The only function that libdist-grpc.so exports. It returns the module's table.
#include "core/engine/grpc/grpc_config.hpp"
#include "core/engine/grpc/start.hpp"

namespace dist::grpc_link {
namespace {

dist_status start(const GrpcModuleConfig& config, Transport** out, void** handle, char* why,
                  std::size_t size) noexcept {
  return start_endpoint(config, nullptr, out, handle, why, size);
}

constexpr GrpcModule kModule = {"libdist " DIST_GRPC_VERSION ", protocol " DIST_GRPC_PROTOCOL,
                                silence,
                                start,
                                form_endpoint,
                                endpoint_has_newcomers,
                                part_endpoint,
                                stop_endpoint,
                                start_calls,
                                stop_calls};

}  // namespace
}  // namespace dist::grpc_link

extern "C" [[gnu::visibility("default")]] const dist::GrpcModule* dist_grpc_module();
extern "C" const dist::GrpcModule* dist_grpc_module() { return &dist::grpc_link::kModule; }
