// SPDX-License-Identifier: Apache-2.0
// How both ends of a data link agree on a carrier, and what happens to the link when the carrier ends.
#include <nettle/hmac.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/os/addresses.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/wire.hpp"
#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {
namespace {

// If carriers fail immediately, the link fails after this many attempts. Carriers that fail at their
// deadlines take longer than most leases before that.
constexpr uint32_t kMostAttempts = 16;

const uint8_t* raw(const void* bytes) noexcept { return static_cast<const uint8_t*>(bytes); }

}  // namespace

void Meet::write(std::byte* to_bytes) const noexcept {
  WireWriter out(to_bytes);
  out.put(attempt);
  out.put<uint32_t>(failed ? 1 : 0);
  out.put(address_bytes);
  for (const std::byte each : nonce) out.put(static_cast<uint8_t>(each));
  for (const char each : address) out.put(static_cast<uint8_t>(each));
}

bool Meet::read(const std::byte* bytes) noexcept {
  WireReader in(bytes, kBytes);
  attempt = in.take_in<uint32_t>(1, kMostAttempts);
  failed = in.take_in<uint32_t>(0, 1) == 1;
  address_bytes = in.take_in<uint32_t>(0, kMostAddressBytes);
  const std::byte* const rest = in.take_bytes(nonce.size() + kMostAddressBytes);
  if (!in.good() || rest == nullptr) return false;
  std::memcpy(nonce.data(), rest, nonce.size());
  std::memcpy(address, rest + nonce.size(), kMostAddressBytes);
  return true;
}

Digest prove_carrier(Prover who, std::string_view secret, const Link& link) noexcept {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, secret.size(), raw(secret.data()));
  const char* const name = who == Prover::kServer ? "carrier's receiver" : "carrier's sender  ";
  hmac_sha256_update(&context, 18, raw(name));
  hmac_sha256_update(&context, sizeof link.hello, raw(link.hello));
  hmac_sha256_update(&context, sizeof link.answer, raw(link.answer));
  hmac_sha256_update(&context, sizeof link.meets, raw(link.meets));
  Digest digest;
  hmac_sha256_digest(&context, digest.size(), reinterpret_cast<uint8_t*>(digest.data()));
  return digest;
}

// Returns the IP address on which the link's carrier listens: that of DIST_BIND_ADDRESS, or else the local
// address of the connection to the peer. It is never "all interfaces", because the first client that connects
// to a carrier's port is taken for the peer, and because the peer needs an address to connect to. Both ends
// have the same address family, that of the link.
std::string Endpoint::carrier_host(const Link& link) const {
  const auto is_v6 = [](const std::string& host) { return host.find(':') != std::string::npos; };
  const std::string peer = link.peer_host();
  if (!carrier_host_.empty() && is_v6(carrier_host_) == is_v6(peer)) return carrier_host_;
  return address_towards(peer);
}

// Makes a new carrier for the link and sends this end's part of the meeting.
std::string Endpoint::make_carrier(const LinkRef& link, uint32_t attempt) noexcept {
  const std::string host = carrier_host(*link);
  if (host.empty()) return "this machine has no address that faces " + link->peer_host();
  std::string why;
  CarrierRef carrier = carriers_->make(*this, link->outgoing, attempt, host, &why);
  if (carrier == nullptr)
    return "the link module " + config_.transport + " cannot create a connection: " + why;
  Meet own;
  own.attempt = attempt;
  if (!random_bytes(own.nonce.data(), own.nonce.size())) return "the system provides no random numbers";
  own.address_bytes = static_cast<uint32_t>(carrier->address().size());
  std::copy(carrier->address().begin(), carrier->address().end(), own.address);
  std::byte bytes[Meet::kBytes];
  own.write(bytes);
  own.write(link->meets[link->outgoing ? 0 : 1]);
  link->met = false;
  {
    const std::scoped_lock lock(making_);
    made_.push_back(carrier);
  }
  if (!link->change_carrier(&carrier)) return "";
  if (carrier != nullptr) carrier->end();
  link->put_raw(bytes, sizeof bytes);
  return "";
}

