// SPDX-License-Identifier: Apache-2.0
// Finds the rank of this process, the number of workers, the address of worker 0 and the name of the job: in options, or
// in the environment variables that launchers set. cluster_resolver.h lists them.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

// NULL, 0 and DIST_TASK_UNSET: not given.
struct RendezvousOptions {
  int32_t rank = DIST_TASK_UNSET;
  int32_t size = 0;
  const char* address = nullptr;
  const char* job_name = nullptr;
};

struct RendezvousPlace {
  explicit RendezvousPlace(Memory& memory) : address(&memory), job(&memory) {}

  int32_t rank = 0;
  int32_t size = 0;
  std::pmr::string address;  // "host:port"; "": not known, and there is only one worker
  std::pmr::string job;      // "": it has no name
  const char* rank_source = "given as an option";
  const char* size_source = "given as an option";
  const char* address_source = "given as an option";
};

// INVALID_ARGUMENT if a value is out of range, FAILED_PRECONDITION if one is not known or two launchers do not agree.
Status find_rendezvous_place(Memory& memory, const RendezvousOptions& options, RendezvousPlace* out);

// Whether a strategy without a resolver meets the others: DIST_RENDEZVOUS is set, and TF_CONFIG is not.
bool finds_rendezvous_in_environment() noexcept;

}  // namespace dist
