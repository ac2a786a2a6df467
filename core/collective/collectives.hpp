// SPDX-License-Identifier: Apache-2.0
// Blocking collectives on tensors. A member validates its call, publishes its signature, meets its peers, and
// does its share of the work (exchange.hpp) with the algorithm that algorithm.hpp selects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/checked_calls.hpp"
#include "core/collective/member.hpp"
#include "core/comm/group.hpp"
#include "core/comm/worker_communicator.hpp"
#include "core/trace/recorder.hpp"
#include "dist/types.h"

namespace dist {

// Returns the report `why` of Exchange::refuses() with the fields that all reports have added to it.
ErrorRecord refusal(const Group& group, Collective collective, const char* tag, int64_t sequence,
                    const ErrorRecord& why) noexcept;

// Validates the call and performs it. Blocks.
Status collective(const Member& member, Call& call) noexcept;
// Performs an all_reduce of one dense tensor if an equal call was validated before. Returns nullopt, having
// done nothing, if it was not, or if some member has no CPU of its own. Training and inference loops spend
// their time here.
std::optional<Status> all_reduce_again(const Member& member, dist_reduce_op op, dist_numerics numerics,
                                       const dist_tensor& in, const dist_tensor& out) noexcept;

// Calls body(), a blocking collective, and records its begin and end.
template <class Body>
Status recorded(const Member& member, Collective collective, Body&& body) noexcept {
  if (member.recorder == nullptr) return body();
  member.recorder->begin(static_cast<int32_t>(collective));
  const Status status = body();
  member.recorder->close(status.code());
  return status;
}

// Records the member's call in its own recorder. `ahead` is 1 before the member arrives, and 0 once its slot
// is published and the member has nothing to do but wait.
inline void record_arrival(const Member& member, const Signature& signature, std::size_t bytes,
                           uint32_t ahead = 1) noexcept {
  if (member.recorder == nullptr) return;
  const Group& group = member.group;
  member.recorder->open({static_cast<int32_t>(signature.collective), signature.op, signature.dtype,
                         group.number(), group.size(), group.round(member.me) + ahead,
                         static_cast<uint32_t>(group.sequence(member.me) + ahead), false, bytes,
                         signature.tag});
}

Status all_reduce(const Member& member, dist_reduce_op op, dist_numerics numerics, const dist_tensor* in,
                  const dist_tensor* out, std::size_t n) noexcept;
Status broadcast(const Member& member, int32_t root, const dist_tensor* in, const dist_tensor* out,
                 std::size_t n) noexcept;
Status barrier(const Member& member) noexcept;

}  // namespace dist
