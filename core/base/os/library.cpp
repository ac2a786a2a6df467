// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "core/base/status.hpp"

#pragma weak _DYNAMIC  // see is_never_unloaded(); a static program has none

namespace dist {

namespace {

// The file from which the code at `here` was mapped. dladdr() cannot be used for this: it returns the name by
// which the file was opened, which may be relative to an earlier working directory.
bool file_of(const void* here, char* to, std::size_t size) noexcept {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(here);
  char line[4096 + 128];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    int path = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path) != 2) continue;
    if (address < begin || address >= end || line[path] != '/') continue;
    line[std::strcspn(line, "\n")] = '\0';
    found = std::strlen(line + path) < size;
    if (found) std::memcpy(to, line + path, std::strlen(line + path) + 1);
  }
  std::fclose(maps);
  return found;
}

// Whether dlclose() cannot unload the file that contains this code. The linker defines _DYNAMIC in each file,
// as the file's own dynamic section. Reading it takes no lock. dladdr() and dlopen() take a lock that is held
// while the constructors of a library run.
bool is_never_unloaded() noexcept {
  const ElfW(Dyn)* entry = _DYNAMIC;
  if (entry == nullptr) return true;
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_DEBUG) return true;  // only programs have it
    if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0) return true;
  }
  return false;
}

// The path of the file with the definition to which this name resolves in most libraries of the process; ""
// if there is no definition.
const char* definer_of(const char* name) noexcept {
  Dl_info info;
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  return symbol != nullptr && dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

bool same_definer(const char* a, const char* b) noexcept {
  return std::strcmp(definer_of(a), definer_of(b)) == 0;
}

// Whether the host, or a library that was loaded before the C library, has memory functions of its own.
bool replaces_allocator() noexcept {
  return !same_definer("malloc", "gnu_get_libc_version") || !same_definer("free", "gnu_get_libc_version") ||
         !same_definer("_Znwm", "_ZSt9terminatev") || !same_definer("_ZdlPv", "_ZSt9terminatev");
}

// Libraries that a program or a package may contain in another version, and a symbol of each.
struct Bundled {
  const char* library;
  const char* symbol;
};
constexpr Bundled kBundled[] = {{"libgrpc.so", "grpc_init"}, {"libssl.so", "SSL_new"}};

}  // namespace

bool own_folder(char* to, std::size_t size) noexcept {
  static const char here = 0;
  Dl_info info;
  char path[4096];
  if (dladdr(&here, &info) != 0 && info.dli_fname != nullptr && info.dli_fname[0] == '/') {
    copy_text(path, sizeof path, info.dli_fname);
  } else if (!file_of(&here, path, sizeof path)) {
    return false;
  }
  const char* const slash = std::strrchr(path, '/');
  if (slash == nullptr || static_cast<std::size_t>(slash - path) >= size) return false;
  std::memcpy(to, path, static_cast<std::size_t>(slash - path));
  to[slash - path] = '\0';
  return true;
}

bool is_loaded(const char* name_part) noexcept {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, std::size_t, void* part) {
               const bool found = info->dlpi_name != nullptr &&
                                  std::strstr(info->dlpi_name, static_cast<const char*>(part)) != nullptr;
               return found ? 1 : 0;
             },
             const_cast<char*>(name_part)) != 0;
}

void stay_loaded() noexcept {
  static std::atomic<bool> done{false};
  if (done.load(std::memory_order_relaxed)) return;
  static const char here = 0;
  Dl_info info;
  // If this fails for lack of memory, the next call tries again.
  done.store(
      is_never_unloaded() || (dladdr(&here, &info) != 0 && info.dli_fname != nullptr &&
                              dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != nullptr),
      std::memory_order_relaxed);
}

bool file_is_there(const char* path) noexcept { return access(path, F_OK) == 0; }

bool Library::load(const char* path, const char* host_symbol, char* why, std::size_t size) noexcept {
  stay_loaded();
  int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  // Memory that crosses between libraries must come from one allocator, so they cannot be bound to each other
  // if the host has replaced it. The same holds if the program links gRPC or the library of `host_symbol`
  // itself, because the linker may have moved some of its variables into the program.
  const bool shared = std::strstr(definer_of(kBundled[0].symbol), kBundled[0].library) != nullptr ||
                      (host_symbol != nullptr && *definer_of(host_symbol) != '\0');
  if (!replaces_allocator()) {
    if (!shared) mode |= RTLD_DEEPBIND;
  } else {
    for (const Bundled& one : kBundled) {
      const char* const file = definer_of(one.symbol);
      if (*file == '\0' || std::strstr(file, one.library) != nullptr) continue;
      std::snprintf(
          why, size,
          "%.200s exports %s() to all libraries of this process, and malloc() is not the C library's. "
          "Load it without RTLD_GLOBAL, or use the C library's malloc().",
          file, one.symbol);
      return false;
    }
  }
  handle_ = dlopen(path, mode);
  if (handle_ != nullptr) return true;
  const char* error = dlerror();
  // The message must not begin with the path, because the caller names the file.
  const std::size_t length = std::strlen(path);
  if (error != nullptr && std::strncmp(error, path, length) == 0 &&
      std::strncmp(error + length, ": ", 2) == 0)
    error += length + 2;
  copy_text(why, size, error == nullptr ? "it cannot be loaded" : error);
  return false;
}

void* Library::symbol(const char* name) const noexcept { return dlsym(handle_, name); }

}  // namespace dist
