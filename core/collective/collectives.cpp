// SPDX-License-Identifier: Apache-2.0
#include "core/collective/collectives.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/base/on_stack.hpp"
#include "core/base/text.hpp"
#include "core/collective/algorithm.hpp"
#include "core/collective/checked_calls.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/one_tensor.hpp"
#include "core/collective/share.hpp"
#include "core/collective/travel.hpp"
#include "core/collective/walk.hpp"
#include "core/collective/worker_collective.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

ErrorRecord reported(const Member& member, const Call& call, const ErrorRecord& why) noexcept {
  return refusal(member.group, call.collective, member.tag, member.group.sequence(member.me), why);
}

// Writes the report if the members' tensors do not fit together for member `rank`. This function and the next
// one are not inlined because a report takes time and stack.
[[gnu::noinline, gnu::cold]] void explain(const Member& member, const Call& call, const Exchange& exchange,
                                          int rank, ErrorRecord* out_report) noexcept {
  ErrorRecord why;
  exchange.refuses(member.group, rank, &why);
  *out_report = reported(member, call, why);
}
[[gnu::noinline, gnu::cold]] Status refuse(const Member& member, const Call& call,
                                           const Exchange& exchange) noexcept {
  ErrorRecord report;
  explain(member, call, exchange, member.me, &report);
  return member.group.refuse(member.me, report);
}

// Packs the elements of a strided tensor for the peers.
[[gnu::noinline, gnu::cold]] void put_packed(const dist_tensor& in, std::byte* to) noexcept {
  const auto* const from = static_cast<const std::byte*>(in.data);
  if (in.strides == nullptr)
    return static_cast<void>(std::memcpy(to, from, elements_of(in) * dtype_size(in.dtype)));
  pack(Walk(in.shape, in.ndim, in.strides, 0), from, to, elements_of(in), dtype_size(in.dtype));
}

// Reduces the elements of all members into an output that may be strided.
[[gnu::noinline, gnu::cold]] void reduce_packed(const Call& call, const std::byte** src,
                                                std::size_t size) noexcept {
  const dist_tensor& out = call.out[0];
  const dist_dtype dtype = call.in[0].dtype;
  const std::size_t out_size = dtype_size(out.dtype);
  alignas(64) std::byte room[1024];
  std::byte* dst = room;
  const std::size_t all = elements_of(out);
  for (std::size_t at = 0; at < all;) {
    const std::size_t n = std::min(all - at, sizeof room / out_size);
    reduce_kernel(dtype, call.op)({src, &dst, size, 1, n, static_cast<double>(size), false});
    auto* const to = static_cast<std::byte*>(out.data);
    if (out.strides == nullptr) {
      std::memcpy(to + at * out_size, room, n * out_size);
    } else {
      unpack(Walk(out.shape, out.ndim, out.strides, at), room, to, n, out_size);
    }
    for (std::size_t p = 0; p < size; ++p) src[p] += n * dtype_size(dtype);
    at += n;
  }
}

// All_reduce of one tensor whose bytes travel with the slot. Calls waits() before the member waits for a
// longer time.
template <class Published, class Waits>
Status reduce_one(const Member& member, const OneTensor& one, const dist_tensor& in, const dist_tensor& out,
                  Published&& published, Waits&& waits) noexcept {
  Group& group = member.group;
  Slot& slot = group.outgoing(member.me);
  std::memcpy(group.outgoing_bytes(member.me, one.bytes), in.data, one.bytes);
  slot.travels = 0;
  slot.extra = out.data;
  const auto fetch = [&](int peer) { group.fetch_bytes(member.me, peer, one.bytes); };
  DIST_TRY(group.arrive(member.me, member.timeout_ns, published, fetch, waits));
  return reduce_brought(member, one, false, [&](const std::byte** src) {
    const FpEnvironment environment;
    auto* dst = static_cast<std::byte*>(out.data);
    const auto members = static_cast<std::size_t>(group.size());
    one.kernel({src, &dst, members, 1, one.elements(), static_cast<double>(members), false});
  });
}

