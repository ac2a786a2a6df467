// SPDX-License-Identifier: Apache-2.0
// Collectives over several workers. The tensors of other workers' members arrive as payloads in local memory
// and are read like the buffers of local members. An exchange therefore does the same work as in one process,
// and produces the same bits as if one process had all members.
#pragma once

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/collectives.hpp"
#include "core/comm/worker_communicator.hpp"

namespace dist {

// Like collective(), for a group that has only this worker's members. Ranks in the call, such as the root,
// count the members of all workers, worker by worker.
Status worker_collective(const Member& member, WorkerCommunicator& communicator, Call& call) noexcept;

// Meets in a round without tensors, with the group's draft `signature`. Each worker's leader receives the
// largest value that any member has passed.
Status agree_on_most(const Member& member, WorkerCommunicator& communicator, const Signature& signature,
                     uint64_t* value) noexcept;

}  // namespace dist
