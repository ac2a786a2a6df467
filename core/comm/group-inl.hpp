// SPDX-License-Identifier: Apache-2.0
// The less frequent parts of Group. Sleeping is implemented here, failures and reports in
// group_trouble-inl.hpp. group.cpp instantiates them for the machine's atomics, tests/model for its own.
#pragma once

#include <algorithm>
#include <new>

#include "core/comm/group.hpp"
#include "core/comm/group_trouble-inl.hpp"  // IWYU pragma: export

namespace dist {

// How the members of a group of this size wait.
inline WaitPolicy policy_for(int size, WaitPolicy policy) noexcept {
  policy.oversubscribed = policy.oversubscribed || size > kMostBySlots;
  return policy;
}

template <class Sync>
BasicGroup<Sync>::BasicGroup(Memory& memory, int size, const WaitPolicy& policy, const Host& host,
                             int64_t timeout_ns, const GroupMembers& members)
    : memory_(memory),
      size_(size),
      number_(members.number),
      naming_(members.naming),
      wait_graph_(members.wait_graph),
      keeper_(members.keeper),
      policy_(policy_for(size, policy)),
      host_(host),
      timeout_ns_(timeout_ns) {
  const auto n = static_cast<std::size_t>(size);
  const auto make = [&]<class T>(T*& array, std::size_t length) {
    array = static_cast<T*>(memory_.try_allocate(length * sizeof(T), alignof(T)));
    return array != nullptr;
  };
  bool made = make(members_, n);
  if (made && members.local_ranks != nullptr) made = make(local_ranks_, n);
  // The payloads are not initialized: most groups never use them, and untouched pages occupy no memory.
  if (made && !policy_.oversubscribed) made = make(eager_, 2 * n);
  if (!made) {
    free_all();
    throw std::bad_alloc();
  }
  if (local_ranks_ != nullptr) std::copy_n(members.local_ranks, n, local_ranks_);
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
  free(local_ranks_, n);
  free(eager_, 2 * n);
}

template <class Sync>
int BasicGroup<Sync>::rank(int local_rank) const noexcept {
  if (local_ranks_ == nullptr) return local_rank >= 0 && local_rank < size_ ? local_rank : -1;
  const int32_t* at = std::lower_bound(local_ranks_, local_ranks_ + size_, local_rank);
  return at != local_ranks_ + size_ && *at == local_rank ? static_cast<int>(at - local_ranks_) : -1;
}

// Ends the abort state that the last run has left behind.
template <class Sync>
[[gnu::noinline, gnu::cold]] void BasicGroup<Sync>::heal() noexcept {
  // The members may have stopped at different rounds. All continue with a number that no slot contains.
  uint32_t latest = members_[0].round;
  for (int i = 1; i < size_; ++i) {
    if (static_cast<int32_t>(members_[i].round - latest) > 0) latest = members_[i].round;
  }
  for (int i = 0; i < size_; ++i) members_[i].round = latest + 2;
  barrier_.clear();
  ++failures_;
  // relaxed: no member is inside, as begin_run() explains.
  has_reason_.store(false, std::memory_order_relaxed);
  abort_state_.store(kHealthy, std::memory_order_release);
}

template <class Sync>
void BasicGroup<Sync>::keep_apart(int me, int cpu) noexcept {
  MemberState& member = members_[me];
  if (member.apart.below == 0 || policy_.oversubscribed) return;
  if (member.beside.found(cpu == Sync::cpu(), [] { return Sync::now_ns(); })) find_room(me);
}

// Looks for a CPU that no member uses and moves this member there. Peers' CPUs are read from their slots, as
// of their latest arrivals.
template <class Sync>
[[gnu::noinline, gnu::cold]] void BasicGroup<Sync>::find_room(int me) noexcept {
  BasicApart<Sync>& apart = members_[me].apart;
  const uint32_t parity = members_[me].round & 1;
  CpuSet taken;
  taken.add(Sync::cpu());
  for (int peer = 0; peer < size_; ++peer)
    taken.add(members_[peer].slots[parity].cpu.load(std::memory_order_relaxed));
  CpuSet allowed = Sync::allowed_cpus();
  if (apart.within != nullptr) allowed.keep(*apart.within);
  const CpuSet room = room_for(allowed, taken);
  if (room.count() == 0) return;
  // relaxed: statistics that only this member writes.
  const auto count = [](Atomic<uint32_t>& times) {
    times.store(times.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  };
  count(apart.met);
  if (apart.moves && Sync::move_to(room)) count(apart.moved);
}

// Waits, in an oversubscribed group, until all members have arrived. The last one compares all slots.
template <class Sync>
Status BasicGroup<Sync>::come(int me, int64_t timeout_ns, bool* out_last) noexcept {
  const uint32_t round = members_[me].round;
  const auto how = barrier_.come(round, members_[me].slots[round & 1].digest, size_);
  *out_last = how == BasicOversubscribedBarrier<Sync>::Come::kLast;
  if (how == BasicOversubscribedBarrier<Sync>::Come::kEarly) {
    int64_t waited_ns = 0;
    const Wake wake = wait(me, -1, barrier_.released(), timeout_ns, &waited_ns);
    return woken(me, wake, waited_ns);
  }
  return *out_last && !disagreement(me) ? kOk : disagree(me);
}

// Whether a peer has arrived at this round with another digest.
template <class Sync>
bool BasicGroup<Sync>::disagreement(int me) const noexcept {
  const uint32_t round = members_[me].round;
  const uint64_t digest = members_[me].slots[round & 1].digest;
  for (int peer = 0; peer < size_; ++peer) {
    const Slot& theirs = members_[peer].slots[round & 1];
    // seq_cst: the sleeper's load in the race "asleep". As an acquire load it makes the slot visible.
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
Status BasicGroup<Sync>::woken(int me, Wake wake, int64_t waited_ns) noexcept {
  switch (wake) {
    case Wake::kReady: return kOk;
    case Wake::kAborted: return give_up(me);
    case Wake::kDeadline: return abort(me, Trouble::kDeadline, waited_ns);
    case Wake::kRunDeadline: return abort(me, Trouble::kRunDeadline, waited_ns);
    case Wake::kDisagreement: return disagree(me);
    case Wake::kForked: return no_peers();
  }
  return kOk;
}

// Waits until `word` holds the number of this round. `peer` is the member to whose slot `word` belongs, or -1
// if it is the barrier's word, in which case no slots have to be compared (oversubscribed_barrier.hpp).
template <class Sync>
typename BasicGroup<Sync>::Wake BasicGroup<Sync>::wait(int me, int peer, Word& word, int64_t timeout_ns,
                                                       int64_t* out_waited_ns) noexcept {
  const uint32_t round = members_[me].round;
  // seq_cst: the loads of the races "sleep" and "wake". As acquire loads they make the slot, or all slots,
  // visible.
  const auto ready = [&] { return word.value.load(std::memory_order_seq_cst) == round; };
  const auto over = [&] { return ready() || abort_state_.load(std::memory_order_seq_cst) != kHealthy; };
  const auto differs = [&] { return peer >= 0 && disagreement(me); };

  // The deadline counts from the member's first wait in the round, so waiting for several peers in turn does
  // not extend it.
  int64_t& start = members_[me].arrived_ns;
  if (start == MemberState::kNotYet) start = host_.now_ns();
  if (timeout_ns == 0) timeout_ns = timeout_ns_;
  int64_t next_log = kFirstLogNs;
  keep_apart_from(me, peer);
  Patience& patience = members_[me].patience;
  if (!spin_until<Sync>(patience.extend(policy_), over, peer >= 0 && same_cpu(me, peer))) {
    // The wait graph detects replicas that wait for each other in several groups; otherwise they would wait
    // until the deadline.
    const OneWait here(*this, me, round);
    const BlockedHere blocked(wait_graph_, local_rank(me), here);
    for (;;) {
      if (memory_.forked()) return Wake::kForked;
      // A member that arrived or left meanwhile may not have seen this member's slot.
      if (differs()) return Wake::kDisagreement;
      const int64_t now = host_.now_ns();
      *out_waited_ns = now - start;
      if (deadline_.at_ns != 0 && now >= deadline_.at_ns) return Wake::kRunDeadline;
      if (timeout_ns > 0 && *out_waited_ns >= timeout_ns) return Wake::kDeadline;
      if (*out_waited_ns >= next_log) {
        log_waiting(me, peer, *out_waited_ns);
        // The process may have been stopped for a long time; the next log line must lie in the future.
        while (next_log <= *out_waited_ns) next_log *= 2;
      }
      int64_t slice = next_log - *out_waited_ns;
      if (timeout_ns > 0) slice = std::min(slice, timeout_ns - *out_waited_ns);
      if (deadline_.at_ns != 0) slice = std::min(slice, deadline_.at_ns - now);
      // acquire keeps this load before the ones in over(), so a later change of the word ends the sleep.
      const uint32_t seen = word.value.load(std::memory_order_acquire);
      if (over()) break;
      // seq_cst: the race "asleep". release suffices for the subtraction, as for Word's sleepers.
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      word.sleep(seen, host_.slice_ns(slice), policy_, [&] { return over() || differs(); });
      asleep_.fetch_sub(1, std::memory_order_release);
      if (over()) break;
    }
    patience.slept(host_.now_ns() - start);
  }
  // If the peer has arrived, it was in time, even if another member's deadline has aborted the group
  // meanwhile.
  return ready() ? Wake::kReady : Wake::kAborted;
}

template <class Sync>
void BasicGroup<Sync>::log_waiting(int me, int peer, int64_t waited_ns) const noexcept {
  const uint32_t round = members_[me].round;
  const Signature& signature = members_[me].signatures[round & 1];
  for (int i = 0; peer < 0 && i < size_; ++i) {
    const Slot& theirs = members_[i].slots[round & 1];
    // Only the number is used. acquire costs nothing here.
    if (theirs.round.value.load(std::memory_order_acquire) != round) peer = i;
  }
  host_.log(DIST_LOG_WARNING, "%s %d is still waiting for %s %d in %s #%lld%s%s after %lld s", naming_.word(),
            name(me).number(), naming_.word(), name(std::max(peer, 0)).number(),
            collective_name(signature.collective), static_cast<long long>(sequence(me)),
            signature.tag[0] != '\0' ? ", tag " : "", signature.tag,
            static_cast<long long>(waited_ns / 1'000'000'000));
}

template <class Sync>
void BasicGroup<Sync>::await_done(int me, int peer) noexcept {
  const uint32_t round = members_[me].round;
  MemberState& other = members_[peer];
  const auto ready = [&] { return other.is_done(round); };
  keep_apart_from(me, peer);
  while (!spin_until<Sync>(members_[me].patience.extend(policy_), ready, same_cpu(me, peer))) {
    if (memory_.forked()) return;
    // acquire keeps this load before the one in ready(), so a later change of the word ends the sleep.
    const uint32_t seen = other.done.value.load(std::memory_order_acquire);
    if (ready()) return;
    other.done.sleep(seen, -1, policy_, ready);
  }
}

// Waits until the last member of an oversubscribed group has left. Returns false if the group is aborted, in
// which case a member that has given up is not counted.
template <class Sync>
bool BasicGroup<Sync>::await_all_out(int me) noexcept {
  const uint32_t round = members_[me].round;
  Word& word = barrier_.all_out();
  // seq_cst: the loads of the races "sleep" and "wake".
  const auto all_out = [&] { return word.value.load(std::memory_order_seq_cst) == round; };
  const auto over = [&] { return all_out() || abort_state_.load(std::memory_order_seq_cst) != kHealthy; };
  while (!spin_until<Sync>(policy_, over) && !memory_.forked()) {
    // acquire keeps this load before the ones in over(), so a later change of the word ends the sleep.
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    if (over()) break;
    word.sleep(seen, -1, policy_, over);
  }
  return all_out();
}

// Announces that the member is done with all buffers. Returns true if it is the last member of an
// oversubscribed group to do so.
template <class Sync>
bool BasicGroup<Sync>::say_done(int me) noexcept {
  const uint32_t round = members_[me].round;
  members_[me].done.publish(round, policy_);
  return policy_.oversubscribed && barrier_.go_out(round, size_, policy_);
}

template <class Sync>
Status BasicGroup<Sync>::finish_oversubscribed(int me) noexcept {
  if (!say_done(me) && !await_all_out(me)) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != me && !soon(me, peer, members_[peer].done, [](int) {})) await_done(me, peer);
    }
  }
  return aborted() ? give_up(me) : kOk;  // see finish() for why this load suffices
}

template <class Sync>
void BasicGroup<Sync>::leave(int me, uint32_t run, Status returned, const ErrorRecord& failure) noexcept {
  MemberState& member = members_[me];
  if (!returned.ok()) {
    Sync::writing(member.failure);
    member.failure = failure;
  }
  member.departure.returned = returned.code();
  mark_left(me, run);
  if (aborted()) return;
  outgoing_signature(me) = member.departure;
  publish(me);
  if (policy_.oversubscribed) {
    const auto how = barrier_.come(member.round, member.departure.digest, size_);
    if (how != BasicOversubscribedBarrier<Sync>::Come::kForSomethingElse) return;
    // A spinning member compares slots again before it sleeps, and then sees this one. A sleeping member must
    // be woken. seq_cst: the race "asleep"; publish() has stored the slot.
  } else if (asleep_.load(std::memory_order_seq_cst) == 0 || !disagreement(me)) {
    return;
  }
  if (claim()) write_report(member.round, Trouble::kDisagreement, 0);
}

// Wakes threads that wait for work in which this member has not taken part. The order is that of Word.
template <class Sync>
void BasicGroup<Sync>::mark_left(int me, uint32_t run) noexcept {
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

}  // namespace dist
