// SPDX-License-Identifier: Apache-2.0
#include "core/net/link_modules.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>

#include "core/base/text.hpp"
#include "core/net/module_file.hpp"

namespace dist {
namespace {

constexpr std::size_t kMostModules = 16;
constexpr std::size_t kMostNameBytes = 15;
constexpr char kNameRule[] = "1 to 15 lower-case letters, digits, hyphens and underscores";

#define DIST_TEXT_OF(name) #name
#define DIST_NAME_OF(name) DIST_TEXT_OF(name)
constexpr char kEntry[] = DIST_NAME_OF(DIST_LINK_MODULE_ENTRY);
#undef DIST_NAME_OF
#undef DIST_TEXT_OF

using Entry = const dist_link_functions* (*)();

// The functions after these are optional.
constexpr std::size_t kLeastTableBytes = offsetof(dist_link_functions, meet);

struct Registry {
  std::mutex mutex;
  const dist_link_functions* modules[kMostModules] = {};
  std::size_t size = 0;
};
Registry& registry() noexcept {
  static Registry all;
  return all;
}

// Checks a module's table. `what` is the beginning of messages.
Status check_functions(const dist_link_functions* functions, const char* what) noexcept {
  if (functions == nullptr || functions->struct_size < kLeastTableBytes) {
    return invalid_argument("%s has a `struct_size` of %u, but this libdist needs at least %zu", what,
                            functions == nullptr ? 0u : functions->struct_size, kLeastTableBytes);
  }
  if (functions->reserved != 0)
    return invalid_argument("%s: `reserved` is %d, but must be 0", what, functions->reserved);
  if (functions->open == nullptr || functions->close == nullptr || functions->listen == nullptr ||
      functions->connect == nullptr || functions->write == nullptr || functions->read == nullptr ||
      functions->cut == nullptr || functions->destroy == nullptr) {
    return invalid_argument("%s: a function is `NULL`", what);
  }
  if (functions->name == nullptr || !is_link_module_name(functions->name)) {
    return invalid_argument("%s: its name is \"%s\", but must have %s", what,
                            Shown(functions->name == nullptr ? "" : functions->name).c_str(), kNameRule);
  }
  if (functions->description == nullptr || !is_line(functions->description)) {
    return invalid_argument("%s: its description must be one line of UTF-8", what);
  }
  return kOk;
}

Status check_library(void* entry, const char* path, const void** out) noexcept {
  const dist_link_functions* const functions = reinterpret_cast<Entry>(entry)();
  if (!check_functions(functions, path).ok()) {
    const ErrorRecord why = last_error();
    return fail(DIST_UNAVAILABLE, "%s", why.message);
  }
  *out = functions;
  return kOk;
}

}  // namespace

bool is_link_module_name(const char* name) noexcept {
  const std::size_t length = strnlen(name, kMostNameBytes + 1);
  return length >= 1 && length <= kMostNameBytes &&
         std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

Status register_link_module(const dist_link_functions& functions, dist_transport* out_transport) noexcept {
  DIST_TRY(check_functions(&functions, "the link module"));
  for (const char* const own : {"auto", "none", "grpc", "gloo", "shm"}) {
    if (std::strcmp(functions.name, own) == 0) {
      return fail(DIST_ALREADY_EXISTS, "the link module's name is \"%s\", which is a transport of libdist",
                  own);
    }
  }
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  std::size_t at = 0;
  while (at < all.size && std::strcmp(all.modules[at]->name, functions.name) != 0) ++at;
  if (at < all.size && all.modules[at] != &functions) {
    return fail(DIST_ALREADY_EXISTS, "another link module with the name \"%s\" is registered",
                functions.name);
  }
  if (at == kMostModules) {
    return fail(DIST_RESOURCE_EXHAUSTED, "%zu link modules are registered, and there can be no more",
                kMostModules);
  }
  if (at == all.size) all.modules[all.size++] = &functions;
  if (out_transport != nullptr)
    *out_transport = static_cast<dist_transport>(kFirstLinkTransport + static_cast<int32_t>(at));
  return kOk;
}

const dist_link_functions* registered_link_module(int32_t transport) noexcept {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  const int64_t at = int64_t{transport} - kFirstLinkTransport;
  return at >= 0 && at < static_cast<int64_t>(all.size) ? all.modules[at] : nullptr;
}

Status find_link_module(const char* name, const char* folder, const dist_link_functions** out) noexcept {
  {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    for (std::size_t i = 0; i < all.size; ++i) {
      if (std::strcmp(all.modules[i]->name, name) == 0) return *out = all.modules[i], kOk;
    }
  }
  char file[kMostNameBytes + sizeof "libdist-.so"];
  std::snprintf(file, sizeof file, "libdist-%s.so", name);
  static constexpr struct {
    const char* name;
    const char* how;
    const char* host_symbol;
  } kOwn[] = {{"gloo", "Build libdist with -Dgloo=enabled, which needs Gloo (Debian: libgloo-dev)", nullptr},
              {"openmpi", "Build libdist with -Dmpi=enabled, which needs Open MPI (Debian: libopenmpi-dev)",
               "MPI_Init_thread"},
              {"mpich", "Build libdist with -Dmpi=enabled, which needs MPICH (Debian: libmpich-dev)",
               "MPI_Init_thread"}};
  ModuleFile module = {file, kEntry, "Correct the name of the transport, register this link module first",
                       check_library};
  for (const auto& own : kOwn) {
    if (std::strcmp(name, own.name) != 0) continue;
    module.how = own.how;
    module.host_symbol = own.host_symbol;
  }
  const void* found = nullptr;
  DIST_TRY(load_module(module, folder, &found));
  const auto* const functions = static_cast<const dist_link_functions*>(found);
  if (std::strcmp(functions->name, name) != 0) {
    return fail(DIST_UNAVAILABLE, "%s contains the link module \"%s\"", file, functions->name);
  }
  *out = functions;
  return kOk;
}

Status find_links(int32_t transport, const char* name, const char* folder,
                  const dist_link_functions** out) noexcept {
  if (name == nullptr) {
    if (transport == DIST_TRANSPORT_GLOO) return find_link_module("gloo", folder, out);
    return *out = registered_link_module(transport), kOk;
  }
  ErrorRecord why;
  if (is_link_module_name(name)) {
    if (find_link_module(name, folder, out).ok()) return kOk;
    why = last_error();
  }
  return invalid_argument(
      "DIST_TRANSPORT is \"%s\", but must be auto, none, grpc, gloo or the name of a link module%s%s",
      Shown(name).c_str(), *why.message == '\0' ? "" : ": ", why.message);
}

bool has_meet(const dist_link_functions& functions) noexcept {
  return functions.struct_size >= kLeastTableBytes + sizeof functions.meet && functions.meet != nullptr;
}

}  // namespace dist
