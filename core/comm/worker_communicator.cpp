// SPDX-License-Identifier: Apache-2.0
#include "core/comm/worker_communicator.hpp"

#include <algorithm>

#include "core/comm/polling.hpp"

namespace dist {
namespace {

std::pmr::vector<int> firsts_of(Memory& memory, std::span<const int> members) {
  std::pmr::vector<int> firsts(1, 0, &memory);
  for (const int count : members) firsts.push_back(firsts.back() + count);
  return firsts;
}

std::pmr::vector<int> names_of(Memory& memory, const WorkerCommunicator::Options& options) {
  std::pmr::vector<int> names(options.names.begin(), options.names.end(), &memory);
  for (const int each : options.workers) names.push_back(options.whole->named(each));
  return names;
}

}  // namespace

bool WorkerCommunicator::Incoming::good() noexcept {
  if (!read) reading = notice.read(bytes);
  read = true;
  return reading == Reading::kGood;
}

WorkerCommunicator::WorkerCommunicator(Memory& memory, Transport& transport, Group& group, const Host& host,
                                       const Options& options)
    : memory_(memory),
      transport_(transport),
      group_(group),
      host_(host),
      timeout_ns_(options.timeout_ns),
      most_bytes_(options.most_bytes),
      background_(options.background),
      me_(transport.me()),
      firsts_(firsts_of(memory, options.members)),
      whole_(options.whole),
      workers_(options.workers.begin(), options.workers.end(), &memory),
      names_(names_of(memory, options)),
      replicas_(options.replicas.begin(), options.replicas.end(), &memory),
      peers_(&memory),
      attendance_(memory, group.size(), static_cast<int>(options.members.size()), me_),
      seen_(static_cast<std::size_t>(group.size()), &memory) {
  for (std::size_t w = 0; w < options.members.size(); ++w) peers_.emplace_back();
  round_.emplace(memory, transport, members());
  if (whole_ == nullptr) transport_.listen(this);
}

WorkerCommunicator::~WorkerCommunicator() {
  cancel_all();
  transport_.listen(nullptr);
}

void WorkerCommunicator::cancel_all() noexcept {
  cancel_run();
  each_peer([&](int, Peer& peer) {
    for (Incoming& each : peer.leaves) end_transfer(transport_, each.transfer);
  });
}

// Cancels everything except the receives for the ends of runs.
void WorkerCommunicator::cancel_run() noexcept {
  round_->reset();
  each_peer([&](int, Peer& peer) {
    for (Transfer* each : {&peer.send_leave, &peer.send_report}) end_transfer(transport_, *each);
  });
  end_transfer(transport_, report_.transfer);
}

void WorkerCommunicator::begin_run() noexcept {
  if (whole_ != nullptr) {
    run_ = whole_->run_;
    if (!joined_.load(std::memory_order_relaxed)) return;
    transport_.listen(nullptr);
  } else {
    ++run_;
  }
  if (whole_ != nullptr) {
    cancel_all();
  } else {
    cancel_run();
    each_peer([&](int, Peer& peer) { end_transfer(transport_, leave_of(peer).transfer); });
  }
  number_ = 0;
  cpus_ = 0;
  completed_.store(0, std::memory_order_relaxed);
  begun_.store(0, std::memory_order_relaxed);
  planned_.store(0, std::memory_order_relaxed);
  planned_met_ = 0;
  reported_.store(false, std::memory_order_relaxed);
  // relaxed: members see these stores through whatever admits them to the run.
  counted_.store(0, std::memory_order_relaxed);
  awaited_ = 0;
  released_.value.store(0, std::memory_order_relaxed);
  ended_.store(false, std::memory_order_relaxed);
  std::fill(seen_.begin(), seen_.end(), 0);
  parts_.store(0, std::memory_order_relaxed);
  closed_parts_ = 0;
  joined_.store(false, std::memory_order_relaxed);
  said_.store(false, std::memory_order_relaxed);
  listening_.store(false, std::memory_order_relaxed);
  failing_ = false;
  if (whole_ != nullptr) return;
  // Peers may still have to report how the previous run ended: hear_of_run_before().
  transport_.forget(0, run_ - 1);
  listen();
}

// Posts the receives for this run's notices.
void WorkerCommunicator::listen() noexcept {
  const auto listen = [&](int worker, Kind kind, Incoming& incoming) {
    incoming.read = false;
    incoming.elsewhere = false;
    incoming.transfer.unhurried = true;
    transport_.receive(worker, notice(kind), incoming.bytes, WorkerNotice::kBytes, incoming.transfer);
  };
  each_peer([&](int w, Peer& peer) {
    peer.left_ns = 0;
    listen(w, kLeaves, leave_of(peer));
  });
  if (me_ != 0) listen(0, kReports, report_);
  // release: a thread that sees the flag may access what the receives write.
  listening_.store(true, std::memory_order_release);
}

void WorkerCommunicator::join_run() noexcept {
  if (!joined_.exchange(true, std::memory_order_acq_rel))
    whole_->parts_.fetch_or(part_bit(), std::memory_order_relaxed);
}

void WorkerCommunicator::take_part() noexcept {
  if (listening_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (listening_.load(std::memory_order_relaxed)) return;
  join_run();
  transport_.listen(this);
  listen();
}

void WorkerCommunicator::begin(WorkerRound& round, uint32_t stream, uint64_t number,
                               const Signature& signature, std::size_t most_bytes) noexcept {
  take_part();
  // relaxed: a member's works end before the member leaves.
  if (stream == kAsynchronous) begun_.store(number, std::memory_order_relaxed);
  if (stream >= kFirstPlanned) planned_.fetch_add(1, std::memory_order_relaxed);
  round.begin(message_of(stream, number), signature, most_bytes, {});
}

void WorkerCommunicator::leave(Status returned, const ErrorRecord& failure, bool collectives_failed,
                               uint32_t announced) noexcept {
  if (collectives_failed) own_failed_.fetch_add(1, std::memory_order_relaxed);
  if (whole_ != nullptr) {
    join_run();
    if (said_.exchange(true, std::memory_order_acq_rel)) return;
  }
  WorkerNotice left;
  left.parts = closed_parts_;
  left.completed = completed_.load(std::memory_order_relaxed);
  left.begun = begun_.load(std::memory_order_relaxed);
  left.planned = planned_.load(std::memory_order_relaxed);
  left.reported = reported_.load(std::memory_order_relaxed);
  left.failed = own_failed_.load(std::memory_order_relaxed);
  left.announced = announced_ = announced;
  if (!returned.ok()) left.record = failure;
  left.record.code = returned.code();
  left.write(own_leave_);
  each_peer([&](int w, Peer& peer) {
    transport_.send(w, notice(kLeaves), own_leave_, WorkerNotice::kBytes, peer.send_leave);
  });
  // The host may not call libdist again for a long time, and a transport has no thread of its own, so the
  // notices are sent before this returns. Sending depends on no peer, except for its credit.
  const int64_t begin = steady_now_ns();
  for (bool out = false; !out && steady_now_ns() - begin < kReportGraceNs;) {
    transport_.progress();
    out = true;
    each_peer([&](int, const Peer& peer) { out = out && peer.send_leave.over() && peer.send_report.over(); });
    if (!out) yield_this_thread();
  }
}

bool WorkerCommunicator::look_for_run_before(int* out_missing) noexcept {
  const std::lock_guard lock(mutex_);
  *out_missing = -1;
  each_peer([&](int w, Peer& peer) {
    Incoming& before = peer.leaves[(run_ - 1) % 2];
    if (!before.transfer.over()) {
      *out_missing = w;
    } else if (before.here() && before.good()) {
      peer.failed = before.notice.failed;
    }
  });
  if (*out_missing >= 0) return false;
  uint64_t failed = own_failed_.load(std::memory_order_relaxed);
  each_peer([&](int, const Peer& peer) { failed += peer.failed; });
  failed_.store(failed, std::memory_order_relaxed);
  // release: publishes what the peers have reported.
  heard_run_.store(run_, std::memory_order_release);
  return true;
}

Status WorkerCommunicator::hear_of_run_before(Group& group, uint64_t* out_failed) noexcept {
  if (whole_ != nullptr) return whole_->hear_of_run_before(group, out_failed);
  // In later rounds of a plan this is a single load.
  if (heard_run_.load(std::memory_order_acquire) != run_) DIST_TRY(await_run_before(group));
  *out_failed = failed_.load(std::memory_order_relaxed);
  return kOk;
}

Status WorkerCommunicator::await_run_before(Group& group) noexcept {
  Word& word = group.progress();
  const int64_t start_ns = host_.now_ns();
  Standstill standstill;
  for (int missing = -1; !look_for_run_before(&missing);) {
    transport_.progress();
    if (group.aborted()) return group.failure();
    int64_t waited_ns = 0;
    const Trouble late = group.overdue(start_ns, timeout_ns_, &waited_ns);
    if (!standstill.forgives(waited_ns) && late != Trouble::kNone) {
      return dist::fail(DIST_DEADLINE_EXCEEDED, "worker %d has not finished the previous run within %.3g s",
                        missing, static_cast<double>(waited_ns) * 1e-9);
    }
    // The transport notifies the communicator, which may advance another word than this group's, so this loop
    // polls.
    constexpr int64_t kLookNs = 1'000'000;
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    const Sleeping sleeping(transport_);
    word.sleep(seen, host_.slice_ns(kLookNs), group.policy(), [&] { return group.aborted(); });
  }
  return kOk;
}

Status WorkerCommunicator::hear_leader(const std::atomic<bool>& cancelled, uint32_t* out_announced) noexcept {
  *out_announced = announced_;
  if (me_ == 0 || run_ == 0) return kOk;
  Incoming& reporter = leave_of(peer(0));
  Word& word = group_.progress();
  const int64_t start_ns = host_.now_ns();
  Standstill standstill;
  while (!reporter.transfer.over()) {
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    transport_.progress();
    if (reporter.transfer.over()) break;
    if (cancelled.load(std::memory_order_relaxed))
      return dist::fail(DIST_CANCELLED, "the wait for worker %d to finish its run was cancelled", named(0));
    const int64_t waited_ns = host_.now_ns() - start_ns;
    if (!standstill.forgives(waited_ns) && timeout_ns_ > 0 && waited_ns >= timeout_ns_) {
      return dist::fail(DIST_DEADLINE_EXCEEDED, "worker %d has not finished its run within %.3g s", named(0),
                        static_cast<double>(waited_ns) * 1e-9);
    }
    constexpr int64_t kLookNs = 1'000'000;
    const Sleeping sleeping(transport_);
    word.sleep(seen, host_.slice_ns(kLookNs), group_.policy(), [&] { return reporter.transfer.over(); });
  }
  const std::lock_guard lock(mutex_);
  if (!reporter.here() || !reporter.good()) {
    const int lost = transport_.given_up() ? me_ : 0;
    char why[sizeof ErrorRecord::message] = "";
    transport_.why_lost(lost, why, sizeof why);
    return dist::fail(DIST_UNAVAILABLE, "worker %d is lost%s%s", named(lost), *why == '\0' ? "" : ": ", why);
  }
  *out_announced = reporter.notice.announced;
  return kOk;
}

uint32_t WorkerCommunicator::announced_by_others() noexcept {
  const std::lock_guard lock(mutex_);
  uint32_t all = 0;
  each_peer([&](int, Peer& peer) {
    for (Incoming& each : peer.leaves) {
      if (each.transfer.end() == Transfer::End::kDone && each.transfer.message().data != nullptr &&
          each.good())
        all |= each.notice.announced;
    }
  });
  return all;
}

// A thread that polls moves the messages itself, so it must look at them all the time.
template <class Over>
bool WorkerCommunicator::poll_until(Over&& over, uint32_t seen) noexcept {
  constexpr int kLooks = 64;
  // If all members of all workers can run at the same time, a yield would only run threads that are not
  // needed now.
  if (cpus_ == 0) cpus_ = cpus_of_this_thread().count();
  const bool oversubscribed = num_members() > cpus_;
  Word& word = group_.progress();
  const int64_t start_ns = steady_now_ns();
  do {
    const bool beside = transport_.shares_cpu();
    for (int i = 0; i < (beside ? 1 : kLooks); ++i) {
      transport_.progress();
      if (over()) return true;
      if (word.value.load(std::memory_order_acquire) != seen || group_.aborted()) return true;
      spin_pause();
    }
    if (beside || oversubscribed) yield_this_thread();
  } while (steady_now_ns() - start_ns < group_.policy().spin_ns + patience_ns_);
  return false;
}

template <class Over>
Status WorkerCommunicator::await(Over&& over) noexcept {
  Word& word = group_.progress();
  if (over()) return kOk;
  // Workers of one machine usually arrive within the time that the checks below take.
  constexpr int kLooks = 200;
  const bool alone = transport_.polls() && !group_.policy().oversubscribed && !transport_.shares_cpu();
  for (int i = 0; i < kLooks && alone; ++i) {
    transport_.progress();
    if (over()) return kOk;
    if (group_.aborted()) break;
    spin_pause();
  }
  for (;;) {
    // acquire keeps this load before the checks: whatever happens after them ends the sleep.
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    transport_.progress();
    if (background_ != nullptr) background_->advance();
    if (over()) return kOk;
    if (group_.aborted()) {
      round_->take_back();
      return group_.failure();
    }
    if (Found found; find_trouble(*round_, &found)) return fail_all(found);
    int64_t waited_ns = 0;
    const Trouble late = group_.overdue(start_ns_, limit_ns_, &waited_ns);
    if (!standstill_.forgives(waited_ns) && late != Trouble::kNone && transport_.up_to_date())
      return fail_all({report_of(*round_, late, waited_ns)});
    const auto changed = [&] {
      return word.value.load(std::memory_order_seq_cst) != seen || group_.aborted();
    };
    if (transport_.polls() ? poll_until(over, seen) : spin_until(group_.policy(), changed)) continue;
    // The transport may need progress() even if nothing has happened here.
    constexpr int64_t kMostNs = 1'000'000;
    const Sleeping sleeping(transport_, polling_);
    if (over()) return kOk;
    word.sleep(seen, host_.slice_ns(kMostNs), group_.policy(), changed);
  }
}

Status WorkerCommunicator::await_messages() noexcept {
  return await([&] { return round_->settled(); });
}

bool WorkerCommunicator::release() noexcept {
  const bool goes_on = !group_.aborted();
  // release: a member that sees the flag also sees the abort.
  if (!goes_on) ended_.store(true, std::memory_order_release);
  released_.publish(++seen_[0], group_.policy());
  return goes_on;
}

bool WorkerCommunicator::await_release(int member) noexcept {
  const uint32_t next = ++seen_[static_cast<std::size_t>(member)];
  // A leader that ends the collective may already have released later steps.
  const auto ready = [&] {
    return static_cast<int32_t>(released_.value.load(std::memory_order_seq_cst) - next) >= 0;
  };
  while (!spin_until(group_.policy(), ready)) {
    if (memory_.forked()) return false;
    // acquire keeps this load before the one in ready().
    const uint32_t seen = released_.value.load(std::memory_order_acquire);
    if (ready()) break;
    released_.sleep(seen, -1, group_.policy(), ready);
  }
  return !ended_.load(std::memory_order_acquire);
}

void WorkerCommunicator::count_in() noexcept {
  // acq_rel: each increment is ordered after the earlier ones, so that the leader sees what all members have
  // done.
  const uint64_t before = counted_.fetch_add(1, std::memory_order_acq_rel);
  if ((before + 1) % static_cast<uint64_t>(group_.size() - 1) == 0) group_.progress().advance();
}

Status WorkerCommunicator::await_members() noexcept {
  const Polling polling(transport_, polling_);
  const uint64_t all = ++awaited_ * static_cast<uint64_t>(group_.size() - 1);
  return await([&] { return counted_.load(std::memory_order_acquire) == all; });
}

Status WorkerCommunicator::meet_and_move(const Signature& signature, int64_t timeout_ns,
                                         int64_t start_ns) noexcept {
  const Polling polling(transport_, polling_);
  take_part();
  ++number_;
  start_ns_ = start_ns;
  standstill_ = {};
  limit_ns_ = timeout_ns == 0 ? timeout_ns_ : timeout_ns;
  const Attendance::Last last = attendance_.begin();
  const WorkerRound::Last own{group_.name(last.member).number(), last.alone_ns};
  attendance_.hear(me_, own.name, own.alone_ns);
  round_->begin(message_of(WorkerRound::kBlocking, number_), signature, most_bytes_, own);
  while (!round_->here()) {
    DIST_TRY(await([&] {
      // Call settled() before look(), so that look() sees all headers that had arrived.
      const bool settled = round_->settled();
      attendance_.look([&](int w) { return round_->header_is_here(w); }, steady_now_ns);
      return settled;
    }));
    // The messages may come from workers that have since declared this one lost. A late worker has, for
    // example, everything that it needs to complete a barrier, but must not complete it successfully on its
    // own.
    if (Found found; find_trouble(*round_, &found)) return fail_all(found);
    do {
      const WorkerRound::Problem problem = round_->proceed();
      if (problem.fault != WorkerRound::Fault::kNone) return fail_all(problem);
    } while (!round_->expects_more() && !round_->here());
  }
  each_peer([&](int w, const Peer&) {
    const WorkerRound::Last theirs = round_->last_of(w);
    attendance_.hear(w, theirs.name, theirs.alone_ns);
  });
  if (round_->complete()) complete_collective();
  return kOk;
}

Status WorkerCommunicator::take_streams(uint64_t first, std::size_t count) noexcept {
  constexpr uint64_t kMost = UINT32_MAX / WorkerRound::kKinds;
  if (first > kMost || count > kMost - first) {
    return dist::fail(DIST_RESOURCE_EXHAUSTED,
                      "this strategy has planned %llu packs, which is the limit. Create a new strategy",
                      static_cast<unsigned long long>(first));
  }
  next_stream_ = static_cast<uint32_t>(first + count);
  return kOk;
}

Status WorkerCommunicator::reserve(std::size_t bytes) noexcept {
  const Status made = round_->reserve(bytes);
  return made.ok() ? kOk : fail_all({WorkerRound::Fault::kNoMemory, me_});
}

Status WorkerCommunicator::pass(std::span<const Passage> passages) noexcept {
  const Polling polling(transport_, polling_);
  round_->pass(passages);
  // Tensors take a while to arrive, and going to sleep at once would add to that. 1 ns per byte is more than
  // a copy takes.
  for (const Passage& each : passages)
    patience_ns_ += static_cast<int64_t>(std::max(each.receive_bytes, each.send_bytes));
  const Status passed = await_messages();
  patience_ns_ = 0;
  return passed;
}

}  // namespace dist
