// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_crossing.hpp"

#include "core/collective/collectives.hpp"
#include "core/collective/worker_algorithm.hpp"
#include "core/collective/worker_payload.hpp"

namespace dist {

WorkerCrossing::WorkerCrossing(Memory& memory, WorkerCommunicator& communicator, Group& group,
                               const Options& options)
    : communicator_(communicator),
      group_(group),
      options_(options),
      round_(memory, communicator.transport(), communicator.members()),
      sides_(static_cast<std::size_t>(group.size()), &memory) {}

bool WorkerCrossing::pack_payloads() noexcept {
  const WorkerMembers& members = round_.members();
  for (int p = 0; p < members.count(); ++p) {
    const Side& mine = side(p);
    Payload& payload = round_.outgoing(p);
    payload.complete = worker_algorithm_of(worker_question(
                           *mine.call, members.num_workers(), members.num_members(), members.first() + p,
                           options_.most_bytes)) == WorkerAlgorithm::kTogether;
    if (!pack_payload(*mine.call, *mine.descriptor, members.num_members(), payload).ok()) return false;
  }
  return true;
}

void WorkerCrossing::begin(uint64_t number, const Signature& signature) noexcept {
  state_ = State::kUnderWay;
  step_ = Step::kNext;
  signature_ = signature;
  exchange_.reset();
  round_.reset();
  const bool packed = pack_payloads();
  communicator_.begin(round_, options_.stream, number, signature, options_.most_bytes);
  if (!packed) communicator_.fail(round_, {WorkerRound::Fault::kNoMemory, communicator_.me()});
}

void WorkerCrossing::stop() noexcept {
  round_.take_back();
  state_ = State::kStopped;
}

WorkerCrossing::State WorkerCrossing::advance() noexcept {
  communicator_.transport().progress();
  while (state_ == State::kUnderWay) {
    if (group_.aborted()) {
      stop();
    } else if (!communicator_.goes_on(round_)) {
      // The collective cannot continue, but the group may be aborted only by a later call.
      if (!group_.aborted()) return state_;
    } else if (!round_.settled()) {
      return state_;
    } else if (round_.here()) {
      if (!go_on_in_pieces()) state_ = State::kDone;
    } else if (const WorkerRound::Problem problem = round_.proceed();
               problem.fault != WorkerRound::Fault::kNone) {
      communicator_.fail(round_, problem);
    } else if (round_.here() && take_in() && round_.complete()) {
      state_ = State::kHere;
    }
  }
  return state_;
}

void WorkerCrossing::refuse(const ErrorRecord& why) noexcept {
  group_.condemn(
      refusal(group_, call().collective, signature_.tag, static_cast<int64_t>(round_.number()), why));
}

// Reads the descriptions of all workers' members. Returns false if the group is aborted.
bool WorkerCrossing::take_in() noexcept {
  const WorkerMembers& members = round_.members();
  const AllMembers all(communicator_, group_);
  ErrorRecord why;
  int broken = -1;
  const auto local = [&](int p) { return side(p).descriptor; };
  if (const Status filled = tables_.fill(call(), round_, 0, local, &broken); !filled.ok()) {
    unreadable(all, filled.code(), broken >= 0 ? broken : members.first(), broken >= 0, &why);
    refuse(why);
    return false;
  }
  exchange_.emplace(call(), members.num_members(), tables_.descriptors(), options_.cache_bytes,
                    TaskList::Ranks{members.first(), members.first() + members.count()});
  for (int p = 0; p < members.count(); ++p) {
    if (!exchange_->refuses(all, members.first() + p, &why)) continue;
    refuse(why);
    return false;
  }
  return round_.complete() || lay_out_pieces();
}

bool WorkerCrossing::lay_out_pieces() noexcept {
  const WorkerMembers& members = round_.members();
  const int size = members.num_members();
  for (int p = 0; p < members.count(); ++p) {
    Member& mine = sides_[static_cast<std::size_t>(p)];
    const Call& call = *mine.side.call;
    mine.tasks.emplace(call, size, tables_.descriptors(), TaskList::Ranks{0, size});
    mine.schedule.emplace(call, *mine.tasks, tables_.descriptors(), members.firsts);
    std::optional<Room> room;
    if (p != 0) {
      Room counted;
      WorkerPieces::needs(members.num_workers(), size, tables_.lists(), counted);
      if (!round_.tables(p).resize(counted.used()).ok()) {
        communicator_.fail(round_, {WorkerRound::Fault::kNoMemory, communicator_.me()});
        return false;
      }
      room.emplace(round_.tables(p).data());
    }
    mine.pieces.emplace(WorkerPieces::Side{group_, round_, p, options_.cache_bytes}, call, *mine.schedule,
                        tables_.descriptors(), p == 0 ? tables_.room() : *room);
  }
  return true;
}

// Called when all messages in flight have arrived. Returns false when no more messages follow.
bool WorkerCrossing::go_on_in_pieces() noexcept {
  WorkerPieces& first = *sides_[0].pieces;
  const auto unpack = [&] {
    for (Member& each : sides_) each.pieces->unpack();
    step_ = Step::kNext;
  };
  switch (step_) {
    case Step::kNext: {
      bool more = false;
      for (Member& each : sides_) more = each.pieces->next();
      if (!more) return false;
      if (!round_.reserve(first.staging_bytes()).ok()) {
        communicator_.fail(round_, {WorkerRound::Fault::kNoMemory, communicator_.me()});
        return true;
      }
      for (Member& each : sides_) each.pieces->pack();
      round_.pass(first.ins());
      step_ = Step::kFold;
      return true;
    }
    case Step::kFold:
      if (first.folds()) first.fold(0, 1);
      if (!first.has_outs()) {
        unpack();
        return true;
      }
      round_.pass(first.outs());
      step_ = Step::kUnpack;
      return true;
    default: unpack(); return true;
  }
}

}  // namespace dist