// Begins an attempt, on the sender's side. `after` is the attempt that has failed, or 0.
std::string Endpoint::begin_meeting(const LinkRef& link, uint32_t after) noexcept {
  uint32_t failed = after;
  if (!link->attempt.compare_exchange_strong(failed, after + 1)) return "";
  if (after == kMostAttempts) {
    link->attempt = after;
    return "none of " + std::to_string(kMostAttempts) + " connections of the link module " +
           config_.transport + " reached it";
  }
  std::string why = make_carrier(link, after + 1);
  if (why.empty()) link->flush();
  return why;
}

std::string Endpoint::took_meeting(const LinkRef& link, std::span<const std::byte> message) noexcept {
  Meet other;
  if (message.size() != Meet::kBytes || !other.read(message.data())) return "an invalid meeting message";
  const bool open = link->stage == Link::Stage::kOpen;
  if (link->outgoing) {
    if (other.attempt < link->attempt || (open && other.failed)) return "";
    if (other.attempt > link->attempt || open) return "a meeting message out of order";
    if (other.failed) return begin_meeting(link, other.attempt);
    if (link->met) return "a second meeting message";
  } else {
    if (open || other.failed || other.attempt != link->attempt + 1) return "a meeting message out of order";
    link->attempt = other.attempt;
    std::string why = make_carrier(link, other.attempt);
    if (!why.empty()) return why;
    link->flush();
  }
  std::copy(message.begin(), message.end(), link->meets[link->outgoing ? 1 : 0]);
  link->met = true;
  start_carrier(link, other);
  return "";
}

void Endpoint::start_carrier(const LinkRef& link, const Meet& other) noexcept {
  const CarrierRef carrier = link->carrier();
  if (carrier == nullptr) return;
  Carrier::Meeting meeting;
  meeting.link = link;
  meeting.address.assign(other.address, other.address_bytes);
  Peer& peer = at(link->peer);
  meeting.queue = link->outgoing ? &peer.out_queue : &peer.in_queue;
  meeting.own = prove_carrier(link->outgoing ? Prover::kClient : Prover::kServer, config_.secret, *link);
  meeting.wanted = prove_carrier(link->outgoing ? Prover::kServer : Prover::kClient, config_.secret, *link);
  carrier->start(std::move(meeting));
}

void Endpoint::say_failed(Link& link, uint32_t attempt) noexcept {
  Meet failed;
  failed.attempt = attempt;
  failed.failed = true;
  std::byte bytes[Meet::kBytes];
  failed.write(bytes);
  link.put_raw(bytes, sizeof bytes);
  link.flush();
}

bool Endpoint::carried(const LinkRef& link, const Carrier& carrier) noexcept {
  if (link->carrier().get() != &carrier || link->ending()) return false;
  link->carrying = true;
  link->stage = Link::Stage::kOpen;
  link->open_carried();
  link->flush();
  return true;
}

std::string Endpoint::took_carried(const LinkRef& link, std::span<const std::byte> piece) noexcept {
  at(link->peer).heard_ns.store(steady_now_ns(), std::memory_order_relaxed);
  const grpc::Slice slice(piece.data(), piece.size(), grpc::Slice::STATIC_SLICE);
  return link->outgoing ? took_data_out(link, {&slice, 1}) : took_data_in(link, {&slice, 1});
}

bool Endpoint::next_apart(Link& link, Piece* piece) noexcept {
  if (!link.outgoing) return false;
  Peer& peer = at(link.peer);
  const std::scoped_lock lock(peer.out_mutex);
  return peer.out.get() == &link && peer.outbox.next_apart(piece);
}

