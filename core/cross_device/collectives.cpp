// SPDX-License-Identifier: Apache-2.0
#include "core/cross_device/collectives.hpp"

#include <algorithm>
#include <cstring>

#include "core/cross_device/list.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

// Crowded members wake and sleep; up to this size one of them does the work sooner than all could begin.
constexpr std::size_t kAloneBytes = std::size_t{64} << 10;
// Above, a member that is done with its part takes blocks of others' parts: a late one then has less to do.
// Parts stay whole ranges, since memory likes to be read in order (2.3 against 3.6 ms for 64 MiB on two cores
// of a Zen 5).
constexpr std::size_t kStaticBytes = std::size_t{1} << 20;
// Poison is looked at between blocks.
constexpr std::size_t kBlockUnits = (std::size_t{64} << 10) / kUnitBytes;

// The reduction of one call: from all inputs to all outputs, in any pieces.
class Reduction {
 public:
  Reduction(const Caller& caller, const TensorList& list, dist_reduce_op op) noexcept
      : caller_(caller), list_(list), op_(op) {
    const std::size_t traffic = 2 * list.bytes() * static_cast<std::size_t>(caller.group.size());
    stream_ = !list.in_place() && traffic > caller.cache_bytes;
    for (std::size_t t = 0; t < list.size(); ++t) {
      units_ += units_of(elements_of(list.in()[t]) * dtype_size(list.in()[t].dtype));
    }
  }

  // Reduces a range of units.
  void run(Range range) const noexcept {
    for_pieces(
        list_.size(), range, kBlockUnits, [&](std::size_t t) { return elements_of(list_.in()[t]); },
        [&](std::size_t t) { return dtype_size(list_.in()[t].dtype); },
        [&](std::size_t t, std::size_t first, std::size_t count) {
          piece(t, first, count);
          return !caller_.group.poisoned();
        });
  }

  // Of the inputs, which for_pieces() walks: the outputs of a MEAN of integers have another size.
  std::size_t units() const noexcept { return units_; }

 private:
  void piece(std::size_t t, std::size_t first, std::size_t count) const noexcept {
    const std::byte* src[DIST_MAX_REPLICAS];
    std::byte* dst[DIST_MAX_REPLICAS];
    const dist_dtype dtype = list_.in()[t].dtype;
    const std::size_t from = first * dtype_size(dtype);
    const std::size_t to = first * dtype_size(list_.out()[t].dtype);
    const auto size = static_cast<std::size_t>(caller_.group.size());
    for (std::size_t p = 0; p < size; ++p) {
      const int peer = static_cast<int>(p);
      src[p] = static_cast<const std::byte*>(peer_in(caller_, peer, list_.size(), t)) + from;
      dst[p] = static_cast<std::byte*>(peer_out(caller_, peer, list_.size(), t)) + to;
    }
    const std::size_t outputs = mirrored(caller_, list_.size(), t) ? 1 : size;
    reduce_kernel(dtype, op_)({src, dst, size, outputs, count, static_cast<double>(size), stream_});
  }

  const Caller& caller_;
  const TensorList& list_;
  const dist_reduce_op op_;
  bool stream_;
  std::size_t units_ = 0;
};

// One tensor that fits the line: everyone reduces everything, into its own output.
Status reduce_inline(const Caller& caller, const TensorList& list, dist_reduce_op op) noexcept {
  Group& group = caller.group;
  const dist_tensor& in = list.in()[0];
  const std::size_t elements = elements_of(in);
  Line& line = group.outgoing(caller.me);
  std::memcpy(line.bytes, in.data, elements * dtype_size(in.dtype));
  line.extra = list.out()[0].data;
  DIST_TRY(group.arrive(caller.me, caller.timeout_ns));

  const std::byte* src[DIST_MAX_REPLICAS];
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t bytes = list.bytes();
  bool shared = size > 1;
  int overlapping = -1;
  for (std::size_t p = 0; p < size; ++p) {
    const int peer = static_cast<int>(p);
    const Line& theirs = group.line(caller.me, peer);
    src[p] = theirs.bytes;
    shared = shared && theirs.extra == line.extra;
    if (peer != caller.me && overlap(theirs.extra, bytes, line.extra, bytes)) overlapping = peer;
  }
  // Peers' inputs have been copied: only outputs can be in the way.
  if (overlapping >= 0 && !shared)
    return group.refuse(caller.me, overlap_report(caller, caller.me, overlapping, 0));
  // A peer's output is touched: as with buffers.
  if (shared && !group.enter(caller.me)) return group.finish(caller.me);
  if (!shared || caller.me == 0) {
    const FpEnvironment environment;
    auto* dst = static_cast<std::byte*>(list.out()[0].data);
    reduce_kernel(in.dtype, op)({src, &dst, size, 1, elements, static_cast<double>(size), false});
  }
  return shared ? group.finish(caller.me) : kOk;
}

