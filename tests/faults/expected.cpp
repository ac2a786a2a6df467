// SPDX-License-Identifier: Apache-2.0
// The rule: the culprit is the member that left, otherwise the minority, otherwise (in a tie) all that differ
// from the member with the lowest id, whose call is taken as the expected one.
#include "tests/faults/expected.hpp"

#include "tests/faults/findings.hpp"

namespace faults {
namespace {

struct Expected {
  dist_status code = DIST_ABORTED;
  int member = -1;
  int32_t collective = 0;
  int64_t sequence = 2;  // the collective "before" is number 1
  std::string tag;
};

Expected expected_of(const Cell& cell) {
  Expected expected;
  expected.member = cell.guilty;
  expected.collective = cell.collective;
  expected.tag = tag_of(cell, "step");
  switch (cell.fault) {
    case Fault::kStalled:
    case Fault::kPastDeadline: expected.code = DIST_DEADLINE_EXCEEDED; break;
    case Fault::kCancelled:
    case Fault::kCancelledOutside:
    case Fault::kWorkCancelled:
      expected.code = DIST_CANCELLED;
      expected.member = -1;
      break;
    case Fault::kErrorUnderWay:
      expected.collective = DIST_COLLECTIVE_BARRIER;
      expected.tag = tag_of(cell, "after");
      expected.sequence = 3;
      break;
    default: break;
  }
  if (cell.disagrees()) {
    expected.code = DIST_INVALID_ARGUMENT;
    if (cell.members == 2) {
      expected.member = 1;
      const bool elsewhere = cell.fault <= Fault::kSwappedOrder;
      if (cell.guilty == 0 && elsewhere) {
        expected.collective = DIST_COLLECTIVE_BARRIER;
        expected.tag = tag_of(cell, cell.fault == Fault::kExtra ? "extra" : "after");
      }
    }
  }
  return expected;
}

std::string word_of(const Cell& cell) { return cell.devices() ? "logical device" : "replica"; }

// Whether the member's own call reports the fault. A member that leaves makes no call.
bool reports(const Cell& cell, int member) {
  if (member != cell.guilty) return true;
  switch (cell.fault) {
    case Fault::kEarlyReturn:
    case Fault::kErrorReturned:
    case Fault::kErrorUnderWay:
    case Fault::kThreadGone: return false;
    default: return true;
  }
}

// Checks which member is named, with -1 for none, and that replicas are not called devices or vice versa.
void check_culprit(const Cell& cell, int member, const Report& report, Findings& findings) {
  const bool device = cell.devices() && member >= 0;
  findings.equal<int64_t>("replica", report.replica, device ? cell.part_of : member);
  findings.equal<int64_t>("device", report.device, device ? member : -1);
}
void check_words(const Cell& cell, const Report& report, Findings& findings) {
  const char* const other = cell.devices() ? "replica" : "device";
  std::string message = report.message;
  // A message may state to which replica a logical device belongs.
  const std::string whose = " of replica " + std::to_string(cell.part_of);
  if (const std::size_t at = message.find(whose); cell.devices() && at != std::string::npos)
    message.erase(at, whose.size());
  findings.lacks("message", message.c_str(), other);
  findings.lacks("hint", report.hint, other);
}

void check_cycle(const Cell& cell, const Report& report, Findings& findings) {
  findings.has("message", report.message, "wait for each other");
  findings.has("message", report.message, word_of(cell) + " " + std::to_string(cell.guilty));
  findings.has("message", report.message, tag_of(cell, "step"));
  findings.some("hint", report.hint);
  // The report must name the member that closed the cycle, and where it waits.
  const int32_t member = cell.devices() ? report.device : report.replica;
  if (member < 0 || member >= cell.members) findings.some("culprit", "");
  check_culprit(cell, member, report, findings);
  findings.has("tag", report.tag, " of " + std::string(collective_name(cell.collective)));
  findings.some("expected", report.expected);
  findings.equal("a collective", report.collective != DIST_COLLECTIVE_NONE, true);
  findings.equal("a number", report.sequence > 0, true);
}

void check_report(const Cell& cell, const Expected& expected, const Report& report, Findings& findings) {
  findings.equal<int64_t>("code", report.code, expected.code);
  // If a run is cancelled at a random time, the collective that is waited for is not known.
  const bool cancelled = expected.code == DIST_CANCELLED;
  if (cancelled && cell.order == Order::kRace) return;
  check_words(cell, report, findings);
  if (cell.cycle()) return check_cycle(cell, report, findings);
  check_culprit(cell, expected.member, report, findings);
  findings.equal<int64_t>("collective", report.collective, expected.collective);
  findings.equal<int64_t>("sequence", report.sequence, expected.sequence);
  findings.equal("tag", report.tag, expected.tag);
  const bool grouped = cell.grouped && cell.collective != DIST_COLLECTIVE_MERGE_CALL;
  const bool barrier_of_all = cell.form == Form::kPlanned && cell.fault == Fault::kErrorUnderWay && !grouped;
  findings.equal("in a group", report.group != 0, grouped && !barrier_of_all);
  findings.some("expected", report.expected);
  findings.some("hint", report.hint);
  if (!cancelled) findings.some("received", report.received);
  if (cell.disagrees())
    findings.equal("expected and received alike", report.expected == report.received, false);
}

std::string check_run(const Cell& cell, const Expected& expected, const Outcome& outcome) {
  const bool caller_gone = cell.fault == Fault::kThreadGone && cell.guilty_calls();
  if (caller_gone) return "";
  Findings findings("the run", outcome.run_report);
  check_words(cell, outcome.run_report, findings);
  switch (cell.fault) {
    case Fault::kErrorReturned:
    case Fault::kErrorUnderWay:
      findings.equal<int64_t>("status", outcome.run, DIST_NOT_FOUND);
      check_culprit(cell, cell.guilty, outcome.run_report, findings);
      findings.equal<std::string>("message", outcome.run_report.message, "no row 7");
      break;
    case Fault::kThreadGone:
      findings.equal<int64_t>("status", outcome.run, DIST_FAILED_PRECONDITION);
      check_culprit(cell, cell.guilty, outcome.run_report, findings);
      findings.has("message", outcome.run_report.message, "thread ended");
      break;
    default:
      findings.equal<int64_t>("status", outcome.run, expected.code);
      if (cell.fault == Fault::kPastDeadline) {
        if (!cell.guilty_calls())
          findings.has("message", outcome.run_report.message,
                       "have not returned from their functions: " + word_of(cell));
        break;
      }
      if (!cell.cycle() && expected.code != DIST_CANCELLED)
        check_culprit(cell, expected.member, outcome.run_report, findings);
  }
  return findings.text();
}

// Checks the runs around logical devices. The other replica's devices must not be affected, unless everything
// was cancelled or the thread of that replica has ended. The run of replicas must fail with the result of the
// guilty replica.
std::string check_around(const Cell& cell, const Expected& expected, const Outcome& outcome) {
  const bool gone = cell.fault == Fault::kThreadGone && cell.guilty_calls();
  const bool cancelled = expected.code == DIST_CANCELLED;
  Findings beside("the other replica", outcome.beside_report);
  if (!gone || outcome.beside != DIST_ABORTED)
    beside.equal<int64_t>("status", outcome.beside, cancelled ? DIST_CANCELLED : DIST_OK);
  if (std::string text = beside.text(); !text.empty() || cell.ends_caller()) return text;
  const Report& report = outcome.around_report;
  Findings around("the run of replicas", report);
  around.equal<int64_t>("status", outcome.around, gone ? DIST_FAILED_PRECONDITION : outcome.run);
  if (gone) {
    around.equal<int64_t>("replica", report.replica, cell.part_of);
    around.equal<int64_t>("device", report.device, -1);
    around.has("message", report.message, "thread ended");
  } else if (!cancelled && cell.fault != Fault::kPastDeadline) {
    around.equal("message", report.message, outcome.run_report.message);
    around.equal<int64_t>("replica", report.replica, outcome.run_report.replica);
    around.equal<int64_t>("device", report.device, outcome.run_report.device);
  }
  return around.text();
}

}  // namespace

std::string judge(const Cell& cell, const Outcome& outcome) {
  if (!outcome.trouble.empty()) return outcome.trouble;
  const Expected expected = expected_of(cell);
  const Report* first = nullptr;
  for (int r = 0; r < cell.members; ++r) {
    if (!reports(cell, r)) continue;
    const Side& side = outcome.sides[r];
    Findings findings(word_of(cell) + " " + std::to_string(r), side.report);
    findings.equal<int64_t>("status", side.status, expected.code);
    check_report(cell, expected, side.report, findings);
    if (first == nullptr) first = &side.report;
    findings.equal("message", side.report.message, first->message);
    if (std::string text = findings.text(); !text.empty()) return text;
  }
  std::string text = check_run(cell, expected, outcome);
  return text.empty() && cell.devices() ? check_around(cell, expected, outcome) : text;
}

}  // namespace faults
