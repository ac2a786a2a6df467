// SPDX-License-Identifier: Apache-2.0
// Loads the libraries that use gRPC, when they are first needed. libdist.so itself does not depend on gRPC.
//
// `dist/libdist-grpc.so` (or `libdist-gloo.so`) is looked up beside libdist.so, then beside it without
// `dist/`, then in the configured installation directory. The first file found must have exactly libdist's
// version. If libdist is linked statically, the program's location takes the place of libdist.so's.
#pragma once

#include "core/base/status.hpp"
#include "core/engine/grpc_module.hpp"

namespace dist {

// `given`: the library's path; NULL: it is looked for. UNAVAILABLE: it is not there, or cannot be used. FAILED_PRECONDITION: in
// a forked child of a process that has asked for it before.
Status find_grpc_library(bool gloo, const char* given, const GrpcModule** out) noexcept;

// Loads the library to see whether find_grpc_library() would succeed. A process that only asks can still use gRPC in a child
// that it forks later.
Status try_grpc_library(bool gloo, const char* given) noexcept;

}  // namespace dist
