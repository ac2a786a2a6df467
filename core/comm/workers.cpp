// SPDX-License-Identifier: Apache-2.0
#include "core/comm/workers.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace dist {
namespace {

static_assert(std::is_trivially_copyable_v<WorkerHeader> && std::is_trivially_copyable_v<WorkerNotice>);

template <class Message>
const std::byte* bytes_of(const Message& message) noexcept {
  return reinterpret_cast<const std::byte*>(&message);
}
template <class Message>
std::byte* bytes_of(Message& message) noexcept {
  return reinterpret_cast<std::byte*>(&message);
}

bool done(const Transfer& transfer) noexcept { return transfer.end() == Transfer::End::kDone; }

template <std::size_t N>
bool ends(const char (&text)[N]) noexcept {
  return std::memchr(text, '\0', N) != nullptr;
}

// Whether what a peer sent can be read. Numbers that only go into words are not looked at.
bool readable(const WorkerHeader& header, int members) noexcept {
  const Signature& s = header.signature;
  return header.magic == WorkerHeader::kMagic && header.version == WorkerHeader::kVersion &&
         header.members == members && s.collective > Collective::kNone && s.collective < Collective::kEnd &&
         s.ndim >= 0 && s.ndim <= DIST_MAX_NDIM && ends(s.tag) &&
         (s.collective != Collective::kMergeCall ||
          (s.kind >= 0 && s.kind <= static_cast<int32_t>(MergeFor::kUpdate)));
}
bool readable(const WorkerNotice& notice) noexcept {
  const ErrorRecord& r = notice.record;
  return notice.magic == WorkerHeader::kMagic && notice.version == WorkerHeader::kVersion &&
         ends(r.message) && ends(r.tag) && ends(r.expected) && ends(r.received) && ends(r.hint);
}

}  // namespace

Status Payload::resize(std::size_t bytes) noexcept {
  if (bytes > room_) {
    // Doubled, so that sizes that grow a little from call to call do not allocate each time.
    const std::size_t room = bytes > room_ / 2 && bytes < most_of<std::byte>() / 2 ? bytes * 2 : bytes;
    memory_.free(data_, room_, kAlign);
    room_ = 0;
    bytes_ = 0;
    data_ = static_cast<std::byte*>(memory_.try_allocate(room, kAlign));
    if (data_ == nullptr) return out_of_memory();
    room_ = room;
  }
  bytes_ = bytes;
  return kOk;
}

WorkerMeeting::WorkerMeeting(Memory& memory, Transport& transport, Group& group, const Host& host,
                             const Options& options)
    : transport_(transport),
      group_(group),
      host_(host),
      timeout_ns_(options.timeout_ns),
      most_bytes_(options.most_bytes),
      me_(transport.me()),
      own_sizes_(static_cast<std::size_t>(group.size()), &memory),
      peers_(&memory),
      outgoing_(&memory),
      tables_(&memory),
      incoming_(&memory),
      payload_transfers_(&memory) {
  for (const int members : options.members) {
    Peer& peer = peers_.emplace_back(memory);
    peer.first = num_members_;
    peer.members = members;
    num_members_ += members;
    peer.sizes.resize(static_cast<std::size_t>(members));
    if (num_workers() - 1 == me_) continue;
    for (int p = 0; p < members; ++p) peer.receive_payloads.push_back(&payload_transfers_.emplace_back());
    for (int p = 0; p < group.size(); ++p) peer.send_payloads.push_back(&payload_transfers_.emplace_back());
  }
  for (std::pmr::vector<Payload>* each : {&outgoing_, &tables_}) {
    each->reserve(static_cast<std::size_t>(group.size()));
    for (int p = 0; p < group.size(); ++p) each->emplace_back(memory);
  }
  incoming_.reserve(static_cast<std::size_t>(num_members_));
  for (int p = 0; p < num_members_; ++p) incoming_.emplace_back(memory);
  transport_.listen(this);
}

WorkerMeeting::~WorkerMeeting() {
  cancel_all();
  transport_.listen(nullptr);
}

template <class Body>
void WorkerMeeting::each_peer(Body&& body) noexcept {
  for (int w = 0; w < num_workers(); ++w) {
    if (w != me_) body(w, peers_[static_cast<std::size_t>(w)]);
  }
}

// Those of a collective: notices stay.
template <class Body>
void WorkerMeeting::each_transfer(Body&& body) noexcept {
  each_peer([&](int w, Peer& peer) {
    for (Transfer* each : {&peer.send_header, &peer.receive_header, &peer.send_sizes, &peer.receive_sizes})
      body(w, *each);
    for (Transfer* each : peer.receive_payloads) body(w, *each);
    for (Transfer* each : peer.send_payloads) body(w, *each);
  });
}

