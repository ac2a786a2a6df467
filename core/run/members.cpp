// SPDX-License-Identifier: Apache-2.0
#include "core/run/members.hpp"

#include <cxxabi.h>

#include <cstddef>
#include <cstdio>
#include <new>

#include "core/base/host_call.hpp"
#include "core/base/on_stack.hpp"
#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/run/member_lists.hpp"
#include "core/run/worker_link.hpp"

namespace dist {

// A member's part in a run: from the start of its function until the function has returned or its thread
// ends.
class Members::Turn {
 public:
  Turn(Members& members, int rank) noexcept
      : members_(members),
        rank_(rank),
        failures_(failures_on_this_thread()),
        within_(&members.replica(rank), false) {
    members.replica(rank).begin();
  }
  ~Turn() {
    // If it was not concluded, the thread is being ended inside its function.
    if (!concluded_) {
      State& state = members_.states_[rank_];
      state.lost_thread = true;
      conclude(failed_precondition("%s %d's thread ended inside its run (pthread_exit)",
                                   state.replica.name().word(), state.replica.name().number()));
    }
  }
  void conclude(Status status) noexcept {
    concluded_ = true;
    members_.conclude(rank_, status, failures_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Members& members_;
  const int rank_;
  const uint64_t failures_;
  const Within within_;
  bool concluded_ = false;
};

Members::State::State(const PoolFacts& facts, ReplicaPool& pool, Group& group, int rank,
                      WipedWords::Word* here) noexcept
    : replica(facts.memory(), pool, group, facts.recorder_of(rank), facts.place_of(rank),
              facts.loops_of(rank), facts.settings().collectives.channels.cache_bytes, here,
              facts.workers() == nullptr ? nullptr : &facts.workers()->communicator()) {}

Members::Members(const PoolFacts& facts, const LatestRun& latest, RunGroups& groups, ReplicaPool& pool)
    : facts_(facts), latest_(latest), groups_(groups), here_(facts.num_replicas()) {
  const auto n = static_cast<std::size_t>(facts.num_replicas());
  states_ = static_cast<State*>(facts.memory().allocate(n * sizeof(State), alignof(State)));
  for (; made_ < facts.num_replicas(); ++made_)
    new (&states_[made_]) State(facts, pool, groups.whole(), made_, here_.at(made_));
}

Members::~Members() {
  for (int i = 0; i < made_; ++i) states_[i].~State();
  facts_.memory().deallocate(states_, static_cast<std::size_t>(facts_.num_replicas()) * sizeof(State),
                             alignof(State));
}

// A forced unwind has no exception object, which the sanitizer mistakes for a null reference.
__attribute__((no_sanitize("null"))) void Members::perform(int rank) {
  Turn turn(*this, rank);
  Replica& replica = states_[rank].replica;
  char who[64];
  dist_status status;
  try {
    status = latest_.body().call(replica, latest_.body());
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended; Turn's destructor reports it
  } catch (...) {
    std::snprintf(who, sizeof who, "%s %d's function", replica.name().word(), replica.name().number());
    status = status_of_exception(who).code();
  }
  turn.conclude(Status(status));
}

void Members::conclude(int rank, Status status, uint64_t failures_before) noexcept {
  // A forked child has no threads to notify, and its locks may never open.
  if (facts_.memory().forked()) return;
  State& state = states_[rank];
  state.replica.come_back();
  state.replica.end();
  if (!state.replica.works().empty()) status = drain(state.replica, status);
  state.replica.recorder().end_run(status.code());
  state.result = status.code();
  if (!status.ok()) {
    if (failures_on_this_thread() != failures_before && last_error().code == status.code()) {
      state.error = last_error();
    } else {
      state.error = ErrorRecord{};
      state.error.code = status.code();
      (void)write_marked(state.error.message, sizeof state.error.message,
                         "%s %d's function returned %s without a reason. Use `dist_fail()` to report one",
                         state.replica.name().word(), state.replica.name().number(),
                         status_name(status.code()));
    }
    if (state.error.culprit.replica == kNoReplica && state.error.collective == 0 && !state.error.of_all)
      state.error.culprit = state.replica.name();
  }
  groups_.leave(rank, latest_.group_run(), status, state.error);
  if (!status.ok() && groups_.nesting().has_devices())
    groups_.nesting().condemn_others(rank, report_for_devices(state));
  state.finished.publish(latest_.number(), groups_.whole().policy());
}

// Completes the works that the function left in progress before the replica ends, because peers may still use
// its buffers.
Status Members::drain(Replica& replica, Status returned) noexcept {
  const ErrorRecord failure = returned.ok() ? ErrorRecord{} : last_error();
  const Status ended = replica.works().drain(returned, failure);
  if (returned.ok()) return ended;
  // The report of a work is not the reason why this replica failed.
  last_error() = failure;
  return returned;
}

// Why the device runs of the other replicas end: they are useless because the run has failed.
ErrorRecord Members::report_for_devices(const State& failed) const noexcept {
  if (failed.result == DIST_ABORTED) return failed.error;
  ErrorRecord why;
  why.code = DIST_ABORTED;
  why.culprit = failed.replica.name();
  std::snprintf(why.message, sizeof why.message, "replica %d failed with %s: %.900s", why.culprit.number(),
                status_name(failed.result), failed.error.message);
  hint_to_mend(why, why.culprit);
  return why;
}

void Members::renew(int rank) noexcept {
  states_[rank].finished.value.store(latest_.number(), std::memory_order_relaxed);
  states_[rank].lost_thread = false;
}

bool Members::all_finished(uint32_t run) const noexcept {
  for (int i = 0; i < facts_.num_replicas(); ++i) {
    if (finished(i) != run) return false;
  }
  return true;
}

bool Members::await(int rank, int64_t deadline_ns) noexcept {
  const Host& host = facts_.host();
  const WaitPolicy& policy = groups_.whole().policy();
  Word& word = states_[rank].finished;
  const auto done = [&] { return word.value.load(std::memory_order_seq_cst) == latest_.number(); };
  while (!spin_until(policy, done, facts_.caller_in_the_way())) {
    if (facts_.memory().forked()) return false;
    const int64_t left = deadline_ns == 0 ? -1 : deadline_ns - host.now_ns();
    if (deadline_ns != 0 && left <= 0) return false;
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    if (done()) return true;
    word.sleep(seen, host.slice_ns(left), policy, done);
  }
  return true;
}

int32_t Members::list_inside(uint32_t run, std::span<char> text) const noexcept {
  // Collected first, because functions may return meanwhile.
  auto* const inside = DIST_ON_STACK(bool, facts_.num_replicas());
  for (int i = 0; i < facts_.num_replicas(); ++i) inside[i] = finished(i) != run;
  return list_members(facts_.naming(), {inside, static_cast<std::size_t>(facts_.num_replicas())}, text);
}

// The failure of the lowest replica that did not merely react to a peer; otherwise the report that all
// replicas got; otherwise whether the run was cancelled.
Status Members::outcome() const noexcept {
  const State* first = nullptr;
  for (int i = 0; i < facts_.num_replicas(); ++i) {
    const State& state = states_[i];
    if (state.result == DIST_OK) continue;
    if (state.result != DIST_ABORTED) return fail(state.error);
    if (first == nullptr) first = &state;
  }
  if (first != nullptr) return fail(first->error);
  const Group& group = groups_.whole();
  if (!group.cancelled()) return kOk;
  const char* const reason = group.cancel_reason();
  return fail(DIST_CANCELLED, "the %s was cancelled: %s", facts_.naming().run(),
              reason != nullptr ? reason : "`dist_strategy_cancel()`"_m);
}

}  // namespace dist
