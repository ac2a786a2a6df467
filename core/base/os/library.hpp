// SPDX-License-Identifier: Apache-2.0
// Loads shared libraries at run time.
#pragma once

#include <cstddef>

namespace dist {

// The folder of the file that this code lies in, without a slash at its end: libdist.so's, or that of the program which
// libdist is linked into. False: it is not known.
bool own_folder(char* to, std::size_t size) noexcept;

// Whether the process has a library whose path has this in it.
bool is_loaded(const char* name_part) noexcept;

bool file_is_there(const char* path) noexcept;

// One that stays until the process ends. Its symbols are seen by nobody else.
class Library {
 public:
  // False: it cannot be loaded, and `why` says why not.
  bool load(const char* path, char* why, std::size_t size) noexcept;
  // NULL: there is no such symbol.
  void* symbol(const char* name) const noexcept;

 private:
  void* handle_ = nullptr;
};

}  // namespace dist
