// SPDX-License-Identifier: Apache-2.0
// Collectives on tensors: state what the member came for, meet, and share out the work (exchange.hpp) on the
// way that route.hpp says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/checked_calls.hpp"
#include "core/comm/group.hpp"
#include "core/trace/recorder.hpp"
#include "dist/types.h"

namespace dist {

// Who calls: one member of a group.
struct Member {
  Group& group;
  int me;                           // rank in the group
  const char* tag;                  // NULL: none
  int64_t timeout_ns;               // 0: the group's; < 0: none
  std::size_t cache_bytes;          // of the last-level cache: larger results are stored past it
  Recorder* recorder = nullptr;     // NULL: nobody keeps a record
  CheckedCalls* checked = nullptr;  // NULL: every call is checked

  // Of the collective, in all processes: a group's members are those of one.
  int num_global() const noexcept { return group.size(); }
};

// What every report has, added to what Exchange::refuses() says.
ErrorRecord refusal(const Group& group, const Call& call, const char* tag, int64_t sequence,
                    const ErrorRecord& why) noexcept;

// Checks the call and makes it, blocking.
Status collective(const Member& member, Call& call) noexcept;

// body(), a blocking collective, with its begin and end in the caller's record.
template <class Body>
Status recorded(const Member& member, Collective collective, Body&& body) noexcept {
  if (member.recorder == nullptr) return body();
  member.recorder->begin(static_cast<int32_t>(collective));
  const Status status = body();
  member.recorder->close(status.code());
  return status;
}

// Tells the caller's recorder what its member has stated: before it arrives, or (`ahead` 0) when its slot is
// out, while it would wait anyway.
inline void record_arrival(const Member& member, const Signature& signature, std::size_t bytes,
                           uint32_t ahead = 1) noexcept {
  if (member.recorder == nullptr) return;
  const Group& group = member.group;
  member.recorder->open({static_cast<int32_t>(signature.collective), signature.op, signature.dtype,
                         group.number(), group.size(), group.round(member.me) + ahead,
                         static_cast<uint32_t>(group.sequence(member.me) + ahead), false, bytes,
                         signature.tag});
}

Status all_reduce(const Member& member, dist_reduce_op op, const dist_tensor* in, dist_tensor* out,
                  std::size_t n) noexcept;
Status broadcast(const Member& member, int32_t root, const dist_tensor* in, dist_tensor* out,
                 std::size_t n) noexcept;
Status barrier(const Member& member) noexcept;

}  // namespace dist
