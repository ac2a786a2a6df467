// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_pieces.hpp"

#include <new>

#include "core/collective/exchange.hpp"
#include "core/collective/tensor_part.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Places the elements of consecutive flows. They are contiguous as long as they have the same dtype, so that
// they can be folded together.
class Packed {
 public:
  std::size_t place(dist_dtype dtype, std::size_t count) noexcept {
    if (dtype != dtype_) at_ = aligned(at_);
    dtype_ = dtype;
    const std::size_t begin = at_;
    at_ += count * dtype_size(dtype);
    return begin;
  }
  std::size_t end() const noexcept { return at_; }
  std::size_t bytes() const noexcept { return aligned(at_); }

 private:
  dist_dtype dtype_{};
  std::size_t at_ = 0;
};

}  // namespace

WorkerPieces::WorkerPieces(const Side& side, const Call& call, const WorkerSchedule& schedule,
                           const CallDescriptor* const* descriptors, Room& room) noexcept
    : side_(side),
      members_(side.round.members()),
      call_(call),
      schedule_(schedule),
      descriptors_(descriptors),
      me_(members_.me),
      workers_(members_.num_workers()),
      slice_(schedule.slice(side.round.staging_bytes())),
      pieces_(schedule.pieces(slice_)) {
  const auto workers = static_cast<std::size_t>(workers_);
  const auto members = static_cast<std::size_t>(members_.num_members());
  sent_ = room.take<StagedLane>(workers);
  got_ = room.take<StagedLane>(workers);
  passages_ = room.take<Passage>(workers);
  folded_ = room.take<CallDescriptor>(members);
  folded_at_ = room.take<const CallDescriptor*>(members);
  folded_lists_ = room.take<dist_tensor>(lists_before(members_.num_members()));
  if (folds()) got_ = sent_;
  for (int w = 0; w < workers_; ++w) {
    StagedLane& to = *new (&sent_[w]) StagedLane{};
    to.lane = folds() ? schedule.owned(w) : schedule.between(me_, schedule.to_all() ? me_ : w);
    to.cursor = schedule.begin(to.lane);
    if (folds()) continue;
    StagedLane& from = *new (&got_[w]) StagedLane{};
    from.lane = schedule.between(w, me_);
    from.cursor = schedule.begin(from.lane);
  }
}

void WorkerPieces::needs(int num_workers, int num_members, std::size_t lists, Room& room) noexcept {
  const auto workers = static_cast<std::size_t>(num_workers);
  const auto members = static_cast<std::size_t>(num_members);
  room.take<StagedLane>(workers);
  room.take<StagedLane>(workers);
  room.take<Passage>(workers);
  room.take<CallDescriptor>(members);
  room.take<const CallDescriptor*>(members);
  room.take<dist_tensor>(lists);
}

std::size_t WorkerPieces::lists_before(int rank) const noexcept {
  std::size_t lists = 0;
  for (int p = 0; p < rank; ++p) lists += descriptors_[p]->contributions;
  return lists;
}

// Calls visit(flow, first, count, at) for the piece's elements, which begin `at` bytes after the start of a
// list or result. Returns the position in the lane after the piece.
template <class Visit>
WorkerSchedule::Cursor WorkerPieces::for_flows(const StagedLane& staged, bool results,
                                               Visit&& visit) const noexcept {
  WorkerSchedule::Cursor cursor = staged.cursor;
  Packed packed;
  schedule_.for_flows(staged.lane, staged.piece, cursor,
                      [&](const WorkerSchedule::Flow& flow, std::size_t first, std::size_t count) {
                        const dist_tensor& like = call_.in != nullptr ? call_.in[flow.t] : call_.out[flow.t];
                        visit(flow, first, count,
                              packed.place(results ? call_.out_dtype(like.dtype) : like.dtype, count));
                      });
  return cursor;
}

