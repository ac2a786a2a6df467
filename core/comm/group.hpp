// SPDX-License-Identifier: Apache-2.0
// Group: R members that meet in collectives and cannot hang.
//
// Each collective is a meeting, numbered 1, 2, ... On arrival a member publishes its line: the meeting's
// number, the signature of what it came for, and its buffers (or, where they are small, their bytes). It then
// waits for every peer's line and compares signatures. A member that leaves the run publishes a line too, so
// that leaving is one more way to disagree.
//
// Lines are used alternately by the meeting's parity. A member that writes its line of meeting s + 2 has seen
// all arrive at s + 1, and who arrived there no longer reads lines of s: two are enough. A member that gave
// up at s + 1 has not seen that, so it writes no line any more: open().
//
// Where peers touch each other's buffers:
//
//     open()     the group is healthy: this member's line is no longer read, and may be written
//     arrive()   all have come and agree                          (waits; deadline, poison)
//     enter()    nobody has given up since: peers' buffers, and their lists of them, may be touched
//     ...        kernels; poisoned() is looked at between blocks
//     finish()   all are done with all buffers                    (waits for peers in kernels only)
//
// Trouble of any kind poisons the group until the next run: one member writes the report, all return it. Who
// gives up says so (poison), then waits until no peer that entered is still at work: enter() and give-up each
// make their own store visible before they look at the other's, so one of the two sees the other.
//
// Two ways to wait. With a CPU for every member, each waits for each peer's line: one cache line travels one
// way. Crowded, that would cost R wake-ups for each member: there members count themselves in, and the last
// one wakes all, or does the whole work alone first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/status.hpp"
#include "core/comm/statement.hpp"
#include "core/comm/word.hpp"
#include "dist/types.h"

namespace dist {

// Two cache lines: most CPUs fetch them in pairs.
inline constexpr std::size_t kApart = 128;

// One member's side of a meeting, as peers see it.
struct alignas(kApart) Line {
  static constexpr std::size_t kInlineBytes = 96;

  // Buffers of a collective. One tensor: its data. Several: the caller's arrays.
  struct Buffers {
    const void* in;
    void* out;
    const dist_tensor* ins;
    const dist_tensor* outs;
  };

  Word meeting;  // published last
  uint64_t signature = 0;
  std::atomic<int> cpu{-1};     // where the member was when it published: a hint for those who wait for it
  const void* extra = nullptr;  // all_reduce, broadcast: the first output; merge_call: the arguments
  union {
    Buffers buffers;
    std::byte bytes[kInlineBytes];
  };

  Line() noexcept : buffers{} {}
};
static_assert(sizeof(Line) == kApart, "a line is one pair of cache lines");

class Group {
 public:
  // Throws std::bad_alloc.
  Group(Memory& memory, int size, const WaitPolicy& policy, const Host& host, int64_t timeout_ns);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const noexcept { return size_; }
  bool crowded() const noexcept { return policy_.crowded; }
  const WaitPolicy& policy() const noexcept { return policy_; }
  // How many of the members can run side by side.
  int lanes() const noexcept { return policy_.lanes; }

  // Before a run, with no member inside: a clean group. `deadline_ns` of the host's clock, 0: none.
  void begin_run(int64_t deadline_ns) noexcept;

  // ---- A member's side of its next meeting ----

  // Before the line is written; the report where the group is poisoned.
  Status open() noexcept { return poisoned() ? turned_away() : kOk; }

  // The statement and the line to fill for it.
  Statement& draft(int me) noexcept {
    Member& member = members_[me];
    return member.statements[(member.meeting + 1) & 1] = Statement{};
  }
  Line& outgoing(int me) noexcept {
    Member& member = members_[me];
    return member.lines[(member.meeting + 1) & 1];
  }

  // Publishes the line and waits until all have come with equal statements. timeout_ns: 0 the group's, < 0
  // none.
  Status arrive(int me, int64_t timeout_ns) noexcept {
    if (poisoned()) return turned_away();
    publish(me);
    if (!policy_.crowded) return await_lines(me, timeout_ns);
    if (!count_in()) return await_release(me, timeout_ns);
    DIST_TRY(check_lines(me));
    released_.publish(members_[me].meeting, policy_);
    return kOk;
  }

