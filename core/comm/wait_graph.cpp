// SPDX-License-Identifier: Apache-2.0
#include "core/comm/wait_graph.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace dist {

WaitGraph::WaitGraph(Memory& memory, int num_replicas) : memory_(memory), num_replicas_(num_replicas) {
  const auto n = static_cast<std::size_t>(num_replicas);
  auto* place = static_cast<std::byte*>(memory_.allocate(n * kBytesEach, alignof(Blocked)));
  blocked_ = reinterpret_cast<Blocked*>(place);
  for (std::size_t i = 0; i < n; ++i) new (&blocked_[i]) Blocked();
  claimed_ = reinterpret_cast<WaitPlace**>(place + n * sizeof(Blocked));
  stack_ = reinterpret_cast<int32_t*>(place + n * (sizeof(Blocked) + sizeof(WaitPlace*)));
}

WaitGraph::~WaitGraph() {
  const auto n = static_cast<std::size_t>(num_replicas_);
  memory_.deallocate(blocked_, n * kBytesEach, alignof(Blocked));
}

void WaitGraph::block(int local_rank, const Waits& waits) noexcept {
  const std::lock_guard lock(mutex_);
  blocked_[local_rank].waits = &waits;
  count(waits, 1);
  if (all_sleep_at(waits) || !is_hopeless(local_rank) || !find_cycle(local_rank)) return;
  const ErrorRecord report = describe_cycle(local_rank);
  // All rounds are ended before any replica gets the report. Otherwise the first replica to get it would
  // leave, and another one would get a report about that replica instead. This is done under the lock,
  // because a woken replica may destroy its wait place once it has acquired the lock. post() waits until that
  // replica no longer sleeps, which needs no lock.
  int num_claimed = 0;
  int32_t at = local_rank;
  do {
    const int32_t from = blocked_[at].from;
    WaitPlace* const where = blocked_[from].waits->at(blocked_[at].via).where;
    if (where->claim()) claimed_[num_claimed++] = where;
    at = from;
  } while (at != local_rank);
  for (int i = 0; i < num_claimed; ++i) claimed_[i]->post(report);
}

void WaitGraph::unblock(int local_rank) noexcept {
  const std::lock_guard lock(mutex_);
  count(*blocked_[local_rank].waits, -1);
  blocked_[local_rank].waits = nullptr;
}

bool WaitGraph::anyone_blocked() noexcept {
  const std::lock_guard lock(mutex_);
  return num_blocked_ != 0;
}

// Whether one of the replica's rounds lacks only replicas for which `awake` is true. A round that is complete
// but has not woken the replica yet lacks no replica.
template <class Awake>
bool WaitGraph::may_wake(int local_rank, Awake&& awake) const noexcept {
  const Waits& waits = *blocked_[local_rank].waits;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const Wait round = waits.at(i);
    if (all_missing(round, [&](int32_t missing) { return awake(missing, round); })) return true;
  }
  return false;
}

// Starts with all sleeping replicas as hopeless and removes those that may be woken, until nothing changes.
// Returns whether `start` remains.
bool WaitGraph::is_hopeless(int start) noexcept {
  // Nearly always some round lacks only replicas that are running or have been woken from another round.
  const auto woken = [&](int32_t missing) {
    const Waits& waits = *blocked_[missing].waits;
    return waits.size() == 1 && all_missing(waits.at(0), [](int32_t) { return false; });
  };
  if (may_wake(start,
               [&](int32_t missing, const Wait& round) { return !sleeps(missing, round) || woken(missing); }))
    return false;
  for (int32_t r = 0; r < num_replicas_; ++r) blocked_[r].hopeless = blocked_[r].waits != nullptr;
  for (bool changed = true; changed;) {
    changed = false;
    for (int32_t r = 0; r < num_replicas_; ++r) {
      if (!blocked_[r].hopeless) continue;
      blocked_[r].hopeless =
          !may_wake(r, [&](int32_t missing, const Wait&) { return !blocked_[missing].hopeless; });
      changed = changed || !blocked_[r].hopeless;
    }
  }
  return blocked_[start].hopeless;
}

// Searches depth first among hopeless replicas, from each one to those that it waits for. On success, `from`
// leads around the cycle, from a replica to the one that waits for it. Finds nothing if `start` is not on the
// cycle but waits for a replica whose round has just failed.
bool WaitGraph::find_cycle(int start) noexcept {
  ++search_;
  int depth = 0;
  stack_[depth++] = start;
  blocked_[start].searched = search_;
  bool found = false;
  while (depth > 0 && !found) {
    const int32_t waiting = stack_[--depth];
    const Waits& waits = *blocked_[waiting].waits;
    for (std::size_t i = 0; i < waits.size() && !found; ++i) {
      (void)all_missing(waits.at(i), [&](int32_t missing) {
        Blocked& next = blocked_[missing];
        found = missing == start;
        if (!found && (!next.hopeless || next.searched == search_)) return true;
        next.from = waiting;
        next.via = i;
        next.searched = search_;
        if (!found) stack_[depth++] = missing;
        return !found;
      });
    }
  }
  return found;
}

// "replicas wait for each other: replica 0 in all_reduce #2 (tag a) of group 1 for replica 1; replica 1 in
// ..."
ErrorRecord WaitGraph::describe_cycle(int last) noexcept {
  ErrorRecord report;
  report.code = DIST_ABORTED;
  int used = 0;
  // The message follows the direction of waiting, which is the reverse of `from`.
  int32_t* const order = stack_;
  int n = 0;
  int32_t at = last;
  do {
    order[n++] = at;
    at = blocked_[at].from;
  } while (at != last && n < num_replicas_);
  for (int i = 0; i < n; ++i) {
    const int32_t waiting = order[(n - i) % n];
    const int32_t missing = order[n - 1 - i];
    const Wait here = blocked_[waiting].waits->at(blocked_[missing].via);
    int64_t sequence = 0;
    const Signature& signature = here.where->signature(here.rank, here.round, &sequence);
    const Naming naming = here.where->naming();
    const char* const word = naming.word();
    if (i == 0) {
      used = std::snprintf(report.message, sizeof report.message, "%ss wait for each other: ", word);
      std::snprintf(report.hint, sizeof report.hint,
                    "Call the collectives that %ss share in the same order on all of them.", word);
      report.culprit = naming.name(last);
      report.collective = static_cast<int32_t>(signature.collective);
      report.sequence = sequence;
      report.group = here.where->number();
      copy_text(report.tag, signature.tag);
      describe(signature, report.expected, sizeof report.expected);
      std::snprintf(report.received, sizeof report.received, "waits for another %s, which waits for it",
                    word);
    }
    char round[128];
    name_round(signature, sequence, round, sizeof round);
    char group[32] = "";
    if (here.where->number() != 0) std::snprintf(group, sizeof group, " of group %d", here.where->number());
    const auto room = sizeof report.message - static_cast<std::size_t>(used);
    const int more =
        std::snprintf(report.message + used, room, "%s%s %d in %s%s for %s %d", i == 0 ? "" : "; ", word,
                      naming.name(waiting).number(), round, group, word, naming.name(missing).number());
    if (more < 0 || static_cast<std::size_t>(more) >= room) break;
    used += more;
  }
  const auto room = sizeof report.message - static_cast<std::size_t>(used);
  std::snprintf(report.message + used, room, ". %s", report.hint);
  return report;
}

}  // namespace dist
