// SPDX-License-Identifier: Apache-2.0
// Collectives over several workers. The tensors of other workers' members arrive as payloads in local memory,
// and are read like the buffers of local members. So an exchange does everything that it does in one process,
// with the same bits as if one process had all members.
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
