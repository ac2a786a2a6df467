// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/endpoint.hpp"

#include <algorithm>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/listening.hpp"

namespace dist::grpc_link {
namespace {

constexpr char kBroke[] = " was killed or its connection broke";

}  // namespace

Endpoint::Endpoint(Memory& memory, Config config, std::unique_ptr<Carriers> carriers)
    : LinkOwner(
          std::move(config),
          [this](int from) { note_stranger(from, "did not prove that it knows this job's secret"); },
          [this](int from) { ended_unproven(from); },
          [this](uint64_t peer, const std::string& cause, bool final) {
            probed(at(static_cast<int>(peer)), cause, final);
          }),
      memory_(memory),
      carriers_(std::move(carriers)) {
  ClusterDigest digest;
  for (const std::string& address : config_.addresses) {
    digest.add(address);
    peers_.emplace_back(memory, static_cast<int>(peers_.size()),
                        "worker " + std::to_string(peers_.size()) + " (" + address + ")", config_.credit,
                        carriers_ != nullptr);
  }
  digest.add(config_.digest);
  cluster_ = digest.take();
}

Endpoint::~Endpoint() = default;

std::string Endpoint::start() {
  if (!random_bytes(incarnation_.data(), incarnation_.size())) return "the system provides no random numbers";
  Peer& own = at(config_.me);
  own.life = Life::kHere;
  own.incarnation = incarnation_;
  own.known = true;
  job_ = config_.came_from.job;
  if (hub() && job_ == JobIdentity{}) job_ = incarnation_;
  std::string why;
  const std::vector<std::string> addresses = listening_addresses(config_, &why);
  if (addresses.empty()) return why;
  if (carriers_ != nullptr && !is_any_address(host_of(addresses.front()))) {
    carrier_host_ = host_of(addresses.front());
  }
  if (why = listen_on(addresses); !why.empty()) return why;
  if (carriers_ != nullptr) why = carriers_->open(carrier_host_, config_.lease_ns);
  if (!why.empty()) {
    stop_server();
    return why;
  }
  looked_ns_ = boot_now_ns();
  if (why = start_thread("dist-lease"); !why.empty()) return why;
  answered_ns_ = steady_now_ns();
  if (!hub()) begin_control();
  return "";
}

// ---- Transfers ----

void Endpoint::tell() noexcept {
  const std::scoped_lock lock(listening_);
  if (listener_ != nullptr) listener_->happened();
}

void Endpoint::listen(TransportListener* listener) noexcept {
  if (memory_.forked()) return;
  const std::scoped_lock lock(listening_);
  listener_ = listener;
}

void Endpoint::send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
                    Transfer& transfer) noexcept {
  transfer.begin({to, key, const_cast<std::byte*>(data), bytes});
  transfer.sends = true;
  transfer.before = nullptr;
  if (memory_.forked()) return transfer.finish(Transfer::End::kLost);
  Peer& peer = at(to);
  const bool followed = transfer.followed;
  LinkRef link;
  bool ended = true;
  bool begin = false;
  {
    const std::scoped_lock lock(peer.out_mutex);
    if (closed_) {
      transfer.finish(Transfer::End::kCancelled);
    } else if (peer.out_gone) {
      transfer.finish(Transfer::End::kLost);
    } else {
      ended = peer.outbox.send(transfer);
      link = peer.out;
      begin = link == nullptr && !std::exchange(peer.out_wanted, true);
    }
  }
  if (begin) begin_out(peer);
  if (link != nullptr && !followed) link->flush();
  if (ended) tell();
}

void Endpoint::receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
                       Transfer& transfer) noexcept {
  transfer.begin({from, key, data, bytes});
  transfer.sends = false;
  transfer.before = nullptr;
  transfer.id = 0;
  if (memory_.forked()) return transfer.finish(Transfer::End::kLost);
  Peer& peer = at(from);
  LinkRef link;
  bool ended = true;
  {
    const std::scoped_lock lock(peer.in_mutex);
    if (closed_) {
      transfer.finish(Transfer::End::kCancelled);
    } else {
      ended = peer.inbox.receive(transfer, peer.in_gone);
      link = peer.in;
    }
  }
  if (link != nullptr) link->flush();
  if (ended) tell();
}

void Endpoint::cancel(Transfer& transfer) noexcept {
  if (transfer.over() || memory_.forked()) return;
  Peer& peer = at(transfer.message().worker);
  LinkRef link;
  bool ended;
  if (transfer.sends) {
    const std::scoped_lock lock(peer.out_mutex);
    ended = peer.outbox.cancel(transfer);
    link = peer.out;
  } else {
    const std::scoped_lock lock(peer.in_mutex);
    ended = peer.inbox.cancel(transfer);
    link = peer.in;
  }
  if (link != nullptr) link->flush();
  if (ended) tell();
}

