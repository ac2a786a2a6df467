// SPDX-License-Identifier: Apache-2.0
// The interface between libdist and libdist-grpc.so or libdist-gloo.so: one table, found by name. The module
// is used only if its version string is identical to libdist's. Error texts are copied across the border,
// because each library has its own thread-local error record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/engine/calls.hpp"
#include "core/engine/forming.hpp"
#include "core/engine/transport.hpp"

namespace dist {

#define DIST_GRPC_PROTOCOL "2"
#define DIST_GLOO_PROTOCOL "2 with Gloo"

// What has been checked. Texts stay for the call alone.
struct GrpcModuleConfig {
  std::span<const char* const> addresses;  // of all workers, in order
  int me;
  const char* bind_address;
  const char* digest;
  const char* secret;
  const char* ca;  // NULL: plain text; PEM texts, as the next two
  const char* certificate;
  const char* key;
  bool forms;
  CameFrom came_from;
  std::span<const int> replicas;
  int64_t lease_ns;
  std::size_t credit;
  Memory* memory;
};

// The same of who is called, or calls.
struct CallModuleConfig {
  const char* bind_address;  // NULL: it does not listen
  const char* secret;
  const char* ca;  // NULL: plain text; PEM texts, as the next two
  const char* certificate;
  const char* key;
  int64_t lease_ns;
  CallLimits limits;
  CallHandler* handler;  // NULL where it does not listen
  Memory* memory;
};

struct GrpcModule {
  // "libdist 0.2.0, protocol 2": first, whatever else changes.
  char version[64];
  // gRPC came with the module: what it logs is not for the host.
  void (*silence)() noexcept;
  // Listens, and begins to look for worker 0. Not OK: `why` says why.
  dist_status (*start)(const GrpcModuleConfig& config, Transport** out, void** handle, char* why,
                       std::size_t size) noexcept;
  // Network::form(), has_newcomers() and leave() of one that forms.
  dist_status (*form)(void* handle, const Forming& wanted, Formed* out, char* why, std::size_t size) noexcept;
  bool (*has_newcomers)(void* handle) noexcept;
  Parting (*part)(void* handle) noexcept;
  // Waits until what was sent has been taken, for the lease at most; nothing of it is left then.
  void (*stop)(void* handle) noexcept;

  // A network of calls, and its end: no channel is left, and answers that have been given go first, for the lease at most.
  dist_status (*start_calls)(const CallModuleConfig& config, CallNetwork** out, char* why,
                             std::size_t size) noexcept;
  void (*stop_calls)(CallNetwork* network) noexcept;
};

inline constexpr char kGrpcModuleEntry[] = "dist_grpc_module";
inline constexpr char kGlooModuleEntry[] = "dist_gloo_module";
using GrpcModuleEntry = const GrpcModule* (*)();

}  // namespace dist