// Like reduce_one(), for a member whose input or output is strided.
template <class Published>
[[gnu::noinline]] Status reduce_one_with_gaps(const Member& member, const Call& call,
                                              Published&& published) noexcept {
  Group& group = member.group;
  Slot& slot = group.outgoing(member.me);
  put_packed(call.in[0], group.outgoing_bytes(member.me, call.bytes));
  slot.travels = Slot::kStays;
  slot.extra = call.out[0].data;
  DIST_TRY(group.arrive(member.me, member.timeout_ns, published));
  return reduce_brought(member, OneTensor(call), true, [&](const std::byte** src) {
    const FpEnvironment environment;
    reduce_packed(call, src, static_cast<std::size_t>(group.size()));
  });
}

// Does the member's share of a round in which all members agree: its part, or blocks of all parts until none
// are left. For a dense list, returns false if buffers may overlap. For other calls, the caller must have
// checked that.
bool do_share(const Member& member, const Exchange& exchange, Algorithm algorithm) noexcept {
  Group& group = member.group;
  const FpEnvironment environment;
  TaskList::Cursor cursor;
  if (algorithm == Algorithm::kBlocks) {
    bool apart = true;
    share_blocks(member, exchange.units(), exchange.block_units(), [&](Range block) {
      if (exchange.folds_dense()) {
        apart = exchange.fold_dense(block, cursor, true, [] { return true; }) && apart;
      } else {
        exchange.run(block, cursor, [] { return true; });
      }
    });
    return apart;
  }
  const auto go_on = [&] { return !group.aborted(); };
  if (exchange.pulls()) {
    exchange.pull(member.me, go_on);
    return true;
  }
  const auto size = static_cast<std::size_t>(group.size());
  const Range part = part_of(exchange.units(), size, static_cast<std::size_t>(member.me));
  if (exchange.folds_dense()) return exchange.fold_dense(part, cursor, true, go_on);
  exchange.run(part, cursor, go_on);
  return true;
}

// Ends a round in which this member has done its share of a dense list, whose buffers may overlap.
[[gnu::noinline, gnu::cold]] Status finish_overlapping(const Member& member, const Call& call,
                                                       const Exchange& exchange) noexcept {
  const int rank = exchange.first_refusing(member.group);
  if (rank < 0) return member.group.finish(member.me);
  ErrorRecord report;
  explain(member, call, exchange, rank, &report);
  return member.group.refuse(member.me, report);
}

// If members bring parts of different sizes, the number of bytes is known only after they have met.
Algorithm algorithm_of_met(const Group& group, const Exchange& exchange) noexcept {
  return algorithm_of({.members = group.size(),
                       .oversubscribed = group.oversubscribed(),
                       .bytes = group.oversubscribed() ? exchange.bytes_each() : exchange.bytes()});
}

// Does a member's work after it has met its peers.
Status work_together(const Member& member, const Call& call) noexcept {
  Group& group = member.group;
  if (group.enter(member.me)) {
    auto* const descriptors = DIST_ON_STACK(const CallDescriptor*, group.size());
    collect_descriptors(member, descriptors);
    const Exchange exchange(call, group.size(), descriptors, member.cache_bytes);
    if (!exchange.folds_dense() && exchange.refuses(group, member.me, nullptr))
      return refuse(member, call, exchange);
    if (!do_share(member, exchange, algorithm_of_met(group, exchange)))
      return finish_overlapping(member, call, exchange);
  }
  return group.finish(member.me);
}

// Like the function above, for a call that usually needs no task list.
template <class MakeCall>
Status work_together(const Member& member, const OneTensor& one, MakeCall&& make_call) noexcept {
  Group& group = member.group;
  if (group.enter(member.me) && !reduce_part(member, one))
    return work_together(member, std::forward<MakeCall>(make_call)());
  return group.finish(member.me);
}