std::ptrdiff_t Endpoint::send_apart(Link& link, Carrier& carrier,
                                    std::span<const std::byte> before) noexcept {
  Peer& peer = at(link.peer);
  const std::scoped_lock lock(peer.out_mutex);
  const Outbox::Going going = peer.outbox.apart();
  const std::span<const std::byte> parts[] = {before, going.data, going.end};
  const std::ptrdiff_t went = carrier.write(parts);
  if (went > static_cast<std::ptrdiff_t>(before.size()))
    peer.outbox.apart_gone(static_cast<std::size_t>(went) - before.size());
  return went;
}

const char* Endpoint::begin_apart(Link& link, const Piece& piece) noexcept {
  Peer& peer = at(link.peer);
  const std::scoped_lock lock(peer.in_mutex);
  if (link.outgoing) return "it sent data, but is the receiver on this link";
  return peer.in.get() == &link && !peer.in_gone ? peer.inbox.begin_apart(piece) : nullptr;
}

std::ptrdiff_t Endpoint::receive_apart(Link& link, Carrier& carrier, std::size_t most,
                                       const char** why) noexcept {
  Peer& peer = at(link.peer);
  const std::scoped_lock lock(peer.in_mutex);
  const Inbox::Coming coming = peer.in.get() == &link ? peer.inbox.apart() : Inbox::Coming{};
  if (coming.end.empty() && coming.data.empty()) {
    // No receive waited when the piece began.
    std::byte nowhere[4096];
    const std::span<std::byte> part(nowhere, std::min(most, sizeof nowhere));
    return carrier.read({&part, 1});
  }
  const std::span<std::byte> parts[] = {coming.data, coming.end};
  const std::ptrdiff_t came = carrier.read(parts);
  if (came <= 0) return came;
  peer.heard_ns.store(steady_now_ns(), std::memory_order_relaxed);
  *why = peer.inbox.apart_came(static_cast<std::size_t>(came));
  return *why == nullptr ? came : -1;
}

void Endpoint::moved_apart(const LinkRef& link) noexcept {
  Peer& peer = at(link->peer);
  bool ended;
  if (link->outgoing) {
    const std::scoped_lock lock(peer.out_mutex);
    ended = peer.outbox.take_ended();
  } else {
    const std::scoped_lock lock(peer.in_mutex);
    ended = peer.inbox.take_ended();
  }
  if (ended) tell();
}

void Endpoint::carrier_over(const LinkRef& link, const Carrier& carrier, const std::string& why) noexcept {
  if (link->carrier().get() != &carrier) return;
  if (!link->carrying) {
    if (link->ending()) return;
    if (!link->outgoing) return say_failed(*link, carrier.attempt);
    const std::string enough = begin_meeting(link, carrier.attempt);
    if (!enough.empty()) link->end(enough);
    return;
  }
  link->carrying = false;
  if (!link->stream_over) return link->end(why);
  over_data(link, why, "");
}

// Joins the carriers that have ended. With `all`, ends and joins all of them.
void Endpoint::join_carriers(bool all) noexcept {
  std::vector<CarrierRef> over;
  {
    const std::scoped_lock lock(making_);
    const auto live = std::partition(made_.begin(), made_.end(),
                                     [&](const CarrierRef& each) { return !all && !each->over(); });
    over.assign(std::make_move_iterator(live), std::make_move_iterator(made_.end()));
    made_.erase(live, made_.end());
  }
  for (const CarrierRef& each : over) {
    if (all) each->end();
    each->join();
  }
}

// Ends the carriers whose peer has not proven its identity in time, and lowers `next` to the time at which
// others will be late.
void Endpoint::end_late_carriers(int64_t now, int64_t* next) noexcept {
  std::vector<CarrierRef> late;
  {
    const std::scoped_lock lock(making_);
    for (const CarrierRef& each : made_) {
      const int64_t until = each->prove_until_ns();
      if (until == 0) continue;
      if (until <= now) late.push_back(each);
      *next = std::min(*next, std::max(until, now + kRetryNs));
    }
  }
  for (const CarrierRef& each : late) each->end();
}

}  // namespace dist::grpc_link
