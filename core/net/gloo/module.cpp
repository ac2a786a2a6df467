// SPDX-License-Identifier: Apache-2.0
// libdist-gloo.so exports one function. It returns the table of the link module.
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/net/gloo/connection.hpp"

namespace dist::gloo_link {
namespace {

// Calls a function that may throw Gloo's exceptions and std::bad_alloc.
template <class Call>
dist_status guarded(char* error, std::size_t size, Call&& call) noexcept {
  try {
    call();
    return DIST_OK;
  } catch (const std::exception& exception) {
    std::snprintf(error, size, "%s", exception.what());
    return DIST_UNAVAILABLE;
  }
}

Connection& connection_of(void* connection) noexcept { return *static_cast<Connection*>(connection); }

dist_status open(const dist_link_module_options* options, void** out_module, char* error, std::size_t size) {
  return guarded(error, size, [&] {
    auto module = std::make_unique<Module>(*options);
    if (options->host != nullptr) module->device(options->host);
    *out_module = module.release();
  });
}

dist_status listen(void* module, const dist_link_options* options, void** out_connection, void* address,
                   std::size_t* address_size, char* error, std::size_t size) {
  return guarded(error, size, [&] {
    auto connection = std::make_unique<Connection>(*static_cast<Module*>(module), *options);
    const std::vector<char> bytes = connection->address();
    if (bytes.size() > DIST_LINK_MAX_ADDRESS_BYTES) throw std::length_error("Gloo's address is too long");
    std::memcpy(address, bytes.data(), bytes.size());
    *address_size = bytes.size();
    *out_connection = connection.release();
  });
}

constexpr dist_link_functions kFunctions = {
    sizeof kFunctions,
    0,
    "gloo",
    "Gloo",
    open,
    [](void* module) { delete static_cast<Module*>(module); },
    listen,
    [](void* connection, const void* address, std::size_t bytes) {
      connection_of(connection).connect(static_cast<const char*>(address), bytes);
    },
    [](void* connection, const dist_link_block* blocks, std::size_t n) {
      return connection_of(connection).write(blocks, n);
    },
    [](void* connection, const dist_link_block* blocks, std::size_t n) {
      return connection_of(connection).read(blocks, n);
    },
    [](void* connection) { connection_of(connection).cut(); },
    [](void* connection) { delete static_cast<Connection*>(connection); }};

}  // namespace
}  // namespace dist::gloo_link

extern "C" [[gnu::visibility("default")]] const dist_link_functions* DIST_LINK_MODULE_ENTRY();
extern "C" const dist_link_functions* DIST_LINK_MODULE_ENTRY() { return &dist::gloo_link::kFunctions; }