template <class Published>
Status work_in_parts(const Member& member, const Call& call, Published&& published) noexcept {
  Group& group = member.group;
  group.arm_tickets(member.me);
  if (call.bytes > EagerPayload::kBytes) {
    call.describe_in(group.outgoing(member.me).descriptor);
    group.outgoing(member.me).travels = Slot::kStays;
    DIST_TRY(group.arrive(member.me, member.timeout_ns, published));
    if (member.recorder != nullptr) member.recorder->arrived();
    if (!call.can_travel() || call.strided) return work_together(member, call);
    const OneTensor one(call);
    if (!reduces_in_parts(member, one, call.in_place)) return work_together(member, call);
    return work_together(member, one, [&]() -> const Call& { return call; });
  }
  const Travel travel(member, call);
  travel.put();
  const auto fetch = [&](int peer) { travel.fetch(peer); };
  DIST_TRY(group.arrive(member.me, member.timeout_ns, published, fetch, [] {}));
  if (!travel.all_travel()) {
    if (member.recorder != nullptr) member.recorder->arrived();
    return work_together(member, call);
  }
  if (const int peer = travel.overlapping(); peer >= 0) return refuse_overlap(member, call.collective, peer);
  travel.take();
  return kOk;
}

// For an oversubscribed group, in which members have to be woken. The last member to arrive validates what
// all of them bring, and does all of the work if it is small.
Status work_oversubscribed(const Member& member, const Call& call) noexcept {
  Group& group = member.group;
  group.arm_tickets(member.me);
  call.describe_in(group.outgoing(member.me).descriptor);
  const auto work = [&](bool* out_shares) -> const ErrorRecord* {
    if (member.recorder != nullptr) member.recorder->arrived();
    auto* const descriptors = DIST_ON_STACK(const CallDescriptor*, group.size());
    collect_descriptors(member, descriptors);
    const Exchange exchange(call, group.size(), descriptors, member.cache_bytes);
    const auto refusal = [&]() -> const ErrorRecord* {
      const int rank = exchange.first_refusing(group);
      if (rank < 0) return nullptr;
      // The report is built directly in this member's error record, because the stack has no room for it
      // beside the work.
      explain(member, call, exchange, rank, &last_error());
      return &last_error();
    };
    const bool dense = exchange.folds_dense();
    if (const ErrorRecord* const why = dense ? nullptr : refusal()) return why;
    *out_shares = algorithm_of_met(group, exchange) != Algorithm::kAlone;
    if (*out_shares) return nullptr;
    const FpEnvironment environment;
    if (dense) {
      TaskList::Cursor cursor;
      const bool apart = exchange.fold_dense({0, exchange.units()}, cursor, true, [] { return true; });
      return apart ? nullptr : refusal();
    }
    exchange.run_all();
    // The host's operator may have thrown. If something else has failed the group, that report stays.
    return exchange.failed() ? &last_error() : nullptr;
  };
  bool shares = false;
  DIST_TRY(group.arrive_and_work_alone(member.me, member.timeout_ns, work, &shares));
  if (!shares) return kOk;
  if (member.recorder != nullptr) member.recorder->arrived();
  if (group.enter(member.me)) {
    auto* const descriptors = DIST_ON_STACK(const CallDescriptor*, group.size());
    collect_descriptors(member, descriptors);
    const Exchange exchange(call, group.size(), descriptors, member.cache_bytes);
    if (!do_share(member, exchange, Algorithm::kBlocks)) return finish_overlapping(member, call, exchange);
  }
  return group.finish(member.me);
}

// Calls work() for an all_to_all with uneven parts. Not inlined, because the offsets need stack space.
template <class Work>
[[gnu::noinline]] Status work_in_uneven_parts(const Member& member, Call& call, Work&& work) noexcept {
  auto* const offsets = DIST_ON_STACK(int64_t, member.group.size() + 1);
  call.offset_splits(offsets, member.group.size());
  return work();
}

// Whether the result is already in place, because a single member reduces in place. A bool may still have to
// be rewritten, since any nonzero byte is read as true and true is written as 1.
bool leaves_unchanged(const Call& call, int num_members) noexcept {
  return num_members == 1 && call.in_place && call.plain() && call.op != DIST_REDUCE_USER &&
         std::none_of(call.in, call.in + call.n, [](const dist_tensor& t) { return t.dtype == DIST_BOOL; }) &&
         (call.collective == Collective::kAllReduce || call.collective == Collective::kReduce);
}

