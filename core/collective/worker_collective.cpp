// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_collective.hpp"

#include <algorithm>

#include "core/base/on_stack.hpp"
#include "core/base/wire.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/one_tensor.hpp"
#include "core/collective/partition.hpp"
#include "core/collective/worker_algorithm.hpp"
#include "core/collective/worker_payload.hpp"
#include "core/collective/worker_pieces.hpp"
#include "core/collective/worker_schedule.hpp"
#include "core/collective/worker_tables.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {
namespace {

// Moves everything in pieces. Returns whether that has been completed.
bool go_in_pieces(const Member& member, WorkerCommunicator& communicator, WorkerPieces& pieces) noexcept {
  const auto part = static_cast<std::size_t>(member.me);
  const auto parts = static_cast<std::size_t>(member.group.size());
  while (pieces.next()) {
    // After this step, no member is still unpacking the previous piece.
    if (!communicator.step(member.me, [&] { return communicator.reserve(pieces.staging_bytes()); }))
      return false;
    pieces.pack();
    if (!communicator.step(member.me, [&] { return communicator.pass(pieces.ins()); })) return false;
    if (pieces.folds()) {
      pieces.fold(part, parts);
      if (!communicator.step(member.me,
                             [&] { return pieces.has_outs() ? communicator.pass(pieces.outs()) : kOk; }))
        return false;
    }
    pieces.unpack();
  }
  if (member.me == 0) communicator.complete_collective();
  return true;
}

// Writes the result of an all_reduce of one dense tensor on a worker with one member, if the messages
// contained all elements. Otherwise does nothing and returns false.
bool reduce_one(const Member& member, const WorkerRound& round, const Call& call) noexcept {
  if (member.group.size() != 1 || !round.complete() || !call.can_travel() || call.strided) return false;
  const OneTensor one(call);
  const bool replaces = call.in_place && one.out_bytes == one.bytes;
  if (!replaces && overlap(call.in[0].data, one.bytes, call.out[0].data, one.out_bytes)) return false;
  const WorkerMembers& members = round.members();
  const auto size = static_cast<std::size_t>(members.num_members());
  auto* const src = DIST_ON_STACK(const std::byte*, size);
  for (int p = 0; p < members.num_members(); ++p) {
    const std::span<const std::byte> brought = round.incoming(p);
    const bool own = p == members.first();
    if (!own && brought.size() != one.bytes) return false;
    src[p] = own ? static_cast<const std::byte*>(call.in[0].data) : brought.data();
  }
  const FpEnvironment environment;
  auto* dst = static_cast<std::byte*>(call.out[0].data);
  if (one.bytes != 0) one.kernel({src, &dst, size, 1, one.elements(), static_cast<double>(size), false});
  return true;
}

// Called when all workers agree and the descriptions of all their members have arrived.
Status exchange(const Member& member, WorkerCommunicator& communicator, const Call& call) noexcept {
  Group& group = member.group;
  WorkerRound& round = communicator.round();
  if (reduce_one(member, round, call)) return group.finish(member.me);
  const WorkerMembers& members = round.members();
  const AllMembers all(communicator, group);
  const int me = members.first() + member.me;
  ErrorRecord why;
  const auto refuse = [&] {
    group.condemn(refusal(group, call.collective, member.tag, group.sequence(member.me), why));
    if (member.me == 0) communicator.release();
    return group.finish(member.me);
  };
  WorkerTables tables;
  int broken = -1;
  const auto local = [&](int p) { return &group.slot(member.me, p).descriptor; };
  if (const Status filled = tables.fill(call, round, member.me, local, &broken); !filled.ok()) {
    unreadable(all, filled.code(), broken >= 0 ? broken : me, broken >= 0, &why);
    return refuse();
  }
  const int size = members.num_members();
  const Exchange exchange(call, size, tables.descriptors(), member.cache_bytes,
                          {members.first(), members.first() + members.count()});
  if (exchange.refuses(all, me, &why)) return refuse();
  if (!round.complete()) {
    const TaskList tasks(call, size, tables.descriptors(), {0, size});
    const WorkerSchedule schedule(call, tasks, tables.descriptors(), members.firsts);
    WorkerPieces pieces({group, round, member.me, member.cache_bytes}, call, schedule, tables.descriptors(),
                        tables.room());
    go_in_pieces(member, communicator, pieces);
    return group.finish(member.me);
  }
  const FpEnvironment environment;
  TaskList::Cursor cursor;
  exchange.run(
      part_of(exchange.units(), static_cast<std::size_t>(group.size()), static_cast<std::size_t>(member.me)),
      cursor, [&] { return !group.aborted(); });
  return group.finish(member.me);
}

// Does the leader's part on behalf of its worker. If it fails, the group is aborted.
void lead(const Member& member, WorkerCommunicator& communicator, const Signature& signature,
          int64_t start_ns) noexcept {
  Attendance& attendance = communicator.attendance();
  attendance.watch(member.recorder);
  if (!communicator.meet_and_move(signature, member.timeout_ns, start_ns).ok() || member.recorder == nullptr)
    return;
  const Attendance::Latest latest = attendance.latest();
  member.recorder->last_of_workers(communicator.named(latest.worker), latest.name, latest.late_ns);
}

// All members of all workers meet with `signature`, which is the group's draft. Returns false if the round
// must end; then the result is the status of the failed arrival, or that of the group's finish().
template <class Published>
bool meet(const Member& member, WorkerCommunicator& communicator, const Signature& signature,
          int64_t start_ns, Published&& published, Status* out) noexcept {
  Group& group = member.group;
  if (member.recorder != nullptr) communicator.attendance().arrive(member.me, steady_now_ns());
  const Status arrived = group.arrive(member.me, member.timeout_ns, published);
  // If a member cannot enter, the group is aborted; the members inside still wait for the leader.
  const bool inside = arrived.ok() && group.enter(member.me);
  if (inside && member.me == 0) lead(member, communicator, signature, start_ns);
  const bool goes_on =
      member.me == 0 ? communicator.release() : inside && communicator.await_release(member.me);
  if (!goes_on) *out = arrived.ok() ? group.finish(member.me) : arrived;
  return arrived.ok() && goes_on;
}

// From this moment on, the leader's deadline is the deadline of the collective.
int64_t start_of(const Member& member, WorkerCommunicator& communicator) noexcept {
  return member.me == 0 ? communicator.host().now_ns() : 0;
}

Status check_and_meet(const Member& member, WorkerCommunicator& communicator, Call& call) noexcept {
  Group& group = member.group;
  const int size = communicator.num_members();
  const int me = communicator.first() + member.me;
  const int64_t start_ns = start_of(member, communicator);
  DIST_TRY(group.open());
  Signature& signature = group.draft(member.me);
  DIST_TRY(call.check(me, size, signature));
  close_digest(signature, member.tag);
  if (call.splits != nullptr) call.offset_splits(DIST_ON_STACK(int64_t, size + 1), size);
  CallDescriptor& own = group.outgoing(member.me).descriptor;
  call.describe_in(own);
  Payload& payload = communicator.round().outgoing(member.me);
  payload.complete =
      worker_algorithm_of(worker_question(call, communicator.num_workers(), size, me,
                                          communicator.own_staging_bytes())) == WorkerAlgorithm::kTogether;
  DIST_TRY(pack_payload(call, own, size, payload));
  Status status;
  const auto published = [&] {
    record_arrival(member, signature, call.bytes, 0);
    if (member.recorder != nullptr) member.recorder->meet_workers();
  };
  if (!meet(member, communicator, signature, start_ns, published, &status)) return status;
  if (member.recorder != nullptr) member.recorder->arrived();
  return exchange(member, communicator, call);
}

}  // namespace

Status worker_collective(const Member& member, WorkerCommunicator& communicator, Call& call) noexcept {
  return recorded(member, call.collective, [&] { return check_and_meet(member, communicator, call); });
}

Status agree_on_most(const Member& member, WorkerCommunicator& communicator, const Signature& signature,
                     uint64_t* value) noexcept {
  const int64_t start_ns = start_of(member, communicator);
  WorkerRound& round = communicator.round();
  Payload& payload = round.outgoing(member.me);
  payload.complete = true;
  DIST_TRY(payload.resize(sizeof *value));
  WireWriter(payload.data()).put(*value);
  Status status;
  if (!meet(
          member, communicator, signature, start_ns, [] {}, &status))
    return status;
  for (int p = 0; p < round.members().num_members(); ++p) {
    const std::span<const std::byte> other = round.incoming(p);
    *value = std::max(*value, WireReader(other.data(), other.size()).take<uint64_t>());
  }
  return member.group.finish(member.me);
}

}  // namespace dist
