// SPDX-License-Identifier: Apache-2.0
// How the rounds of a group fail: detecting a failure, writing the single report, and how members leave.
#pragma once

#include "core/base/on_stack.hpp"
#include "core/comm/group.hpp"

namespace dist {

// The failure of a child that was forked inside a host function called from a round. It has no peers to wait
// for.
inline Status no_peers() noexcept {
  return failed_precondition(
      "this process is a forked child of the strategy's process, and threads do not survive fork(). Create a "
      "strategy in the child.");
}

// Called when a member has made a different call. The report names the culprit, so this waits briefly for the
// slots that are needed to find it.
template <class Sync>
Status BasicGroup<Sync>::disagree(int me) noexcept {
  const uint32_t round = members_[me].round;
  auto* const signatures = DIST_ON_STACK(const Signature*, size_);
  auto* const failures = DIST_ON_STACK(const ErrorRecord*, size_);
  const int64_t start = Sync::now_ns();
  for (;;) {
    // acquire suffices: this load only ends the loop, and give_up() loads abort_state_ again.
    if (abort_state_.load(std::memory_order_acquire) != kHealthy) return give_up(me);
    gather(round, signatures, failures);
    Evidence evidence;
    evidence.signatures = {signatures, static_cast<std::size_t>(size_)};
    evidence.failures = {failures, static_cast<std::size_t>(size_)};
    if (decidable(evidence) || Sync::now_ns() - start >= kDiagnosisGraceNs) break;
    Sync::park(abort_state_, kHealthy, 200'000);
  }
  return abort(me, Trouble::kDisagreement, 0);
}

// Collects the signatures of the members that have arrived at `round`, and the failures of members that have
// left with one. They do not change until this member continues.
template <class Sync>
void BasicGroup<Sync>::gather(uint32_t round, const Signature** signatures,
                              const ErrorRecord** failures) const noexcept {
  for (int i = 0; i < size_; ++i) {
    const MemberState& member = members_[i];
    const Slot& slot = member.slots[round & 1];
    // acquire: pairs with the release in publish(); the signature and the failure were written before.
    const bool here = slot.round.value.load(std::memory_order_acquire) == round;
    if (here) Sync::reading(member.signatures[round & 1]);
    signatures[i] = here ? &member.signatures[round & 1] : nullptr;
    const bool failed =
        here && signatures[i]->collective == Collective::kReturn && signatures[i]->returned != DIST_OK;
    if (failed) Sync::reading(member.failure);
    failures[i] = failed ? &member.failure : nullptr;
  }
}

template <class Sync>
void BasicGroup<Sync>::write_report(uint32_t round, Trouble trouble, int64_t waited_ns) noexcept {
  auto* const signatures = DIST_ON_STACK(const Signature*, size_);
  auto* const failures = DIST_ON_STACK(const ErrorRecord*, size_);
  gather(round, signatures, failures);
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, static_cast<std::size_t>(size_)};
  evidence.failures = {failures, static_cast<std::size_t>(size_)};
  evidence.local_ranks = local_ranks_;
  evidence.group = number_;
  evidence.naming = naming_;
  evidence.sequence = round - first_;
  evidence.waited_ns = waited_ns;
  evidence.given_ns = deadline_.given_ns;
  evidence.reason = cancel_reason();
  post(diagnosis(evidence));
}

template <class Sync>
void BasicGroup<Sync>::post(const ErrorRecord& report) noexcept {
  report_ = report;
  Sync::writing(report_);
  // seq_cst: the races "touch" and "wake". As a release store it publishes the report.
  abort_state_.store(kReported, std::memory_order_seq_cst);
  wake_all();
}

template <class Sync>
bool BasicGroup<Sync>::claim() noexcept {
  // seq_cst, here and below: claiming the report ends the rounds in the same step. That step is in one total
  // order with the loads of members that enter and of members that go to sleep.
  uint32_t healthy = kHealthy;
  return abort_state_.compare_exchange_strong(healthy, kReporting, std::memory_order_seq_cst);
}

template <class Sync>
void BasicGroup<Sync>::condemn(const ErrorRecord& why) noexcept {
  if (claim()) post(why);
}

template <class Sync>
Status BasicGroup<Sync>::abort(int me, Trouble trouble, int64_t waited_ns) noexcept {
  if (claim()) write_report(members_[me].round, trouble, waited_ns);
  return give_up(me);
}

// Waits until the report is complete. If cancel() ended the rounds, the first member to get here writes the
// report with explain(). Returns false in a forked child, which has no thread that would write the report.
template <class Sync>
template <class Explain>
bool BasicGroup<Sync>::await_report(Explain&& explain) noexcept {
  for (;;) {
    // seq_cst: this load precedes give_up()'s loads of `entered` (the race "touch"). As an acquire load it
    // makes the report visible.
    uint32_t seen = abort_state_.load(std::memory_order_seq_cst);
    if (seen == kReported) return true;
    // While cancel() copies its reason, abort_state_ is kReporting, so no member writes the report too early.
    if (seen == kCancelled &&
        abort_state_.compare_exchange_strong(seen, kReporting, std::memory_order_seq_cst)) {
      explain();
    } else {
      if (memory_.forked()) return false;
      Sync::yield();
    }
  }
}

// Leaves a round of an aborted group: waits for the report (or writes it), announces that this member no
// longer touches peers' buffers, and waits until no peer touches this member's.
template <class Sync>
Status BasicGroup<Sync>::give_up(int me) noexcept {
  const uint32_t round = members_[me].round;
  if (!await_report([&] { write_report(round, Trouble::kCancelled, 0); })) return no_peers();
  members_[me].done.publish(round, policy_);
  if (policy_.asymmetric) Sync::rare_barrier();
  for (int peer = 0; peer < size_; ++peer) {
    const MemberState& other = members_[peer];
    while (other.entered.load(std::memory_order_seq_cst) == round && !other.is_done(round)) {
      if (memory_.forked()) return no_peers();
      Sync::yield();
    }
  }
  Sync::reading(report_);
  return fail(report_);
}

// Called by a member that reaches its next round when the group is already aborted. It has published nothing.
template <class Sync>
Status BasicGroup<Sync>::turned_away() noexcept {
  const bool there = await_report([&] {
    Evidence nothing;
    nothing.trouble = Trouble::kCancelled;
    nothing.reason = cancel_reason();
    post(diagnosis(nothing));
  });
  if (!there) return no_peers();
  Sync::reading(report_);
  return fail(report_);
}

// Wakes all waiting members. A thread that has registered as a sleeper but does not sleep yet would miss a
// single wake-up, so this repeats until no sleeper is left.
template <class Sync>
void BasicGroup<Sync>::wake_all() noexcept {
  const auto drain = [](Word& word) {
    // seq_cst: the race "wake"; this load follows the change of abort_state_. A thread that registers as a
    // sleeper later sees that change.
    while (word.sleepers.load(std::memory_order_seq_cst) != 0) {
      Sync::unpark_all(word.value);
      Sync::yield();
    }
  };
  if (policy_.asymmetric) Sync::rare_barrier();
  for (int i = 0; i < size_; ++i) {
    drain(members_[i].slots[0].round);
    drain(members_[i].slots[1].round);
  }
  drain(barrier_.released());
  drain(barrier_.all_out());
  drain(progress_);
}

template <class Sync>
Status BasicGroup<Sync>::check_run() noexcept {
  if (!aborted() && past_deadline()) {
    Evidence nothing;
    nothing.trouble = Trouble::kRunDeadline;
    nothing.naming = naming_;
    nothing.given_ns = deadline_.given_ns;
    condemn(diagnosis(nothing));
  }
  return aborted() ? turned_away() : kOk;
}

template <class Sync>
void BasicGroup<Sync>::cancel() noexcept {
  uint32_t healthy = kHealthy;
  if (abort_state_.compare_exchange_strong(healthy, kCancelled, std::memory_order_seq_cst)) wake_all();
}

// No run may begin between the two stores to abort_state_.
template <class Sync>
void BasicGroup<Sync>::cancel(const char* reason) noexcept {
  if (!claim()) return;
  copy_text(reason_, reason);
  has_reason_.store(true, std::memory_order_release);
  abort_state_.store(kCancelled, std::memory_order_seq_cst);
  wake_all();
}

}  // namespace dist
