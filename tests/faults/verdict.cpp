// SPDX-License-Identifier: Apache-2.0
// The rule: the culprit is the one that left, else the minority, else (a tie) all that differ, with the
// lowest id's line as what was expected.
#include "tests/faults/verdict.hpp"

namespace faults {
namespace {

struct Expected {
  dist_status code = DIST_ABORTED;
  int32_t replica = -1;
  int32_t collective = 0;
  int64_t sequence = 2;  // "before" was the first
  std::string tag;
};

Expected expected_of(const Cell& cell) {
  Expected expected;
  expected.replica = cell.guilty;
  expected.collective = cell.collective;
  expected.tag = tag_of(cell, "step");
  switch (cell.fault) {
    case Fault::kStalled:
    case Fault::kPastDeadline: expected.code = DIST_DEADLINE_EXCEEDED; break;
    case Fault::kCancelled:
    case Fault::kCancelledOutside:
    case Fault::kWorkCancelled:
      expected.code = DIST_CANCELLED;
      expected.replica = -1;
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
    if (cell.replicas == 2) {
      expected.replica = 1;
      const bool elsewhere = cell.fault <= Fault::kSwappedOrder;
      if (cell.guilty == 0 && elsewhere) {
        expected.collective = DIST_COLLECTIVE_BARRIER;
        expected.tag = tag_of(cell, cell.fault == Fault::kExtra ? "extra" : "after");
      }
    }
  }
  return expected;
}

// Whether the replica's own call reports the trouble: one that leaves makes none.
bool reports(const Cell& cell, int replica) {
  if (replica != cell.guilty) return true;
  switch (cell.fault) {
    case Fault::kEarlyReturn:
    case Fault::kErrorReturned:
    case Fault::kErrorUnderWay:
    case Fault::kThreadGone: return false;
    default: return true;
  }
}

// Collects what is not as it should be.
class Findings {
 public:
  explicit Findings(std::string who, const Report& report) : who_(std::move(who)), report_(report) {}

  template <class T>
  void equal(const char* what, const T& got, const T& expected) {
    if (got == expected) return;
    add(std::string(what) + " is " + shown(got) + ", not " + shown(expected));
  }
  void has(const char* what, const std::string& text, const std::string& words) {
    if (text.find(words) == std::string::npos) add(std::string(what) + " lacks '" + words + "'");
  }
  void some(const char* what, const std::string& text) {
    if (text.empty()) add(std::string(what) + " is empty");
  }
  std::string text() const {
    return text_.empty() ? "" : who_ + ": " + text_ + "; it says: " + report_.message;
  }

 private:
  static std::string shown(const std::string& text) { return "'" + text + "'"; }
  static std::string shown(int64_t number) { return std::to_string(number); }
  void add(const std::string& finding) { text_ += (text_.empty() ? "" : ", ") + finding; }

  const std::string who_;
  const Report& report_;
  std::string text_;
};

void check_cycle(const Cell& cell, const Report& report, Findings& findings) {
  findings.has("message", report.message, "wait for each other");
  findings.has("message", report.message, "replica " + std::to_string(cell.guilty));
  findings.has("message", report.message, tag_of(cell, "step"));
  findings.some("hint", report.hint);
  // Who closed the cycle is named, and where that one waits.
  if (report.replica < 0 || report.replica >= cell.replicas) findings.some("replica", "");
  findings.has("tag", report.tag, " of " + std::string(collective_name(cell.collective)));
  findings.some("expected", report.expected);
  findings.equal("a collective", report.collective != DIST_COLLECTIVE_NONE, true);
  findings.equal("a number", report.sequence > 0, true);
}

void check_report(const Cell& cell, const Expected& expected, const Report& report, Findings& findings) {
  findings.equal<int64_t>("code", report.code, expected.code);
  // What is being waited for when a run is cancelled at any moment nobody can say.
  const bool cancelled = expected.code == DIST_CANCELLED;
  if (cancelled && cell.order == Order::kRace) return;
  if (cell.cycle()) return check_cycle(cell, report, findings);
  findings.equal<int64_t>("replica", report.replica, expected.replica);
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
  const bool caller_gone =
      cell.fault == Fault::kThreadGone && cell.threads == DIST_THREADS_CALLER && cell.guilty == 0;
  if (caller_gone) return "";
  Findings findings("the run", outcome.run_report);
  switch (cell.fault) {
    case Fault::kErrorReturned:
    case Fault::kErrorUnderWay:
      findings.equal<int64_t>("status", outcome.run, DIST_NOT_FOUND);
      findings.equal<int64_t>("replica", outcome.run_report.replica, cell.guilty);
      findings.equal<std::string>("message", outcome.run_report.message, "no row 7");
      break;
    case Fault::kThreadGone:
      findings.equal<int64_t>("status", outcome.run, DIST_FAILED_PRECONDITION);
      findings.equal<int64_t>("replica", outcome.run_report.replica, cell.guilty);
      findings.has("message", outcome.run_report.message, "thread ended");
      break;
    default:
      findings.equal<int64_t>("status", outcome.run, expected.code);
      if (cell.fault == Fault::kPastDeadline) break;
      if (!cell.cycle() && expected.code != DIST_CANCELLED)
        findings.equal<int64_t>("replica", outcome.run_report.replica, expected.replica);
  }
  return findings.text();
}

}  // namespace

std::string judge(const Cell& cell, const Outcome& outcome) {
  if (!outcome.trouble.empty()) return outcome.trouble;
  const Expected expected = expected_of(cell);
  const Report* first = nullptr;
  for (int r = 0; r < cell.replicas; ++r) {
    if (!reports(cell, r)) continue;
    const Side& side = outcome.sides[r];
    Findings findings("replica " + std::to_string(r), side.report);
    findings.equal<int64_t>("status", side.status, expected.code);
    check_report(cell, expected, side.report, findings);
    if (first == nullptr) first = &side.report;
    findings.equal("message", side.report.message, first->message);
    if (std::string text = findings.text(); !text.empty()) return text;
  }
  return check_run(cell, expected, outcome);
}

}  // namespace faults
