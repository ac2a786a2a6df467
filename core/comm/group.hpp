// SPDX-License-Identifier: Apache-2.0
// Group: R members that meet in collectives. The protocol guarantees that no member waits forever.
//
// Each collective is a round, numbered 1, 2, ... On arrival a member publishes its slot: the round's number,
// the digest of its signature, and its buffers (or, if they are small, their bytes). It then waits for every
// peer's slot and compares digests. A member that leaves the run publishes a slot too, with a digest that no
// collective has, so that its peers see a disagreement.
//
// A member has two slots and alternates between them by the round's parity. Two are enough: before a member
// writes its slot of round s + 2, it has seen all members arrive at s + 1, and a member that has arrived
// there no longer reads slots of s. A member that gave up at s + 1 has not seen that, but it writes no
// further slot, because open() fails.
//
// When members may touch each other's buffers:
//
//     open()     the group is healthy: no peer reads this member's slot any more, so it may be written
//     arrive()   all members have arrived and agree                 (waits; deadline, abort)
//     enter()    no member has given up since: peers' buffers, and their tensor lists, may be touched
//     ...        kernels; check aborted() between blocks
//     finish()   all members are done with all buffers              (waits only for peers in kernels)
//
// Invariant: a member returns only when no peer touches its buffers, whether the round succeeds or fails. Any
// failure *aborts* the group until the next run: one member writes the report, and all members return it. A
// member that gives up first aborts the group and then waits until no peer that has entered is still
// working. enter() and give_up() each make their own store visible before they load the other's, so at least
// one of the two sees the other.
//
// There are two ways to wait. If every member has a CPU, each member waits for each peer's slot; one cache
// line travels in one direction. In an oversubscribed group that would cost each member R wake-ups. There,
// members count themselves in and out, and the last one wakes all others (oversubscribed_barrier.hpp). The
// last member to arrive reads all slots, and may do the whole work on its own.
//
// Memory orders. Plain data is published by a release store and received by an acquire load of one word:
//
//     slot      a slot's `round`: the rest of the slot, the signature, the failure, the member's buffers
//     done      `done`: what the member did to its peers' buffers, and that it no longer reads them
//     barrier   `released`: all slots, and what the last member did alone
//               `all_out`: like `done`, for all members
//     report    `abort_state_` when it becomes kReported: the report
//
// In four places two threads race: each stores a word and then loads the word that the other stores, and at
// least one of them must see the other's store. These stores and loads are seq_cst. If the policy is
// asymmetric, the frequent side is only in program order, and the rare side calls rare_barrier() between its
// store and its load:
//
//     sleep     publish(): word | sleepers                    sleep(): sleepers | word          (word.hpp)
//     touch     enter(): entered | abort_state_              give_up(): abort_state_ | entered
//     wake      on abort: abort_state_ | sleepers            sleep(): sleepers | abort_state_  (both seq_cst)
//     asleep    leave(): slot | asleep_                       wait(): asleep_ | slots
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/apart.hpp"
#include "core/comm/member_state.hpp"
#include "core/comm/oversubscribed_barrier.hpp"
#include "core/comm/signature.hpp"
#include "core/comm/slot.hpp"
#include "core/comm/wait_graph.hpp"
#include "core/comm/word.hpp"
#include "dist/types.h"

namespace dist {

// The members of a group, and how reports name them.
struct GroupMembers {
  int32_t number = 0;                    // number of the group in its strategy; 0: the group of all replicas
  const int32_t* local_ranks = nullptr;  // the members' local ranks, ascending; NULL: all replicas
  WaitGraph* wait_graph = nullptr;       // the strategy's; NULL: cycles are not detected
  Naming naming;                         // names of all local ranks
  Counted* keeper = nullptr;             // the object that owns the group, retained by works; NULL: none
};

// The deadline of a run.
struct RunDeadline {
  int64_t at_ns = 0;     // on the host's clock; 0: none
  int64_t given_ns = 0;  // the run's timeout, for reports; 0: not reported
};

template <class Sync>
class BasicGroup final : public WaitPlace {
 public:
  using Slot = BasicSlot<Sync>;
  using Word = BasicWord<Sync>;

