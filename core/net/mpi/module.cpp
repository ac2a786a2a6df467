// SPDX-License-Identifier: Apache-2.0
// libdist-openmpi.so and libdist-mpich.so, which are built from the same sources, export one function. It
// returns the table of the link module.
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "core/net/mpi/connection.hpp"

namespace dist::mpi_link {
namespace {

// Calls a function that may throw. Returns an empty string, or the reason for a failure.
template <class Call>
dist_status guarded(char* error, std::size_t size, Call&& call) noexcept {
  const char* text = "";
  std::string why;
  try {
    why = call();
    text = why.c_str();
  } catch (const std::exception& exception) {
    text = exception.what();
  }
  if (*text == '\0') return DIST_OK;
  std::snprintf(error, size, "%s", text);
  return DIST_UNAVAILABLE;
}

Connection& connection_of(void* connection) noexcept { return *static_cast<Connection*>(connection); }

dist_status open(const dist_link_module_options* options, void** out_module, char* error, std::size_t size) {
  return guarded(error, size, [&] {
    Job* job = nullptr;
    std::string why = Job::use(&job);
    if (why.empty()) why = job->await_start();
    if (!why.empty()) return why;
    *out_module = new Module{*job, *options->callbacks};
    job->open(options->lease_ns);
    return why;
  });
}

dist_status listen(void* module, const dist_link_options* options, void** out_connection, void* address,
                   std::size_t* address_size, char* error, std::size_t size) {
  return guarded(error, size, [&] {
    auto connection = std::make_unique<Connection>(*static_cast<Module*>(module), options->link);
    const Address own = connection->address();
    std::memcpy(address, &own, sizeof own);
    *address_size = sizeof own;
    *out_connection = connection.release();
    return std::string();
  });
}

dist_status meet(dist_link_meeting* meeting, char* error, std::size_t size) {
  return guarded(error, size, [&] {
    Job* job = nullptr;
    std::string why = Job::use(&job);
    if (why.empty()) job->meet(*meeting, &why);
    return why;
  });
}

constexpr dist_link_functions kFunctions = {
    sizeof kFunctions,
    0,
    MODULE_NAME,
    MPI_LIBRARY,
    open,
    [](void* module) {
      const std::unique_ptr<Module> closed(static_cast<Module*>(module));
      closed->job.close();
    },
    listen,
    [](void* connection, const void* address, std::size_t bytes) {
      connection_of(connection).connect(address, bytes);
    },
    [](void* connection, const dist_link_block* blocks, std::size_t n) {
      return connection_of(connection).write(blocks, n);
    },
    [](void* connection, const dist_link_block* blocks, std::size_t n) {
      return connection_of(connection).read(blocks, n);
    },
    [](void* connection) { connection_of(connection).cut(); },
    [](void* connection) { delete &connection_of(connection); },
    meet};

}  // namespace
}  // namespace dist::mpi_link

extern "C" [[gnu::visibility("default")]] const dist_link_functions* DIST_LINK_MODULE_ENTRY();
extern "C" const dist_link_functions* DIST_LINK_MODULE_ENTRY() { return &dist::mpi_link::kFunctions; }
