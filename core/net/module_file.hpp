// SPDX-License-Identifier: Apache-2.0
// Loads the libraries that libdist needs only for some workers: libdist-grpc.so, and those of link modules.
//
// `dist/FILE` is looked up beside libdist.so, then FILE beside libdist.so without `dist/`, then FILE in the configured
// installation directory. The first file found is used. If libdist is linked statically, the program's location takes the
// place of libdist.so's.
#pragma once

#include "core/base/status.hpp"

namespace dist {

struct ModuleFile {
  const char* name;   // "libdist-grpc.so"
  const char* entry;  // the name of the function that it exports
  const char* how;    // how to obtain it, a sentence that continues with "or set DIST_MODULE_FOLDER to ..."
  // Calls the exported function, and checks what it returns. `path` is for messages.
  Status (*check)(void* entry, const char* path, const void** out) noexcept;
  const char* host_symbol = nullptr;  // see Library::load()
};

// Stores what `check` returns in *out. `folder`: the value of DIST_MODULE_FOLDER, folders that are separated by colons; they
// are then the only places to look. NULL: not set. UNAVAILABLE: the library
// is not there, or cannot be used.
Status load_module(const ModuleFile& file, const char* folder, const void** out) noexcept;

}  // namespace dist
