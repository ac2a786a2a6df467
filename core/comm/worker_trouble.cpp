// SPDX-License-Identifier: Apache-2.0
// How a worker finds that a collective cannot go on, and what is said about it.
#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/comm/workers.hpp"

namespace dist {
namespace {

bool done(const Transfer& transfer) noexcept { return transfer.end() == Transfer::End::kDone; }

[[gnu::format(printf, 2, 3)]] void append(ErrorRecord& report, const char* format, ...) noexcept {
  const std::size_t used = std::strlen(report.message);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(report.message + used, sizeof report.message - used, format, arguments);
  va_end(arguments);
}

}  // namespace

// What all reports begin with, of this worker.
ErrorRecord WorkerMeeting::of_worker(int worker, dist_status code) noexcept {
  ErrorRecord report = verdict_of(Trouble::kNone, 0);
  report.code = code;
  report.culprit = {kNoReplica, -1, named(worker)};
  return report;
}

ErrorRecord WorkerMeeting::lost(int worker) noexcept {
  ErrorRecord report = of_worker(worker, DIST_UNAVAILABLE);
  if (!transport_.reaches_others()) {
    append(report, "nothing reaches worker %d", named(worker));
    copy_text(report.expected, "a transport to the other workers of the cluster");
    copy_text(report.hint,
              "give dist_strategy_options.network, for workers that are strategies of one process");
    return report;
  }
  append(report, "worker %d is lost", named(worker));
  copy_text(report.received, "nothing more");
  copy_text(report.hint, "look at why that worker has ended, or cannot be reached");
  return report;
}

ErrorRecord WorkerMeeting::broken(int worker, const char* what) noexcept {
  ErrorRecord report = of_worker(worker, DIST_INTERNAL);
  append(report, "worker %d sent %s", named(worker), what);
  copy_text(report.hint, "all workers run the same version of libdist and of the program");
  return report;
}

ErrorRecord WorkerMeeting::no_memory(dist_status code) noexcept {
  ErrorRecord report = of_worker(me_, code);
  append(report, "worker %d has no memory for what the others bring", named(me_));
  return report;
}

// A header that this worker cannot go on from.
ErrorRecord WorkerMeeting::unlike(int worker, const Peer& peer) noexcept {
  if (peer.reading == Reading::kBad) return broken(worker, "a header that cannot be read");
  ErrorRecord report = of_worker(worker, DIST_INVALID_ARGUMENT);
  if (peer.reading == Reading::kOtherVersion) {
    append(report,
           "worker %d speaks version %" PRIu32 " of the workers' protocol, and worker %d version %" PRIu32,
           named(worker), peer.header.version, named(me_), kWorkerVersion);
    std::snprintf(report.expected, sizeof report.expected, "version %" PRIu32, kWorkerVersion);
    std::snprintf(report.received, sizeof report.received, "version %" PRIu32, peer.header.version);
    copy_text(report.hint, "run the same version of libdist on all workers");
    return report;
  }
  append(report, "worker %d has %" PRId32 " replicas, but worker %d was told that it has %d", named(worker),
         peer.header.members, named(me_), peer.members);
  std::snprintf(report.expected, sizeof report.expected, "%d replicas", peer.members);
  std::snprintf(report.received, sizeof report.received, "%" PRId32 " replicas", peer.header.members);
  copy_text(report.hint, "tell all workers the same numbers of replicas, worker by worker");
  return report;
}

// Whether it has left before this collective, and not since others had ended one: then it is not the culprit.
bool WorkerMeeting::left_by_itself(Peer& peer) noexcept {
  if (!peer.leave.here() || !peer.leave.good() || peer.leave.notice.completed >= number_) return false;
  const ErrorRecord& record = peer.leave.notice.record;
  return record.code == DIST_OK || record.culprit.worker < 0;
}

// kNone: only what all reports begin with.
ErrorRecord WorkerMeeting::verdict_of(Trouble trouble, int64_t waited_ns) noexcept {
  const Signature* signatures[DIST_MAX_REPLICAS] = {};
  const ErrorRecord* failures[DIST_MAX_REPLICAS] = {};
  const int n = std::min(num_workers(), static_cast<int>(DIST_MAX_REPLICAS));
  for (int w = 0; w < n; ++w) {
    Peer& peer = peers_[static_cast<std::size_t>(w)];
    if (w == me_) {
      signatures[w] = &own_.signature;
    } else if (left_by_itself(peer)) {
      peer.departed = departure();
      peer.departed.returned = peer.leave.notice.record.code;
      signatures[w] = &peer.departed;
      failures[w] = &peer.leave.notice.record;
    } else if (peer.good()) {
      signatures[w] = &peer.header.signature;
    }
  }
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, static_cast<std::size_t>(n)};
  evidence.failures = {failures, static_cast<std::size_t>(n)};
  evidence.group = group_.number();
  evidence.naming.workers = true;
  evidence.seats = workers_.empty() ? nullptr : workers_.data();
  evidence.sequence = static_cast<int64_t>(number_);
  evidence.waited_ns = waited_ns;
  evidence.given_ns = group_.deadline().given_ns;
  evidence.reason = group_.cancel_reason();
  if (trouble == Trouble::kNone) return opening(evidence);
  ErrorRecord report = verdict(evidence);
  // Which of a worker's replicas it was, says its own report.
  for (int w = 0; w < n; ++w) {
    if (named(w) != report.culprit.worker || failures[w] == nullptr) continue;
    report.culprit.replica = failures[w]->culprit.replica;
    report.culprit.logical_device = failures[w]->culprit.logical_device;
  }
  return report;
}