  // For a crowded group, instead of arrive(), enter(), work, finish(): the last member to come does `work`
  // for all. It returns NULL, or why they must not go on.
  template <class Work>
  Status arrive_and_work_alone(int me, int64_t timeout_ns, Work&& work) noexcept {
    if (poisoned()) return turned_away();
    publish(me);
    if (!count_in()) return await_release(me, timeout_ns);
    DIST_TRY(check_lines(me));
    if (!enter(me)) return give_up(me);
    if (const ErrorRecord* why = std::forward<Work>(work)()) return refuse(me, *why);
    members_[me].done.publish(members_[me].meeting, policy_);
    released_.publish(members_[me].meeting, policy_);
    return kOk;
  }

  // A peer's line, or one's own, of the meeting that the member is in.
  const Line& line(int me, int peer) const noexcept { return members_[peer].lines[members_[me].meeting & 1]; }

  // False: someone has given up; buffers of peers must not be touched. finish() follows in either case.
  bool enter(int me) noexcept {
    Member& member = members_[me];
    if (policy_.asymmetric) {
      member.entered.store(member.meeting, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      member.entered.store(member.meeting, std::memory_order_seq_cst);
    }
    return poison_.load(std::memory_order_seq_cst) == kHealthy;
  }

  // Says that this member is done and waits until all are.
  Status finish(int me) noexcept;
  // The same without waiting for the others, where nobody else touches this member's buffers.
  void finish_without_waiting(int me) noexcept { members_[me].done.publish(members_[me].meeting, policy_); }
  // Waits until one peer has said that it is done.
  void await_done(int me, int peer) noexcept;

  bool poisoned() const noexcept { return poison_.load(std::memory_order_acquire) != kHealthy; }

  // Blocks 0, 1, 2, ... of one part of the work, which any member may take. Part k is armed by member k,
  // before it arrives.
  void arm_tickets(int me) noexcept {
    Member& member = members_[me];
    member.tickets[(member.meeting + 1) & 1].next.store(0, std::memory_order_relaxed);
  }
  std::size_t take_ticket(int me, int part) noexcept {
    return members_[part].tickets[members_[me].meeting & 1].next.fetch_add(1, std::memory_order_relaxed);
  }

  // All have come and agree, but this member sees that they must not go on: `why` becomes everyone's report.
  Status refuse(int me, const ErrorRecord& why) noexcept {
    condemn(why);
    return give_up(me);
  }

  // The member's thread is the library's own, and may be moved between CPUs.
  void set_movable(int me) noexcept { members_[me].movable = true; }
  // The member shares a CPU with one that it waits for, which is on `cpu`, though there is a CPU for each: it
  // moves. The system's balancer would see to it, but takes milliseconds; in a virtual machine, where an idle
  // CPU can look taken, a woken thread often lands beside its waker.
  void keep_apart(int me, int cpu) noexcept;

  // The member has left its function; `failure` says why where `returned` is not OK. Peers that wait for it,
  // or will, get a report at once.
  void leave(int me, Status returned, const ErrorRecord& failure) noexcept;

  // Any thread: ends the run's meetings with this report, unless it has one already.
  void condemn(const ErrorRecord& why) noexcept;

  // Any thread: ends the run's meetings.
  void cancel() noexcept;

  // The report, where the group is poisoned and its report is complete; else NULL.
  const ErrorRecord* report() const noexcept {
    return poison_.load(std::memory_order_acquire) == kReported ? &report_ : nullptr;
  }
  // Whether cancel() ended the run's meetings.
  bool cancelled() const noexcept {
    const uint32_t poison = poison_.load(std::memory_order_acquire);
    return poison == kCancelled || (poison == kReported && report_.code == DIST_CANCELLED);
  }
  // The latest meeting of a member, and its number in the run; its own thread asks.
  uint32_t meeting(int me) const noexcept { return members_[me].meeting; }
  int64_t sequence(int me) const noexcept { return members_[me].meeting - first_; }

 private:
  enum Poison : uint32_t { kHealthy = 0, kCancelled = 1, kReporting = 2, kReported = 3 };
  static constexpr int64_t kNotYet = -1;
  enum class Wake { kReady, kPoisoned, kDeadline, kDisagreement };

  struct alignas(kApart) Ticket {
    std::atomic<std::size_t> next{0};
  };
  struct alignas(kApart) Member {
    Line lines[2];
    Ticket tickets[2];
    alignas(kApart) Word done;                         // the meeting whose buffers it has finished with
    alignas(kApart) std::atomic<uint32_t> entered{0};  // the meeting whose buffers it may be touching
    uint32_t meeting = 0;                              // its own; peers read lines
    bool movable = false;
    int beside = 0;                // times in a row that it found itself on a peer's CPU
    int64_t moved_ns = 0;          // when it last moved away
    int64_t arrived_ns = kNotYet;  // when it began to wait in earnest
    Statement statements[2];
    ErrorRecord failure;  // why it left, where it failed

    // Whether it has finished with the buffers of a meeting. It may be further: who gives up at the next
    // meeting does not wait until all have seen that it was done with this one.
    bool is_done(uint32_t at) const noexcept {
      return static_cast<int32_t>(done.value.load(std::memory_order_seq_cst) - at) >= 0;
    }
  };

  void publish(int me) noexcept {
    Member& member = members_[me];
    const uint32_t meeting = ++member.meeting;
    member.arrived_ns = kNotYet;
    Line& line = member.lines[meeting & 1];
    line.signature = member.statements[meeting & 1].signature;
    line.cpu.store(current_cpu(), std::memory_order_relaxed);
    line.meeting.publish(meeting, policy_);
  }

  Status await_lines(int me, int64_t timeout_ns) noexcept {
    const uint32_t meeting = members_[me].meeting;
    const uint64_t signature = members_[me].lines[meeting & 1].signature;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == me) continue;
      const Line& theirs = members_[peer].lines[meeting & 1];
      if (!soon(me, peer, theirs.meeting)) DIST_TRY(await_line(me, peer, timeout_ns));
      if (theirs.signature != signature) return disagree(me);
    }
    return kOk;
  }

