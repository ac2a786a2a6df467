// SPDX-License-Identifier: Apache-2.0
// Finds the rank of this process, the number of workers, the address of worker 0 and the name of the job, in
// options or in the environment variables that launchers set. cluster_resolver.h lists these variables.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "dist/experimental/links.h"

namespace dist {

// NULL, 0 and DIST_TASK_UNSET: not given.
struct RendezvousOptions {
  int32_t rank = DIST_TASK_UNSET;
  int32_t size = 0;
  const char* address = nullptr;
  const char* job_name = nullptr;
  dist_transport transport = DIST_TRANSPORT_AUTO;  // of the strategy that will use the cluster
};

struct RendezvousPlace {
  explicit RendezvousPlace(Memory& memory) : address(&memory), job(&memory) {}

  int32_t rank = 0;
  int32_t size = 0;
  std::pmr::string address;  // "host:port"; "" if it is not known, in a job of only one worker
  std::pmr::string job;      // "" if it has no name
  const char* rank_source = "given as an option";
  const char* size_source = "given as an option";
  const char* address_source = "given as an option";
};

// Fails with INVALID_ARGUMENT if a value is out of range, and with FAILED_PRECONDITION if one is not known or
// two launchers disagree.
Status find_rendezvous_place(Memory& memory, const RendezvousOptions& options, RendezvousPlace* out);

// Finds the link module through which the workers meet (dist_link_functions.meet). It is that of the
// transport, if it provides meetings and neither the options nor DIST_RENDEZVOUS set an address. Stores NULL
// otherwise.
Status find_meeting_module(Memory& memory, const RendezvousOptions& options, const dist_link_functions** out);
// Checks that the options and the launcher agree with what such a module reports, and completes the place.
Status check_place_of_module(const RendezvousOptions& options, const char* module, RendezvousPlace* place);

// Whether a strategy of this transport that has no resolver should meet the others. It should if TF_CONFIG is
// not set, and DIST_RENDEZVOUS is set or a link module provides a meeting.
Status wants_to_meet(Memory& memory, dist_transport transport, bool* out);

}  // namespace dist