// Takes blocks of all parts, beginning with one of its own. There are as many parts as members can run side
// by side: where CPUs are crowded, whoever runs goes on where the last one stopped.
void run_blocks(const Caller& caller, const Reduction& reduction) noexcept {
  Group& group = caller.group;
  const auto lanes = static_cast<std::size_t>(group.lanes());
  for (std::size_t turn = 0; turn < lanes; ++turn) {
    const std::size_t lane = (static_cast<std::size_t>(caller.me) + turn) % lanes;
    const Range part = part_of(reduction.units(), lanes, lane);
    const std::size_t blocks = (part.end - part.begin + kBlockUnits - 1) / kBlockUnits;
    for (std::size_t b;
         (b = group.take_ticket(caller.me, static_cast<int>(lane))) < blocks && !group.poisoned();) {
      const Range block = block_of(part.end - part.begin, kBlockUnits, b);
      reduction.run({part.begin + block.begin, part.begin + block.end});
    }
  }
}

Status reduce_in_parts(const Caller& caller, const TensorList& list, dist_reduce_op op) noexcept {
  Group& group = caller.group;
  const Reduction reduction(caller, list, op);
  const bool shared = group.crowded() || list.bytes() > kStaticBytes;
  if (shared) group.arm_tickets(caller.me);
  DIST_TRY(group.arrive(caller.me, caller.timeout_ns));
  if (group.enter(caller.me)) {
    ErrorRecord overlap;
    if (list.overlaps_peers(caller, caller.me, &overlap)) return group.refuse(caller.me, overlap);
    const FpEnvironment environment;
    if (shared) {
      run_blocks(caller, reduction);
    } else {
      const auto size = static_cast<std::size_t>(group.size());
      reduction.run(part_of(reduction.units(), size, static_cast<std::size_t>(caller.me)));
    }
  }
  return group.finish(caller.me);
}

Status reduce_alone(const Caller& caller, const TensorList& list, dist_reduce_op op) noexcept {
  ErrorRecord overlap;
  return caller.group.arrive_and_work_alone(caller.me, caller.timeout_ns, [&]() -> const ErrorRecord* {
    for (int member = 0; member < caller.group.size(); ++member) {
      if (list.overlaps_peers(caller, member, &overlap)) return &overlap;
    }
    const FpEnvironment environment;
    const Reduction reduction(caller, list, op);
    reduction.run({0, reduction.units()});
    return nullptr;
  });
}

void copy_piece(const void* from, void* to, std::size_t at, std::size_t bytes) noexcept {
  if (from != to)
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, bytes);
}

// Copies a range of the root's tensors to this member's outputs: of those that are one for all members, or of
// the others.
void copy_from(const Caller& caller, const TensorList& list, int root, Range range,
               bool one_for_all) noexcept {
  for_pieces(
      list.size(), range, kBlockUnits, [&](std::size_t t) { return elements_of(list.out()[t]); },
      [&](std::size_t t) { return dtype_size(list.out()[t].dtype); },
      [&](std::size_t t, std::size_t first, std::size_t count) {
        const std::size_t size = dtype_size(list.out()[t].dtype);
        if (mirrored(caller, list.size(), t) == one_for_all) {
          copy_piece(peer_in(caller, root, list.size(), t), list.out()[t].data, first * size, count * size);
        }
        return !caller.group.poisoned();
      });
}

}  // namespace