  // Throws std::bad_alloc.
  BasicGroup(Memory& memory, int size, const WaitPolicy& policy, const Host& host, int64_t timeout_ns,
             const GroupMembers& members = {});
  ~BasicGroup();
  BasicGroup(const BasicGroup&) = delete;
  BasicGroup& operator=(const BasicGroup&) = delete;

  int size() const noexcept override { return size_; }
  int32_t number() const noexcept override { return number_; }
  int local_rank(int rank) const noexcept override {
    return local_ranks_ == nullptr ? rank : local_ranks_[rank];
  }
  Naming naming() const noexcept override { return naming_; }
  // Returns the rank of the member with this local rank, or -1 if it is not a member.
  int rank(int local_rank) const noexcept;
  bool oversubscribed() const noexcept { return policy_.oversubscribed; }
  const WaitPolicy& policy() const noexcept { return policy_; }
  // Number of members that can run at the same time.
  int stripes() const noexcept { return policy_.stripes; }

  // Resets the group before a run. No member may be inside.
  void begin_run(const RunDeadline& deadline) noexcept {
    if (deadline.at_ns != deadline_.at_ns || deadline.given_ns != deadline_.given_ns) deadline_ = deadline;
    // acquire, relaxed and release suffice because no member is inside. The members' fields became visible to
    // this thread when the last run ended, and become visible to members when the next one starts. Only
    // cancel() may be called at any time, and it reads none of them.
    if (aborted()) [[unlikely]]
      heal();
    first_ = members_[0].round;
    // relaxed: it becomes visible to the members when the run starts.
    run_.store(run() + 1, std::memory_order_relaxed);
  }

  // ---- A member's side of its next round ----

  // Call this before writing the slot. Fails with the report if the group is aborted or the run's deadline
  // has passed. A member that never sleeps checks the deadline nowhere else.
  Status open() noexcept { return aborted() || deadline_.at_ns != 0 ? check_run() : kOk; }

  // The signature and the slot to fill in for the next round. draft() clears the signature;
  // outgoing_signature() leaves the fields of an earlier round in place.
  Signature& draft(int me) noexcept { return outgoing_signature(me) = Signature{}; }
  Signature& outgoing_signature(int me) noexcept {
    MemberState& member = members_[me];
    Signature& signature = member.signatures[(member.round + 1) & 1];
    Sync::writing(signature);
    return signature;
  }
  Slot& outgoing(int me) noexcept {
    MemberState& member = members_[me];
    Slot& slot = member.slots[(member.round + 1) & 1];
    Sync::writing(slot);
    return slot;
  }

  // Returns where to write `size` bytes for the peers: the slot, or the eager payload if the slot is too
  // short. `size` is at most EagerPayload::kBytes. An oversubscribed group has no eager payloads.
  std::byte* outgoing_bytes(int me, std::size_t size) noexcept {
    MemberState& member = members_[me];
    const uint32_t parity = (member.round + 1) & 1;
    if (size <= Slot::kInlineBytes) return member.slots[parity].inline_bytes(size);
    EagerPayload& eager = eager_[2 * me + static_cast<int>(parity)];
    Sync::writing(eager);
    return eager.bytes;
  }

  // Publishes the slot and waits until all members have arrived with equal signatures. timeout_ns: 0 selects
  // the group's timeout, a negative value disables it. published() is called when the slot is visible, before
  // the member waits. If every member has a CPU, about_to_look(peer) is called before each of the first loads
  // of that peer's slot, and waits() if these were not enough.
  template <class Published, class Look, class Waits>
  Status arrive(int me, int64_t timeout_ns, Published&& published, Look&& about_to_look,
                Waits&& waits) noexcept {
    if (aborted()) return turned_away();
    publish(me);
    published();
    if (!policy_.oversubscribed) return await_slots(me, timeout_ns, about_to_look, waits);
    bool last = false;
    DIST_TRY(come(me, timeout_ns, &last));
    if (last) barrier_.release(members_[me].round, false, policy_);
    return kOk;
  }
  template <class Published>
  Status arrive(int me, int64_t timeout_ns, Published&& published) noexcept {
    return arrive(
        me, timeout_ns, published, [](int) {}, [] {});
  }
  Status arrive(int me, int64_t timeout_ns) noexcept {
    return arrive(me, timeout_ns, [] {});
  }