// Assigns places in staging memory to everything in a piece.
void WorkerPieces::lay_out(std::size_t slice, std::size_t index) noexcept {
  const auto measure = [&](StagedLane& staged) {
    staged.piece = WorkerSchedule::piece_of(staged.lane, slice, index);
    Packed in;
    Packed out;
    staged.flows = 0;
    staged.next = for_flows(
        staged, false,
        [&](const WorkerSchedule::Flow& flow, std::size_t first, std::size_t count, std::size_t) {
          const dist_dtype dtype = call_.in != nullptr ? call_.in[flow.t].dtype : call_.out[flow.t].dtype;
          in.place(dtype, count);
          out.place(call_.out_dtype(dtype), count);
          ++staged.flows;
          staged.flow = flow;
          staged.first = first;
          staged.count = count;
        });
    staged.in_end = in.end();
    staged.in_bytes = in.bytes();
    staged.out_end = out.end();
    staged.out_bytes = out.bytes();
  };
  for (int w = 0; w < workers_; ++w) {
    measure(sent_[w]);
    if (!folds()) measure(got_[w]);
  }
  room_ = 0;
  folds() ? lay_out_lanes() : lay_out_pairs();
}

void WorkerPieces::lay_out_lanes() noexcept {
  const auto take = [&](std::size_t bytes) {
    room_ += bytes;
    return room_ - bytes;
  };
  for (int w = 0; w < workers_; ++w) {
    StagedLane& staged = sent_[w];
    const bool mine = w == me_;
    staged.in = take((mine ? lists_before(members_.num_members()) : lists_of(me_)) * staged.in_bytes);
    if (!mine && !schedule_.to_all()) continue;
    const auto members = static_cast<std::size_t>(members_.num_members());
    staged.out = take((!mine ? results_of(me_) : prefixes() ? members : 1) * staged.out_bytes);
  }
}

void WorkerPieces::lay_out_pairs() noexcept {
  for (int w = 0; w < workers_; ++w) {
    // Data for all workers are stored once.
    if (schedule_.to_all() && w != 0) {
      sent_[w].in = sent_[0].in;
    } else {
      sent_[w].in = room_;
      room_ += sent_[w].in_bytes;
    }
  }
  for (int w = 0; w < workers_; ++w) {
    got_[w].in = w == me_ ? sent_[w].in : room_;
    if (w != me_) room_ += got_[w].in_bytes;
  }
}

// ---- Data that need not be copied ----

std::byte* WorkerPieces::in_tensor(const StagedLane& staged, int rank, std::size_t list) const noexcept {
  if (!folds() || staged.flows != 1) return nullptr;
  const dist_tensor& tensor = descriptors_[rank]->in[list * call_.n + staged.flow.t];
  return TensorPart(tensor, call_.axis_of(staged.flow.t), staged.flow.src_at, staged.flow.along)
      .side_by_side(staged.first, staged.count);
}

// Returns NULL unless all members need the same result.
std::byte* WorkerPieces::out_tensor(const StagedLane& staged, int rank) const noexcept {
  if (!has_outs() || prefixes() || staged.flows != 1) return nullptr;
  const dist_tensor& tensor = descriptors_[rank]->out[staged.flow.t];
  return TensorPart(tensor, call_.axis_of(staged.flow.t), staged.flow.dst_at, staged.flow.along)
      .side_by_side(staged.first, staged.count);
}

std::byte* WorkerPieces::sent_from(const StagedLane& staged) const noexcept {
  const int only = members_.first();
  const bool alone = members_.count() == 1 && descriptors_[only]->contributions == 1;
  return alone ? in_tensor(staged, only, 0) : nullptr;
}

std::byte* WorkerPieces::sent_to(const StagedLane& staged) const noexcept {
  return members_.count() == 1 ? out_tensor(staged, members_.first()) : nullptr;
}

std::byte* WorkerPieces::result_for(int rank) const noexcept {
  std::byte* const to = out_tensor(sent_[me_], rank);
  return to != nullptr ? to : side_.round.staging() + sent_[me_].out;
}

