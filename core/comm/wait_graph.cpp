// SPDX-License-Identifier: Apache-2.0
#include "core/comm/wait_graph.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace dist {

WaitGraph::WaitGraph(Memory& memory, int num_replicas) : memory_(memory), num_replicas_(num_replicas) {
  const auto n = static_cast<std::size_t>(num_replicas);
  const std::size_t bytes = n * (sizeof(Blocked) + sizeof(int32_t));
  auto* place = static_cast<std::byte*>(memory_.allocate(bytes, alignof(Blocked)));
  blocked_ = reinterpret_cast<Blocked*>(place);
  for (std::size_t i = 0; i < n; ++i) new (&blocked_[i]) Blocked();
  stack_ = reinterpret_cast<int32_t*>(place + n * sizeof(Blocked));
}

WaitGraph::~WaitGraph() {
  const auto n = static_cast<std::size_t>(num_replicas_);
  memory_.deallocate(blocked_, n * (sizeof(Blocked) + sizeof(int32_t)), alignof(Blocked));
}

void WaitGraph::block(Gathering& where, int rank, uint32_t meeting) noexcept {
  const std::lock_guard lock(mutex_);
  const int32_t replica = where.replica(rank);
  blocked_[replica].where = &where;
  blocked_[replica].rank = rank;
  blocked_[replica].meeting = meeting;
  if (!find_cycle(replica)) return;
  const ErrorRecord report = describe_cycle(replica);
  // All meetings end before any replica hears of it: one that is told first would leave, and another would be
  // told of that. Under the lock, since a woken replica takes its gathering along: it is out of its sleep,
  // which post() waits for, before it wants the lock.
  Gathering* claimed[DIST_MAX_REPLICAS];
  int num_claimed = 0;
  int32_t at = replica;
  do {
    if (blocked_[at].where->claim()) claimed[num_claimed++] = blocked_[at].where;
    at = blocked_[at].from;
  } while (at != replica);
  for (int i = 0; i < num_claimed; ++i) claimed[i]->post(report);
}

void WaitGraph::unblock(int32_t replica) noexcept {
  const std::lock_guard lock(mutex_);
  blocked_[replica].where = nullptr;
}

bool WaitGraph::anyone_blocked() noexcept {
  const std::lock_guard lock(mutex_);
  return std::any_of(blocked_, blocked_ + num_replicas_, [](const Blocked& b) { return b.where != nullptr; });
}

// Depth first, from a replica to those who are missing where it sleeps and sleep elsewhere. A replica that
// has been released but not yet woken misses nobody any more. On success `from` leads around the cycle,
// against the waiting.
bool WaitGraph::find_cycle(int32_t start) noexcept {
  ++search_;
  int depth = 0;
  stack_[depth++] = start;
  blocked_[start].searched = search_;
  while (depth > 0) {
    const int32_t waiting = stack_[--depth];
    const Blocked& here = blocked_[waiting];
    for (int rank = 0; rank < here.where->size(); ++rank) {
      const int32_t missing = here.where->replica(rank);
      if (blocked_[missing].where == nullptr || here.where->arrived(rank, here.meeting)) continue;
      if (missing == start) {
        blocked_[start].from = waiting;
        return true;
      }
      if (blocked_[missing].searched == search_) continue;
      blocked_[missing].searched = search_;
      blocked_[missing].from = waiting;
      stack_[depth++] = missing;
    }
  }
  return false;
}

// "replicas wait for each other: replica 0 in all_reduce #2 (tag a) of group 1 for replica 1; replica 1 in
// ..."
ErrorRecord WaitGraph::describe_cycle(int32_t last) const noexcept {
  ErrorRecord report;
  report.code = DIST_ABORTED;
  report.replica = last;
  copy_text(report.hint, "make the collectives that replicas share in the same order on all of them");
  int used = std::snprintf(report.message, sizeof report.message, "replicas wait for each other: ");
  // Told in the direction of the waiting, which is against `from`.
  int32_t order[DIST_MAX_REPLICAS];
  int n = 0;
  int32_t at = last;
  do {
    order[n++] = at;
    at = blocked_[at].from;
  } while (at != last && n < DIST_MAX_REPLICAS);
  for (int i = 0; i < n; ++i) {
    const int32_t waiting = order[(n - i) % n];
    const int32_t missing = order[n - 1 - i];
    const Blocked& here = blocked_[waiting];
    int64_t sequence = 0;
    const Statement& statement = here.where->statement(here.rank, here.meeting, &sequence);
    if (i == 0) {
      report.collective = static_cast<int32_t>(statement.collective);
      report.sequence = sequence;
      report.group = here.where->number();
      copy_text(report.tag, statement.tag);
      describe(statement, report.expected, sizeof report.expected);
    }
    char meeting[128];
    name_meeting(statement, sequence, meeting, sizeof meeting);
    char group[32] = "";
    if (here.where->number() != 0) std::snprintf(group, sizeof group, " of group %d", here.where->number());
    const auto room = sizeof report.message - static_cast<std::size_t>(used);
    const int more = std::snprintf(report.message + used, room, "%sreplica %d in %s%s for replica %d",
                                   i == 0 ? "" : "; ", waiting, meeting, group, missing);
    if (more < 0 || static_cast<std::size_t>(more) >= room) break;
    used += more;
  }
  return report;
}

}  // namespace dist