MessageKey WorkerMeeting::key(Series series, uint32_t part) const noexcept {
  const bool notice = series == kLeaves || series == kReports;
  return {.generation = 0,
          .run = run_,
          .group = group_.number(),
          .series = series,
          .number = notice ? 0 : number_,
          .part = part};
}

void WorkerMeeting::end(Transfer& transfer) noexcept {
  transport_.cancel(transfer);
  // Soon: what is being copied is copied to its end.
  while (!transfer.over()) transport_.progress();
}

// The payloads are this worker's again.
void WorkerMeeting::take_back() noexcept {
  each_transfer([&](int, Transfer& transfer) { end(transfer); });
}

void WorkerMeeting::cancel_all() noexcept {
  take_back();
  each_peer([&](int, Peer& peer) {
    for (Transfer* each : {&peer.send_leave, &peer.receive_leave, &peer.send_report}) end(*each);
  });
  end(receive_report_);
}

void WorkerMeeting::begin_run() noexcept {
  cancel_all();
  // How those of the last run ended is not trouble of this one, which may not begin them again.
  each_transfer([](int, Transfer& transfer) { transfer.finish(Transfer::End::kDone); });
  ++run_;
  number_ = 0;
  completed_ = 0;
  reported_ = false;
  transport_.forget(0, run_);
  each_peer([&](int w, Peer& peer) {
    transport_.receive(w, key(kLeaves), bytes_of(peer.leave), sizeof peer.leave, peer.receive_leave);
  });
  if (me_ != 0) {
    transport_.receive(0, key(kReports), bytes_of(leader_report_), sizeof leader_report_, receive_report_);
  }
}

void WorkerMeeting::leave(Status returned, const ErrorRecord& failure) noexcept {
  own_leave_ = WorkerNotice{};
  own_leave_.completed = completed_;
  own_leave_.reported = reported_ ? 1 : 0;
  if (!returned.ok()) own_leave_.record = failure;
  own_leave_.record.code = returned.code();
  each_peer([&](int w, Peer& peer) {
    transport_.send(w, key(kLeaves), bytes_of(own_leave_), sizeof own_leave_, peer.send_leave);
  });
  // Nobody may come back here for long, and a transport has no thread of its own: what has been said goes out
  // first. It needs no peer, but for its credit.
  const int64_t begin = steady_now_ns();
  for (bool out = false; !out && steady_now_ns() - begin < kReportGraceNs;) {
    transport_.progress();
    out = true;
    each_peer([&](int, const Peer& peer) { out = out && peer.send_leave.over() && peer.send_report.over(); });
    if (!out) yield_this_thread();
  }
}

ErrorRecord WorkerMeeting::of_worker(int worker, dist_status code, const char* format, ...) noexcept {
  ErrorRecord report = verdict_of(Trouble::kNone, 0);
  report.code = code;
  report.culprit = {kNoReplica, -1, worker};
  const std::size_t used = std::strlen(report.message);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(report.message + used, sizeof report.message - used, format, arguments);
  va_end(arguments);
  return report;
}

ErrorRecord WorkerMeeting::lost(int worker) noexcept {
  if (!transport_.reaches_others()) {
    ErrorRecord report = of_worker(worker, DIST_UNAVAILABLE, "nothing reaches worker %d", worker);
    copy_text(report.expected, "a transport to the other workers of the cluster");
    copy_text(report.hint, "give dist_strategy_options.network, for workers that are strategies of one process");
    return report;
  }
  ErrorRecord report = of_worker(worker, DIST_UNAVAILABLE, "worker %d is lost", worker);
  copy_text(report.received, "nothing more");
  copy_text(report.hint, "look at why that worker has ended, or cannot be reached");
  return report;
}

ErrorRecord WorkerMeeting::broken(int worker, const char* what) noexcept {
  ErrorRecord report = of_worker(worker, DIST_INTERNAL, "worker %d sent %s", worker, what);
  copy_text(report.hint, "all workers run the same version of libdist and of the program");
  return report;
}

