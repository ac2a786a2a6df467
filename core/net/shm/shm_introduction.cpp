// SPDX-License-Identifier: Apache-2.0
// The thread of a ShmTransport handles introductions, bells, and the end of processes.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/net/shm/shm_transport.hpp"

namespace dist {
namespace {

using shm::Handshake;
using shm::Introduction;
using shm::Outcome;
using shm::Token;

// How long a process may take for its next message over the local socket. A worker that stops for longer is
// reached over sockets.
constexpr int64_t kPatienceNs = 5'000'000'000;
// How long the transport below may take to notice that a process has ended. It can report the reason more
// exactly.
constexpr int64_t kGraceNs = 1'000'000'000;
constexpr int kTickMs = 100;
constexpr std::size_t kMostStrangers = 64;

// The messages of introductions belong to no run, so forget() does not discard them.
constexpr MessageKey key_of(uint32_t series) noexcept { return {.generation = UINT32_MAX, .series = series}; }
constexpr uint32_t kIntroductions = 0;
constexpr uint32_t kOutcomes = 1;

bool equal(const Token& a, const Token& b) noexcept {
  unsigned differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned>(a[i] ^ b[i]);
  return differ == 0;
}

bool done(const Transfer& transfer) noexcept { return transfer.end() == Transfer::End::kDone; }

}  // namespace

// If the thread cannot be started, this worker uses only the transport below.
void ShmTransport::start_thread() noexcept {
  uint64_t random[2];
  if (!event_.open().ok() || !boot_identity(boot_) || !random_fill(std::as_writable_bytes(std::span(random))))
    return;
  std::snprintf(name_, sizeof name_, "dist-shm-%016llx%016llx", static_cast<unsigned long long>(random[0]),
                static_cast<unsigned long long>(random[1]));
  if (*options_.refuses == '\0' && !listen_locally(name_, &listener_socket_).ok()) return;
  for (Peer& peer : peers_) {
    if (peer.number == me()) continue;
    below_.receive(peer.number, key_of(kIntroductions), peer.their_introduction, Introduction::kBytes,
                   peer.receive_introduction);
  }
  const AsyncSignalsBlocked blocked;
  // The thread may read this before start() returns.
  running_.store(true, std::memory_order_release);
  if (!thread_.start(thread_main, this).ok()) return running_.store(false, std::memory_order_release);
  thread_.name("dist-shm");
}

void* ShmTransport::thread_main(void* self) {
  static_cast<ShmTransport*>(self)->run();
  return nullptr;
}

void ShmTransport::run() noexcept {
  while (!stopping_) {
    woken_.store(false, std::memory_order_seq_cst);
    watch(look(steady_now_ns()));
  }
}

// Does everything that can be done now. Returns how many milliseconds the thread may wait, or -1 for no
// limit.
int ShmTransport::look(int64_t now) noexcept {
  bool soon = false;
  if (!closed_) {
    take_strangers(now);
    for (Peer& peer : peers_) {
      if (peer.number == me()) continue;
      if (done(peer.receive_introduction)) peer.touched.store(true, std::memory_order_release);
      if (!peer.touched.load(std::memory_order_acquire)) continue;
      if (peer.stage != Stage::kDecided) go_on(peer, now);
      soon = soon || peer.stage == Stage::kMeeting;
      if (peer.ended_ns == 0 || peer.broken || below_.lost(peer.number)) continue;
      soon = true;
      if (now - peer.ended_ns < kGraceNs) continue;
      peer.broken = true;
      news_.store(true, std::memory_order_release);
    }
  }
  sweep();
  if (note_changes()) tell();
  return soon || !strangers_.empty() ? kTickMs : -1;
}

// Whether something has changed other than the end of a transfer.
bool ShmTransport::note_changes() noexcept {
  bool changed = false;
  for (Peer& peer : peers_) {
    const bool violated =
        peer.mode.load(std::memory_order_acquire) == Mode::kShared && peer.link->violation() != nullptr;
    if (violated && !peer.broken.exchange(true)) changed = true;
    const auto known = static_cast<uint8_t>((lost(peer.number) ? 1 : 0) + (below_.left(peer.number) ? 2 : 0));
    changed = changed || known != known_[static_cast<std::size_t>(peer.number)];
    known_[static_cast<std::size_t>(peer.number)] = known;
  }
  const bool up_to_date = below_.up_to_date();
  changed = changed || up_to_date != was_up_to_date_;
  was_up_to_date_ = up_to_date;
  return changed;
}

// Waits for an event, and handles bells and processes that have ended.
void ShmTransport::watch(int timeout_ms) noexcept {
  watched_.clear();
  const int event = watched_.add(event_.number());
  (void)watched_.add(listener_socket_.number());
  for (Peer& peer : peers_) {
    peer.bell_at = peer.end_at = -1;
    if (peer.mode.load(std::memory_order_acquire) == Mode::kShared) {
      if (!peer.socket_ended) peer.bell_at = watched_.add(peer.link->socket().number());
      if (peer.ended_ns == 0) peer.end_at = watched_.add(peer.link->ends().number());
    } else if (peer.stage == Stage::kMeeting) {
      (void)watched_.add(peer.connection.socket.number());
    }
  }
  for (std::size_t i = 0; i < strangers_.size() && watched_.has_room(); ++i)
    (void)watched_.add(strangers_[i].socket.number());
  watched_.wait(timeout_ms);
  if (watched_.readable(event)) event_.clear();
  bool ended = false;
  for (Peer& peer : peers_) {
    if (watched_.readable(peer.bell_at)) {
      if (!peer.link->take_bell()) {
        peer.socket_ended = true;
        if (peer.ended_ns == 0) peer.ended_ns = steady_now_ns();
      }
      ended = peer.link->attend() || ended;
      ended = peer.link->progress() || ended;
    }
    if (watched_.readable(peer.end_at) && peer.ended_ns == 0) peer.ended_ns = steady_now_ns();
  }
  if (ended) tell();
}

// ---- Introductions ----

void ShmTransport::send_introduction(Peer& peer, const char* refuses) noexcept {
  Introduction own;
  own.willing = *refuses == '\0' && random_fill(peer.token);
  own.credit = credit_;
  std::memcpy(own.boot, boot_, sizeof boot_);
  own.token = peer.token;
  std::snprintf(own.name, sizeof own.name, "%s", name_);
  std::snprintf(own.reason, sizeof own.reason, "%s", refuses);
  own.write(peer.own_introduction);
  below_.send(peer.number, key_of(kIntroductions), peer.own_introduction, Introduction::kBytes,
              peer.introduction_out);
}

void ShmTransport::introduce(Peer& peer) noexcept {
  if (*options_.refuses != '\0') {
    send_introduction(peer, options_.refuses);
    return settle(peer, false, options_.refuses);
  }
  peer.stage = Stage::kIntroducing;
  below_.receive(peer.number, key_of(kOutcomes), peer.their_outcome, Outcome::kBytes, peer.receive_outcome);
  send_introduction(peer, "");
}

void ShmTransport::go_on(Peer& peer, int64_t now) noexcept {
  if (peer.stage == Stage::kUntouched) introduce(peer);
  if (peer.stage == Stage::kIntroducing && peer.receive_introduction.over()) {
    if (!done(peer.receive_introduction)) return settle(peer, false, "");
    took_introduction(peer, now);
  }
  if (peer.stage == Stage::kMeeting && peer.receive_outcome.over()) {
    // The other end has already failed.
    Outcome theirs;
    const bool read = done(peer.receive_outcome) && theirs.read(peer.their_outcome);
    if (!read || !theirs.works) return conclude(peer, "the other worker could not use it");
  }
  if (peer.stage == Stage::kMeeting && peer.connection.socket.is_open()) take_handshake(peer);
  if (peer.stage == Stage::kMeeting && now > peer.until_ns)
    conclude(peer, "its process did not answer in time");
  if (peer.stage == Stage::kConcluding && peer.receive_outcome.over()) take_outcome(peer);
}

void ShmTransport::took_introduction(Peer& peer, int64_t now) noexcept {
  Introduction& theirs = peer.introduced;
  if (!theirs.read(peer.their_introduction)) return settle(peer, false, "its introduction cannot be read");
  if (!theirs.willing) return settle(peer, false, theirs.reason);
  if (std::memcmp(theirs.boot, boot_, sizeof boot_) != 0)
    return settle(peer, false, "it is on another machine");
  peer.credit = static_cast<std::size_t>(std::min<uint64_t>(credit_, theirs.credit));
  peer.stage = Stage::kMeeting;
  peer.until_ns = now + kPatienceNs;
  if (peer.number > me()) connect(peer, now);
}

void ShmTransport::connect(Peer& peer, int64_t) noexcept {
  if (!connect_locally({peer.introduced.name, strnlen(peer.introduced.name, Introduction::kNameBytes)},
                       &peer.connection.socket)
           .ok())
    return conclude(peer, last_error().message);
  LocalProcess process;
  if (!process_at(peer.connection.socket, &process) || process.user != this_user())
    return conclude(peer, "its local socket belongs to another user");
  peer.connection.process = process.id;
  if (!say(peer, false)) conclude(peer, "its local socket does not accept a message");
}

// Accepts processes that connect. Each must first identify itself.
void ShmTransport::take_strangers(int64_t now) noexcept {
  while (strangers_.size() < kMostStrangers) {
    Descriptor socket = accept_locally(listener_socket_);
    if (!socket.is_open()) break;
    LocalProcess process;
    if (!process_at(socket, &process) || process.user != this_user()) continue;
    try {
      strangers_.push_back({std::move(socket), now + kPatienceNs});
    } catch (const std::bad_alloc&) {
      break;
    }
  }
  std::erase_if(strangers_, [&](Stranger& each) { return take_stranger(each) || now > each.until_ns; });
}

// Returns true if nothing more is expected from this process here.
bool ShmTransport::take_stranger(Stranger& stranger) noexcept {
  if (!stranger.heard) {
    std::byte bytes[Handshake::kBytes];
    const std::ptrdiff_t came = receive_message(stranger.socket, bytes, nullptr);
    if (came == 0) return false;
    if (came != static_cast<std::ptrdiff_t>(sizeof bytes) || !stranger.said.read(bytes)) return true;
    stranger.heard = true;
  }
  const Handshake& said = stranger.said;
  if (said.worker < 0 || said.worker >= me()) return true;
  Peer& peer = at(said.worker);
  // Its introduction may not have arrived yet.
  if (peer.stage == Stage::kIntroducing) go_on(peer, steady_now_ns());
  if (peer.stage == Stage::kIntroducing || peer.stage == Stage::kUntouched) return false;
  if (peer.stage != Stage::kMeeting || peer.connection.socket.is_open() ||
      !equal(said.own, peer.introduced.token) || !equal(said.other, peer.token))
    return true;
  LocalProcess process;
  if (!process_at(stranger.socket, &process)) return true;
  peer.connection.socket = std::move(stranger.socket);
  peer.connection.process = process.id;
  if (!say(peer, true)) conclude(peer, last_error().message);
  return true;
}

bool ShmTransport::say(Peer& peer, bool with_memory) noexcept {
  Handshake own;
  Descriptor descriptor;
  own.worker = me();
  own.own = peer.token;
  own.other = peer.introduced.token;
  own.address = reinterpret_cast<std::uintptr_t>(peer.token.data());
  if (with_memory) {
    const shm::Layout layout(peer.credit);
    if (!random_fill(std::as_writable_bytes(std::span(&own.salt, 1))) ||
        !peer.connection.own.create(layout.bytes(), &descriptor).ok())
      return false;
    new (peer.connection.own.data()) shm::Control;
    own.bytes = layout.bytes();
    peer.connection.own_salt = own.salt;
  }
  std::byte bytes[Handshake::kBytes];
  own.write(bytes);
  if (send_message(peer.connection.socket, bytes, descriptor.number()) ==
      static_cast<std::ptrdiff_t>(sizeof bytes))
    return true;
  (void)fail(DIST_UNAVAILABLE, "its local socket does not accept a message");
  return false;
}

// Maps the peer's memory. Before this, the peer has presented both tokens.
Status ShmTransport::take_memory(Peer& peer, const Handshake& said, const Descriptor& descriptor) noexcept {
  const shm::Layout layout(peer.credit);
  if (said.bytes != layout.bytes() || !descriptor.is_open())
    return failed_precondition("its shared memory has an unexpected size");
  DIST_TRY(peer.connection.theirs.open(descriptor, layout.bytes()));
  peer.connection.their_salt = said.salt;
  Token seen{};
  peer.connection.reads = options_.reads && peer.connection.process != 0 &&
                          read_process(peer.connection.process, said.address, seen.data(), seen.size()) &&
                          equal(seen, peer.introduced.token);
  return kOk;
}

void ShmTransport::take_handshake(Peer& peer) noexcept {
  std::byte bytes[Handshake::kBytes];
  Descriptor descriptor;
  const std::ptrdiff_t came = receive_message(peer.connection.socket, bytes, &descriptor);
  if (came == 0) return;
  if (came < 0) {
    // The peer's outcome has not arrived yet. It contains the reason.
    peer.connection.socket = Descriptor();
    return;
  }
  Handshake said;
  if (came != static_cast<std::ptrdiff_t>(sizeof bytes) || !said.read(bytes) || said.worker != peer.number ||
      !equal(said.own, peer.introduced.token) || !equal(said.other, peer.token))
    return conclude(peer, "its process violated the handshake");
  const bool connected_first = peer.number > me();
  if (!take_memory(peer, said, descriptor).ok() || (connected_first && !say(peer, true)))
    return conclude(peer, last_error().message);
  works(peer);
}

void ShmTransport::works(Peer& peer) noexcept {
  void* const place = memory_.try_allocate(sizeof(shm::Link), alignof(shm::Link));
  if (place == nullptr) return conclude(peer, "no memory is left");
  peer.connection.ends = watch_process(peer.connection.process);
  peer.connection.reads = peer.connection.reads && peer.connection.ends.is_open();
  peer.link = new (place) shm::Link(memory_, peer.credit, pollers_, sleepers_);
  peer.link->open(std::move(peer.connection));
  conclude(peer, nullptr);
}

// This end now knows whether it can use shared memory. `failed`: the reason if it cannot, otherwise NULL.
void ShmTransport::conclude(Peer& peer, const char* failed) noexcept {
  // If the other end has failed first, its reason is reported. An outcome that arrives later may be the
  // answer to this one.
  Outcome theirs;
  const bool known = done(peer.receive_outcome) && theirs.read(peer.their_outcome) && !theirs.works;
  send_outcome(peer, failed);
  peer.stage = Stage::kConcluding;
  if (failed == nullptr) return;
  // The other end may still be in the handshake. Closing the socket makes that fail, so that it falls back as
  // well.
  peer.connection.socket = Descriptor();
  settle(peer, false, known ? theirs.reason : failed);
}

void ShmTransport::send_outcome(Peer& peer, const char* failed) noexcept {
  Outcome own;
  own.works = failed == nullptr;
  std::snprintf(own.reason, sizeof own.reason, "%s", failed == nullptr ? "" : failed);
  own.write(peer.own_outcome);
  below_.send(peer.number, key_of(kOutcomes), peer.own_outcome, Outcome::kBytes, peer.outcome_out);
}

void ShmTransport::take_outcome(Peer& peer) noexcept {
  Outcome theirs;
  if (!done(peer.receive_outcome) || !theirs.read(peer.their_outcome)) return settle(peer, false, "");
  settle(peer, theirs.works, theirs.reason);
}

void ShmTransport::settle(Peer& peer, bool works, const char* why) noexcept {
  peer.stage = Stage::kDecided;
  bool ended = false;
  if (works && peer.link != nullptr) {
    ended = decide(peer, Mode::kShared);
  } else {
    const bool here = std::memcmp(peer.introduced.boot, boot_, sizeof boot_) == 0 && peer.introduced.willing;
    {
      const std::scoped_lock lock(peer.mutex);
      std::snprintf(peer.why, sizeof peer.why, "%s", why);
    }
    if (here && *why != '\0') {
      Host host;
      {
        const std::scoped_lock lock(listening_);
        host = host_;
      }
      host.log(DIST_LOG_WARNING, "worker %d is on this machine, but is reached over sockets: %s", peer.number,
               why);
    }
    peer.connection = {};
    ended = decide(peer, Mode::kBelow);
  }
  if (ended) tell();
}

}  // namespace dist
