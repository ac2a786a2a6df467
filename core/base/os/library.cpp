// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstring>

#include "core/base/status.hpp"

namespace dist {

bool own_folder(char* to, std::size_t size) noexcept {
  static const char here = 0;
  Dl_info info;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* path = info.dli_fname;
  char program[4096];
  if (path[0] != '/') {
    // For the program, use the file that is running: the name by which it was called may refer to another
    // folder by now.
    const ssize_t bytes = readlink("/proc/self/exe", program, sizeof program - 1);
    if (bytes <= 0) return false;
    program[bytes] = '\0';
    path = program;
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

bool file_is_there(const char* path) noexcept { return access(path, F_OK) == 0; }

bool Library::load(const char* path, char* why, std::size_t size) noexcept {
  handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle_ != nullptr) return true;
  const char* const error = dlerror();
  copy_text(why, size, error == nullptr ? "it cannot be loaded" : error);
  return false;
}

void* Library::symbol(const char* name) const noexcept { return dlsym(handle_, name); }

}  // namespace dist