// Whether it has left before this collective, and not since others had ended one: then it is not the culprit.
bool WorkerMeeting::left_by_itself(const Peer& peer) const noexcept {
  if (!peer.left() || !readable(peer.leave) || peer.leave.completed >= number_) return false;
  return peer.leave.record.code == DIST_OK || peer.leave.record.culprit.worker < 0;
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
      peer.departed.returned = peer.leave.record.code;
      signatures[w] = &peer.departed;
      failures[w] = &peer.leave.record;
    } else if (done(peer.receive_header) && readable(peer.header, peer.members)) {
      signatures[w] = &peer.header.signature;
    }
  }
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, static_cast<std::size_t>(n)};
  evidence.failures = {failures, static_cast<std::size_t>(n)};
  evidence.group = group_.number();
  evidence.naming.workers = true;
  evidence.sequence = static_cast<int64_t>(number_);
  evidence.waited_ns = waited_ns;
  evidence.given_ns = group_.deadline().given_ns;
  evidence.reason = group_.cancel_reason();
  if (trouble == Trouble::kNone) return opening(evidence);
  ErrorRecord report = verdict(evidence);
  // Which of a worker's replicas it was, says its own report.
  if (const int w = report.culprit.worker; w >= 0 && failures[w] != nullptr) {
    const MemberName& named = failures[w]->culprit;
    report.culprit.replica = named.replica;
    report.culprit.logical_device = named.logical_device;
  }
  return report;
}

