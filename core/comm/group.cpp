// SPDX-License-Identifier: Apache-2.0
#include "core/comm/group.hpp"

#include <algorithm>
#include <new>

namespace dist {
namespace {

// Where members disagree but not all have come, the report waits this long for the others' lines.
constexpr int64_t kVerdictGraceNs = 1'000'000'000;
constexpr int64_t kFirstLogNs = 10'000'000'000;

// Found beside a peer this often, a member moves, but not more often than this.
constexpr int kBesideLimit = 3;
constexpr int64_t kMoveIntervalNs = 500'000;

}  // namespace

Group::Group(Memory& memory, int size, const WaitPolicy& policy, const Host& host, int64_t timeout_ns)
    : memory_(memory), size_(size), policy_(policy), host_(host), timeout_ns_(timeout_ns) {
  const auto n = static_cast<std::size_t>(size);
  members_ = static_cast<Member*>(memory_.allocate(n * sizeof(Member), alignof(Member)));
  for (std::size_t i = 0; i < n; ++i) new (&members_[i]) Member();
}

Group::~Group() {
  memory_.deallocate(members_, static_cast<std::size_t>(size_) * sizeof(Member), alignof(Member));
}

void Group::begin_run(int64_t deadline_ns) noexcept {
  deadline_ns_ = deadline_ns;
  if (poison_.load(std::memory_order_acquire) != kHealthy) {
    // Members stopped at different meetings: go on from a number that no line holds.
    uint32_t latest = members_[0].meeting;
    for (int i = 1; i < size_; ++i) {
      if (static_cast<int32_t>(members_[i].meeting - latest) > 0) latest = members_[i].meeting;
    }
    for (int i = 0; i < size_; ++i) members_[i].meeting = latest + 2;
    arrived_.store(0, std::memory_order_relaxed);
    poison_.store(kHealthy, std::memory_order_release);
  }
  first_ = members_[0].meeting;
}

void Group::keep_apart(int me, int cpu) noexcept {
  Member& member = members_[me];
  if (!member.movable || policy_.crowded) return;
  if (cpu != current_cpu()) {
    member.beside = 0;
    return;
  }
  if (++member.beside < kBesideLimit) return;
  const int64_t now = steady_now_ns();
  if (now - member.moved_ns < kMoveIntervalNs) return;
  member.beside = 0;
  member.moved_ns = now;
  leave_this_cpu();
}

bool Group::count_in() noexcept {
  const uint32_t before = arrived_.fetch_add(1, std::memory_order_seq_cst);
  if (before + 1 != static_cast<uint32_t>(size_)) return false;
  // Nobody comes to the next meeting before this one is released.
  arrived_.store(0, std::memory_order_relaxed);
  return true;
}

Status Group::check_lines(int me) noexcept { return disagreement(me) ? disagree(me) : kOk; }

// Whether a peer has come to this meeting for something else.
bool Group::disagreement(int me) const noexcept {
  const uint32_t meeting = members_[me].meeting;
  const uint64_t signature = members_[me].lines[meeting & 1].signature;
  for (int peer = 0; peer < size_; ++peer) {
    const Line& theirs = members_[peer].lines[meeting & 1];
    // In one order with the publishing of one's own line: of two that come at once, one sees the other.
    if (theirs.meeting.value.load(std::memory_order_seq_cst) == meeting && theirs.signature != signature) {
      return true;
    }
  }
  return false;
}

Status Group::await_line(int me, int peer, int64_t timeout_ns) noexcept {
  int64_t waited_ns = 0;
  Word& word = members_[peer].lines[members_[me].meeting & 1].meeting;
  const Wake wake = wait(me, peer, word, timeout_ns, &waited_ns);
  return woken(me, wake, waited_ns);
}

Status Group::await_release(int me, int64_t timeout_ns) noexcept {
  // The last to come compares all lines; before it sleeps, each member does.
  int64_t waited_ns = 0;
  const Wake wake = wait(me, -1, released_, timeout_ns, &waited_ns);
  return woken(me, wake, waited_ns);
}

Status Group::woken(int me, Wake wake, int64_t waited_ns) noexcept {
  switch (wake) {
    case Wake::kReady: return kOk;
    case Wake::kPoisoned: return give_up(me);
    case Wake::kDeadline: return poison(me, Trouble::kDeadline, waited_ns);
    case Wake::kDisagreement: return disagree(me);
  }
  return kOk;
}

// Waits until `word` holds this meeting. `peer`: whose line it is; -1: everybody's.
Group::Wake Group::wait(int me, int peer, Word& word, int64_t timeout_ns, int64_t* out_waited_ns) noexcept {
  const uint32_t meeting = members_[me].meeting;
  const auto ready = [&] { return word.value.load(std::memory_order_seq_cst) == meeting; };
  const auto over = [&] { return ready() || poison_.load(std::memory_order_seq_cst) != kHealthy; };

  // The deadline is the meeting's: waiting for several peers one after another does not prolong it.
  int64_t& start = members_[me].arrived_ns;
  if (start == kNotYet) start = host_.now_ns();
  if (timeout_ns == 0) timeout_ns = timeout_ns_;
  int64_t next_log = kFirstLogNs;
  keep_apart_from(me, peer);
  if (!spin_until(policy_, over, peer >= 0 && same_cpu(me, peer))) {
    for (;;) {
      // A member that came meanwhile, or left, may have missed this one's line on its way.
      if (disagreement(me)) return Wake::kDisagreement;
      const int64_t now = host_.now_ns();
      *out_waited_ns = now - start;
      if (deadline_ns_ != 0 && now >= deadline_ns_) return Wake::kDeadline;
      if (timeout_ns > 0 && *out_waited_ns >= timeout_ns) return Wake::kDeadline;
      if (*out_waited_ns >= next_log) {
        log_waiting(me, peer, *out_waited_ns);
        // The process may have been stopped for long: the next line is always ahead.
        while (next_log <= *out_waited_ns) next_log *= 2;
      }
      int64_t slice = next_log - *out_waited_ns;
      if (timeout_ns > 0) slice = std::min(slice, timeout_ns - *out_waited_ns);
      if (deadline_ns_ != 0) slice = std::min(slice, deadline_ns_ - now);
      const uint32_t seen = word.value.load(std::memory_order_acquire);
      if (over()) break;
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      word.sleep(seen, host_.slice_ns(slice), policy_, [&] { return over() || disagreement(me); });
      asleep_.fetch_sub(1, std::memory_order_release);
      if (over()) break;
    }
  }
  // Who has come is in time, even if the group was poisoned meanwhile by another's deadline.
  return ready() ? Wake::kReady : Wake::kPoisoned;
}

void Group::log_waiting(int me, int peer, int64_t waited_ns) const noexcept {
  const uint32_t meeting = members_[me].meeting;
  const Statement& statement = members_[me].statements[meeting & 1];
  for (int i = 0; peer < 0 && i < size_; ++i) {
    const Line& theirs = members_[i].lines[meeting & 1];
    if (theirs.meeting.value.load(std::memory_order_acquire) != meeting) peer = i;
  }
  host_.log(DIST_LOG_WARNING, "replica %d is still waiting for replica %d in %s #%lld%s%s after %lld s", me,
            peer, collective_name(statement.collective), static_cast<long long>(sequence(me)),
            statement.tag[0] != '\0' ? ", tag " : "", statement.tag,
            static_cast<long long>(waited_ns / 1'000'000'000));
}

// Somebody came for something else. The report names the culprit, so wait a little for the lines that decide
// it.
Status Group::disagree(int me) noexcept {
  const uint32_t meeting = members_[me].meeting;
  const Statement* statements[DIST_MAX_REPLICAS];
  const ErrorRecord* failures[DIST_MAX_REPLICAS];
  const int64_t start = steady_now_ns();
  for (;;) {
    if (poison_.load(std::memory_order_acquire) != kHealthy) return give_up(me);
    gather(meeting, statements, failures);
    Evidence evidence;
    evidence.statements = {statements, static_cast<std::size_t>(size_)};
    evidence.failures = {failures, static_cast<std::size_t>(size_)};
    if (decidable(evidence) || steady_now_ns() - start >= kVerdictGraceNs) break;
    park(poison_, kHealthy, 200'000);
  }
  return poison(me, Trouble::kDisagreement, 0);
}

// Lines of members that have arrived at `meeting`; they stay as they are until this member goes on.
void Group::gather(uint32_t meeting, const Statement** statements,
                   const ErrorRecord** failures) const noexcept {
  for (int i = 0; i < size_; ++i) {
    const Member& member = members_[i];
    const Line& line = member.lines[meeting & 1];
    const bool here = line.meeting.value.load(std::memory_order_acquire) == meeting;
    statements[i] = here ? &member.statements[meeting & 1] : nullptr;
    const bool failed =
        here && statements[i]->collective == Collective::kReturn && statements[i]->returned != DIST_OK;
    failures[i] = failed ? &member.failure : nullptr;
  }
}

void Group::write_report(uint32_t meeting, Trouble trouble, int64_t waited_ns) noexcept {
  const Statement* statements[DIST_MAX_REPLICAS];
  const ErrorRecord* failures[DIST_MAX_REPLICAS];
  gather(meeting, statements, failures);
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.statements = {statements, static_cast<std::size_t>(size_)};
  evidence.failures = {failures, static_cast<std::size_t>(size_)};
  evidence.sequence = meeting - first_;
  evidence.waited_ns = waited_ns;
  post(verdict(evidence));
}

void Group::post(const ErrorRecord& report) noexcept {
  report_ = report;
  poison_.store(kReported, std::memory_order_seq_cst);
  wake_all();
}

void Group::condemn(const ErrorRecord& why) noexcept {
  uint32_t healthy = kHealthy;
  if (poison_.compare_exchange_strong(healthy, kReporting, std::memory_order_seq_cst)) post(why);
}

Status Group::poison(int me, Trouble trouble, int64_t waited_ns) noexcept {
  uint32_t healthy = kHealthy;
  if (poison_.compare_exchange_strong(healthy, kReporting, std::memory_order_seq_cst)) {
    write_report(members_[me].meeting, trouble, waited_ns);
  }
  return give_up(me);
}

// Leaves a meeting of a poisoned group: complete the report, let go of peers' buffers, wait until they let go
// of this member's.
Status Group::give_up(int me) noexcept {
  const uint32_t meeting = members_[me].meeting;
  uint32_t cancelled = kCancelled;
  if (poison_.compare_exchange_strong(cancelled, kReporting, std::memory_order_seq_cst)) {
    write_report(meeting, Trouble::kCancelled, 0);
  }
  while (poison_.load(std::memory_order_seq_cst) != kReported) yield_this_thread();
  members_[me].done.publish(meeting, policy_);
  if (policy_.asymmetric) rare_barrier();
  for (int peer = 0; peer < size_; ++peer) {
    const Member& other = members_[peer];
    while (other.entered.load(std::memory_order_seq_cst) == meeting && !other.is_done(meeting))
      yield_this_thread();
  }
  return fail(report_);
}

// The group was poisoned before this member came to its next meeting: it has published nothing.
Status Group::turned_away() noexcept {
  uint32_t cancelled = kCancelled;
  if (poison_.compare_exchange_strong(cancelled, kReporting, std::memory_order_seq_cst)) {
    Evidence nothing;
    nothing.trouble = Trouble::kCancelled;
    post(verdict(nothing));
  }
  while (poison_.load(std::memory_order_acquire) != kReported) yield_this_thread();
  return fail(report_);
}

// Wakes all that wait for an arrival. A sleeper that has said so but not gone to sleep yet would miss one
// wake-up: repeat until none is left.
void Group::wake_all() noexcept {
  const auto drain = [](Word& word) {
    while (word.sleepers.load(std::memory_order_seq_cst) != 0) {
      unpark_all(word.value);
      yield_this_thread();
    }
  };
  if (policy_.asymmetric) rare_barrier();
  for (int i = 0; i < size_; ++i) {
    drain(members_[i].lines[0].meeting);
    drain(members_[i].lines[1].meeting);
  }
  drain(released_);
}

void Group::await_done(int me, int peer) noexcept {
  const uint32_t meeting = members_[me].meeting;
  Member& other = members_[peer];
  const auto ready = [&] { return other.is_done(meeting); };
  keep_apart_from(me, peer);
  while (!spin_until(policy_, ready, same_cpu(me, peer))) {
    const uint32_t seen = other.done.value.load(std::memory_order_acquire);
    if (ready()) return;
    other.done.sleep(seen, -1, policy_, ready);
  }
}

Status Group::finish(int me) noexcept {
  const uint32_t meeting = members_[me].meeting;
  members_[me].done.publish(meeting, policy_);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == me) continue;
    if (!soon(me, peer, members_[peer].done)) await_done(me, peer);
  }
  // Who gave up said so before it said that it was done.
  return poisoned() ? give_up(me) : kOk;
}

void Group::leave(int me, Status returned, const ErrorRecord& failure) noexcept {
  Member& member = members_[me];
  if (!returned.ok()) member.failure = failure;
  if (poisoned()) return;
  Statement& statement = draft(me);
  statement.collective = Collective::kReturn;
  statement.returned = returned.code();
  seal(statement, nullptr);
  publish(me);
  if (policy_.crowded) count_in();
  // Who spins compares lines again before it sleeps, and sees this one; who sleeps must be told.
  if (asleep_.load(std::memory_order_seq_cst) == 0 || !disagreement(me)) return;
  uint32_t healthy = kHealthy;
  if (poison_.compare_exchange_strong(healthy, kReporting, std::memory_order_seq_cst)) {
    write_report(member.meeting, Trouble::kDisagreement, 0);
  }
}

void Group::cancel() noexcept {
  uint32_t healthy = kHealthy;
  if (poison_.compare_exchange_strong(healthy, kCancelled, std::memory_order_seq_cst)) wake_all();
}

}  // namespace dist
