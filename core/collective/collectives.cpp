// SPDX-License-Identifier: Apache-2.0
#include "core/collective/collectives.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/share.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

// What the members of the meeting that the caller is in have brought.
class Offers {
 public:
  explicit Offers(const Caller& caller) noexcept {
    for (int p = 0; p < caller.group.size(); ++p) at_[p] = &caller.group.line(caller.me, p).offer;
  }
  const Offer* const* all() const noexcept { return at_; }

 private:
  const Offer* at_[DIST_MAX_REPLICAS];
};

ErrorRecord reported(const Caller& caller, const Call& call, const ErrorRecord& why) noexcept {
  return refusal(caller.group, call, caller.tag, caller.group.sequence(caller.me), why);
}

// The members' tensors do not fit together, as far as this concerns `member`. Apart, as the next one, since a
// report takes time and room to set up.
[[gnu::noinline, gnu::cold]] void explain(const Caller& caller, const Call& call, const Exchange& exchange,
                                          int member, ErrorRecord* out_report) noexcept {
  ErrorRecord why;
  exchange.refuses(caller.group, member, &why);
  *out_report = reported(caller, call, why);
}
[[gnu::noinline, gnu::cold]] Status refuse(const Caller& caller, const Call& call,
                                           const Exchange& exchange) noexcept {
  ErrorRecord report;
  explain(caller, call, exchange, caller.me, &report);
  return caller.group.refuse(caller.me, report);
}
[[gnu::noinline, gnu::cold]] Status refuse_overlap(const Caller& caller, const Call& call,
                                                   int peer) noexcept {
  ErrorRecord why;
  overlap_report(caller.group, caller.me, peer, 0, true, &why);
  return caller.group.refuse(caller.me, reported(caller, call, why));
}

// One tensor whose bytes travel with the line: everyone reduces everything, into its own output.
template <class Published>
Status reduce_at_once(const Caller& caller, const Call& call, Published&& published) noexcept {
  Group& group = caller.group;
  const dist_tensor& in = call.in[0];
  const std::size_t elements = elements_of(in);
  Line& line = group.outgoing(caller.me);
  std::memcpy(group.outgoing_bytes(caller.me, call.bytes), in.data, call.bytes);
  line.extra = call.out[0].data;
  DIST_TRY(group.arrive(caller.me, caller.timeout_ns, published,
                        [&](int peer) { group.fetch_bytes(caller.me, peer, call.bytes); }));

  const std::byte* src[DIST_MAX_REPLICAS];
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t out_bytes = elements * dtype_size(call.out[0].dtype);
  bool shared = size > 1;
  int overlapping = -1;
  for (std::size_t p = 0; p < size; ++p) {
    const int peer = static_cast<int>(p);
    const Line& theirs = group.line(caller.me, peer);
    src[p] = group.bytes(caller.me, peer, call.bytes);
    shared = shared && theirs.extra == line.extra;
    if (peer != caller.me && overlap(theirs.extra, out_bytes, line.extra, out_bytes)) overlapping = peer;
  }
  // Peers' inputs have been copied: only outputs can be in the way.
  if (overlapping >= 0 && !shared) return refuse_overlap(caller, call, overlapping);
  // A peer's output is touched: as with buffers.
  if (shared && !group.enter(caller.me)) return group.finish(caller.me);
  if (!shared || caller.me == 0) {
    const FpEnvironment environment;
    auto* dst = static_cast<std::byte*>(call.out[0].data);
    reduce_kernel(in.dtype, call.op)({src, &dst, size, 1, elements, static_cast<double>(size), false});
  }
  return shared ? group.finish(caller.me) : kOk;
}

template <class Published>
Status work_in_parts(const Caller& caller, const Call& call, Published&& published) noexcept {
  Group& group = caller.group;
  group.arm_tickets(caller.me);
  DIST_TRY(group.arrive(caller.me, caller.timeout_ns, published));
  if (caller.recorder != nullptr) caller.recorder->arrived();
  if (group.enter(caller.me)) {
    const Offers offers(caller);
    const Exchange exchange(call, group.size(), offers.all(), caller.cache_bytes);
    if (exchange.refuses(group, caller.me, nullptr)) return refuse(caller, call, exchange);
    const FpEnvironment environment;
    if (group.oversubscribed() || exchange.bytes() > kStaticBytes) {
      share_blocks(caller, exchange.units(), exchange.block_units(),
                   [&](Range block) { exchange.run(block, [] { return true; }); });
    } else {
      const auto size = static_cast<std::size_t>(group.size());
      exchange.run(part_of(exchange.units(), size, static_cast<std::size_t>(caller.me)),
                   [&] { return !group.poisoned(); });
    }
  }
  return group.finish(caller.me);
}