// Why the collective cannot go on here, as far as this worker knows or has been told; false: nothing is wrong.
bool WorkerMeeting::find_trouble(Found* out) noexcept {
  if (me_ != 0 && done(receive_report_) && receive_report_.message().bytes != 0) {
    *out = readable(leader_report_) ? Found{leader_report_.record, true}
                                    : Found{broken(0, "a report that cannot be read"), false};
    return true;
  }
  bool found = false;
  bool left = false;
  each_peer([&](int w, const Peer& peer) {
    if (found || !peer.left()) return;
    if (!readable(peer.leave)) {
      *out = {broken(w, "a notice that cannot be read"), false};
      found = true;
    } else if (peer.leave.completed < number_) {
      left = left || left_by_itself(peer);
      if (left_by_itself(peer)) return;
      // What it was told holds for all.
      *out = {peer.leave.record, true};
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
  const Peer& leader = peers_[0];
  const int64_t begin = steady_now_ns();
  for (;;) {
    const uint32_t seen = group_.progress().value.load(std::memory_order_acquire);
    transport_.progress();
    if (receive_report_.over()) return done(receive_report_) && readable(leader_report_);
    // It has left without a word, or a report is still to come behind that notice.
    if (transport_.lost(0) || (leader.left() && leader.leave.reported == 0)) return false;
    const int64_t left = kReportGraceNs - (steady_now_ns() - begin);
    if (left <= 0) return false;
    group_.progress().sleep(seen, std::min<int64_t>(left, 10'000'000), group_.policy(),
                            [&] { return receive_report_.over(); });
  }
}

// Ends the collective here with one report: the leader's where there is one, else what was found.
Status WorkerMeeting::fail_all(const Found& found) noexcept {
  take_back();
  ErrorRecord report = found.report;
  report.of_all = true;
  if (me_ == 0) {
    own_report_ = WorkerNotice{};
    own_report_.completed = completed_;
    own_report_.record = report;
    reported_ = true;
    each_peer([&](int w, Peer& peer) {
      transport_.send(w, key(kReports), bytes_of(own_report_), sizeof own_report_, peer.send_report);
    });
  } else if (found.told) {
    // All who hear of it say the same.
  } else if (await_leader()) {
    report = leader_report_.record;
  } else {
    const std::size_t used = std::strlen(report.message);
    std::snprintf(report.message + used, sizeof report.message - used,
                  "; worker %d says so alone: it has not heard from worker 0, which reports for all", me_);
  }
  group_.condemn(report);
  return group_.failure();
}

template <class Over>
Status WorkerMeeting::await(Over&& over) noexcept {
  Word& word = group_.progress();
  for (;;) {
    // acquire keeps this before the looks: what happens after them ends the sleep.
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    transport_.progress();
    if (over()) return kOk;
    if (group_.poisoned()) {
      take_back();
      return group_.failure();
    }
    if (Found found; find_trouble(&found)) return fail_all(found);
    int64_t waited_ns = 0;
    const Trouble late = group_.overdue(start_ns_, limit_ns_, &waited_ns);
    if (late != Trouble::kNone) return fail_all({verdict_of(late, waited_ns)});
    const auto changed = [&] {
      return word.value.load(std::memory_order_seq_cst) != seen || group_.poisoned();
    };
    if (spin_until(group_.policy(), changed)) continue;
    // A transport may have something to do though nothing has happened here.
    constexpr int64_t kMostNs = 1'000'000;
    word.sleep(seen, host_.slice_ns(kMostNs), group_.policy(), changed);
  }
}

Status WorkerMeeting::meet(const Signature& signature) noexcept {
  own_ = WorkerHeader{};
  own_.members = group_.size();
  own_.signature = signature;
  own_.signature.function = nullptr;
  own_.signature.digest = signature.shared_digest;
  own_.payload_bytes = outgoing_[0].bytes();
  for (std::size_t p = 0; p < own_sizes_.size(); ++p) {
    own_sizes_[p] = outgoing_[p].bytes();
    if (own_sizes_[p] != own_sizes_[0]) own_.payload_bytes = WorkerHeader::kSizesVary;
  }
  each_peer([&](int w, Peer& peer) {
    transport_.receive(w, key(kHeaders), bytes_of(peer.header), sizeof peer.header, peer.receive_header);
    transport_.send(w, key(kHeaders), bytes_of(own_), sizeof own_, peer.send_header);
  });
  bool agree = true;
  DIST_TRY(await([&] {
    bool all = true;
    each_peer(
        [&](int, const Peer& peer) { all = all && done(peer.receive_header) && done(peer.send_header); });
    return all;
  }));
  ErrorRecord report;
  each_peer([&](int w, const Peer& peer) {
    if (!readable(peer.header, peer.members)) {
      if (agree) report = broken(w, "a header that cannot be read");
      agree = false;
    }
  });
  if (!agree) return fail_all({report});
  each_peer(
      [&](int, const Peer& peer) { agree = agree && peer.header.signature.digest == own_.signature.digest; });
  return agree ? kOk : fail_all({verdict_of(Trouble::kDisagreement, 0)});
}

// Where the members of a worker bring payloads of their own sizes.
Status WorkerMeeting::move_sizes() noexcept {
  const auto vary = [](const WorkerHeader& header) {
    return header.payload_bytes == WorkerHeader::kSizesVary;
  };
  each_peer([&](int w, Peer& peer) {
    if (vary(peer.header)) {
      transport_.receive(w, key(kSizes), reinterpret_cast<std::byte*>(peer.sizes.data()),
                         peer.sizes.size() * sizeof(uint64_t), peer.receive_sizes);
    } else {
      std::fill(peer.sizes.begin(), peer.sizes.end(), peer.header.payload_bytes);
    }
    if (vary(own_)) {
      transport_.send(w, key(kSizes), reinterpret_cast<const std::byte*>(own_sizes_.data()),
                      own_sizes_.size() * sizeof(uint64_t), peer.send_sizes);
    }
  });
  return await([&] {
    bool all = true;
    each_peer([&](int, const Peer& peer) { all = all && done(peer.receive_sizes) && done(peer.send_sizes); });
    return all;
  });
}

// For what the members of other workers bring.
Status WorkerMeeting::make_room() noexcept {
  std::size_t all = 0;
  int greedy = -1;
  each_peer([&](int w, const Peer& peer) {
    for (const uint64_t bytes : peer.sizes) {
      if (bytes > most_bytes_ - all) {
        if (greedy < 0) greedy = w;
        continue;
      }
      all += bytes;
    }
  });
  if (greedy >= 0) {
    return fail_all(
        {of_worker(greedy, DIST_RESOURCE_EXHAUSTED,
                   "worker %d brings more than the %zu bytes that a worker may get in one collective", greedy,
                   most_bytes_)});
  }
  Status made;
  each_peer([&](int, const Peer& peer) {
    for (int p = 0; p < peer.members && made.ok(); ++p)
      made =
          incoming_[static_cast<std::size_t>(peer.first + p)].resize(peer.sizes[static_cast<std::size_t>(p)]);
  });
  if (made.ok()) return kOk;
  return fail_all({of_worker(me_, made.code(), "worker %d has no memory for what the others bring", me_)});
}

Status WorkerMeeting::move() noexcept {
  DIST_TRY(move_sizes());
  DIST_TRY(make_room());
  each_peer([&](int w, Peer& peer) {
    for (std::size_t p = 0; p < peer.receive_payloads.size(); ++p) {
      Payload& payload = incoming_[static_cast<std::size_t>(peer.first) + p];
      if (payload.bytes() == 0) continue;
      transport_.receive(w, key(kPayloads, static_cast<uint32_t>(p)), payload.data(), payload.bytes(),
                         *peer.receive_payloads[p]);
    }
    for (std::size_t p = 0; p < peer.send_payloads.size(); ++p) {
      const Payload& payload = outgoing_[p];
      if (payload.bytes() == 0) continue;
      transport_.send(w, key(kPayloads, static_cast<uint32_t>(p)), payload.data(), payload.bytes(),
                      *peer.send_payloads[p]);
    }
  });
  return await([&] {
    bool all = true;
    each_transfer([&](int, const Transfer& transfer) { all = all && done(transfer); });
    return all;
  });
}

Status WorkerMeeting::meet_and_move(const Signature& signature, int64_t timeout_ns) noexcept {
  ++number_;
  start_ns_ = host_.now_ns();
  limit_ns_ = timeout_ns == 0 ? timeout_ns_ : timeout_ns;
  DIST_TRY(meet(signature));
  DIST_TRY(move());
  completed_ = number_;
  return kOk;
}

}  // namespace dist
