// SPDX-License-Identifier: Apache-2.0
// The functions that both gRPC modules implement for libdist (core/engine/grpc_module.hpp).
#pragma once

#include <memory>

#include "core/engine/grpc/carrier.hpp"
#include "core/engine/grpc_module.hpp"

namespace dist::grpc_link {

void silence() noexcept;
// `make` NULL: gRPC carries all itself. Else it throws std::bad_alloc.
dist_status start_endpoint(const GrpcModuleConfig& config, std::unique_ptr<Carriers> (*make)(Memory& memory),
                           Transport** out, void** handle, char* why, std::size_t size) noexcept;
dist_status form_endpoint(void* handle, const Forming& wanted, Formed* out, char* why,
                          std::size_t size) noexcept;
bool endpoint_has_newcomers(void* handle) noexcept;
Parting part_endpoint(void* handle) noexcept;
void stop_endpoint(void* handle) noexcept;
dist_status start_calls(const CallModuleConfig& config, CallNetwork** out, char* why,
                        std::size_t size) noexcept;
void stop_calls(CallNetwork* network) noexcept;

}  // namespace dist::grpc_link