  // Replaces arrive(), enter(), the work and finish() in an oversubscribed group: the last member to arrive
  // does the work of all. `work(bool* shares)` returns NULL, or the reason why the round must fail. If it
  // sets *shares, it has left the work to all members: then *out_shares is true, and each member continues
  // with enter().
  template <class Work>
  Status arrive_and_work_alone(int me, int64_t timeout_ns, Work&& work, bool* out_shares) noexcept {
    if (aborted()) return turned_away();
    publish(me);
    bool last = false;
    DIST_TRY(come(me, timeout_ns, &last));
    if (!last) {
      *out_shares = barrier_.shares();
      return kOk;
    }
    if (!enter(me)) return give_up(me);
    *out_shares = false;
    if (const ErrorRecord* why = std::forward<Work>(work)(out_shares)) return refuse(me, *why);
    if (!*out_shares) members_[me].done.publish(members_[me].round, policy_);
    barrier_.release(members_[me].round, *out_shares, policy_);
    return kOk;
  }

  // The slot of a peer, or of the member itself, for the member's current round.
  const Slot& slot(int me, int peer) const noexcept {
    const Slot& slot = members_[peer].slots[members_[me].round & 1];
    Sync::reading(slot);
    return slot;
  }
  const std::byte* bytes(int me, int peer, std::size_t size) const noexcept {
    if (size <= Slot::kInlineBytes) return slot(me, peer).inline_bytes(size);
    const EagerPayload& eager = eager_[2 * peer + static_cast<int>(members_[me].round & 1)];
    Sync::reading(eager);
    return eager.bytes;
  }

  // Call this before each load of a peer's round number. It prefetches the cache lines of the peer's bytes,
  // which then arrive together with the line of the round number. Prefetching more than kMost bytes would
  // slow that line down. It is always inlined because GCC drops calls of functions that only prefetch.
  [[gnu::always_inline]] void fetch_bytes(int me, int peer, std::size_t size) const noexcept {
    constexpr std::size_t kMost = 512;
    if (size > kMost) return;
    const uint32_t parity = members_[me].round & 1;
    if (size <= Slot::kHeadBytes) return;
    if (size <= Slot::kInlineBytes) return Sync::prefetch(members_[peer].slots[parity].inline_bytes(size));
    const EagerPayload& eager = eager_[2 * peer + static_cast<int>(parity)];
    for (std::size_t at = 0; at < size; at += kCacheLine) Sync::prefetch(eager.bytes + at);
  }

  // Returns false if a member has given up: then peers' buffers must not be touched. Call finish() in either
  // case.
  bool enter(int me) noexcept {
    MemberState& member = members_[me];
    // The race "touch". If a member that gives up does not see this `entered`, its change of abort_state_
    // came first, and the load below sees it.
    if (policy_.asymmetric) {
      // relaxed: this store publishes no other data. give_up()'s rare_barrier() orders it.
      member.entered.store(member.round, std::memory_order_relaxed);
      Sync::compiler_barrier();
    } else {
      member.entered.store(member.round, std::memory_order_seq_cst);
    }
    return abort_state_.load(std::memory_order_seq_cst) == kHealthy;
  }

