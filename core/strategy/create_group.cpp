// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/create_group.hpp"

#include <cstdio>

#include "core/base/text.hpp"
#include "core/strategy/between_runs.hpp"

namespace dist {
namespace {

constexpr const char* kCall = "dist_group_create";

// Rephrases the report of the communicator, which is the same on all workers, in terms of this call.
Status in_words(Status failed) noexcept {
  const ErrorRecord given = last_error();
  if (given.collective == 0 || given.culprit.worker < 0) return failed;
  ErrorRecord report = given;
  (void)write_marked(report.message, sizeof report.message, "`%s()`: %.900s", kCall, given.message);
  if (report.code == DIST_INVALID_ARGUMENT)
    copy_text(report.hint, "Create the same groups on every worker, in the same order.");
  return fail(report);
}

}  // namespace

Status create_group(Strategy& strategy, std::span<const int32_t> ids, Subgroup** out) {
  if (strategy.workers() == nullptr) return strategy.pool().create_group(ids, out);
  BetweenRuns turn;
  DIST_TRY(turn.begin_among_workers(strategy, kCall));
  // In a merge function or an update, which are the same on all workers.
  if (!turn.has_begun())
    return failed_precondition("`%s()`: a run is in progress. Create groups between runs.", kCall);
  const Status made = strategy.pool().create_group_in_turn(ids, out);
  return made.ok() ? kOk : in_words(made);
}

}  // namespace dist
