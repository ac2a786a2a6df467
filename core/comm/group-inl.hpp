// SPDX-License-Identifier: Apache-2.0
// The parts of Group that are needed less often: sleeping, failures, and reports. group.cpp instantiates them
// for the machine's atomics, tests/model for atomics of its own.
#pragma once

#include <algorithm>
#include <new>

#include "core/comm/group.hpp"

namespace dist {

// For a child that was forked inside a host's function which a round calls: it has no peers to wait for.
inline Status no_peers() noexcept {
  return failed_precondition(
      "this is a forked child of the strategy's process, and threads do not survive a fork");
}

template <class Sync>
BasicGroup<Sync>::BasicGroup(Memory& memory, int size, const WaitPolicy& policy, const Host& host,
                             int64_t timeout_ns, const Membership& membership)
    : memory_(memory),
      size_(size),
      number_(membership.number),
      naming_(membership.naming),
      wait_graph_(membership.wait_graph),
      keeper_(membership.keeper),
      policy_(policy),
      host_(host),
      timeout_ns_(timeout_ns) {
  const auto n = static_cast<std::size_t>(size);
  const auto make = [&]<class T>(T*& array, std::size_t length) {
    array = static_cast<T*>(memory_.try_allocate(length * sizeof(T), alignof(T)));
    return array != nullptr;
  };
  bool made = make(members_, n);
  if (made && membership.seats != nullptr) made = make(seats_, n);
  // The payloads are not written here: most groups never use them, and then their pages take no memory.
  if (made && !policy.oversubscribed) made = make(eager_, 2 * n);
  if (!made) {
    free_all();
    throw std::bad_alloc();
  }
  if (seats_ != nullptr) std::copy_n(membership.seats, n, seats_);
  for (std::size_t i = 0; i < n; ++i) new (&members_[i]) MemberState();
}

template <class Sync>
BasicGroup<Sync>::~BasicGroup() {
  free_all();
}

template <class Sync>
void BasicGroup<Sync>::free_all() noexcept {
  const auto n = static_cast<std::size_t>(size_);
  const auto free = [&]<class T>(T* array, std::size_t length) {
    memory_.free(array, length * sizeof(T), alignof(T));
  };
  free(members_, n);
  free(seats_, n);
  free(eager_, 2 * n);
}

template <class Sync>
int BasicGroup<Sync>::rank(int seat) const noexcept {
  if (seats_ == nullptr) return seat >= 0 && seat < size_ ? seat : -1;
  const int32_t* at = std::lower_bound(seats_, seats_ + size_, seat);
  return at != seats_ + size_ && *at == seat ? static_cast<int>(at - seats_) : -1;
}

template <class Sync>
void BasicGroup<Sync>::begin_run(const RunDeadline& deadline) noexcept {
  deadline_ = deadline;
  // acquire, relaxed and release suffice, as no member is inside. Members' fields became visible to this
  // thread with the end of the last run, and become visible to members with the start of the next. Only
  // cancel() may be called at any time, and it reads none of them.
  if (poison_.load(std::memory_order_acquire) != kHealthy) {
    // Members stopped at different rounds: all continue from a number that no slot holds.
    uint32_t latest = members_[0].round;
    for (int i = 1; i < size_; ++i) {
      if (static_cast<int32_t>(members_[i].round - latest) > 0) latest = members_[i].round;
    }
    for (int i = 0; i < size_; ++i) members_[i].round = latest + 2;
    arrived_.store(0, std::memory_order_relaxed);
    ++failures_;
    // relaxed: as members' fields.
    has_reason_.store(false, std::memory_order_relaxed);
    poison_.store(kHealthy, std::memory_order_release);
  }
  first_ = members_[0].round;
  // relaxed: it becomes visible to the members with the start of the run.
  run_.store(run_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

template <class Sync>
void BasicGroup<Sync>::keep_apart(int me, int cpu) noexcept {
  MemberState& member = members_[me];
  if (!member.movable || policy_.oversubscribed) return;
  if (cpu != Sync::cpu()) {
    member.beside = 0;
    return;
  }
  if (++member.beside < kBesideLimit) return;
  const int64_t now = Sync::now_ns();
  if (now - member.moved_ns < kMoveIntervalNs) return;
  member.beside = 0;
  member.moved_ns = now;
  Sync::leave_cpu();
}

template <class Sync>
bool BasicGroup<Sync>::count_in() noexcept {
  // acq_rel: each addition is ordered after those before it, so that the last member to come sees all slots.
  const uint32_t before = arrived_.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 != static_cast<uint32_t>(size_)) return false;
  // relaxed: nobody comes to the next round before `released_` is published, which is later.
  arrived_.store(0, std::memory_order_relaxed);
  return true;
}

template <class Sync>
Status BasicGroup<Sync>::check_slots(int me) noexcept {
  return disagreement(me) ? disagree(me) : kOk;
}

// Whether a peer has come to this round with another digest.
template <class Sync>
bool BasicGroup<Sync>::disagreement(int me) const noexcept {
  const uint32_t round = members_[me].round;
  const uint64_t digest = members_[me].slots[round & 1].digest;
  for (int peer = 0; peer < size_; ++peer) {
    const Slot& theirs = members_[peer].slots[round & 1];
    // seq_cst: the look of a sleeper in the race "asleep"; its acquire makes the slot visible.
    if (theirs.round.value.load(std::memory_order_seq_cst) != round) continue;
    Sync::reading(theirs);
    if (theirs.digest != digest) return true;
  }
  return false;
}

template <class Sync>
Status BasicGroup<Sync>::await_slot(int me, int peer, int64_t timeout_ns) noexcept {
  int64_t waited_ns = 0;
  Word& word = members_[peer].slots[members_[me].round & 1].round;
  const Wake wake = wait(me, peer, word, timeout_ns, &waited_ns);
  return woken(me, wake, waited_ns);
}

template <class Sync>
Status BasicGroup<Sync>::await_release(int me, int64_t timeout_ns) noexcept {
  // The last member to come compares all slots, and so does each member before it sleeps.
  int64_t waited_ns = 0;
  const Wake wake = wait(me, -1, released_, timeout_ns, &waited_ns);
  return woken(me, wake, waited_ns);
}

template <class Sync>
Status BasicGroup<Sync>::woken(int me, Wake wake, int64_t waited_ns) noexcept {
  switch (wake) {
    case Wake::kReady: return kOk;
    case Wake::kPoisoned: return give_up(me);
    case Wake::kDeadline: return poison(me, Trouble::kDeadline, waited_ns);
    case Wake::kRunDeadline: return poison(me, Trouble::kRunDeadline, waited_ns);
    case Wake::kDisagreement: return disagree(me);
    case Wake::kForked: return no_peers();
  }
  return kOk;
}

// Waits until `word` holds the number of this round. `peer`: the member whose slot `word` is in; -1: it is
// `released_`.
template <class Sync>
typename BasicGroup<Sync>::Wake BasicGroup<Sync>::wait(int me, int peer, Word& word, int64_t timeout_ns,
                                                       int64_t* out_waited_ns) noexcept {
  const uint32_t round = members_[me].round;
  // seq_cst: these are the looks of the races "sleep" and "wake". They are acquire loads too, which make the
  // slot, or all slots, visible.
  const auto ready = [&] { return word.value.load(std::memory_order_seq_cst) == round; };
  const auto over = [&] { return ready() || poison_.load(std::memory_order_seq_cst) != kHealthy; };

  // The deadline counts from the member's first wait of the round, so that waiting for several peers one
  // after another does not prolong it.
  int64_t& start = members_[me].arrived_ns;
  if (start == kNotYet) start = host_.now_ns();
  if (timeout_ns == 0) timeout_ns = timeout_ns_;
  int64_t next_log = kFirstLogNs;
  keep_apart_from(me, peer);
  if (!spin_until<Sync>(policy_, over, peer >= 0 && same_cpu(me, peer))) {
    // Without the wait graph, replicas that wait for each other in several groups would wait until the
    // deadline.
    const OneWait here(*this, me, round);
    const BlockedHere blocked(wait_graph_, seat(me), here);
    for (;;) {
      if (memory_.forked()) return Wake::kForked;
      // A member that came or left meanwhile may not have seen this member's slot.
      if (disagreement(me)) return Wake::kDisagreement;
      const int64_t now = host_.now_ns();
      *out_waited_ns = now - start;
      if (deadline_.at_ns != 0 && now >= deadline_.at_ns) return Wake::kRunDeadline;
      if (timeout_ns > 0 && *out_waited_ns >= timeout_ns) return Wake::kDeadline;
      if (*out_waited_ns >= next_log) {
        log_waiting(me, peer, *out_waited_ns);
        // The process may have been stopped for a long time: the next log line must lie ahead.
        while (next_log <= *out_waited_ns) next_log *= 2;
      }
      int64_t slice = next_log - *out_waited_ns;
      if (timeout_ns > 0) slice = std::min(slice, timeout_ns - *out_waited_ns);
      if (deadline_.at_ns != 0) slice = std::min(slice, deadline_.at_ns - now);
      // acquire keeps this load before the looks in over(), so that a later change of the word ends the
      // sleep.
      const uint32_t seen = word.value.load(std::memory_order_acquire);
      if (over()) break;
      // seq_cst: the race "asleep". For the subtraction release suffices, as for Word's sleepers.
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      word.sleep(seen, host_.slice_ns(slice), policy_, [&] { return over() || disagreement(me); });
      asleep_.fetch_sub(1, std::memory_order_release);
      if (over()) break;
    }
  }
  // A peer that has come is in time, even if another member's deadline has poisoned the group meanwhile.
  return ready() ? Wake::kReady : Wake::kPoisoned;
}

template <class Sync>
void BasicGroup<Sync>::log_waiting(int me, int peer, int64_t waited_ns) const noexcept {
  const uint32_t round = members_[me].round;
  const Signature& signature = members_[me].signatures[round & 1];
  for (int i = 0; peer < 0 && i < size_; ++i) {
    const Slot& theirs = members_[i].slots[round & 1];
    // acquire costs nothing here; only the number is used.
    if (theirs.round.value.load(std::memory_order_acquire) != round) peer = i;
  }
  host_.log(DIST_LOG_WARNING, "%s %d is still waiting for %s %d in %s #%lld%s%s after %lld s", naming_.word(),
            name(me).number(), naming_.word(), name(std::max(peer, 0)).number(),
            collective_name(signature.collective), static_cast<long long>(sequence(me)),
            signature.tag[0] != '\0' ? ", tag " : "", signature.tag,
            static_cast<long long>(waited_ns / 1'000'000'000));
}

// A member came for something else. The report names the culprit, so this waits a little for the slots that
// decide who it is.
template <class Sync>
Status BasicGroup<Sync>::disagree(int me) noexcept {
  const uint32_t round = members_[me].round;
  const Signature* signatures[DIST_MAX_REPLICAS];
  const ErrorRecord* failures[DIST_MAX_REPLICAS];
  const int64_t start = Sync::now_ns();
  for (;;) {
    // acquire suffices: this look only ends the loop, and give_up() looks again.
    if (poison_.load(std::memory_order_acquire) != kHealthy) return give_up(me);
    gather(round, signatures, failures);
    Evidence evidence;
    evidence.signatures = {signatures, static_cast<std::size_t>(size_)};
    evidence.failures = {failures, static_cast<std::size_t>(size_)};
    if (decidable(evidence) || Sync::now_ns() - start >= kVerdictGraceNs) break;
    Sync::park(poison_, kHealthy, 200'000);
  }
  return poison(me, Trouble::kDisagreement, 0);
}

// The signatures of the members that have arrived at `round`, and the failures of those that left with one.
// They do not change until this member goes on.
template <class Sync>
void BasicGroup<Sync>::gather(uint32_t round, const Signature** signatures,
                              const ErrorRecord** failures) const noexcept {
  for (int i = 0; i < size_; ++i) {
    const MemberState& member = members_[i];
    const Slot& slot = member.slots[round & 1];
    // acquire: pairs with the release in publish(); the signature and the failure were written before that.
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
  const Signature* signatures[DIST_MAX_REPLICAS];
  const ErrorRecord* failures[DIST_MAX_REPLICAS];
  gather(round, signatures, failures);
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, static_cast<std::size_t>(size_)};
  evidence.failures = {failures, static_cast<std::size_t>(size_)};
  evidence.seats = seats_;
  evidence.group = number_;
  evidence.naming = naming_;
  evidence.sequence = round - first_;
  evidence.waited_ns = waited_ns;
  evidence.given_ns = deadline_.given_ns;
  evidence.reason = cancel_reason();
  post(verdict(evidence));
}

template <class Sync>
void BasicGroup<Sync>::post(const ErrorRecord& report) noexcept {
  report_ = report;
  Sync::writing(report_);
  // seq_cst: the races "touch" and "wake". As a release store it publishes the report.
  poison_.store(kReported, std::memory_order_seq_cst);
  wake_all();
}

template <class Sync>
bool BasicGroup<Sync>::claim() noexcept {
  // seq_cst, here and below: whoever takes the report upon itself ends the rounds in the same step. That step
  // is in one total order with the looks of members that enter and of members that go to sleep.
  uint32_t healthy = kHealthy;
  return poison_.compare_exchange_strong(healthy, kReporting, std::memory_order_seq_cst);
}

template <class Sync>
void BasicGroup<Sync>::condemn(const ErrorRecord& why) noexcept {
  if (claim()) post(why);
}

template <class Sync>
Status BasicGroup<Sync>::poison(int me, Trouble trouble, int64_t waited_ns) noexcept {
  if (claim()) write_report(members_[me].round, trouble, waited_ns);
  return give_up(me);
}

// Waits until there is a report. If cancel() ended the rounds, the first member to come writes the report, by
// explain(). False: this is a forked child, in which nobody would write it.
template <class Sync>
template <class Explain>
bool BasicGroup<Sync>::await_report(Explain&& explain) noexcept {
  for (;;) {
    // seq_cst: this comes before give_up()'s looks at `entered` (the race "touch"). As an acquire load it
    // makes the report visible.
    uint32_t seen = poison_.load(std::memory_order_seq_cst);
    if (seen == kReported) return true;
    // While cancel() copies its reason, poison_ is kReporting, so that nobody writes the report before that.
    if (seen == kCancelled && poison_.compare_exchange_strong(seen, kReporting, std::memory_order_seq_cst)) {
      explain();
    } else {
      if (memory_.forked()) return false;
      Sync::yield();
    }
  }
}

// Leaves a round of a poisoned group: waits for the report (or writes it), says that this member no longer
// touches peers' buffers, and waits until no peer touches this member's.
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

// For a member that comes to its next round when the group is already poisoned: it has published nothing.
template <class Sync>
Status BasicGroup<Sync>::turned_away() noexcept {
  const bool there = await_report([&] {
    Evidence nothing;
    nothing.trouble = Trouble::kCancelled;
    nothing.reason = cancel_reason();
    post(verdict(nothing));
  });
  if (!there) return no_peers();
  Sync::reading(report_);
  return fail(report_);
}

// Wakes all that wait for an arrival. A thread that has counted itself as a sleeper, but does not sleep yet,
// would miss a single wake-up. So this is repeated until no sleeper is left.
template <class Sync>
void BasicGroup<Sync>::wake_all() noexcept {
  const auto drain = [](Word& word) {
    // seq_cst: the race "wake"; this look comes after the change of poison_. A thread that counts itself as a
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
  drain(released_);
  drain(progress_);
}

template <class Sync>
void BasicGroup<Sync>::await_done(int me, int peer) noexcept {
  const uint32_t round = members_[me].round;
  MemberState& other = members_[peer];
  const auto ready = [&] { return other.is_done(round); };
  keep_apart_from(me, peer);
  while (!spin_until<Sync>(policy_, ready, same_cpu(me, peer))) {
    if (memory_.forked()) return;
    // acquire keeps this load before ready()'s look, as in wait().
    const uint32_t seen = other.done.value.load(std::memory_order_acquire);
    if (ready()) return;
    other.done.sleep(seen, -1, policy_, ready);
  }
}

template <class Sync>
Status BasicGroup<Sync>::finish(int me) noexcept {
  const uint32_t round = members_[me].round;
  members_[me].done.publish(round, policy_);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == me) continue;
    if (!soon(me, peer, members_[peer].done, [](int) {})) await_done(me, peer);
  }
  // A member that gave up saw the poison before it published `done`, with release. So a member that has seen
  // this `done` sees the poison too.
  return poisoned() ? give_up(me) : kOk;
}

template <class Sync>
void BasicGroup<Sync>::leave(int me, Status returned, const ErrorRecord& failure) noexcept {
  MemberState& member = members_[me];
  if (!returned.ok()) {
    Sync::writing(member.failure);
    member.failure = failure;
  }
  member.departure.returned = returned.code();
  mark_left(me);
  if (poisoned()) return;
  outgoing_signature(me) = member.departure;
  publish(me);
  if (policy_.oversubscribed) count_in();
  // A member that spins compares slots again before it sleeps, and then sees this one. A member that sleeps
  // must be woken. seq_cst: the race "asleep"; publish() has stored the slot.
  if (asleep_.load(std::memory_order_seq_cst) == 0 || !disagreement(me)) return;
  if (claim()) write_report(member.round, Trouble::kDisagreement, 0);
}

// For threads that wait for work in which this member has not taken part. The order is as in Word.
template <class Sync>
void BasicGroup<Sync>::mark_left(int me) noexcept {
  const uint32_t run = run_.load(std::memory_order_relaxed);
  if (policy_.asymmetric) {
    members_[me].left.store(run, std::memory_order_release);
    Sync::compiler_barrier();
    if (!watched_.load(std::memory_order_relaxed)) return;
  } else {
    members_[me].left.store(run, std::memory_order_seq_cst);
    if (!watched_.load(std::memory_order_seq_cst)) return;
  }
  progress_.advance();
}

template <class Sync>
Trouble BasicGroup<Sync>::overdue(int64_t start_ns, int64_t timeout_ns,
                                  int64_t* out_waited_ns) const noexcept {
  const int64_t now = host_.now_ns();
  if (timeout_ns == 0) timeout_ns = timeout_ns_;
  *out_waited_ns = now - start_ns;
  if (deadline_.at_ns != 0 && now >= deadline_.at_ns) return Trouble::kRunDeadline;
  return timeout_ns > 0 && *out_waited_ns >= timeout_ns ? Trouble::kDeadline : Trouble::kNone;
}

template <class Sync>
Status BasicGroup<Sync>::check_run() noexcept {
  if (!poisoned() && past_deadline()) {
    Evidence nothing;
    nothing.trouble = Trouble::kRunDeadline;
    nothing.given_ns = deadline_.given_ns;
    condemn(verdict(nothing));
  }
  return poisoned() ? turned_away() : kOk;
}

template <class Sync>
void BasicGroup<Sync>::cancel() noexcept {
  uint32_t healthy = kHealthy;
  if (poison_.compare_exchange_strong(healthy, kCancelled, std::memory_order_seq_cst)) wake_all();
}

// No run may begin between its two stores to poison_.
template <class Sync>
void BasicGroup<Sync>::cancel(const char* reason) noexcept {
  if (!claim()) return;
  copy_text(reason_, reason);
  has_reason_.store(true, std::memory_order_release);
  poison_.store(kCancelled, std::memory_order_seq_cst);
  wake_all();
}

}  // namespace dist
