// SPDX-License-Identifier: Apache-2.0
// JobSettings: the environment variables that configure this process as a worker of a job. The program that
// starts the workers sets them (dist-launch, a batch script, a manifest), so that the same program runs on
// one machine or on many. Explicit options take precedence. workers.h lists the variables.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

struct JobSettings {
  explicit JobSettings(Memory& memory)
      : link_module(&memory),
        module_folder(&memory),
        bind_address(&memory),
        secret(&memory),
        ca(&memory),
        certificate(&memory),
        key(&memory),
        ca_file(&memory),
        certificate_file(&memory),
        key_file(&memory) {}

  // `transport` if DIST_TRANSPORT is the name of a link module, and that name.
  static constexpr int32_t kLinkModule = -1;
  std::pmr::string link_module;
  int32_t transport = DIST_TRANSPORT_AUTO;
  int32_t num_replicas = 0;  // of each worker; 0: not set
  bool allow_plaintext = false;
  int64_t lease_ns = 0;  // 0: not set
  // "": not set.
  std::pmr::string module_folder;  // location of libdist-grpc.so and of link modules
  std::pmr::string bind_address;
  std::pmr::string secret;
  std::pmr::string ca;  // PEM; the contents of the named files, like the next two
  std::pmr::string certificate;
  std::pmr::string key;
  std::pmr::string ca_file;  // the files that the PEM texts were read from
  std::pmr::string certificate_file;
  std::pmr::string key_file;
};

// INVALID_ARGUMENT if a variable has an invalid value; also returns errors of reading files. Messages never
// contain the secret.
Status read_job_settings(JobSettings* out);
// Only JobSettings::module_folder.
Status read_module_folder(std::pmr::string* out);

}  // namespace dist
