// SPDX-License-Identifier: Apache-2.0
// The rule: peers name the worker, and also its replica if the worker's own group has detected it. If all
// replicas of a worker make the mistake, the workers detect it: the minority is the culprit, or worker 1 in a
// tie.
#include "tests/faults/worker_expected.hpp"

#include "tests/faults/findings.hpp"

namespace faults {
namespace {

constexpr char kAlone[] = " only: worker 0, which reports for all workers, ";

bool leaves(const WorkerCell& cell) { return cell.fault <= WorkerFault::kThrown; }
// Some replicas of the worker make no mistake, so its own group detects the fault.
bool found_at_home(const WorkerCell& cell) { return cell.replicas > 1 && cell.local >= 0; }
// The worker does not receive reports, or receives them only after everything has ended.
bool gone(const WorkerCell& cell) { return cell.silent() || cell.fault == WorkerFault::kNeverStarted; }
// Whether worker 0 can report for all.
bool reporter_reports(const WorkerCell& cell) {
  return cell.guilty != 0 || (cell.disagrees() && !found_at_home(cell));
}

struct Named {
  dist_status code = DIST_OK;
  int worker = 0;
  int replica = -1;
};

// If two replicas disagree, the second is reported.
int culprit_at_home(const WorkerCell& cell) {
  return cell.disagrees() ? cell.guilty * cell.replicas + 1 : cell.first_guilty();
}

Named named_by_peers(const WorkerCell& cell) {
  Named named{DIST_ABORTED, cell.guilty, -1};
  switch (cell.fault) {
    case WorkerFault::kEarlyReturn:
      if (found_at_home(cell)) named.replica = culprit_at_home(cell);
      break;
    case WorkerFault::kErrorReturned:
    case WorkerFault::kThrown: named.replica = cell.first_guilty(); break;
    case WorkerFault::kCancelled: break;
    case WorkerFault::kLate:
    case WorkerFault::kNeverStarted: named.code = DIST_DEADLINE_EXCEEDED; break;
    case WorkerFault::kKilled:
    case WorkerFault::kExited:
    case WorkerFault::kStopped:
    case WorkerFault::kCutOff:
    case WorkerFault::kShutDown:
    case WorkerFault::kDestroyed: named.code = DIST_UNAVAILABLE; break;
    default:
      if (found_at_home(cell)) {
        named.replica = culprit_at_home(cell);
      } else {
        named.code = DIST_INVALID_ARGUMENT;
        if (cell.workers == 2) named.worker = 1;
      }
  }
  return named;
}

// The report that the replicas of the guilty worker get, if any.
Named named_at_home(const WorkerCell& cell) {
  if (cell.fault == WorkerFault::kCancelled || cell.fault == WorkerFault::kShutDown)
    return {DIST_CANCELLED, 0, -1};
  Named named = named_by_peers(cell);
  if (!found_at_home(cell)) return named;
  if (cell.disagrees()) named.code = DIST_INVALID_ARGUMENT;
  named.replica = culprit_at_home(cell);
  return named;
}

Named named_by_run_at_home(const WorkerCell& cell) {
  switch (cell.fault) {
    case WorkerFault::kEarlyReturn: return found_at_home(cell) ? named_at_home(cell) : Named{};
    case WorkerFault::kErrorReturned: return {DIST_NOT_FOUND, cell.guilty, cell.first_guilty()};
    case WorkerFault::kThrown: return {DIST_UNKNOWN, cell.guilty, cell.first_guilty()};
    case WorkerFault::kDestroyed: return {};
    default: return named_at_home(cell);
  }
}

std::string check(const std::string& who, dist_status status, const Report& report, const Named& named) {
  Findings findings(who, report);
  findings.equal("status", std::string(dist_status_name(status)), std::string(dist_status_name(named.code)));
  if (named.code != DIST_OK) {
    findings.equal<int64_t>("worker", report.worker, named.worker);
    findings.equal<int64_t>("replica", report.replica, named.replica);
  }
  return findings.text();
}

std::string check_peer(const WorkerCell& cell, const std::string& who, dist_status status,
                       const Report& report, std::string& common) {
  if (std::string text = check(who, status, report, named_by_peers(cell)); !text.empty()) return text;
  Findings findings(who, report);
  findings.equal<int64_t>("sequence", report.sequence, cell.sequence());
  findings.equal("tag", report.tag, tag_of(cell, cell.step()));
  findings.some("hint", report.hint);
  findings.has("message", report.message, "worker " + std::to_string(named_by_peers(cell).worker));
  // Without worker 0, every worker reports only what it knows, for example about who has arrived.
  if (reporter_reports(cell)) {
    findings.lacks("message", report.message, kAlone);
    if (common.empty()) common = report.message;
    findings.equal("message", report.message, common);
  }
  return findings.text();
}

std::string check_at_home(const WorkerCell& cell, const WorkerOutcome& outcome, int replica) {
  const Side& side = outcome.sides[replica];
  const std::string who = "replica " + std::to_string(replica);
  const bool none = cell.is_guilty(replica) && leaves(cell);
  // Within the worker, making a plan and its rounds share one count, and a round is reported with the number
  // of its making.
  const bool own_plan = cell.form == Form::kPlanned && found_at_home(cell);
  const int sequence = own_plan ? (cell.checked ? 3 : 2) * cell.step() + 1 : cell.sequence();
  if (cell.timed() && side.report.sequence != sequence)
    return who + " hears of it in collective " + std::to_string(side.report.sequence);
  return none ? check(who, side.status, side.report, {})
              : check(who, side.status, side.report, named_at_home(cell));
}

std::string judge_well(const WorkerCell& cell, const WorkerOutcome& outcome) {
  std::string text;
  for (int r = 0; r < cell.members() && text.empty(); ++r)
    text = check("replica " + std::to_string(r), outcome.sides[r].status, outcome.sides[r].report, {});
  for (int w = 0; w < cell.workers && text.empty(); ++w)
    text =
        check("the run of worker " + std::to_string(w), outcome.runs[w].status, outcome.runs[w].report, {});
  return text;
}

}  // namespace

std::string judge(const WorkerCell& cell, const WorkerOutcome& outcome) {
  if (cell.fault == WorkerFault::kNobody) return judge_well(cell, outcome);
  std::string common;
  std::string text;
  for (int r = 0; r < cell.members() && text.empty(); ++r) {
    const Side& side = outcome.sides[r];
    if (cell.worker_of(r) != cell.guilty) {
      text = check_peer(cell, "replica " + std::to_string(r), side.status, side.report, common);
    } else if (cell.fault != WorkerFault::kDestroyed && !gone(cell)) {
      text = check_at_home(cell, outcome, r);
    }
  }
  for (int w = 0; w < cell.workers && text.empty(); ++w) {
    const WorkerOutcome::Run& run = outcome.runs[w];
    const std::string who = "the run of worker " + std::to_string(w);
    if (w != cell.guilty) {
      text = check_peer(cell, who, run.status, run.report, common);
    } else if (cell.fault == WorkerFault::kStopped || cell.fault == WorkerFault::kCutOff) {
      // The others have continued without it, so they are lost to it.
      if (run.status == DIST_OK) text = who + " goes well";
    } else if (!gone(cell)) {
      text = check(who, run.status, run.report, named_by_run_at_home(cell));
    }
  }
  return text;
}

}  // namespace faults
