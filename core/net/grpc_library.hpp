// SPDX-License-Identifier: Apache-2.0
// Loads libdist-grpc.so when it is first needed. libdist.so itself does not depend on gRPC. The library must
// have exactly libdist's version. module_file.hpp describes the search.
#pragma once

#include "core/base/status.hpp"
#include "core/net/grpc_module.hpp"

namespace dist {

// `folder`: the value of DIST_MODULE_FOLDER; NULL: not set. Fails with UNAVAILABLE if the library is not
// found or cannot be used, and with FAILED_PRECONDITION in a forked child of a process that has called this
// before.
Status find_grpc_library(const char* folder, const GrpcModule** out) noexcept;

// Loads the library to find out whether find_grpc_library() would succeed. A process that calls only this can
// still use gRPC in a child that it forks later.
Status try_grpc_library(const char* folder) noexcept;

}  // namespace dist