void Endpoint::forget(uint32_t generation, uint32_t run) noexcept {
  if (memory_.forked()) return;
  for (Peer& peer : peers_) {
    LinkRef link;
    {
      const std::scoped_lock lock(peer.in_mutex);
      peer.inbox.forget(generation, run);
      link = peer.in;
    }
    if (link != nullptr) link->flush();
  }
}

bool Endpoint::up_to_date() const noexcept {
  // acquire: if the watcher's latest run was in time, its update of `doubts_` is visible here.
  return boot_now_ns() - looked_ns_.load(std::memory_order_acquire) < doubtful_ns() &&
         !doubts_.load(std::memory_order_relaxed);
}

bool Endpoint::lost(int worker) const noexcept { return at(worker).gone || (worker == me() && closed_); }

bool Endpoint::left(int worker) const noexcept {
  if (memory_.forked()) return false;
  const std::scoped_lock lock(members_);
  return at(worker).leaves;
}

bool Endpoint::rejected(int worker) const noexcept {
  if (memory_.forked()) return false;
  const std::scoped_lock lock(members_);
  return at(worker).rejects;
}

void Endpoint::why_lost(int worker, char* text, std::size_t size) const noexcept {
  if (size == 0) return;
  text[0] = '\0';
  if (memory_.forked()) return;
  const std::scoped_lock lock(members_);
  copy_shown(text, size, known_of(at(worker)).c_str(), Keep::kMarks);
}

int Endpoint::num_connections() const noexcept {
  int connected = 0;
  for (const Peer& peer : peers_) connected += peer.connected ? 1 : 0;
  return connected;
}

// ---- Data links ----

// Creates the data link to a peer if there is something to send. For a peer that has not joined yet,
// members.cpp calls this later.
void Endpoint::begin_out(Peer& peer) noexcept {
  {
    const std::scoped_lock lock(members_);
    if (peer.life != Life::kHere) return;
  }
  LinkRef link;
  std::string why;
  {
    const std::scoped_lock lock(peer.out_mutex);
    if (!peer.out_wanted || peer.out != nullptr || peer.out_gone) return;
    link = peer.out = make_client(peer, Purpose::kData, &why);
    peer.out_retry_ns = link == nullptr ? steady_now_ns() + kRetryNs : 0;
    peer.connected = peer.connected || link != nullptr;
  }
  if (link == nullptr) return why.empty() ? wake() : cannot_reach(peer, why, false);
  static_cast<ClientLink&>(*link).start();
}

bool Endpoint::more(Link& link) noexcept {
  if (!link.outgoing || link.purpose != Purpose::kData) return false;
  Peer& peer = at(link.peer);
  bool some;
  bool ended;
  {
    const std::scoped_lock lock(peer.out_mutex);
    some = peer.out.get() == &link && peer.outbox.put_chunk();
    ended = peer.outbox.take_ended();
  }
  if (ended) tell();
  return some;
}

std::string Endpoint::took_data_in(const LinkRef& link, std::span<const grpc::Slice> message) noexcept {
  Peer& peer = at(link->peer);
  const char* why = nullptr;
  bool ended;
  bool bye;
  {
    const std::scoped_lock lock(peer.in_mutex);
    if (peer.in != link || peer.in_gone) return "";
    for (const grpc::Slice& each : message) {
      why = link->reader.feed(reinterpret_cast<const std::byte*>(each.begin()), each.size(), peer.inbox);
      if (why != nullptr) break;
    }
    if (why == nullptr && !link->reader.between_frames() &&
        !(carries(*link) && link->reader.inside_ahead(kCarriedBytes))) {
      why = "a message that ends inside a frame";
    }
    ended = peer.inbox.take_ended();
    bye = why == nullptr && peer.inbox.bye();
    if (bye) peer.in_queue.put({.kind = FrameKind::kByeTaken});
  }
  if (ended) tell();
  if (why != nullptr) return why;
  link->flush();
  if (bye) {
    {
      const std::scoped_lock lock(members_);
      peer.leaves = true;
      if (peer.why.empty()) peer.why = peer.name + " has left";
    }
    end_out(peer, Transfer::End::kLost, false);
    end_in(peer, Transfer::End::kLost, false);
  }
  return "";
}

std::string Endpoint::took_data_out(const LinkRef& link, std::span<const grpc::Slice> message) noexcept {
  Peer& peer = at(link->peer);
  const char* why = nullptr;
  bool ended;
  bool taken;
  bool leaves;
  {
    const std::scoped_lock lock(peer.out_mutex);
    if (peer.out != link) return "";
    for (const grpc::Slice& each : message) {
      why = link->reader.feed(reinterpret_cast<const std::byte*>(each.begin()), each.size(), peer.outbox);
      if (why != nullptr) break;
    }
    if (why == nullptr && !link->reader.between_frames()) why = "a message that ends inside a frame";
    ended = peer.outbox.take_ended();
    taken = peer.outbox.bye_taken();
    leaves = peer.outbox.peer_leaves();
  }
  if (ended) tell();
  if (why != nullptr) return why;
  if (leaves) {
    {
      const std::scoped_lock lock(members_);
      peer.leaves = true;
      if (peer.why.empty()) peer.why = peer.name + " has left";
    }
    end_out(peer, Transfer::End::kLost, true);
  } else if (taken) {
    end_out(peer, Transfer::End::kCancelled, true);
  } else {
    link->flush();
  }
  return "";
}