// Records a collective late: when the member has to wait for longer than the transfer of a cache line takes,
// or at the end. A thread that has just written its tensor has filled its CPU's store buffer, and each of
// these stores waits for a cache line that a peer held. If the member recorded its call before it first loads
// a peer's slot, these stores would have to wait behind all of them.
class LateRecord {
 public:
  LateRecord(const Member& member, const Signature& signature, std::size_t bytes) noexcept
      : member_(member), signature_(signature), bytes_(bytes), round_(member.group.round(member.me)) {}
  LateRecord(const LateRecord&) = delete;
  LateRecord& operator=(const LateRecord&) = delete;

  void came() noexcept { began_ = member_.recorder->now(); }
  void waits() noexcept {
    if (!open_) open();
  }
  void arrived() noexcept { arrived_ = member_.recorder->now(); }
  Status over(Status status) noexcept {
    waits();
    if (arrived_ != 0) member_.recorder->arrived(arrived_);
    member_.recorder->close(status.code());
    return status;
  }

 private:
  void open() noexcept {
    open_ = true;
    member_.recorder->begin(static_cast<int32_t>(signature_.collective), began_);
    if (member_.group.round(member_.me) != round_) record_arrival(member_, signature_, bytes_, 0);
  }

  const Member& member_;
  const Signature& signature_;
  const std::size_t bytes_;
  const uint32_t round_;
  bool open_ = false;
  uint64_t began_ = 0;
  uint64_t arrived_ = 0;
};

// Up to this many bytes, the work takes less time than a reading of the clock.
constexpr std::size_t kInstantBytes = std::size_t{16} << 10;

// Reduces one dense tensor, of which each member does a part.
Status reduce_one_in_parts(const Member& member, dist_reduce_op op, const OneTensor& one,
                           const dist_tensor& in, const dist_tensor& out, LateRecord& record) noexcept {
  Group& group = member.group;
  Slot& slot = group.outgoing(member.me);
  describe_one_in(slot.descriptor, in, out);
  slot.travels = Slot::kStays;
  DIST_TRY(group.arrive(
      member.me, member.timeout_ns, [&] { record.came(); }, [](int) {}, [&] { record.waits(); }));
  if (one.bytes > kInstantBytes) record.arrived();
  return work_together(member, one, [&] {
    Call call;
    call.collective = Collective::kAllReduce;
    call.op = op;
    call.in = &in;
    call.out = &out;
    call.n = 1;
    call.bytes = one.bytes;
    call.in_place = in.data == out.data;
    return call;
  });
}

// Meets in a barrier with this tag that was validated before. Returns nullopt, having done nothing, if it was
// not.
std::optional<Status> barrier_again(const Member& member) noexcept {
  Group& group = member.group;
  if (member.checked == nullptr || member.recorder == nullptr || group.oversubscribed()) return {};
  const Signature* const known = member.checked->barrier(member.tag);
  if (known == nullptr || !group.open().ok()) return {};
  Signature& signature = group.outgoing_signature(member.me);
  if (signature.digest != known->digest) signature = *known;
  LateRecord record(member, signature, 0);
  return record.over(group.arrive(
      member.me, member.timeout_ns, [&] { record.came(); }, [](int) {}, [&] { record.waits(); }));
}

Status check_and_meet(const Member& member, Call& call) noexcept {
  Group& group = member.group;
  DIST_TRY(group.open());
  Signature& signature = group.outgoing_signature(member.me);
  const CheckedCalls::Place where{member.me, group.size()};
  if (member.checked == nullptr || !member.checked->recall(call, member.tag, where, signature)) {
    signature = Signature{};
    DIST_TRY(call.check(member.me, group.size(), signature));
    close_digest(signature, member.tag);
    if (member.checked != nullptr) member.checked->keep(call, where, signature);
  }
  const auto published = [&] { record_arrival(member, signature, call.bytes, 0); };
  const bool empty = call.bytes == 0 && !call.must_fit();
  const Algorithm algorithm =
      algorithm_of({group.size(), group.oversubscribed(), empty || leaves_unchanged(call, group.size()),
                    call.can_travel(), call.bytes});
  if (algorithm == Algorithm::kTravels) {
    if (call.strided) return reduce_one_with_gaps(member, call, published);
    return reduce_one(member, OneTensor(call), call.in[0], call.out[0], published, [] {});
  }
  if (algorithm == Algorithm::kNothing) return group.arrive(member.me, member.timeout_ns, published);
  const auto work = [&] {
    if (!group.oversubscribed()) return work_in_parts(member, call, published);
    record_arrival(member, signature, call.bytes);
    return work_oversubscribed(member, call);
  };
  return call.splits != nullptr ? work_in_uneven_parts(member, call, work) : work();
}

}  // namespace

