// SPDX-License-Identifier: Apache-2.0
// Loads the libraries that libdist needs only for some workers: libdist-grpc.so, and those of link modules.
//
// load_module() looks for `dist/FILE` beside libdist.so, then for FILE beside libdist.so without `dist/`, and
// then for FILE in the configured installation directory. It loads the first file found. If libdist is linked
// statically, the program's location replaces that of libdist.so.
#pragma once

#include "core/base/status.hpp"

namespace dist {

struct ModuleFile {
  const char* name;   // "libdist-grpc.so"
  const char* entry;  // the name of the function that it exports
  const char* how;    // how to obtain it: a sentence that continues with "or set DIST_MODULE_FOLDER to ..."
  // Calls the exported function, and checks what it returns. `path` is for messages.
  Status (*check)(void* entry, const char* path, const void** out) noexcept;
  const char* host_symbol = nullptr;  // see Library::load()
};

// Stores the result of `check` in *out. `folder`: the value of DIST_MODULE_FOLDER, a list of folders
// separated by colons; if it is set, only these are searched. NULL: not set. Fails with UNAVAILABLE if the
// library is not found or cannot be used.
Status load_module(const ModuleFile& file, const char* folder, const void** out) noexcept;

}  // namespace dist
