// SPDX-License-Identifier: Apache-2.0
#include "core/engine/grpc_library.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/os/fork.hpp"
#include "core/base/os/library.hpp"
#include "core/base/text.hpp"
#include "core/engine/grpc/grpc_config.hpp"

namespace dist {
namespace {

constexpr std::size_t kPathBytes = 4096;

// A path in a message. A long one loses its beginning, so that the rest of the message has room.
class ShownPath {
 public:
  explicit ShownPath(const char* path) noexcept {
    constexpr std::size_t kMost = 160;
    const std::size_t length = std::strlen(path);
    std::size_t at = length > kMost ? length - kMost : 0;
    // Not inside a character of UTF-8.
    while ((static_cast<unsigned char>(path[at]) & 0xC0u) == 0x80u) ++at;
    if (at > 0) std::memcpy(text_, "...", 3);
    copy_shown(text_ + (at > 0 ? 3 : 0), sizeof text_ - 3, path + at);
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[200] = "";
};

struct Kind {
  const char* file;
  const char* entry;
  const char* version;
  const char* how;  // how to obtain it
};
constexpr Kind kGrpc = {"libdist-grpc.so", kGrpcModuleEntry,
                        "libdist " DIST_GRPC_VERSION ", protocol " DIST_GRPC_PROTOCOL,
                        "-Dgrpc=enabled, which needs gRPC for C++, OpenSSL and nettle (Debian: libgrpc++-dev "
                        "libssl-dev nettle-dev)"};
constexpr Kind kGloo = {"libdist-gloo.so", kGlooModuleEntry,
                        "libdist " DIST_GRPC_VERSION ", protocol " DIST_GLOO_PROTOCOL,
                        "-Dgloo=enabled, which needs gRPC for C++, OpenSSL, nettle and Gloo (Debian: "
                        "libgrpc++-dev libssl-dev nettle-dev "
                        "libgloo-dev)"};

// A hint for programs installed elsewhere, for example a jar that contains libdist.
constexpr const char* kOrSayWhere =
    "or set DIST_MODULE_FOLDER to the folder that contains it (PREFIX/lib/dist of an installed libdist).";

Status load(const Kind& kind, const char* path, const GrpcModule** out) noexcept {
  // gRPC has one log function per process. If gRPC was loaded before, the host decides about it.
  const bool own_log = !is_loaded("libgpr.so");
  Library library;
  char why[512];
  if (!library.load(path, why, sizeof why)) {
    return fail(DIST_UNAVAILABLE, "%s cannot be loaded: %s. Install it from the same build as libdist.",
                ShownPath(path).c_str(), why);
  }
  const auto entry = reinterpret_cast<GrpcModuleEntry>(library.symbol(kind.entry));
  const GrpcModule* const table = entry == nullptr ? nullptr : entry();
  if (table == nullptr)
    return fail(DIST_UNAVAILABLE, "%s is not a %s module. Install it from the same build as libdist.",
                ShownPath(path).c_str(), kind.file);
  if (strnlen(table->version, sizeof table->version) == sizeof table->version ||
      std::strcmp(table->version, kind.version) != 0) {
    return fail(DIST_UNAVAILABLE,
                "%s has version %.60s, but this libdist needs %s. Install both from the same build.",
                ShownPath(path).c_str(), Shown(table->version).c_str(), kind.version);
  }
  if (own_log) table->silence();
  *out = table;
  return kOk;
}

// A forked child has none of gRPC's threads but shares its descriptors, so it could harm its parent.
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

Status find(bool gloo, const char* given, const GrpcModule** out) noexcept {
  const Kind& kind = gloo ? kGloo : kGrpc;
  if (given != nullptr) {
    const std::string_view path(given);
    const Shown folder(path.substr(0, path.rfind('/')));
    if (!file_is_there(given)) {
      return fail(DIST_UNAVAILABLE,
                  "DIST_MODULE_FOLDER is \"%s\", but %s was not found at %s. Build libdist with %s, %s",
                  folder.c_str(), kind.file, ShownPath(given).c_str(), kind.how, kOrSayWhere);
    }
    const Status loaded = load(kind, given, out);
    if (loaded.ok()) return kOk;
    const ErrorRecord why = last_error();
    return fail(loaded.code(), "DIST_MODULE_FOLDER is \"%s\", but %s", folder.c_str(), why.message);
  }
  char folder[kPathBytes - 64] = "";
  char paths[3][kPathBytes] = {};
  std::size_t n = 0;
  if (own_folder(folder, sizeof folder)) {
    std::snprintf(paths[n++], kPathBytes, "%s/dist/%s", folder, kind.file);
    std::snprintf(paths[n++], kPathBytes, "%s/%s", folder, kind.file);
  }
  if (sizeof DIST_GRPC_FOLDER > 1)
    std::snprintf(paths[n++], kPathBytes, "%s/%s", DIST_GRPC_FOLDER, kind.file);
  for (std::size_t i = 0; i < n; ++i) {
    if (file_is_there(paths[i])) return load(kind, paths[i], out);
  }
  return fail(DIST_UNAVAILABLE, "%s was not found in %s/dist, %s or %s. Build libdist with %s, %s", kind.file,
              ShownPath(folder).c_str(), ShownPath(folder).c_str(), ShownPath(DIST_GRPC_FOLDER).c_str(),
              kind.how, kOrSayWhere);
}

}  // namespace

Status find_grpc_library(bool gloo, const char* given, const GrpcModule** out) noexcept {
  DIST_TRY(check_process(true));
  return find(gloo, given, out);
}

Status try_grpc_library(bool gloo, const char* given) noexcept {
  DIST_TRY(check_process(false));
  const GrpcModule* found = nullptr;
  return find(gloo, given, &found);
}

}  // namespace dist