  // A first, short look that knows no clock: all that the steady path needs. Longer ones begin to yield, and
  // so does this one where the system has put both on one CPU: the peer comes the sooner.
  bool soon(int me, int peer, const Word& word) const noexcept {
    const uint32_t meeting = members_[me].meeting;
    const int looks = policy_.crowded ? 1 : 64;
    for (int i = 0; i < looks; ++i) {
      if (word.value.load(std::memory_order_acquire) == meeting) return true;
      spin_pause();
      if (i == kLooksBesideAPeer && same_cpu(me, peer)) return false;
    }
    return false;
  }
  static constexpr int kLooksBesideAPeer = 8;
  bool same_cpu(int me, int peer) const noexcept {
    const uint32_t parity = members_[me].meeting & 1;
    return members_[me].lines[parity].cpu.load(std::memory_order_relaxed) ==
           members_[peer].lines[parity].cpu.load(std::memory_order_relaxed);
  }

  bool count_in() noexcept;
  Status check_lines(int me) noexcept;
  Status await_line(int me, int peer, int64_t timeout_ns) noexcept;
  Status await_release(int me, int64_t timeout_ns) noexcept;
  Wake wait(int me, int peer, Word& word, int64_t timeout_ns, int64_t* out_waited_ns) noexcept;
  void keep_apart_from(int me, int peer) noexcept {
    if (peer >= 0 && peer < me) {
      keep_apart(me, members_[peer].lines[members_[me].meeting & 1].cpu.load(std::memory_order_relaxed));
    }
  }
  Status woken(int me, Wake wake, int64_t waited_ns) noexcept;
  bool disagreement(int me) const noexcept;
  Status disagree(int me) noexcept;
  void gather(uint32_t meeting, const Statement** statements, const ErrorRecord** failures) const noexcept;
  Status poison(int me, Trouble trouble, int64_t waited_ns) noexcept;
  Status give_up(int me) noexcept;
  Status turned_away() noexcept;
  void write_report(uint32_t meeting, Trouble trouble, int64_t waited_ns) noexcept;
  void post(const ErrorRecord& report) noexcept;
  void wake_all() noexcept;
  void log_waiting(int me, int peer, int64_t waited_ns) const noexcept;

  Memory& memory_;
  const int size_;
  const WaitPolicy policy_;
  const Host host_;
  const int64_t timeout_ns_;
  Member* members_ = nullptr;
  // Written at most once a run.
  alignas(kApart) std::atomic<uint32_t> poison_{kHealthy};
  uint32_t first_ = 0;                                // meetings before this run
  int64_t deadline_ns_ = 0;                           // of this run
  alignas(kApart) std::atomic<uint32_t> arrived_{0};  // crowded: members at the present meeting
  alignas(kApart) std::atomic<uint32_t> asleep_{0};   // members that sleep until others arrive
  alignas(kApart) Word released_;                     // crowded: the latest meeting that came together
  ErrorRecord report_;
};

}  // namespace dist
