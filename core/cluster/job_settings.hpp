// SPDX-License-Identifier: Apache-2.0
// JobSettings: the environment variables that configure this process as a worker of a job. The program that
// starts the workers (dist-launch, a batch script, a manifest) sets them, so the same program can run on one
// machine or on many. Explicit options take precedence. workers.h lists the variables.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/link_security.hpp"

namespace dist {

struct JobSettings {
  explicit JobSettings(Memory& memory)
      : link_module(&memory), module_folder(&memory), bind_address(&memory), security(memory) {}

  // The value of `transport` if DIST_TRANSPORT is the name of a link module, and that name.
  static constexpr dist_transport kLinkModule{-1};
  std::pmr::string link_module;
  dist_transport transport = DIST_TRANSPORT_AUTO;
  // Returns that name if the option leaves the choice to DIST_TRANSPORT, otherwise NULL.
  const char* link_module_for(int32_t option) const noexcept {
    return option == DIST_TRANSPORT_AUTO && transport == kLinkModule ? link_module.c_str() : nullptr;
  }
  int32_t num_replicas = 0;        // of each worker; 0: not set
  std::pmr::string module_folder;  // the folder of libdist-grpc.so and of link modules; "": not set
  std::pmr::string bind_address;
  KeptSecurity security;  // the secret, the contents of the PEM files, and the lease (0: not set)
};

// Fails with INVALID_ARGUMENT if a variable has an invalid value; also returns errors of reading files.
// Messages never contain the secret.
Status read_job_settings(JobSettings* out);
// Reads only JobSettings::module_folder.
Status read_module_folder(std::pmr::string* out);

}  // namespace dist