Status not_over_workers(const char* what) noexcept {
  return fail(DIST_UNIMPLEMENTED,
              "%s is not supported across several workers. Use one process, or blocking collectives.", what);
}

ErrorRecord refusal(const Group& group, Collective collective, const char* tag, int64_t sequence,
                    const ErrorRecord& why) noexcept {
  ErrorRecord report = why;
  report.collective = static_cast<int32_t>(collective);
  report.group = std::max(group.number(), 0);
  report.sequence = sequence;
  copy_shown(report.tag, tag);
  const bool tagged = report.tag[0] != '\0';
  char of_group[32] = "";
  if (report.group != 0) std::snprintf(of_group, sizeof of_group, " of group %d", report.group);
  std::snprintf(report.message, sizeof report.message, "%s #%lld%s%s%s%s: %.900s",
                collective_name(collective), static_cast<long long>(sequence), tagged ? " (tag \"" : "",
                report.tag, tagged ? "\")" : "", of_group, why.message);
  return report;
}

Status collective(const Member& member, Call& call) noexcept {
  if (member.communicator != nullptr) [[unlikely]]
    return worker_collective(member, *member.communicator, call);
  if (call.collective == Collective::kBarrier) {
    if (const std::optional<Status> status = barrier_again(member)) return *status;
  }
  return recorded(member, call.collective, [&] { return check_and_meet(member, call); });
}

std::optional<Status> all_reduce_again(const Member& member, dist_reduce_op op, dist_numerics numerics,
                                       const dist_tensor& in, const dist_tensor& out) noexcept {
  Group& group = member.group;
  if (group.size() == 1 || member.checked == nullptr || member.recorder == nullptr ||
      member.communicator != nullptr || group.oversubscribed() || numerics != DIST_NUMERICS_ORDERED) {
    return {};
  }
  const CheckedCalls::Again again = member.checked->find(op, numerics, member.tag, in, out);
  if (again.signature == nullptr || !group.open().ok()) return {};
  const OneTensor& one = *again.one;
  const bool travels = one.bytes <= most_that_travels(group.size());
  if (!travels && !reduces_in_parts(member, one, again.in_place)) return {};
  Signature& signature = group.outgoing_signature(member.me);
  if (signature.digest != again.signature->digest) signature = *again.signature;
  LateRecord record(member, signature, one.bytes);
  const auto came = [&] { record.came(); };
  const auto waits = [&] { record.waits(); };
  return record.over(travels ? reduce_one(member, one, in, out, came, waits)
                             : reduce_one_in_parts(member, op, one, in, out, record));
}

Status all_reduce(const Member& member, dist_reduce_op op, dist_numerics numerics, const dist_tensor* in,
                  const dist_tensor* out, std::size_t n) noexcept {
  Call call;
  call.collective = Collective::kAllReduce;
  call.op = op;
  call.numerics = numerics;
  call.in = in;
  call.out = out;
  call.n = n;
  return collective(member, call);
}

Status broadcast(const Member& member, int32_t root, const dist_tensor* in, const dist_tensor* out,
                 std::size_t n) noexcept {
  Call call;
  call.collective = Collective::kBroadcast;
  call.root = root;
  call.in = in;
  call.out = out;
  call.n = n;
  return collective(member, call);
}

Status barrier(const Member& member) noexcept {
  Call call;
  call.collective = Collective::kBarrier;
  return collective(member, call);
}

}  // namespace dist
