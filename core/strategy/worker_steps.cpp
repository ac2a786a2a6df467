// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/worker_steps.hpp"

#include "core/strategy/between_runs.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

Status WorkerSteps::find_strategy(const char* call, Strategy** out) const noexcept {
  *out = strategy_;
  if (*out != nullptr) return kOk;
  return failed_precondition(
      "`%s()`: the strategy of the dataset has shut down or re-formed its workers. Create the dataset again.",
      call);
}

Status WorkerSteps::vote(const char* call, const Ballot& mine, Outcome* any) {
  Strategy* strategy;
  DIST_TRY(find_strategy(call, &strategy));
  BetweenRuns turn;
  DIST_TRY(turn.begin_among_workers(*strategy, call));
  // No other operation from outside uses this operator, so a worker that makes a different call is detected.
  WorkerLink& workers = *strategy->workers();
  int32_t had[] = {mine.batch ? 1 : 0, mine.nothing ? 1 : 0, mine.unknown ? workers.me() : -1};
  const int64_t shape[] = {3};
  dist_tensor votes{had, DIST_I32, 1, shape, nullptr};
  DIST_TRY(workers.reduce(DIST_REDUCE_MAX, DIST_NUMERICS_ORDERED, {&votes, 1}, {&votes, 1}));
  *any = {had[0] != 0, had[1] != 0, had[2]};
  return kOk;
}

Status WorkerSteps::fail_all(const char* call, const ErrorRecord& why) {
  const ErrorRecord kept = why;
  Strategy* strategy;
  DIST_TRY(find_strategy(call, &strategy));
  BetweenRuns turn;
  DIST_TRY(turn.begin_among_workers(*strategy, call));
  return fail(kept);
}

}  // namespace dist
