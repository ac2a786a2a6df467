// SPDX-License-Identifier: Apache-2.0
// Member: the identity and the resources of a replica that makes a collective.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/comm/worker_communicator.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class CheckedCalls;

[[gnu::cold]] Status not_over_workers(const char* what) noexcept;

// The caller: one member of a group.
struct Member {
  Group& group;
  int me;                                      // rank in the group
  const char* tag;                             // NULL: none
  int64_t timeout_ns;                          // 0: the group's; negative: no timeout
  std::size_t cache_bytes;                     // of the last-level cache; larger results bypass it
  Recorder* recorder = nullptr;                // NULL: do not record
  CheckedCalls* checked = nullptr;             // NULL: validate every call
  WorkerCommunicator* communicator = nullptr;  // with the group's members on other workers; NULL: none

  // Number of members of all workers.
  int num_global() const noexcept {
    return communicator == nullptr ? group.size() : communicator->num_members();
  }
  // Fails with UNIMPLEMENTED if there are other workers, for operations that do not support them.
  Status check_alone(const char* what) const noexcept {
    return communicator == nullptr ? kOk : not_over_workers(what);
  }
  // The same member without the other workers.
  Member local() const noexcept {
    Member alone = *this;
    alone.communicator = nullptr;
    return alone;
  }
};

// Stores the addresses of all descriptors in the current round, by rank.
inline void collect_descriptors(const Member& member, const CallDescriptor** descriptors) noexcept {
  for (int p = 0; p < member.group.size(); ++p) descriptors[p] = &member.group.slot(member.me, p).descriptor;
}

}  // namespace dist
