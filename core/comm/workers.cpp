// SPDX-License-Identifier: Apache-2.0
#include "core/comm/workers.hpp"

#include <algorithm>

#include "core/base/wire.hpp"

namespace dist {
namespace {

bool done(const Transfer& transfer) noexcept { return transfer.end() == Transfer::End::kDone; }

}  // namespace

Status Payload::resize(std::size_t bytes, bool spare) noexcept {
  if (bytes > room_) {
    const std::size_t room = spare && bytes < most_of<std::byte>() / 2 ? bytes * 2 : bytes;
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

bool WorkerMeeting::Incoming::good() noexcept {
  if (!read) reading = notice.read(bytes);
  read = true;
  return reading == Reading::kGood;
}

bool WorkerMeeting::Peer::good() noexcept {
  if (receive_header.end() != Transfer::End::kDone) return false;
  if (!read) reading = header.read(header_bytes);
  read = true;
  return reading == Reading::kGood;
}

WorkerMeeting::WorkerMeeting(Memory& memory, Transport& transport, Group& group, const Host& host,
                             const Options& options)
    : memory_(memory),
      transport_(transport),
      group_(group),
      host_(host),
      timeout_ns_(options.timeout_ns),
      most_bytes_(options.most_bytes),
      me_(transport.me()),
      whole_(options.whole),
      workers_(options.workers.begin(), options.workers.end(), &memory),
      replicas_(options.replicas.begin(), options.replicas.end(), &memory),
      own_sizes_(static_cast<std::size_t>(group.size()), &memory),
      own_size_bytes_(own_sizes_.size() * sizeof(uint64_t), &memory),
      peers_(&memory),
      outgoing_(&memory),
      tables_(&memory),
      incoming_(&memory),
      payload_transfers_(&memory),
      staging_(memory),
      seen_(own_sizes_.size(), &memory) {
  for (const int members : options.members) {
    Peer& peer = peers_.emplace_back(memory);
    peer.first = num_members_;
    peer.members = members;
    num_members_ += members;
    peer.sizes.resize(static_cast<std::size_t>(members));
    peer.size_bytes.resize(peer.sizes.size() * sizeof(uint64_t));
    if (num_workers() - 1 == me_) continue;
    for (int p = 0; p < members; ++p) peer.receive_payloads.push_back(&payload_transfers_.emplace_back());
    for (int p = 0; p < group.size(); ++p) peer.send_payloads.push_back(&payload_transfers_.emplace_back());
  }
  for (std::pmr::vector<Payload>* each : {&outgoing_, &tables_}) {
    each->reserve(own_sizes_.size());
    for (int p = 0; p < group.size(); ++p) each->emplace_back(memory);
  }
  incoming_.reserve(static_cast<std::size_t>(num_members_));
  for (int p = 0; p < num_members_; ++p) incoming_.emplace_back(memory);
  if (whole_ == nullptr) transport_.listen(this);
}

WorkerMeeting::~WorkerMeeting() {
  cancel_all();
  transport_.listen(nullptr);
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

// Payloads and staging memory are this worker's again.
void WorkerMeeting::take_back() noexcept {
  each_transfer([&](int, Transfer& transfer) { end(transfer); });
}

void WorkerMeeting::cancel_all() noexcept {
  take_back();
  each_peer([&](int, Peer& peer) {
    for (Transfer* each : {&peer.send_leave, &peer.leave.transfer, &peer.send_report}) end(*each);
  });
  end(report_.transfer);
}

void WorkerMeeting::begin_run() noexcept {
  if (whole_ != nullptr) {
    run_ = whole_->run_;
    if (!joined_.load(std::memory_order_relaxed)) return;
    transport_.listen(nullptr);
  } else {
    ++run_;
  }
  cancel_all();
  // Those that were cancelled in the last run fail no collective of this one.
  each_transfer([](int, Transfer& transfer) { transfer.finish(Transfer::End::kDone); });
  number_ = 0;
  completed_.store(0, std::memory_order_relaxed);
  reported_.store(false, std::memory_order_relaxed);
  // relaxed: members see them by what lets them into the run.
  counted_.store(0, std::memory_order_relaxed);
  awaited_ = 0;
  released_.value.store(0, std::memory_order_relaxed);
  ended_.store(false, std::memory_order_relaxed);
  std::fill(seen_.begin(), seen_.end(), 0);
  parts_.store(0, std::memory_order_relaxed);
  closed_parts_ = 0;
  joined_.store(false, std::memory_order_relaxed);
  said_.store(false, std::memory_order_relaxed);
  listening_ = false;
  if (whole_ != nullptr) return;
  transport_.forget(0, run_);
  listen();
}

// For the notices of this run.
void WorkerMeeting::listen() noexcept {
  listening_ = true;
  const auto listen = [&](int worker, Series series, Incoming& notice) {
    notice.read = false;
    notice.elsewhere = false;
    transport_.receive(worker, key(series), notice.bytes, WorkerNotice::kBytes, notice.transfer);
  };
  each_peer([&](int w, Peer& peer) { listen(w, kLeaves, peer.leave); });
  if (me_ != 0) listen(0, kReports, report_);
}

void WorkerMeeting::join_run() noexcept {
  if (!joined_.exchange(true, std::memory_order_acq_rel))
    whole_->parts_.fetch_or(part_bit(), std::memory_order_relaxed);
}

void WorkerMeeting::leave(Status returned, const ErrorRecord& failure) noexcept {
  WorkerNotice notice;
  if (whole_ != nullptr) {
    join_run();
    if (said_.exchange(true, std::memory_order_acq_rel)) return;
  }
  notice.parts = closed_parts_;
  notice.completed = completed_.load(std::memory_order_relaxed);
  notice.reported = reported_.load(std::memory_order_relaxed);
  if (!returned.ok()) notice.record = failure;
  notice.record.code = returned.code();
  notice.write(own_leave_);
  each_peer([&](int w, Peer& peer) {
    transport_.send(w, key(kLeaves), own_leave_, WorkerNotice::kBytes, peer.send_leave);
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

template <class Over>
Status WorkerMeeting::await(Over&& over) noexcept {
  Word& word = group_.progress();
  if (over()) return kOk;
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

Status WorkerMeeting::await_transfers() noexcept {
  return await([&] {
    bool all = true;
    each_transfer([&](int, const Transfer& transfer) { all = all && done(transfer); });
    return all;
  });
}

bool WorkerMeeting::release() noexcept {
  const bool goes_on = !group_.poisoned();
  // release: who sees it sees the poison.
  if (!goes_on) ended_.store(true, std::memory_order_release);
  released_.publish(++seen_[0], group_.policy());
  return goes_on;
}

bool WorkerMeeting::await_release(int member) noexcept {
  const uint32_t next = ++seen_[static_cast<std::size_t>(member)];
  // A carrier that ends it may be ahead.
  const auto ready = [&] {
    return static_cast<int32_t>(released_.value.load(std::memory_order_seq_cst) - next) >= 0;
  };
  while (!spin_until(group_.policy(), ready)) {
    if (memory_.forked()) return false;
    // acquire keeps this load before ready()'s look.
    const uint32_t seen = released_.value.load(std::memory_order_acquire);
    if (ready()) break;
    released_.sleep(seen, -1, group_.policy(), ready);
  }
  return !ended_.load(std::memory_order_acquire);
}

void WorkerMeeting::count_in() noexcept {
  // acq_rel: each is ordered after those before it, so that the carrier sees what all of them did.
  const uint64_t before = counted_.fetch_add(1, std::memory_order_acq_rel);
  if ((before + 1) % static_cast<uint64_t>(group_.size() - 1) == 0) group_.progress().advance();
}

Status WorkerMeeting::await_members() noexcept {
  const uint64_t all = ++awaited_ * static_cast<uint64_t>(group_.size() - 1);
  return await([&] { return counted_.load(std::memory_order_acquire) == all; });
}

Status WorkerMeeting::meet(const Signature& signature) noexcept {
  own_ = WorkerHeader{};
  own_.members = group_.size();
  own_.staging_bytes = most_bytes_;
  own_.signature = signature;
  own_.signature.function = nullptr;
  own_.signature.digest = signature.shared_digest;
  own_.payload_bytes = outgoing_[0].bytes();
  own_.complete = true;
  for (std::size_t p = 0; p < own_sizes_.size(); ++p) {
    own_sizes_[p] = outgoing_[p].bytes();
    own_.complete = own_.complete && outgoing_[p].complete;
    if (own_sizes_[p] != own_sizes_[0]) own_.payload_bytes = WorkerHeader::kSizesVary;
  }
  own_.write(own_bytes_);
  each_peer_in_turn([&](int w, Peer& peer) {
    transport_.receive(w, key(kHeaders), peer.header_bytes, WorkerHeader::kBytes, peer.receive_header);
    transport_.send(w, key(kHeaders), own_bytes_, WorkerHeader::kBytes, peer.send_header);
    peer.read = false;
  });
  DIST_TRY(await([&] {
    bool all = true;
    each_peer(
        [&](int, const Peer& peer) { all = all && done(peer.receive_header) && done(peer.send_header); });
    return all;
  }));
  // The headers may be of workers that have given it up since: who comes too late has all that it needs of a barrier,
  // say, and must not end it well alone.
  if (Found found; find_trouble(&found)) return fail_all(found);
  int odd = -1;
  complete_ = own_.complete;
  staging_bytes_ = most_bytes_;
  each_peer([&](int w, Peer& peer) {
    if (odd < 0 && (!peer.good() || peer.header.members != peer.members)) odd = w;
    complete_ = complete_ && peer.header.complete;
    staging_bytes_ = std::min<std::size_t>(staging_bytes_, peer.header.staging_bytes);
  });
  if (odd >= 0) return fail_all({unlike(odd, peers_[static_cast<std::size_t>(odd)])});
  bool agree = true;
  each_peer(
      [&](int, const Peer& peer) { agree = agree && peer.header.signature.digest == own_.signature.digest; });
  return agree ? kOk : fail_all({verdict_of(Trouble::kDisagreement, 0)});
}

// Where the members of a worker bring payloads of their own sizes.
Status WorkerMeeting::move_sizes() noexcept {
  const auto vary = [](const WorkerHeader& header) {
    return header.payload_bytes == WorkerHeader::kSizesVary;
  };
  WireWriter writer(own_size_bytes_.data());
  for (const uint64_t bytes : own_sizes_) writer.put(bytes);
  each_peer_in_turn([&](int w, Peer& peer) {
    if (vary(peer.header)) {
      transport_.receive(w, key(kSizes), peer.size_bytes.data(), peer.size_bytes.size(), peer.receive_sizes);
    }
    if (vary(own_)) {
      transport_.send(w, key(kSizes), own_size_bytes_.data(), own_size_bytes_.size(), peer.send_sizes);
    }
  });
  DIST_TRY(await_transfers());
  each_peer([&](int, Peer& peer) {
    WireReader reader(peer.size_bytes.data(), peer.size_bytes.size());
    for (uint64_t& bytes : peer.sizes)
      bytes = vary(peer.header) ? reader.take<uint64_t>() : peer.header.payload_bytes;
  });
  return kOk;
}

// For what the members of other workers bring.
Status WorkerMeeting::make_room() noexcept {
  const uint64_t most = *std::max_element(own_sizes_.begin(), own_sizes_.end()) + kMostBeside;
  int greedy = -1;
  each_peer([&](int w, const Peer& peer) {
    if (greedy < 0 && *std::max_element(peer.sizes.begin(), peer.sizes.end()) > most) greedy = w;
  });
  if (greedy >= 0) return fail_all({broken(greedy, "a payload that is longer than it can be")});
  Status made;
  each_peer([&](int, const Peer& peer) {
    for (int p = 0; p < peer.members && made.ok(); ++p)
      made =
          incoming_[static_cast<std::size_t>(peer.first + p)].resize(peer.sizes[static_cast<std::size_t>(p)]);
  });
  return made.ok() ? kOk : fail_all({no_memory(made.code())});
}

Status WorkerMeeting::move() noexcept {
  DIST_TRY(move_sizes());
  DIST_TRY(make_room());
  each_peer_in_turn([&](int w, Peer& peer) {
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
  return await_transfers();
}

Status WorkerMeeting::meet_and_move(const Signature& signature, int64_t timeout_ns,
                                    int64_t start_ns) noexcept {
  if (whole_ != nullptr && !listening_) {
    join_run();
    transport_.listen(this);
    listen();
  }
  ++number_;
  passes_ = 0;
  start_ns_ = start_ns;
  limit_ns_ = timeout_ns == 0 ? timeout_ns_ : timeout_ns;
  DIST_TRY(meet(signature));
  DIST_TRY(move());
  if (complete_) complete_collective();
  return kOk;
}

Status WorkerMeeting::reserve(std::size_t bytes) noexcept {
  const Status made = staging_.resize(bytes, false);
  return made.ok() ? kOk : fail_all({no_memory(made.code())});
}

Status WorkerMeeting::pass(std::span<const Passage> passages) noexcept {
  const MessageKey piece = key(kPieces, passes_++);
  each_peer_in_turn([&](int w, Peer& peer) {
    const Passage& passage = passages[static_cast<std::size_t>(w)];
    if (passage.receive_bytes != 0)
      transport_.receive(w, piece, passage.receive, passage.receive_bytes, peer.receive_piece);
    if (passage.send_bytes != 0) transport_.send(w, piece, passage.send, passage.send_bytes, peer.send_piece);
  });
  return await_transfers();
}

}  // namespace dist