Status work_alone(const Caller& caller, const Call& call) noexcept {
  ErrorRecord report;
  return caller.group.arrive_and_work_alone(caller.me, caller.timeout_ns, [&]() -> const ErrorRecord* {
    if (caller.recorder != nullptr) caller.recorder->arrived();
    const Offers offers(caller);
    const Exchange exchange(call, caller.group.size(), offers.all(), caller.cache_bytes);
    for (int member = 0; member < caller.group.size(); ++member) {
      if (!exchange.refuses(caller.group, member, nullptr)) continue;
      explain(caller, call, exchange, member, &report);
      return &report;
    }
    const FpEnvironment environment;
    exchange.run({0, exchange.units()}, [] { return true; });
    return nullptr;
  });
}

// One member's result is its contribution already; only bool may be written differently from how it is read.
bool leaves_unchanged(const Call& call, int size) noexcept {
  return size == 1 && call.in_place && call.plain() && call.op != DIST_REDUCE_USER &&
         std::none_of(call.in, call.in + call.n, [](const dist_tensor& t) { return t.dtype == DIST_BOOL; }) &&
         (call.collective == Collective::kAllReduce || call.collective == Collective::kReduce);
}

Status check_and_meet(const Caller& caller, Call& call) noexcept {
  Group& group = caller.group;
  DIST_TRY(group.open());
  Statement& statement = group.outgoing_statement(caller.me);
  if (caller.checked == nullptr || !caller.checked->recall(call, caller.tag, statement)) {
    statement = Statement{};
    DIST_TRY(call.check(caller.me, group.size(), statement));
    seal(statement, caller.tag);
    if (caller.checked != nullptr) caller.checked->keep(call, statement);
  }
  const auto published = [&] { record_arrival(caller, statement, call.bytes, 0); };
  const bool oversubscribed = group.oversubscribed();
  const bool empty = call.bytes == 0 && !call.must_fit();
  const bool unchanged = leaves_unchanged(call, group.size());
  const bool travels = call.can_travel() && call.bytes <= most_that_travels(group.size());
  if (travels && !empty && !oversubscribed && !unchanged) return reduce_at_once(caller, call, published);
  if (empty || unchanged) return group.arrive(caller.me, caller.timeout_ns, published);
  call.offer_in(group.outgoing(caller.me).offer);
  if (oversubscribed && call.sized_alike() && call.bytes <= kAloneBytes) {
    record_arrival(caller, statement, call.bytes);
    return work_alone(caller, call);
  }
  return work_in_parts(caller, call, published);
}

}  // namespace

ErrorRecord refusal(const Group& group, const Call& call, const char* tag, int64_t sequence,
                    const ErrorRecord& why) noexcept {
  ErrorRecord report = why;
  report.collective = static_cast<int32_t>(call.collective);
  report.group = group.number();
  report.sequence = sequence;
  if (why.replica >= 0) blame(report, group.replica(why.replica), group.part_of());
  copy_shown(report.tag, tag);
  const bool tagged = report.tag[0] != '\0';
  char of_group[32] = "";
  if (report.group != 0) std::snprintf(of_group, sizeof of_group, " of group %d", report.group);
  std::snprintf(report.message, sizeof report.message, "%s #%lld%s%s%s%s: %.900s",
                collective_name(call.collective), static_cast<long long>(sequence), tagged ? " (tag " : "",
                report.tag, tagged ? ")" : "", of_group, why.message);
  return report;
}

Status collective(const Caller& caller, Call& call) noexcept {
  return recorded(caller, call.collective, [&] { return check_and_meet(caller, call); });
}

Status all_reduce(const Caller& caller, dist_reduce_op op, const dist_tensor* in, dist_tensor* out,
                  std::size_t n) noexcept {
  Call call;
  call.collective = Collective::kAllReduce;
  call.op = op;
  call.in = in;
  call.out = out;
  call.n = n;
  return collective(caller, call);
}

Status broadcast(const Caller& caller, int32_t root, const dist_tensor* in, dist_tensor* out,
                 std::size_t n) noexcept {
  Call call;
  call.collective = Collective::kBroadcast;
  call.root = root;
  call.in = in;
  call.out = out;
  call.n = n;
  return collective(caller, call);
}

Status barrier(const Caller& caller) noexcept {
  Call call;
  call.collective = Collective::kBarrier;
  return collective(caller, call);
}

}  // namespace dist
