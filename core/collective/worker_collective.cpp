// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_collective.hpp"

#include <cstdio>
#include <new>
#include <optional>

#include "core/collective/exchange.hpp"
#include "core/collective/partition.hpp"
#include "core/collective/worker_payload.hpp"
#include "core/collective/worker_pieces.hpp"
#include "core/collective/worker_route.hpp"
#include "core/collective/worker_schedule.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {
namespace {

// The members of all workers.
class AllMembers final : public MemberNames {
 public:
  // Members of workers are replicas, or each is its worker.
  AllMembers(const WorkerMeeting& meeting, const Group& group) noexcept
      : meeting_(meeting), workers_(group.naming().workers) {}
  int seat(int rank) const noexcept override { return meeting_.replica_of(rank); }
  Naming naming() const noexcept override { return {.workers = workers_}; }

 private:
  const WorkerMeeting& meeting_;
  const bool workers_;
};

// The offers of all members: of this worker's as they lie in their slots, of the others' as their payloads say. All
// lies in one payload of the host's memory, since its size depends on the call.
class Tables {
 public:
  // Nobody can go on where it is not OK; `*out_broken` is then who brought what cannot be read, or -1.
  Status fill(const Member& member, WorkerMeeting& meeting, const Call& call, int* out_broken) noexcept {
    const int size = meeting.num_members();
    const int first = meeting.first();
    const PayloadReader reader(call, size, meeting.complete());
    const auto each = [&](Room& room) -> bool {
      auto* const offers = room.take<Offer>(static_cast<std::size_t>(size));
      all_ = room.take<const Offer*>(static_cast<std::size_t>(size));
      firsts_ = room.take<int>(static_cast<std::size_t>(meeting.num_workers()) + 1);
      for (int p = 0; p < size; ++p) {
        const bool local = p >= first && p < first + member.group.size();
        const Offer* offer = local ? &member.group.slot(member.me, p - first).offer : nullptr;
        if (!local) {
          const Payload& payload = meeting.incoming(p);
          Offer read{};
          if (!reader.read(p, {payload.data(), payload.bytes()}, room, &read)) {
            *out_broken = p;
            return false;
          }
          if (room.there()) offer = new (&offers[p]) Offer(read);
        }
        if (room.there()) all_[p] = offer;
      }
      return true;
    };
    Room counted;
    if (!each(counted)) return Status(DIST_INTERNAL);
    // As many lists as a sum can have: with more the call is refused.
    WorkerPieces::needs(meeting.num_workers(), size, DIST_MAX_CONTRIBUTIONS, counted);
    Payload& tables = meeting.tables(member.me);
    DIST_TRY(tables.resize(counted.used()));
    if (!each(room_.emplace(tables.data()))) return Status(DIST_INTERNAL);
    for (int w = 0; w <= meeting.num_workers(); ++w) firsts_[w] = meeting.first_of(w);
    return kOk;
  }
  const Offer* const* offers() const noexcept { return all_; }
  const int* firsts() const noexcept { return firsts_; }
  Room& room() noexcept { return *room_; }

 private:
  const Offer** all_ = nullptr;
  int* firsts_ = nullptr;
  std::optional<Room> room_;
};

// All workers agree, and what their members say about their tensors is here.
Status exchange(const Member& member, WorkerMeeting& meeting, const Call& call) noexcept {
  Group& group = member.group;
  const AllMembers all(meeting, group);
  const int first = meeting.first();
  const int me = first + member.me;
  ErrorRecord why;
  const auto refuse = [&] {
    group.condemn(refusal(group, call, member.tag, group.sequence(member.me), why));
    if (member.me == 0) meeting.release();
    return group.finish(member.me);
  };
  Tables tables;
  int broken = -1;
  if (const Status filled = tables.fill(member, meeting, call, &broken); !filled.ok()) {
    why.code = filled.code();
    why.culprit = all.name(broken >= 0 ? broken : me);
    std::snprintf(why.message, sizeof why.message,
                  broken >= 0 ? "what replica %d brought cannot be read"
                              : "replica %d has no memory for what the others brought",
                  why.culprit.number());
    return refuse();
  }
  const int size = meeting.num_members();
  const Exchange exchange(call, size, tables.offers(), member.cache_bytes, {first, first + group.size()});
  if (exchange.refuses(all, me, &why)) return refuse();
  if (!meeting.complete()) {
    const TaskList tasks(call, size, tables.offers(), {0, size});
    const WorkerSchedule schedule(call, tasks, tables.offers(),
                                  {tables.firsts(), static_cast<std::size_t>(meeting.num_workers()) + 1});
    WorkerPieces(member, meeting, call, schedule, tables.offers(), tables.room()).run();
    return group.finish(member.me);
  }
  const FpEnvironment environment;
  TaskList::Cursor cursor;
  exchange.run(
      part_of(exchange.units(), static_cast<std::size_t>(group.size()), static_cast<std::size_t>(member.me)),
      cursor, [&] { return !group.poisoned(); });
  return group.finish(member.me);
}

Status check_and_meet(const Member& member, WorkerMeeting& meeting, Call& call) noexcept {
  Group& group = member.group;
  const int size = meeting.num_members();
  const int me = meeting.first() + member.me;
  // The carrier's deadline is that of the collective, from here on.
  const int64_t start_ns = member.me == 0 ? meeting.host().now_ns() : 0;
  DIST_TRY(group.open());
  Signature& signature = group.draft(member.me);
  DIST_TRY(call.check(me, size, signature));
  close_digest(signature, member.tag);
  int64_t offsets[DIST_MAX_REPLICAS + 1];
  if (call.splits != nullptr) call.offset_splits(offsets, size);
  Offer& own = group.outgoing(member.me).offer;
  call.offer_in(own);
  Payload& payload = meeting.outgoing(member.me);
  payload.complete = worker_route_of(worker_question(call, meeting.num_workers(), size, me,
                                                     meeting.own_staging_bytes())) == WorkerRoute::kTogether;
  DIST_TRY(pack_payload(call, own, size, payload));
  const Status arrived =
      group.arrive(member.me, member.timeout_ns, [&] { record_arrival(member, signature, call.bytes, 0); });
  // Where a member does not go in, the group is poisoned; those inside wait for the carrier, nevertheless.
  const bool inside = arrived.ok() && group.enter(member.me);
  if (inside && member.me == 0) (void)meeting.meet_and_move(signature, member.timeout_ns, start_ns);
  const bool goes_on = member.me == 0 ? meeting.release() : inside && meeting.await_release(member.me);
  DIST_TRY(arrived);
  if (!goes_on) return group.finish(member.me);
  if (member.recorder != nullptr) member.recorder->arrived();
  return exchange(member, meeting, call);
}

}  // namespace

Status worker_collective(const Member& member, WorkerMeeting& meeting, Call& call) noexcept {
  return recorded(member, call.collective, [&] { return check_and_meet(member, meeting, call); });
}

}  // namespace dist
