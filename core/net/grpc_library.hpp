// SPDX-License-Identifier: Apache-2.0
// Loads libdist-grpc.so, when it is first needed. libdist.so itself does not depend on gRPC. The library must have
// exactly libdist's version. module_file.hpp describes where it is looked up.
#pragma once

#include "core/base/status.hpp"
#include "core/net/grpc_module.hpp"

namespace dist {

// `folder`: the value of DIST_MODULE_FOLDER; NULL: not set. UNAVAILABLE: the library is not there, or cannot be used.
// FAILED_PRECONDITION: in a forked child of a process that has asked for it before.
Status find_grpc_library(const char* folder, const GrpcModule** out) noexcept;

// Loads the library to see whether find_grpc_library() would succeed. A process that only asks can still use gRPC in a child
// that it forks later.
Status try_grpc_library(const char* folder) noexcept;

}  // namespace dist