void WorkerPieces::pack() const noexcept {
  if (folds()) {
    const std::size_t before = lists_before(rank());
    const std::size_t in_worker = before - lists_before(members_.first());
    for (int w = 0; w < workers_; ++w) {
      if (w != me_ && sent_from(sent_[w]) != nullptr) continue;
      for (std::size_t j = 0; j < call_.lists(); ++j) {
        if (w == me_ && in_tensor(sent_[w], rank(), j) != nullptr) continue;
        pack(sent_[w], j, sent_[w].in + ((w == me_ ? before : in_worker) + j) * sent_[w].in_bytes);
      }
    }
  } else if (call_.in != nullptr) {
    for (int w = 0; w < (schedule_.to_all() ? 1 : workers_); ++w) pack(sent_[w], 0, sent_[w].in);
  }
}

void WorkerPieces::pack(const StagedLane& staged, std::size_t list, std::size_t at) const noexcept {
  std::byte* const to = side_.round.staging() + at;
  for_flows(
      staged, false,
      [&](const WorkerSchedule::Flow& flow, std::size_t first, std::size_t count, std::size_t place) {
        if (!folds() && flow.from != rank()) return;
        const dist_tensor& tensor = call_.in[list * call_.n + flow.t];
        TensorPart(tensor, call_.axis_of(flow.t), flow.src_at, flow.along).read(first, count, to + place);
      });
}

// The passages before anything is folded.
std::span<const Passage> WorkerPieces::ins() noexcept {
  std::byte* const base = side_.round.staging();
  const StagedLane& own = sent_[me_];
  for (int w = 0; w < workers_; ++w) {
    if (w == me_) continue;
    Passage& passage = passages_[w];
    if (folds()) {
      const std::byte* const direct = sent_from(sent_[w]);
      passage = {direct != nullptr ? direct : base + sent_[w].in,
                 bytes_of(lists_of(me_), sent_[w].in_bytes, sent_[w].in_end),
                 base + own.in + lists_before(members_.first_of(w)) * own.in_bytes,
                 bytes_of(lists_of(w), own.in_bytes, own.in_end)};
    } else {
      passage = {base + sent_[w].in, sent_[w].in_bytes, base + got_[w].in, got_[w].in_bytes};
    }
  }
  return {passages_, static_cast<std::size_t>(workers_)};
}

// The passages after the fold.
std::span<const Passage> WorkerPieces::outs() noexcept {
  std::byte* const base = side_.round.staging();
  const StagedLane& own = sent_[me_];
  for (int w = 0; w < workers_; ++w) {
    if (w == me_) continue;
    const std::byte* const from =
        prefixes() ? base + own.out + static_cast<std::size_t>(members_.first_of(w)) * own.out_bytes
                   : result_for(members_.first());
    std::byte* const direct = sent_to(sent_[w]);
    passages_[w] = {from, bytes_of(results_of(w), own.out_bytes, own.out_end),
                    direct != nullptr ? direct : base + sent_[w].out,
                    bytes_of(results_of(me_), sent_[w].out_bytes, sent_[w].out_end)};
  }
  return {passages_, static_cast<std::size_t>(workers_)};
}

void WorkerPieces::fold(std::size_t part, std::size_t parts) const noexcept {
  const FpEnvironment environment;
  Run run;
  Packed out;
  for_flows(sent_[me_], false,
            [&](const WorkerSchedule::Flow& flow, std::size_t, std::size_t count, std::size_t in) {
              const dist_dtype dtype = call_.in[flow.t].dtype;
              const std::size_t to = out.place(call_.out_dtype(dtype), count);
              if (dtype != run.dtype) {
                if (run.count != 0) fold(run, part, parts);
                run = {dtype, in, to, 0};
              }
              run.count += count;
            });
  if (run.count != 0) fold(run, part, parts);
}

