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
  const char* const slash = std::strrchr(info.dli_fname, '/');
  // A program that was found by PATH may be known without its folder.
  if (slash == nullptr || static_cast<std::size_t>(slash - info.dli_fname) >= size) return false;
  std::memcpy(to, info.dli_fname, static_cast<std::size_t>(slash - info.dli_fname));
  to[slash - info.dli_fname] = '\0';
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