Status all_reduce(const Caller& caller, dist_reduce_op op, const dist_tensor* in, dist_tensor* out,
                  std::size_t n) noexcept {
  if (n != 0 && in == nullptr) return invalid_argument("in is NULL, but n is %zu", n);
  if (n == 0) DIST_TRY(check_op(op, DIST_F32));
  for (std::size_t t = 0; t < n; ++t) DIST_TRY(check_op(op, in[t].dtype));
  DIST_TRY(caller.group.open());
  Statement& statement = caller.group.draft(caller.me);
  statement.collective = Collective::kAllReduce;
  statement.op = op;
  TensorList list;
  DIST_TRY(list.check(in, out, n, statement, [op](dist_dtype dtype) {
    return op == DIST_REDUCE_MEAN ? dtype_of_mean(dtype) : dtype;
  }));
  seal(statement, caller.tag);
  // What one replica has is its sum already; only bool may be written differently from how it is read.
  const bool unchanged = caller.group.size() == 1 && list.in_place() &&
                         std::none_of(in, in + n, [](const dist_tensor& t) { return t.dtype == DIST_BOOL; });
  if (list.bytes() == 0 || unchanged) {
    list.publish(caller.group.outgoing(caller.me));
    return caller.group.arrive(caller.me, caller.timeout_ns);
  }
  const bool crowded = caller.group.crowded();
  if (n == 1 && !crowded && elements_of(in[0]) * dtype_size(in[0].dtype) <= Line::kInlineBytes) {
    return reduce_inline(caller, list, op);
  }
  list.publish(caller.group.outgoing(caller.me));
  if (crowded && list.bytes() <= kAloneBytes) return reduce_alone(caller, list, op);
  return reduce_in_parts(caller, list, op);
}

Status broadcast(const Caller& caller, int32_t root, const dist_tensor* in, dist_tensor* out,
                 std::size_t n) noexcept {
  Group& group = caller.group;
  if (root < 0 || root >= group.size()) {
    return invalid_argument("root is %d; a replica's id is 0 to %d", root, group.size() - 1);
  }
  const bool from_here = root == caller.me;
  if (from_here && n != 0 && in == nullptr)
    return invalid_argument("in is NULL on the root, but n is %zu", n);
  DIST_TRY(group.open());
  Statement& statement = group.draft(caller.me);
  statement.collective = Collective::kBroadcast;
  statement.root = root;
  TensorList list;
  DIST_TRY(list.check(from_here ? in : nullptr, out, n, statement, [](dist_dtype dtype) { return dtype; }));
  seal(statement, caller.tag);
  list.publish(group.outgoing(caller.me));
  DIST_TRY(group.arrive(caller.me, caller.timeout_ns));
  if (list.bytes() == 0) return kOk;

  if (!group.enter(caller.me)) return group.finish(caller.me);
  ErrorRecord overlap;
  if (list.overlaps_peers(caller, caller.me, &overlap)) return group.refuse(caller.me, overlap);
  // One output for all is written once, a part by each; to its own each member copies all.
  const auto size = static_cast<std::size_t>(group.size());
  copy_from(caller, list, root, {0, list.units()}, false);
  copy_from(caller, list, root, part_of(list.units(), size, static_cast<std::size_t>(caller.me)), true);
  // Peers read nothing of this member's but its line, or, of several tensors, its list.
  if (!from_here && n == 1 && !mirrored(caller, n, 0) && !group.poisoned()) {
    group.finish_without_waiting(caller.me);
    return kOk;
  }
  return group.finish(caller.me);
}

Status barrier(const Caller& caller) noexcept {
  DIST_TRY(caller.group.open());
  Statement& statement = caller.group.draft(caller.me);
  statement.collective = Collective::kBarrier;
  seal(statement, caller.tag);
  return caller.group.arrive(caller.me, caller.timeout_ns);
}

}  // namespace dist