// Of a part: a worker that has left the run without having come here gives no notice of it but the whole's.
void WorkerMeeting::hear_of_whole() noexcept {
  if (whole_ == nullptr) return;
  each_peer([&](int w, Peer& peer) {
    const Incoming& whole = whole_->peers_[static_cast<std::size_t>(named(w))].leave;
    if (peer.leave.here() || whole.transfer.end() != Transfer::End::kDone) return;
    peer.leave.reading = peer.leave.notice.read(whole.bytes);
    if (peer.leave.reading == Reading::kGood && is_in(peer.leave.notice.parts)) return;
    peer.leave.notice.completed = 0;
    peer.leave.notice.reported = false;
    peer.leave.read = peer.leave.elsewhere = true;
  });
}

// Why the collective cannot go on here, as far as this worker knows or has been told; false: nothing is wrong.
bool WorkerMeeting::find_trouble(Found* out) noexcept {
  hear_of_whole();
  if (me_ != 0 && report_.here()) {
    *out = report_.good() ? Found{report_.notice.record, true}
                          : Found{broken(0, "a report that cannot be read"), false};
    return true;
  }
  bool found = false;
  bool left = false;
  each_peer([&](int w, Peer& peer) {
    if (found || !peer.leave.here()) return;
    if (!peer.leave.good()) {
      *out = {broken(w, "a notice that cannot be read"), false};
      found = true;
    } else if (peer.leave.notice.completed < number_) {
      left = left || left_by_itself(peer);
      if (left_by_itself(peer)) return;
      // What it was told holds for all.
      *out = {peer.leave.notice.record, true};
      found = true;
    }
  });
  if (left && !found) {
    *out = {verdict_of(Trouble::kDisagreement, 0), false};
    return true;
  }
  each_transfer([&](int w, const Transfer& transfer) {
    if (found || !transfer.over() || done(transfer)) return;
    found = true;
    switch (transfer.end()) {
      case Transfer::End::kLost: *out = {lost(w), false}; break;
      case Transfer::End::kMisfit: *out = {broken(w, "a message of another size"), false}; break;
      // Nobody but close() cancels what is waited for.
      default: *out = {lost(me_), false}; break;
    }
  });
  return found;
}

// Up to kReportGraceNs; whether the leader's report is there.
bool WorkerMeeting::await_leader() noexcept {
  Peer& leader = peers_[0];
  const int64_t begin = steady_now_ns();
  for (;;) {
    const uint32_t seen = group_.progress().value.load(std::memory_order_acquire);
    transport_.progress();
    hear_of_whole();
    if (report_.transfer.over()) return report_.here() && report_.good();
    if (group_.poisoned()) return false;
    // It has left without a word, or a report is still to come behind that notice.
    if (transport_.lost(0)) return false;
    if (leader.leave.here() && !(leader.leave.good() && leader.leave.notice.reported)) return false;
    const int64_t left = kReportGraceNs - (steady_now_ns() - begin);
    if (left <= 0) return false;
    group_.progress().sleep(seen, std::min<int64_t>(left, 10'000'000), group_.policy(),
                            [&] { return report_.transfer.over() || group_.poisoned(); });
  }
}

// Ends the collective here with one report: the leader's where there is one, else what was found.
Status WorkerMeeting::fail_all(const Found& found) noexcept {
  take_back();
  ErrorRecord report = found.report;
  report.of_all = true;
  if (me_ == 0) {
    WorkerNotice notice;
    notice.completed = completed_.load(std::memory_order_relaxed);
    notice.record = report;
    notice.write(own_report_);
    reported_.store(true, std::memory_order_relaxed);
    each_peer([&](int w, Peer& peer) {
      transport_.send(w, key(kReports), own_report_, WorkerNotice::kBytes, peer.send_report);
    });
  } else if (found.told) {
    // All who hear of it say the same.
  } else if (await_leader()) {
    report = report_.notice.record;
  } else {
    append(report, "; worker %d says so alone: it has not heard from worker %d, which reports for all",
           named(me_), named(0));
  }
  group_.condemn(report);
  return group_.failure();
}

}  // namespace dist
