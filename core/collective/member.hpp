// SPDX-License-Identifier: Apache-2.0
// Member: the identity and the resources of a replica that makes a collective.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/comm/workers.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class CheckedCalls;

[[gnu::cold]] Status not_over_workers(const char* what) noexcept;

// Who calls: one member of a group.
struct Member {
  Group& group;
  int me;                            // rank in the group
  const char* tag;                   // NULL: none
  int64_t timeout_ns;                // 0: the group's; < 0: none
  std::size_t cache_bytes;           // of the last-level cache: larger results are stored past it
  Recorder* recorder = nullptr;      // NULL: nothing is recorded
  CheckedCalls* checked = nullptr;   // NULL: every call is checked
  WorkerMeeting* meeting = nullptr;  // with the group's members of other workers; NULL: there are none

  // Members of all workers together.
  int num_global() const noexcept { return meeting == nullptr ? group.size() : meeting->num_members(); }
  // UNIMPLEMENTED where there are other workers, for what has no way to them.
  Status check_alone(const char* what) const noexcept {
    return meeting == nullptr ? kOk : not_over_workers(what);
  }
  // The same without the other workers: the group's own members alone.
  Member local() const noexcept {
    Member alone = *this;
    alone.meeting = nullptr;
    return alone;
  }
};

}  // namespace dist
