// SPDX-License-Identifier: Apache-2.0
// Loads shared libraries at run time.
#pragma once

#include <cstddef>

namespace dist {

// The folder of the file that contains this code, without a trailing slash: libdist.so, or the program into
// which libdist is linked. Returns false if it is unknown.
bool own_folder(char* to, std::size_t size) noexcept;

// Whether the process has loaded a library whose path contains this text.
bool is_loaded(const char* name_part) noexcept;

bool file_is_there(const char* path) noexcept;

// Keeps the shared library that contains this code loaded until the process exits, even if the host calls
// dlclose(). That is libdist.so, or a plugin into which libdist is linked. Call this before anything that may
// outlive a dlclose(): threads of libdist and of a oneTBB that the plugin has loaded, and destructors of
// thread-specific data.
void stay_loaded() noexcept;

// A library that stays loaded until the process exits. Its symbols are not visible to other libraries. It and
// the libraries that are loaded with it use each other's symbols, even if the host makes other symbols of the
// same names visible. TensorFlow's package, for example, exports parts of a gRPC, a BoringSSL and a re2 to
// all libraries that are loaded later.
class Library {
 public:
  // Returns false if the library cannot be loaded, with the reason in `why`, which does not begin with the
  // path. One such reason is a process that replaces malloc() and also exports another gRPC or TLS library.
  // `host_symbol`: a symbol that this library uses, or NULL. If the host exports a symbol of this name, the
  // library prefers all symbols of the host.
  bool load(const char* path, const char* host_symbol, char* why, std::size_t size) noexcept;
  // NULL if there is no such symbol.
  void* symbol(const char* name) const noexcept;

 private:
  void* handle_ = nullptr;
};

}  // namespace dist
