// SPDX-License-Identifier: Apache-2.0
// JobSettings: what the environment says of the job that this process is a worker of. Whoever starts the workers sets it
// (dist-launch, a batch script, a manifest), so that a program runs alike on one machine and on many. What a program's own
// options say counts before it. workers.h lists the variables.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

struct JobSettings {
  explicit JobSettings(Memory& memory)
      : module_folder(&memory),
        bind_address(&memory),
        secret(&memory),
        ca(&memory),
        certificate(&memory),
        key(&memory) {}

  int32_t transport = DIST_TRANSPORT_AUTO;
  int32_t num_replicas = 0;  // of each worker; 0: not said
  bool allow_plaintext = false;
  int64_t lease_ns = 0;  // 0: not said
  // "": not said.
  std::pmr::string module_folder;  // where libdist-grpc.so and libdist-gloo.so are
  std::pmr::string bind_address;
  std::pmr::string secret;
  std::pmr::string ca;  // PEM, the contents of the files that are named, as the next two
  std::pmr::string certificate;
  std::pmr::string key;
};

// INVALID_ARGUMENT where a variable has no value that it can have, and what reading a file says. Never the secret.
Status read_job_settings(JobSettings* out);
// Only JobSettings::module_folder.
Status read_module_folder(std::pmr::string* out);

}  // namespace dist