// Nothing can be sent to this peer any more.
void Endpoint::end_out(Peer& peer, Transfer::End end, bool cut) noexcept {
  LinkRef link;
  bool ended;
  {
    const std::scoped_lock lock(peer.out_mutex);
    peer.out_gone = true;
    peer.out_wanted = false;
    ended = peer.outbox.end_all(end);
    link = peer.out;
    if (link == nullptr || cut) peer.out_queue.clear();
  }
  if (cut && link != nullptr) link->end("");
  if (ended) tell();
  leave_if_done();
}

// Nothing can be received from this peer any more.
void Endpoint::end_in(Peer& peer, Transfer::End end, bool cut) noexcept {
  LinkRef link;
  {
    const std::scoped_lock lock(peer.in_mutex);
    peer.in_gone = true;
    peer.in_until_ns = 0;
    peer.inbox.end_all(end);
    (void)peer.inbox.take_ended();
    link = peer.in;
  }
  peer.gone = true;
  if (cut && link != nullptr) link->end("");
  tell();
}

std::string Endpoint::took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept {
  if (link->peer >= 0) at(link->peer).heard_ns.store(steady_now_ns(), std::memory_order_relaxed);
  if (link->stage == Link::Stage::kOpen && !carries(*link)) {
    if (link->purpose == Purpose::kControl) return took_control(link, message);
    return link->outgoing ? took_data_out(link, message) : took_data_in(link, message);
  }
  std::byte whole[kMostBeginningBytes];
  std::span<const std::byte> given;
  if (!gather(message, whole, &given)) return "a message of an invalid size";
  switch (link->stage) {
    case Link::Stage::kHello: return took_hello(link, given);
    case Link::Stage::kAnswer: return took_answer(link, given);
    case Link::Stage::kProof: return took_proof(link, given);
    case Link::Stage::kMeeting:
    case Link::Stage::kOpen: return took_meeting(link, given);
    default: return took_admission(link, given);
  }
}

void Endpoint::over(const LinkRef& link, const std::string& why, const std::string& status) noexcept {
  proven(*link);
  if (link->peer < 0) return stranger_over(*link);
  Peer& peer = at(link->peer);
  if (link->purpose == Purpose::kControl) return over_control(peer, link, why, status);
  link->stream_over = true;
  const CarrierRef carrier = link->carrier();
  // Data that were sent before the end of the stream can still be read. The carrier ends on its own, or when
  // the lease expires.
  if (carrier != nullptr && link->carrying && why.empty() && !closed_) {
    if (link->outgoing) return;
    bool gone;
    {
      const std::scoped_lock lock(peer.in_mutex);
      gone = peer.in_gone || peer.inbox.bye();
    }
    if (!gone) return link_broke(peer, kBroke, false);
  }
  if (carrier != nullptr) carrier->end();
  over_data(link, why, status);
}

// The data link no longer sends or receives.
void Endpoint::over_data(const LinkRef& link, const std::string& why, const std::string& status) noexcept {
  Peer& peer = at(link->peer);
  const bool opened = link->stage >= Link::Stage::kAdmission;
  const std::string broke = why.empty()     ? kBroke
                            : link->refused ? " rejected this worker: " + why
                                            : " violated the protocol: " + why;
  const auto declare = [&](bool at_once) {
    why.empty() ? link_broke(peer, kBroke, at_once) : declare_lost(peer, broke, at_once, link->refused);
  };
  if (!link->outgoing) {
    bool gone;
    {
      const std::scoped_lock lock(peer.in_mutex);
      if (peer.in != link) return;
      peer.in = nullptr;
      gone = peer.in_gone || peer.inbox.bye();
    }
    if (!gone && !closed_) declare(true);
    if (closed_) wake();
    return;
  }
  bool gone;
  {
    const std::scoped_lock lock(peer.out_mutex);
    if (peer.out != link) return;
    peer.out = nullptr;
    gone = peer.out_gone;
    if (!gone && !opened && !link->refused) {
      // Nothing has been sent on it yet, so another link will be made.
      peer.out_retry_ns = steady_now_ns() + kRetryNs;
    }
  }
  if (gone) return leave_if_done();
  if (opened || link->refused) {
    declare(false);
    return leave_if_done();
  }
  cannot_reach(peer, why.empty() ? status : why, false);
}

}  // namespace dist::grpc_link