  // Announces that this member is done with all buffers, and waits until all members are.
  Status finish(int me) noexcept {
    if (policy_.oversubscribed) return finish_oversubscribed(me);
    members_[me].done.publish(members_[me].round, policy_);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != me && !soon(me, peer, members_[peer].done, [](int) {})) await_done(me, peer);
    }
    // A member that gave up saw the abort before it published `done` with release. So a member that has seen
    // this `done` sees the abort too.
    return aborted() ? give_up(me) : kOk;
  }
  // Like finish(), but does not wait. For rounds in which no peer touches this member's buffers.
  void finish_without_waiting(int me) noexcept { (void)say_done(me); }
  // Waits until one peer has announced that it is done.
  void await_done(int me, int peer) noexcept;

  // acquire: with kReported, the report becomes visible.
  bool aborted() const noexcept { return abort_state_.load(std::memory_order_acquire) != kHealthy; }

  // A ticket is the index of a block of one part. Any member may take the next one. Member k resets the
  // tickets of part k before it arrives.
  void arm_tickets(int me) noexcept {
    MemberState& member = members_[me];
    // relaxed: the slot that is published next orders this store before any peer takes a ticket. The last of
    // the old tickets was taken two rounds ago.
    member.tickets[(member.round + 1) & 1].next.store(0, std::memory_order_relaxed);
  }
  std::size_t take_ticket(int me, int part) noexcept {
    // relaxed: each index goes to one member. It publishes no data; the data of the blocks came with the
    // slots.
    return members_[part].tickets[members_[me].round & 1].next.fetch_add(1, std::memory_order_relaxed);
  }

  // Fails a round in which all members have arrived and agree: all of them get `why` as their report.
  Status refuse(int me, const ErrorRecord& why) noexcept {
    condemn(why);
    return give_up(me);
  }

  // Which peers the member gives way to. If it keeps meeting one of them on its CPU although each member
  // could have its own, it moves: the system's load balancer takes milliseconds, and in a virtual machine an
  // idle CPU can look busy.
  BasicApart<Sync>& apart(int rank) noexcept { return members_[rank].apart; }
  // Call this when the member is about to wait for a peer that runs on `cpu`.
  void keep_apart(int me, int cpu) noexcept;

  // Call this when the member has left its function. If `returned` is not OK, `failure` is the reason. Peers
  // that wait for the member, now or later, fail immediately.
  void leave(int me, Status returned, const ErrorRecord& failure) noexcept {
    leave(me, run(), returned, failure);
  }
  // Overload for a caller that has already read run(), which saves the member a transfer of that cache line.
  void leave(int me, uint32_t run, Status returned, const ErrorRecord& failure) noexcept;
  // The number of the current run.
  uint32_t run() const noexcept { return run_.load(std::memory_order_relaxed); }

  // Fails the run's rounds with this report, unless they have already failed. Any thread may call this.
  void condemn(const ErrorRecord& why) noexcept;
  // claim() and post() together do what condemn() does, for callers that fail several groups at once. If
  // claim() returns true, the caller must post() the report.
  bool claim() noexcept override;
  void post(const ErrorRecord& report) noexcept override;

  // Cancels the run's rounds. The reason, if given, appears in every report. Any thread may call this, but
  // the overload with a reason only while the run lasts.
  void cancel() noexcept;
  void cancel(const char* reason) noexcept;
  // The reason given to cancel(); NULL if there is none, or not yet.
  const char* cancel_reason() const noexcept {
    return has_reason_.load(std::memory_order_acquire) ? reason_ : nullptr;
  }

  // ---- For asynchronous and planned work (core/async/channel.hpp) ----

  // A counter of the events of such work. Threads that wait for the work sleep on it; an abort wakes them,
  // too.
  Word& progress() noexcept { return progress_; }
  // From now on, a member that leaves wakes the threads that wait for progress.
  void watch_departures() noexcept { watched_.store(true, std::memory_order_relaxed); }
  bool has_left(int rank) const noexcept {
    return members_[rank].left.load(std::memory_order_acquire) == run();
  }
  // The signature of a member that has left; *out_failure is NULL if it did not fail.
  const Signature& departed(int rank, const ErrorRecord** out_failure) const noexcept {
    const MemberState& member = members_[rank];
    *out_failure = member.departure.returned == DIST_OK ? nullptr : &member.failure;
    return member.departure;
  }
  const int32_t* local_ranks() const noexcept { return local_ranks_; }
  uint32_t failures() const noexcept { return failures_; }  // failed runs
  // A work holds its group, which must outlive it.
  void hold() noexcept {
    if (keeper_ != nullptr) keeper_->retain();
    holders_.fetch_add(1, std::memory_order_relaxed);
  }
  void let_go() noexcept {
    Counted* const keeper = keeper_;
    holders_.fetch_sub(1, std::memory_order_release);
    if (keeper != nullptr) keeper->release();
  }
  bool held() const noexcept { return holders_.load(std::memory_order_acquire) != 0; }
  // If cancel() has ended the run's rounds and there is no report yet, posts the result of `report()`.
  template <class Report>
  void explain_cancel(Report&& report) noexcept {
    uint32_t cancelled = kCancelled;
    if (abort_state_.compare_exchange_strong(cancelled, kReporting, std::memory_order_seq_cst))
      post(std::forward<Report>(report)());
  }
  // Returns the report of an aborted group.
  Status failure() noexcept { return turned_away(); }
  // Which deadline has passed for a wait since `start_ns`, if any. timeout_ns: 0 selects the group's.
  Trouble overdue(int64_t start_ns, int64_t timeout_ns, int64_t* out_waited_ns) const noexcept;
  const RunDeadline& deadline() const noexcept { return deadline_; }
  bool past_deadline() const noexcept { return deadline_.at_ns != 0 && host_.now_ns() >= deadline_.at_ns; }
  // Fails with the report if the run has failed. If the run's deadline has passed, this call fails the run.
  Status check_run() noexcept;
  const Host& host() const noexcept { return host_; }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  WaitGraph* wait_graph() const noexcept { return wait_graph_; }

  // The report if the group is aborted and its report is complete, otherwise NULL.
  const ErrorRecord* report() const noexcept {
    // acquire: pairs with post()'s store after the report.
    if (abort_state_.load(std::memory_order_acquire) != kReported) return nullptr;
    Sync::reading(report_);
    return &report_;
  }
  // Whether cancel() ended the run's rounds.
  bool cancelled() const noexcept {
    const uint32_t state = abort_state_.load(std::memory_order_acquire);
    return state == kCancelled || (state == kReported && report_.code == DIST_CANCELLED);
  }
  bool arrived(int rank, uint32_t round) const noexcept override {
    return members_[rank].slots[round & 1].round.value.load(std::memory_order_seq_cst) == round;
  }
  const Signature& signature(int rank, uint32_t round, int64_t* out_sequence) const noexcept override {
    *out_sequence = static_cast<uint32_t>(round - first_);
    return members_[rank].signatures[round & 1];
  }

  // The latest round of a member, and its number in the run. Only the member's own thread may call these.
  uint32_t round(int me) const noexcept { return members_[me].round; }
  int64_t sequence(int me) const noexcept { return members_[me].round - first_; }

 private:
  using MemberState = BasicMemberState<Sync>;
  template <class T>
  using Atomic = typename Sync::template Atomic<T>;
  enum AbortState : uint32_t { kHealthy = 0, kCancelled = 1, kReporting = 2, kReported = 3 };
  enum class Wake { kReady, kAborted, kDeadline, kRunDeadline, kDisagreement, kForked };

  // If members disagree and some have not arrived yet, the report waits this long for their slots.
  static constexpr int64_t kDiagnosisGraceNs = 1'000'000'000;
  static constexpr int64_t kFirstLogNs = 10'000'000'000;

  void free_all() noexcept;
  void heal() noexcept;

  void publish(int me) noexcept {
    MemberState& member = members_[me];
    const uint32_t round = ++member.round;
    member.arrived_ns = MemberState::kNotYet;
    Slot& slot = member.slots[round & 1];
    Sync::writing(slot);
    slot.digest = member.signatures[round & 1].digest;
    slot.cpu.store(Sync::cpu(), std::memory_order_relaxed);  // a hint, which may be stale
    slot.round.publish(round, policy_);
  }

  template <class Look, class Waits>
  Status await_slots(int me, int64_t timeout_ns, Look&& about_to_look, Waits&& waits) noexcept {
    const uint32_t round = members_[me].round;
    const uint64_t digest = members_[me].slots[round & 1].digest;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == me) continue;
      const Slot& theirs = members_[peer].slots[round & 1];
      if (!soon(me, peer, theirs.round, about_to_look)) {
        waits();
        DIST_TRY(await_slot(me, peer, timeout_ns));
      }
      Sync::reading(theirs);
      if (theirs.digest != digest) return disagree(me);
    }
    return kOk;
  }

  // A short first spin that does not read the clock; the steady path needs no more. If it returns false, the
  // caller continues with a spin that yields. It returns false early if both threads are on one CPU: the
  // sooner this one yields, the sooner the peer arrives.
  template <class Look>
  bool soon(int me, int peer, const Word& word, Look&& about_to_look) const noexcept {
    const uint32_t round = members_[me].round;
    const int looks = policy_.oversubscribed || !Sync::kSpins ? 1 : 64;
    for (int i = 0; i < looks; ++i) {
      // acquire: pairs with the release in publish(), of a slot or of `done`.
      about_to_look(peer);
      if (word.value.load(std::memory_order_acquire) == round) return true;
      Sync::pause();
      if (i == kLooksBesideAPeer && same_cpu(me, peer)) return false;
    }
    return false;
  }
  static constexpr int kLooksBesideAPeer = 8;
  bool same_cpu(int me, int peer) const noexcept {
    const uint32_t parity = members_[me].round & 1;
    return members_[me].slots[parity].cpu.load(std::memory_order_relaxed) ==
           members_[peer].slots[parity].cpu.load(std::memory_order_relaxed);
  }

  Status come(int me, int64_t timeout_ns, bool* out_last) noexcept;
  Status await_slot(int me, int peer, int64_t timeout_ns) noexcept;
  bool say_done(int me) noexcept;
  Status finish_oversubscribed(int me) noexcept;
  bool await_all_out(int me) noexcept;
  Wake wait(int me, int peer, Word& word, int64_t timeout_ns, int64_t* out_waited_ns) noexcept;
  void keep_apart_from(int me, int peer) noexcept {
    if (peer >= 0 && peer < members_[me].apart.below) {
      keep_apart(me, members_[peer].slots[members_[me].round & 1].cpu.load(std::memory_order_relaxed));
    }
  }
  void find_room(int me) noexcept;
  Status woken(int me, Wake wake, int64_t waited_ns) noexcept;
  bool disagreement(int me) const noexcept;
  Status disagree(int me) noexcept;
  void gather(uint32_t round, const Signature** signatures, const ErrorRecord** failures) const noexcept;
  Status abort(int me, Trouble trouble, int64_t waited_ns) noexcept;
  Status give_up(int me) noexcept;
  Status turned_away() noexcept;
  template <class Explain>
  bool await_report(Explain&& explain) noexcept;
  void write_report(uint32_t round, Trouble trouble, int64_t waited_ns) noexcept;
  void wake_all() noexcept;
  void log_waiting(int me, int peer, int64_t waited_ns) const noexcept;
  void mark_left(int me, uint32_t run) noexcept;

  Memory& memory_;
  const int size_;
  const int32_t number_;
  const Naming naming_;
  int32_t* local_ranks_ = nullptr;
  WaitGraph* const wait_graph_;
  Counted* const keeper_;
  const WaitPolicy policy_;
  const Host host_;
  const int64_t timeout_ns_;
  MemberState* members_ = nullptr;
  EagerPayload* eager_ = nullptr;  // two for each member; NULL if oversubscribed
  // A run without a deadline does not write this line, so members keep their copies of it.
  alignas(kApart) Atomic<uint32_t> abort_state_{kHealthy};
  uint32_t failures_ = 0;  // failed runs
  RunDeadline deadline_;   // of the current run
  // Every run writes this line when it begins.
  alignas(kApart) Atomic<uint32_t> run_{0};                   // runs so far
  uint32_t first_ = 0;                                        // rounds before this run
  alignas(kApart) BasicOversubscribedBarrier<Sync> barrier_;  // used if oversubscribed
  alignas(kApart) Atomic<uint32_t> asleep_{0};  // number of members that sleep until others arrive
  alignas(kApart) Word progress_;               // of asynchronous and planned work
  Atomic<int> holders_{0};
  Atomic<bool> watched_{false};  // there is such work: a member that leaves wakes its waiters
  Atomic<bool> has_reason_{false};
  char reason_[kReasonBytes] = "";  // given to cancel()
  ErrorRecord report_;
};

using Group = BasicGroup<OsSync>;
extern template class BasicGroup<OsSync>;  // group.cpp

}  // namespace dist
