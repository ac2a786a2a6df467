// SPDX-License-Identifier: Apache-2.0
// How a worker detects that a collective cannot continue, and how the report is made.
#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/base/on_stack.hpp"
#include "core/base/text.hpp"
#include "core/comm/polling.hpp"
#include "core/comm/worker_communicator.hpp"

namespace dist {
namespace {

// Room for any reason why a worker cannot be reached.
constexpr std::size_t kWhyBytes = sizeof ErrorRecord::message;

[[gnu::format(printf, 2, 3)]] void append(ErrorRecord& report, const char* format, ...) noexcept {
  const std::size_t used = std::strlen(report.message);
  va_list arguments;
  va_start(arguments, format);
  (void)vwrite_marked(report.message + used, sizeof report.message - used, format, arguments);
  va_end(arguments);
}

}  // namespace

// The common first part of all reports.
ErrorRecord WorkerCommunicator::of_worker(WorkerRound& round, int worker, dist_status code) noexcept {
  ErrorRecord report = diagnosis_of(round, Trouble::kNone, 0);
  report.code = code;
  report.culprit = {kNoReplica, -1, named(worker)};
  return report;
}

ErrorRecord WorkerCommunicator::lost(WorkerRound& round, int worker) noexcept {
  // Without a transport, the fault is in this worker and not in its peers.
  const bool is_own = !transport_.reaches_others();
  ErrorRecord report = of_worker(round, is_own ? me_ : worker, DIST_UNAVAILABLE);
  char why[kWhyBytes];
  transport_.why_lost(worker, why, sizeof why);
  if (is_own) {
    append(report, "worker %d cannot reach the other workers%s%s", named(me_), *why == '\0' ? "" : ": ", why);
    copy_text(report.expected, "a transport to the other workers of the cluster");
    copy_text(report.hint, "Select another transport, or pass `dist_worker_options.network`."_m);
    return report;
  }
  append(report, "worker %d is lost%s%s", named(worker), *why == '\0' ? "" : ": ", why);
  if (transport_.given_up()) {
    copy_text(report.hint,
              "Find out what stopped this process, or set a longer DIST_LEASE_SECONDS for all workers.");
    return report;
  }
  copy_text(report.received, "nothing more");
  if (transport_.rejected(worker)) {
    copy_text(report.hint, "Correct what that worker gives as its reason, and start this worker again.");
  } else {
    copy_text(report.hint, "Find out why that worker ended or cannot be reached.");
  }
  return report;
}

ErrorRecord WorkerCommunicator::broken(WorkerRound& round, int worker, const char* what) noexcept {
  ErrorRecord report = of_worker(round, worker, DIST_INTERNAL);
  append(report, "worker %d sent %s", named(worker), what);
  copy_text(report.hint, "Run the same version of libdist and of the program on all workers.");
  return report;
}

ErrorRecord WorkerCommunicator::no_memory(WorkerRound& round, dist_status code) noexcept {
  ErrorRecord report = of_worker(round, me_, code);
  append(report, "worker %d is out of memory for the data of its peers", named(me_));
  return report;
}

// The report on a header with which this worker cannot continue.
ErrorRecord WorkerCommunicator::unlike(WorkerRound& round, int worker) noexcept {
  const Reading reading = round.reading(worker);
  const WorkerHeader& header = round.header(worker);
  if (reading == Reading::kBad) return broken(round, worker, "a header that cannot be read");
  ErrorRecord report = of_worker(round, worker, DIST_INVALID_ARGUMENT);
  if (reading == Reading::kOtherVersion) {
    append(report,
           "worker %d uses version %" PRIu32
           " of the protocol between workers, but worker %d uses version %" PRIu32
           ". Run the same version of libdist on all workers.",
           named(worker), header.version, named(me_), kWorkerVersion);
    std::snprintf(report.expected, sizeof report.expected, "version %" PRIu32, kWorkerVersion);
    std::snprintf(report.received, sizeof report.received, "version %" PRIu32, header.version);
    copy_text(report.hint, "Run the same version of libdist on all workers.");
    return report;
  }
  const CountText expected(members().count_of(worker), "replica");
  const CountText received(header.members, "replica");
  append(report,
         "worker %d has %s, but worker %d expects it to have %s. Give all workers the same number of "
         "replicas for each "
         "worker.",
         named(worker), received.text, named(me_), expected.text);
  copy_text(report.expected, expected.text);
  copy_text(report.received, received.text);
  copy_text(report.hint, "Give all workers the same number of replicas for each worker.");
  return report;
}

// The report on why the workers cannot continue the collective.
ErrorRecord WorkerCommunicator::report_on(WorkerRound& round, const WorkerRound::Problem& problem) noexcept {
  switch (problem.fault) {
    case WorkerRound::Fault::kHeader: return unlike(round, problem.worker);
    case WorkerRound::Fault::kTooLong: return broken(round, problem.worker, "a payload that is too long");
    case WorkerRound::Fault::kNoMemory: return no_memory(round, DIST_RESOURCE_EXHAUSTED);
    default: return diagnosis_of(round, Trouble::kDisagreement, 0);
  }
}

ErrorRecord WorkerCommunicator::report_of(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept {
  const std::lock_guard lock(mutex_);
  return diagnosis_of(round, trouble, waited_ns);
}

// Whether a worker has left and will never reach this round. For blocking collectives its notice contains the
// number of completed ones. If the worker failed, the rounds that it began in other streams are abandoned. If
// it returned OK, it completed all rounds that it began, and the notice contains their numbers: the number of
// asynchronous collectives, and the number of rounds of plans. If that many rounds of plans have met here,
// this round is not among them; otherwise their headers are still in flight, for which this waits a limited
// time.
bool WorkerCommunicator::has_gone(int worker, WorkerRound& round) noexcept {
  Peer& other = peer(worker);
  if (!leave_of(other).here() || !leave_of(other).good()) return false;
  const WorkerNotice& left = leave_of(other).notice;
  if (round.stream() == WorkerRound::kBlocking) return left.completed < round.number();
  if (left.record.code != DIST_OK) return true;
  if (round.stream() == kAsynchronous) return left.begun < round.number();
  if (round.has_header(worker)) return false;
  if (planned_met_ == left.planned) return true;
  const int64_t now = steady_now_ns();
  if (other.left_ns == 0) other.left_ns = now;
  return now - other.left_ns >= kReportGraceNs;
}

// Whether the worker has gone for a reason of its own. A worker that left because others had ended a
// collective is not the culprit.
bool WorkerCommunicator::left_by_itself(int worker, WorkerRound& round) noexcept {
  if (!has_gone(worker, round)) return false;
  const ErrorRecord& record = leave_of(peer(worker)).notice.record;
  return record.code == DIST_OK || record.culprit.worker < 0;
}

// Trouble::kNone selects only the common first part of all reports.
ErrorRecord WorkerCommunicator::diagnosis_of(WorkerRound& round, Trouble trouble,
                                             int64_t waited_ns) noexcept {
  const int n = num_workers();
  auto* const signatures = DIST_ON_STACK(const Signature*, n);
  auto* const failures = DIST_ON_STACK(const ErrorRecord*, n);
  std::fill_n(signatures, n, nullptr);
  std::fill_n(failures, n, nullptr);
  for (int w = 0; w < n; ++w) {
    Peer& other = peer(w);
    if (w == me_) {
      signatures[w] = &round.own_signature();
    } else if (left_by_itself(w, round)) {
      other.departed = departure();
      other.departed.returned = leave_of(other).notice.record.code;
      signatures[w] = &other.departed;
      failures[w] = &leave_of(other).notice.record;
    } else if (round.has_header(w)) {
      signatures[w] = &round.header(w).signature;
    }
  }
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, static_cast<std::size_t>(n)};
  evidence.failures = {failures, static_cast<std::size_t>(n)};
  evidence.group = group_.number();
  evidence.naming.workers = true;
  evidence.local_ranks = names_.empty() ? nullptr : names_.data();
  evidence.sequence = static_cast<int64_t>(round.number());
  evidence.waited_ns = waited_ns;
  evidence.given_ns = group_.deadline().given_ns;
  evidence.reason = group_.cancel_reason();
  if (trouble == Trouble::kNone) return opening(evidence);
  // The connections to the workers that did not arrive.
  char why[kWhyBytes] = "";
  for (int w = 0; w < n; ++w) {
    if (signatures[w] != nullptr) continue;
    const std::size_t used = std::strlen(why);
    constexpr char kAnd[] = "; ";
    if (used + sizeof kAnd >= sizeof why) break;
    const std::size_t at = used == 0 ? 0 : used + sizeof kAnd - 1;
    transport_.why_lost(w, why + at, sizeof why - at);
    if (why[at] != '\0' && used != 0) std::memcpy(why + used, kAnd, sizeof kAnd - 1);
  }
  if (const std::size_t length = std::strlen(why); length != 0 && why[length - 1] == '.')
    why[length - 1] = '\0';
  evidence.state = why;
  ErrorRecord report = diagnosis(evidence);
  // The worker's own report names the replica.
  for (int w = 0; w < n; ++w) {
    if (named(w) != report.culprit.worker || failures[w] == nullptr) continue;
    report.culprit.replica = failures[w]->culprit.replica;
    report.culprit.logical_device = failures[w]->culprit.logical_device;
  }
  return report;
}

// Copies the whole's notices to a part. A worker that left the run without using the part sends no notice for
// it, so the whole's notice is used.
void WorkerCommunicator::hear_of_whole() noexcept {
  if (whole_ == nullptr) return;
  each_peer([&](int w, Peer& peer) {
    const Incoming& whole = whole_->leave_of(whole_->peer(workers_[static_cast<std::size_t>(w)]));
    Incoming& own = leave_of(peer);
    if (own.here() || whole.transfer.end() != Transfer::End::kDone) return;
    own.reading = own.notice.read(whole.bytes);
    if (own.reading == Reading::kGood && is_in(own.notice.parts)) return;
    own.notice.completed = 0;
    own.notice.begun = 0;
    own.notice.planned = 0;
    own.notice.reported = false;
    own.read = own.elsewhere = true;
  });
}

// Whether worker 0's report concerns this collective. A blocking collective that worker 0 has completed also
// completes here, as soon as its messages have arrived.
bool WorkerCommunicator::is_told_of(const WorkerRound& round) noexcept {
  return !report_.good() || round.stream() != WorkerRound::kBlocking ||
         report_.notice.completed < round.number();
}

// Looks for failures that notices report.
bool WorkerCommunicator::find_told(WorkerRound& round, Found* out) noexcept {
  hear_of_whole();
  if (me_ != 0 && report_.here() && is_told_of(round)) {
    *out = report_.good() ? Found{report_.notice.record, true}
                          : Found{broken(round, 0, "a report that cannot be read"), false};
    return true;
  }
  bool found = false;
  bool left = false;
  each_peer([&](int w, Peer& other) {
    if (found || !leave_of(other).here()) return;
    if (!leave_of(other).good()) {
      *out = {broken(round, w, "a notice that cannot be read"), false};
      found = true;
    } else if (has_gone(w, round)) {
      left = left || left_by_itself(w, round);
      if (left_by_itself(w, round)) return;
      // The report that it received is valid for all workers.
      *out = {leave_of(other).notice.record, true};
      found = true;
    }
  });
  if (left && !found) *out = {diagnosis_of(round, Trouble::kDisagreement, 0), false};
  return found || left;
}

int WorkerCommunicator::first_lost() noexcept {
  int first = -1;
  each_peer([&](int w, const Peer&) {
    if (first < 0 && transport_.lost(w)) first = w;
  });
  return first;
}

// Explains why the collective cannot continue, as far as this worker has found out or been informed. Returns
// false if nothing is wrong.
bool WorkerCommunicator::find_trouble(WorkerRound& round, Found* out) noexcept {
  const std::lock_guard lock(mutex_);
  if (find_told(round, out)) return true;
  int worker = -1;
  Transfer::End end;
  const bool fails = round.trouble(&worker, &end);
  if (!transport_.up_to_date() && (!fails || end == Transfer::End::kLost)) {
    // This worker did not run for a while, so its peers may have declared it lost and left for that reason.
    // Worker 0 answers soon, or is lost.
    if (me_ != 0 && !transport_.given_up() && !transport_.lost(0)) return false;
    // No answer will come, so this worker counts as lost, whatever messages it has received.
    worker = first_lost();
    end = Transfer::End::kLost;
    if (worker < 0) return false;
  } else if (!fails) {
    return false;
  }
  switch (end) {
    // A worker that leaves because worker 0 is lost is not the cause.
    case Transfer::End::kLost:
      *out = {lost(round, transport_.given_up() ? me_ : transport_.lost(0) ? 0 : worker), false};
      break;
    case Transfer::End::kMisfit:
      *out = {broken(round, worker, "a message of an unexpected size"), false};
      break;
    // Only close() cancels transfers that are waited for.
    default: *out = {lost(round, me_), false}; break;
  }
  return true;
}

WorkerCommunicator::ReporterSays WorkerCommunicator::ask_reporter() noexcept {
  hear_of_whole();
  if (report_.transfer.over())
    return report_.here() && report_.good() ? ReporterSays::kReport : ReporterSays::kNothing;
  // Either the reporter has left without a report, or its notice announces that one will follow.
  Peer& reporter = peer(0);
  if (transport_.lost(0)) return ReporterSays::kNothing;
  if (leave_of(reporter).here() && !(leave_of(reporter).good() && leave_of(reporter).notice.reported))
    return ReporterSays::kNothing;
  return steady_now_ns() - failing_since_ns_ < kReportGraceNs ? ReporterSays::kNothingYet
                                                              : ReporterSays::kNothing;
}

void WorkerCommunicator::tell_all(const ErrorRecord& report) noexcept {
  WorkerNotice told;
  told.completed = completed_.load(std::memory_order_relaxed);
  told.record = report;
  told.write(own_report_);
  reported_.store(true, std::memory_order_relaxed);
  each_peer([&](int w, Peer& other) {
    transport_.send(w, notice(kReports), own_report_, WorkerNotice::kBytes, other.send_report);
  });
}

// Only worker 0 knows why a worker has not joined, but another worker's deadline may expire first.
void WorkerCommunicator::add_state(ErrorRecord& report) noexcept {
  if (report.code != DIST_DEADLINE_EXCEEDED) return;
  each_peer([&](int w, const Peer&) {
    if (named(w) != report.culprit.worker || transport_.lost(w)) return;
    char why[kWhyBytes];
    transport_.why_lost(w, why, sizeof why);
    if (*why != '\0' && std::strstr(report.message, why) == nullptr)
      append(report, ". Last known state at worker %d: %s", named(me_), why);
  });
}

// Ends the run with one report: the reporter's if there is one, otherwise the first failure that was found
// here.
bool WorkerCommunicator::try_to_fail(const Found& found) noexcept {
  const std::lock_guard lock(mutex_);
  if (group_.aborted()) return true;
  if (!failing_) {
    failing_ = true;
    found_ = found;
    if (me_ == 0 && found.told) add_state(found_.report);
    found_.report.of_all = true;
    failing_since_ns_ = steady_now_ns();
    if (me_ == 0) tell_all(found_.report);
  }
  // A report received from another worker is used as it is, so all its receivers return the same one.
  if (me_ != 0 && !found_.told) {
    const ReporterSays says = ask_reporter();
    if (says == ReporterSays::kNothingYet) return false;
    if (says == ReporterSays::kReport) {
      found_.report = report_.notice.record;
    } else if (transport_.reaches_others() && !transport_.given_up()) {
      const char* const reporter = transport_.lost(0)         ? "cannot be reached"
                                   : leave_of(peer(0)).here() ? "has left"
                                                              : "did not answer";
      append(found_.report, " (reported by worker %d only: worker %d, which reports for all workers, %s)",
             named(me_), named(0), reporter);
    }
  }
  group_.condemn(found_.report);
  return true;
}

Status WorkerCommunicator::fail_all(const WorkerRound::Problem& problem) noexcept {
  Found found;
  {
    const std::lock_guard lock(mutex_);
    found.report = report_on(*round_, problem);
  }
  return fail_all(found);
}

Status WorkerCommunicator::fail_all(const Found& found) noexcept {
  constexpr int64_t kLookNs = 10'000'000;
  round_->take_back();
  for (;;) {
    const uint32_t seen = group_.progress().value.load(std::memory_order_acquire);
    transport_.progress();
    if (try_to_fail(found)) return group_.failure();
    const Sleeping sleeping(transport_, polling_);
    group_.progress().sleep(seen, kLookNs, group_.policy(),
                            [&] { return report_.transfer.over() || group_.aborted(); });
  }
}

bool WorkerCommunicator::goes_on(WorkerRound& round) noexcept {
  Found found;
  bool failing;
  {
    const std::lock_guard lock(mutex_);
    failing = failing_;
    if (round.stream() >= kFirstPlanned && round.has_just_met()) ++planned_met_;
  }
  if (!failing && !find_trouble(round, &found)) return true;
  (void)try_to_fail(found);
  return false;
}

void WorkerCommunicator::fail(WorkerRound& round, const WorkerRound::Problem& problem) noexcept {
  Found found;
  {
    const std::lock_guard lock(mutex_);
    found.report = report_on(round, problem);
  }
  (void)try_to_fail(found);
}

void WorkerCommunicator::fail(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept {
  (void)try_to_fail({report_of(round, trouble, waited_ns), false});
}

}  // namespace dist