// Folds like an exchange of one dense tensor per list.
void WorkerPieces::fold(const Run& run, std::size_t part, std::size_t parts) const noexcept {
  const StagedLane& own = sent_[me_];
  const auto length = static_cast<int64_t>(run.count);
  const dist_tensor like{nullptr, run.dtype, 1, &length, nullptr};
  Call call = call_;
  call.collective = prefixes() ? Collective::kScan : Collective::kAllReduce;
  call.in = call.out = &like;
  call.n = 1;
  call.axis = 0;
  const auto members = static_cast<std::size_t>(members_.num_members());
  const TaskList::Ranks local{members_.first(), members_.first() + members_.count()};
  const bool direct_out = has_outs() && !prefixes() && own.flows == 1;
  std::size_t list = 0;
  for (std::size_t p = 0; p < members; ++p) {
    const bool is_local = static_cast<int>(p) >= local.begin && static_cast<int>(p) < local.end;
    CallDescriptor& descriptor = *new (&folded_[p]) CallDescriptor{};
    folded_at_[p] = &descriptor;
    descriptor.contributions = descriptors_[p]->contributions;
    descriptor.weights = descriptors_[p]->weights;
    descriptor.in = folded_lists_ + list;
    for (std::size_t j = 0; j < descriptor.contributions; ++j, ++list) {
      folded_lists_[list] = like;
      std::byte* const direct = is_local ? in_tensor(own, static_cast<int>(p), j) : nullptr;
      folded_lists_[list].data =
          direct != nullptr ? direct : side_.round.staging() + own.in + list * own.in_bytes + run.in;
    }
    descriptor.in_data = static_cast<const std::byte*>(descriptor.in[0].data);
    descriptor.out_data = direct_out && is_local ? result_for(static_cast<int>(p))
                                                 : side_.round.staging() + own.out +
                                                       (prefixes() ? p * own.out_bytes : 0) + run.out;
  }
  // The exchange writes either to local members that each have a place for the result, or once for all
  // members.
  const TaskList::Ranks writes = direct_out ? local : TaskList::Ranks{0, members_.num_members()};
  const Exchange exchange(call, members_.num_members(), folded_at_, side_.cache_bytes, writes);
  TaskList::Cursor cursor;
  exchange.run(part_of(exchange.units(), parts, part), cursor, [&] { return !side_.group.aborted(); });
}

// Whether this member's output is shared by all members of the worker, so that the first one writes it.
bool WorkerPieces::written_by_another(std::size_t t) const noexcept {
  const dist_tensor* const first = descriptors_[members_.first()]->out;
  return side_.member != 0 && call_.traits().alike() && first != nullptr &&
         first[t].data == call_.out[t].data;
}

void WorkerPieces::unpack() const noexcept {
  if (call_.out == nullptr) return;
  for (int w = 0; w < workers_; ++w) {
    const StagedLane& staged = got_[w];
    if (!folds()) {
      unpack(staged, staged.in);
    } else if (w == me_ ? out_tensor(staged, rank()) != nullptr : sent_to(staged) != nullptr) {
      continue;
    } else if (w == me_ || schedule_.to_all()) {
      const auto result = static_cast<std::size_t>(!prefixes() ? 0 : w == me_ ? rank() : side_.member);
      unpack(staged, staged.out + result * staged.out_bytes);
    }
  }
}

void WorkerPieces::unpack(const StagedLane& staged, std::size_t at) const noexcept {
  // A host operator has no identity, so the first result of an exclusive scan is not written.
  if (prefixes() && call_.kind == DIST_SCAN_EXCLUSIVE && call_.op == DIST_REDUCE_USER && rank() == 0) return;
  const std::byte* const from = side_.round.staging() + at;
  for_flows(staged, folds(),
            [&](const WorkerSchedule::Flow& flow, std::size_t first, std::size_t count, std::size_t place) {
              if (flow.to != WorkerSchedule::kAllRanks && flow.to != rank()) return;
              if (written_by_another(flow.t)) return;
              TensorPart(call_.out[flow.t], call_.axis_of(flow.t), flow.dst_at, flow.along)
                  .write(first, count, from + place);
            });
}

bool WorkerPieces::next() noexcept {
  for (int w = 0; index_ != 0 && w < workers_; ++w) {
    sent_[w].cursor = sent_[w].next;
    got_[w].cursor = got_[w].next;
  }
  if (index_ != pieces_) {
    lay_out(slice_, index_++);
    return true;
  }
  // Members without a source receive zeros.
  for (std::size_t t = 0; call_.traits().pairs() && call_.source < 0 && call_.out != nullptr && t < call_.n;
       ++t)
    TensorPart(call_.out[t], 0, -1, 0).clear(elements_of(call_.out[t]));
  return false;
}

}  // namespace dist
