// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/preemption.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/checkpoint/file_error.hpp"
#include "core/checkpoint/reader.hpp"
#include "core/cross_replica/copies.hpp"
#include "core/strategy/between_runs.hpp"
#include "core/strategy/checkpoint.hpp"

namespace dist {
namespace {

constexpr char kKey[] = "preemption.total_run_calls";
constexpr char kTag[] = "preemption handler";

}  // namespace

PreemptionHandler::PreemptionHandler(Memory& memory, Strategy& strategy, const PreemptionOptions& options)
    : Counted(memory),
      strategy_(strategy),
      path_(options.path != nullptr ? options.path : "", &memory),
      variables_(&memory),
      named_(options.variables.begin(), options.variables.end(), &memory),
      grace_ns_(options.grace_ns) {
  for (Variable* const each : options.variables) variables_.push_back(Ref<Variable>::share(each));
}

Status PreemptionHandler::create(Strategy& strategy, const PreemptionOptions& options,
                                 Ref<PreemptionHandler>* out) {
  constexpr const char* kCall = "dist_preemption_handler_create";
  DIST_TRY(strategy.check_cross_replica(kCall));
  if (options.grace_ns < 0) {
    return invalid_argument("`dist_preemption_options.grace_ns` is %lld; use 0 or more",
                            static_cast<long long>(options.grace_ns));
  }
  if (options.path == nullptr && !options.variables.empty()) {
    return invalid_argument(
        "`%s()`: there are variables to save, but no path. Set the path of the checkpoint.", kCall);
  }
  for (Variable* const each : options.variables) DIST_TRY(check_owner(strategy.cross_replica(), *each));
  auto made = make_counted<PreemptionHandler>(strategy.memory(), strategy, options);
  DIST_TRY(made->load());
  DIST_TRY(made->agree());
  *out = std::move(made);
  return kOk;
}

Status PreemptionHandler::load() {
  if (path_.empty()) return kOk;
  Ref<Checkpoint> file;
  const Status opened = Checkpoint::open(memory(), path_.c_str(), &file);
  if (opened.code() == DIST_NOT_FOUND) return kOk;
  DIST_TRY(about_file(path_.c_str(), opened));
  int64_t calls = 0;
  const char* const text = file->text(kKey);
  if (text != nullptr) {
    const char* const end = text + std::strlen(text);
    const auto read = std::from_chars(text, end, calls);
    if (read.ec != std::errc{} || read.ptr != end || calls < 0) {
      return fail(DIST_DATA_LOSS, "\"%s\": %s is not a number of runs", path_.c_str(), kKey);
    }
  }
  BetweenRuns turn;
  DIST_TRY(turn.begin(strategy_, "dist_preemption_handler_create"));
  DIST_TRY(load_checkpoint(strategy_.cross_replica(), path_.c_str(), {named_}));
  total_run_calls_ = calls;
  return kOk;
}

// A worker that reads a different file than the others would save at a different run.
Status PreemptionHandler::agree() {
  BetweenRuns turn;
  DIST_TRY(turn.begin_among_workers(strategy_, "dist_preemption_handler_create"));
  WorkerLink* const workers = strategy_.workers();
  if (workers == nullptr) return kOk;
  const int64_t mine = total_run_calls();
  int64_t ends[] = {mine, -mine};
  DIST_TRY(workers->largest(ends, kTag, static_cast<uint64_t>(grace_ns_)));
  if (ends[0] == -ends[1]) return kOk;
  return fail(DIST_FAILED_PRECONDITION,
              "`dist_preemption_handler_create()`: the checkpoint says %lld runs on this worker, but %lld to "
              "%lld on all workers. Give all workers the same file.",
              static_cast<long long>(mine), static_cast<long long>(-ends[1]),
              static_cast<long long>(ends[0]));
}

Status PreemptionHandler::save(const char* call) {
  if (path_.empty()) return kOk;
  char calls[24];
  std::snprintf(calls, sizeof calls, "%lld", static_cast<long long>(total_run_calls()));
  const StoredText text{kKey, calls};
  BetweenRuns turn;
  DIST_TRY(turn.begin_among_workers(strategy_, call));
  DIST_TRY(turn.begin(strategy_, call));
  return save_checkpoint(strategy_.cross_replica(), path_.c_str(), {named_}, {&text, 1});
}

// The announcement of worker 0 at the end of the latest run; a single worker uses its own state.
Status PreemptionHandler::hear(const char* call, Cancel* cancel, bool* preempted, bool* grace_over) noexcept {
  const bool notified = notified_.load(std::memory_order_relaxed);
  WorkerLink* const workers = strategy_.workers();
  const bool leads = workers == nullptr || workers->me() == 0;
  const int64_t now = strategy_.group().host().now_ns();
  const bool late = leads && preempted_ns_ != 0 && now - preempted_ns_ >= grace_ns_;
  // Announces it again, because workers that joined by re-forming do not know it.
  const bool announces = notified || (leads && preempted_ns_ != 0);
  *preempted = announces;
  *grace_over = late;
  if (workers != nullptr) {
    uint32_t announced = 0;
    DIST_TRY(strategy_.hear_leader(call, cancel, &announced));
    // For the end of the next run.
    if (announces) workers->ask_for(WorkerLink::kPreempted);
    if (late) workers->ask_for(WorkerLink::kGraceOver);
    *preempted = (announced & WorkerLink::kPreempted) != 0;
    *grace_over = (announced & WorkerLink::kGraceOver) != 0;
  }
  if (*preempted && preempted_ns_ == 0) preempted_ns_ = now;
  return kOk;
}

Status PreemptionHandler::save_if_preempted(const char* call, Cancel* cancel, PreemptionState* out) {
  *out = state_;
  if (state_ == PreemptionState::kOver) return kOk;
  DIST_TRY(strategy_.check_cross_replica(call));
  bool preempted = false;
  bool grace_over = false;
  DIST_TRY(hear(call, cancel, &preempted, &grace_over));
  const bool ends = preempted && (grace_ns_ == 0 || grace_over);
  if (!preempted || (state_ == PreemptionState::kSaved && !ends)) return kOk;
  DIST_TRY(save(call));
  *out = state_ = ends ? PreemptionState::kOver : PreemptionState::kSaved;
  return kOk;
}

Status PreemptionHandler::over(const char* call) const noexcept {
  return fail(DIST_CANCELLED,
              "`%s()`: the job is preempted, and its checkpoint is saved after %lld runs. End the program, "
              "and start it again to continue.",
              call, static_cast<long long>(total_run_calls()));
}

}  // namespace dist
