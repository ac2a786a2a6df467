// SPDX-License-Identifier: Apache-2.0
// The libraries that speak gRPC, which libdist loads when they are needed first; nothing of gRPC is in libdist itself.
//
// Each is looked for as `dist/libdist-grpc.so` (`libdist-gloo.so`) beside libdist.so, then without `dist/`, then where libdist was
// configured to be installed; the first that is there must be of the same version. A program that libdist is linked into
// statically stands for libdist.so in this.
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
