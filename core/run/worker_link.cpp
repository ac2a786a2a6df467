// SPDX-License-Identifier: Apache-2.0
#include "core/run/worker_link.hpp"

#include <algorithm>
#include <memory_resource>
#include <vector>

#include "core/base/text.hpp"
#include "core/collective/collectives.hpp"
#include "core/run/worker_group.hpp"

namespace dist {
namespace {

WorkerCommunicator::Options communicator_options(std::span<const int> members,
                                                 const WorkerLink::Options& options,
                                                 BackgroundWork& background) noexcept {
  return {members, options.timeout_ns,
          options.staging_bytes != 0 ? options.staging_bytes : WorkerCommunicator::kDefaultStagingBytes,
          &background, options.numbers};
}

Transport& some_of(Memory& memory, Transport* all, const WorkerLink::Options& options,
                   std::optional<SubsetTransport>* some, Transport& none) {
  if (all == nullptr) return none;
  if (options.numbers.empty()) return *all;
  return some->emplace(memory, *all, options.numbers);
}

// The end of the pack that begins with tensor `first`. Every worker gets the same result if all pass the same
// list and the same size.
std::size_t end_of_pack(std::span<const dist_tensor> list, std::size_t first,
                        int64_t bytes_per_pack) noexcept {
  if (bytes_per_pack <= 0) return list.size();
  std::size_t bytes = 0;
  std::size_t t = first;
  for (; t < list.size() && bytes < static_cast<std::size_t>(bytes_per_pack); ++t)
    bytes += elements_of(list[t]) * dtype_size(list[t].dtype);
  return t;
}

int number_of(const WorkerLink::Options& options) noexcept {
  return options.numbers.empty() ? options.me : options.numbers[static_cast<std::size_t>(options.me)];
}

}  // namespace

Status WorkerLink::Connection::join(Network& network, int num_workers, int me,
                                    std::optional<Connection>* out) noexcept {
  if (network.num_workers() != num_workers) {
    return invalid_argument("`network` is for %s, but the cluster has %d",
                            CountText(network.num_workers(), "worker").text, num_workers);
  }
  out->emplace();
  DIST_TRY(network.join(me, &(*out)->transport_));
  (*out)->network_ = Ref<Network>::share(&network);
  return kOk;
}

WorkerLink::WorkerLink(Memory& memory, Group& group, const Host& host, Connection connection,
                       const Options& options)
    : memory_(memory),
      cache_bytes_(options.cache_bytes),
      limits_{.bytes_per_pack = options.bytes_per_pack},
      recorder_(options.recorder),
      connection_(std::move(connection)),
      unreachable_(static_cast<int>(options.replicas.size()), options.me, connection_.why()),
      transport_(some_of(memory, connection_.transport(), options, &some_, unreachable_)),
      crossings_(options.helpers),
      replicas_share_(transport_),
      replicas_(memory, replicas_share_, group, host,
                communicator_options(options.replicas, options, crossings_)),
      leaders_share_(transport_),
      leaders_group_(
          memory, 1, group.policy(), host, options.timeout_ns,
          {.number = kLeaders, .naming = {.first = GlobalReplica{number_of(options)}, .workers = true}}),
      leaders_(memory, leaders_share_, leaders_group_, host,
               communicator_options(std::pmr::vector<int>(options.replicas.size(), 1, &memory), options,
                                    crossings_)),
      groups_(&memory) {
  if (connection_.transport() != nullptr) connection_.transport()->log_to(host);
}

void WorkerLink::remove(WorkerGroup& group) noexcept {
  groups_.erase(std::find(groups_.begin(), groups_.end(), &group));
}

void WorkerLink::owe(const ErrorRecord& why) noexcept {
  const std::lock_guard lock(owing_);
  ++owed_;
  owed_why_ = why;
}

void WorkerLink::begin_runs() noexcept {
  replicas_.begin_run();
  leaders_.begin_run();
  for (WorkerGroup* const each : groups_) each->begin_run();
}

void WorkerLink::settle() noexcept {
  ErrorRecord why;
  int owed = 0;
  {
    const std::lock_guard lock(owing_);
    owed = std::exchange(owed_, 0);
    why = owed_why_;
  }
  for (; owed > 0; --owed) {
    begin_runs();
    end_run(Status(why.code), why);
  }
}

void WorkerLink::begin_run(const RunDeadline& deadline) noexcept {
  settle();
  open_ = true;
  leaders_group_.begin_run(deadline);
  begin_runs();
}

void WorkerLink::end_run(Status outcome, const ErrorRecord& why) noexcept {
  open_ = false;
  const bool failed =
      replicas_.failed() || std::any_of(groups_.begin(), groups_.end(),
                                        [](WorkerGroup* each) { return each->communicator().failed(); });
  if (const uint64_t parts = replicas_.close_parts(); parts != 0) {
    for (WorkerGroup* const each : groups_) each->end_run(parts, outcome, why);
  }
  replicas_.leave(outcome, why, failed, to_announce());
  leaders_.leave(outcome, why);
}

uint32_t WorkerLink::to_announce() noexcept {
  uint32_t all = asked_.load(std::memory_order_relaxed);
  if (me() != 0) return all;
  // A request of one worker applies to all of them from here on.
  all |= replicas_.announced_by_others();
  asked_.fetch_or(all, std::memory_order_relaxed);
  if (reform_due()) all |= kReformDue;
  return all;
}

bool WorkerLink::reform_due() const noexcept {
  if (connection_.network() == nullptr || !connection_.network()->forms()) return false;
  for (int w = 0; w < num_workers(); ++w) {
    if (w != me() && replicas_share_.lost(w)) return true;
  }
  return connection_.network()->has_newcomers();
}

void WorkerLink::begin_turn() noexcept {
  if (!open_) begin_run({});
}

void WorkerLink::end_turn(uint64_t failures_before) noexcept {
  if (!open_) return;
  const bool failed = failures_on_this_thread() != failures_before;
  end_run(failed ? Status(last_error().code) : kOk, failed ? last_error() : ErrorRecord{});
}

void WorkerLink::cancel(const char* reason) noexcept {
  reason == nullptr ? leaders_group_.cancel() : leaders_group_.cancel(reason);
}

Status WorkerLink::reduce(dist_reduce_op op, dist_numerics numerics, std::span<const dist_tensor> in,
                          std::span<dist_tensor> outs) {
  begin_turn();
  Call call;
  call.collective = Collective::kAllReduce;
  call.op = op;
  call.numerics = numerics;
  call.contributions = in.size() / outs.size();
  std::pmr::vector<dist_tensor> pack(&memory_);
  for (std::size_t first = 0; first < outs.size();) {
    const std::size_t end = end_of_pack(in.first(outs.size()), first, limits_.bytes_per_pack);
    call.in = in.data();
    call.out = outs.data() + first;
    call.n = end - first;
    if (call.n < outs.size()) {
      pack.clear();
      for (std::size_t k = 0; k < call.contributions; ++k) {
        const auto of_this = in.subspan(k * outs.size() + first, call.n);
        pack.insert(pack.end(), of_this.begin(), of_this.end());
      }
      call.in = pack.data();
    }
    DIST_TRY(collective(leader(), call));
    first = end;
  }
  return kOk;
}

Status WorkerLink::join(const dist_tensor& mine, int32_t axis, ValueRef* out) {
  begin_turn();
  // The sizes first, because the result must be allocated before the tensors are exchanged.
  int64_t size = mine.shape[axis];
  const int64_t one = 1;
  dist_tensor total{&size, DIST_I64, 1, &one, nullptr};
  DIST_TRY(all_reduce(leader(), DIST_REDUCE_SUM, DIST_NUMERICS_ORDERED, &total, &total, 1));
  int64_t shape[DIST_MAX_NDIM];
  std::copy_n(mine.shape, mine.ndim, shape);
  shape[axis] = size;
  DIST_TRY(Value::copy_tensor(memory_, {nullptr, mine.dtype, mine.ndim, shape, nullptr}, out));
  const dist_tensor joined = (*out)->tensor();
  Call call;
  call.collective = Collective::kAllGather;
  call.axis = axis;
  call.in = &mine;
  call.out = &joined;
  call.n = 1;
  return collective(leader(), call);
}

Status WorkerLink::broadcast(dist_tensor& tensor, const char* tag, uint64_t detail) {
  begin_turn();
  Member member = leader();
  member.tag = tag;
  Call call;
  call.collective = Collective::kBroadcast;
  call.root = 0;
  call.in = call.out = &tensor;
  call.n = 1;
  call.salt = detail;
  return collective(member, call);
}

Status WorkerLink::largest(std::span<int64_t> words, const char* tag, uint64_t detail) {
  begin_turn();
  Member member = leader();
  member.tag = tag;
  const auto count = static_cast<int64_t>(words.size());
  const dist_tensor tensor{words.data(), DIST_I64, 1, &count, nullptr};
  Call call;
  call.collective = Collective::kAllReduce;
  call.op = DIST_REDUCE_MAX;
  call.in = call.out = &tensor;
  call.n = 1;
  call.salt = detail;
  return collective(member, call);
}

int WorkerLink::worker_of(GlobalReplica replica) const noexcept {
  const WorkerMembers members = replicas_.members();
  for (int w = 0; w < num_workers(); ++w) {
    if (number(replica) >= members.first_of(w) && number(replica) < members.first_of(w + 1)) return w;
  }
  return -1;
}

}  // namespace dist
