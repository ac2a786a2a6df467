// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc_library.hpp"

#include <atomic>
#include <cstring>

#include "core/base/os/fork.hpp"
#include "core/base/os/library.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/grpc_config.hpp"
#include "core/net/module_file.hpp"

namespace dist {
namespace {

constexpr char kVersion[] = "libdist " DIST_GRPC_VERSION ", protocol " DIST_GRPC_PROTOCOL;

Status check(void* entry, const char* path, const void** out) noexcept {
  const GrpcModule* const table = reinterpret_cast<GrpcModuleEntry>(entry)();
  if (strnlen(table->version, sizeof table->version) == sizeof table->version ||
      std::strcmp(table->version, kVersion) != 0) {
    return fail(DIST_UNAVAILABLE,
                "%s has version %.60s, but this libdist needs %s. Install both from the same build.", path,
                Shown(table->version).c_str(), kVersion);
  }
  *out = table;
  return kOk;
}

constexpr ModuleFile kFile = {
    "libdist-grpc.so", kGrpcModuleEntry,
    "Build libdist with -Dgrpc=enabled, which needs gRPC for C++, OpenSSL and nettle (Debian: "
    "libgrpc++-dev libssl-dev nettle-dev)",
    check};

// A forked child has none of gRPC's threads but shares its parent's descriptors, so it could harm the parent.
// `uses`: the caller is about to use gRPC.
Status check_process(bool uses) noexcept {
  static std::atomic<const ForkGuard*> used{nullptr};
  if (uses) {
    static const ForkGuard of_first_use;
    used.store(&of_first_use, std::memory_order_release);
  }
  const ForkGuard* const guard = used.load(std::memory_order_acquire);
  if (guard == nullptr || !guard->forked()) return kOk;
  return failed_precondition(
      "this is a forked child of a process that has used gRPC, which does not work after fork(). Fork "
      "before the first use, or call exec() in the child.");
}

Status find(const char* folder, const GrpcModule** out) noexcept {
  // gRPC has one log function per process. If gRPC was already loaded, the host decides about it.
  const bool own_log = !is_loaded("libgpr.so");
  const void* found = nullptr;
  DIST_TRY(load_module(kFile, folder, &found));
  *out = static_cast<const GrpcModule*>(found);
  if (own_log) (*out)->silence();
  return kOk;
}

}  // namespace

Status find_grpc_library(const char* folder, const GrpcModule** out) noexcept {
  DIST_TRY(check_process(true));
  return find(folder, out);
}

Status try_grpc_library(const char* folder) noexcept {
  DIST_TRY(check_process(false));
  const GrpcModule* found = nullptr;
  return find(folder, &found);
}

}  // namespace dist
