// SPDX-License-Identifier: Apache-2.0
// WorkerTables: the call descriptors of all members of all workers. The members of this worker have theirs in
// memory; those of other workers are decoded from payloads.
#pragma once

#include <cstddef>
#include <cstdio>
#include <new>
#include <optional>

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/worker_payload.hpp"
#include "core/collective/worker_pieces.hpp"
#include "core/comm/call_descriptor.hpp"
#include "core/comm/worker_communicator.hpp"
#include "core/comm/worker_round.hpp"

namespace dist {

// The members of all workers.
class AllMembers final : public MemberNames {
 public:
  // The members of workers are replicas, or each member represents its worker.
  AllMembers(const WorkerCommunicator& communicator, const Group& group) noexcept
      : communicator_(communicator), workers_(group.naming().workers) {}
  int local_rank(int rank) const noexcept override { return communicator_.replica_of(rank); }
  Naming naming() const noexcept override { return {.workers = workers_}; }

 private:
  const WorkerCommunicator& communicator_;
  const bool workers_;
};

// Reports why the tables of member `rank` could not be built: either its payload is malformed, or this member
// has no memory.
inline void unreadable(const MemberNames& all, dist_status code, int rank, bool broken,
                       ErrorRecord* out_why) noexcept {
  out_why->code = code;
  out_why->culprit = all.name(rank);
  std::snprintf(
      out_why->message, sizeof out_why->message,
      broken ? "the data of replica %d cannot be read" : "replica %d has no memory for the data of its peers",
      out_why->culprit.number());
}

class WorkerTables {
 public:
  // Call this when all payloads of the round have arrived. local(p) returns the descriptor of local member p.
  // The tables are stored in the payload buffer of member `keeper`, because their size depends on the call. If
  // this fails, the round must fail; *out_broken is the member whose payload is malformed, or -1.
  template <class Local>
  Status fill(const Call& call, WorkerRound& round, int keeper, Local&& local, int* out_broken) noexcept {
    const WorkerMembers& members = round.members();
    const int size = members.num_members();
    const int first = members.first();
    const PayloadReader reader(call, size, round.complete());
    const auto each = [&](Room& room) -> bool {
      lists_ = 0;
      auto* const descriptors = room.take<CallDescriptor>(static_cast<std::size_t>(size));
      all_ = room.take<const CallDescriptor*>(static_cast<std::size_t>(size));
      for (int p = 0; p < size; ++p) {
        const bool here = p >= first && p < first + members.count();
        const CallDescriptor* descriptor = here ? local(p - first) : nullptr;
        if (!here) {
          CallDescriptor read{};
          if (!reader.read(p, round.incoming(p), room, &read)) {
            *out_broken = p;
            return false;
          }
          lists_ += read.contributions;
          if (room.there()) descriptor = new (&descriptors[p]) CallDescriptor(read);
        } else {
          lists_ += descriptor->contributions;
        }
        if (room.there()) all_[p] = descriptor;
      }
      return true;
    };
    Room counted;
    if (!each(counted)) return Status(DIST_INTERNAL);
    WorkerPieces::needs(members.num_workers(), size, lists_, counted);
    Payload& tables = round.tables(keeper);
    DIST_TRY(tables.resize(counted.used()));
    if (!each(room_.emplace(tables.data()))) return Status(DIST_INTERNAL);
    return kOk;
  }
  const CallDescriptor* const* descriptors() const noexcept { return all_; }
  // The number of lists, or contributions, of all members.
  std::size_t lists() const noexcept { return lists_; }
  // The remaining room is for WorkerPieces.
  Room& room() noexcept { return *room_; }

 private:
  const CallDescriptor** all_ = nullptr;
  std::size_t lists_ = 0;
  std::optional<Room> room_;
};

}  // namespace dist
