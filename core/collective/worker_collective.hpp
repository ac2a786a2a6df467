// SPDX-License-Identifier: Apache-2.0
// Collectives over several workers: members of other workers become payloads of bytes that lie here, and are read as
// members' buffers are. So everything that an exchange can do, with the bits of one process that has all members.
#pragma once

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/collectives.hpp"
#include "core/comm/workers.hpp"

namespace dist {

// As collective(), for a group whose members are those of one worker. Ranks in the call, the root's and others, are
// among the members of all workers, worker by worker.
Status worker_collective(const Member& member, WorkerMeeting& meeting, Call& call) noexcept;

// What all members come for is `signature`, the group's draft, and nothing else: the carrier of each worker gets the
// most that any member says.
Status agree_on_most(const Member& member, WorkerMeeting& meeting, const Signature& signature,
                     uint64_t* value) noexcept;

}  // namespace dist
