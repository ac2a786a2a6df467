// SPDX-License-Identifier: Apache-2.0
// Tracks liveness: worker 0 learns over control links which workers join, leave and are lost, and informs the
// others.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kLeastProbePauseNs = 250'000'000;
constexpr int64_t kMostProbePauseNs = 8'000'000'000;

}  // namespace

// Handles the frames of a control link. No lock is held: the messages of a link arrive one at a time.
class Endpoint::ControlTaker final : public FrameTaker {
 public:
  ControlTaker(Endpoint& owner, Link& link) noexcept
      : owner_(owner), link_(link), peer_(owner.at(link.peer)) {}

  const char* begin(const Frame& frame, std::byte** to) noexcept override {
    if (const char* const why = check(frame); why != nullptr) return why;
    try {
      link_.control_data.resize(static_cast<std::size_t>(frame.data_bytes()));
    } catch (const std::bad_alloc&) {
      return "no memory is left for a frame";
    }
    *to = link_.control_data.data();
    return nullptr;
  }

  void finish(const Frame& frame) noexcept override {
    switch (frame.kind) {
      case FrameKind::kBeat: return beat(frame);
      case FrameKind::kHere: return here(owner_.at(static_cast<int>(frame.id)));
      case FrameKind::kLost: return lost(frame);
      case FrameKind::kFormed: return owner_.take_formed(frame, link_.control_data.data());
      case FrameKind::kLeft: {
        Peer& who = owner_.at(static_cast<int>(frame.id));
        if (who.number == owner_.me()) return;
        owner_.declare_left(who, frame.offset == 1);
        if (&who == &peer_) owner_.say(peer_, {.kind = FrameKind::kByeTaken});
        if (owner_.hub()) {
          owner_.say_to_all({.kind = FrameKind::kLeft, .id = frame.id, .offset = frame.offset}, nullptr,
                            &who);
        }
        return;
      }
      case FrameKind::kByeTaken: {
        {
          const std::scoped_lock lock(owner_.members_);
          peer_.left_taken = true;
        }
        return owner_.wake();
      }
      default: return;
    }
  }

 private:
  // Returns NULL if the peer may send this frame. Its data are then bounded by the size of the cluster.
  const char* check(const Frame& frame) const noexcept {
    const bool someone = frame.id < owner_.peers_.size();
    switch (frame.kind) {
      case FrameKind::kBeat:
      case FrameKind::kByeTaken: return nullptr;
      case FrameKind::kHere:
        return owner_.hub() || !someone || frame.bytes != kIdentityBytes ? "an invalid frame 'here'"
                                                                         : nullptr;
      case FrameKind::kFormed: return owner_.check_formed(frame);
      case FrameKind::kLost:
        return owner_.hub() || !someone || frame.id == 0 || frame.bytes > kReasonTextBytes || frame.offset > 1
                   ? "an invalid frame 'lost'"
                   : nullptr;
      case FrameKind::kLeft:
        return !someone || frame.offset > 1 ||
                       (owner_.hub() && frame.id != static_cast<uint64_t>(peer_.number))
                   ? "an invalid frame 'left'"
                   : nullptr;
      default: return "a frame that does not belong on a control link";
    }
  }

  void beat(const Frame& frame) noexcept {
    if (frame.id != 0) owner_.say(peer_, {.kind = FrameKind::kBeat, .offset = frame.id});
    if (frame.offset == 0) return;
    {
      const std::scoped_lock lock(owner_.members_);
      peer_.answered = frame.offset;
    }
    owner_.wake();
  }

  void here(Peer& who) noexcept {
    if (who.number == owner_.me()) return;
    Identity incarnation;
    std::memcpy(incarnation.data(), link_.control_data.data(), incarnation.size());
    bool same;
    {
      const std::scoped_lock lock(owner_.members_);
      same = owner_.know(who, incarnation);
      if (same && who.life == Life::kUnknown) who.life = Life::kHere;
    }
    if (!same) return owner_.declare_lost(who, " was restarted", true);
    owner_.begin_out(who);
  }

  void lost(const Frame& frame) noexcept {
    const auto bytes = static_cast<std::size_t>(frame.bytes);
    const std::string why(reinterpret_cast<const char*>(link_.control_data.data()), bytes);
    Peer& who = owner_.at(static_cast<int>(frame.id));
    if (who.number != owner_.me()) return owner_.declare_lost(who, why, frame.offset == 1);
    const std::string own = owner_.standstill();
    owner_.given_up(own.empty() ? "worker 0 considers this worker lost: it" + why : own);
  }

  Endpoint& owner_;
  Link& link_;
  Peer& peer_;
};

std::string Endpoint::took_control(const LinkRef& link, std::span<const grpc::Slice> message) noexcept {
  ControlTaker taker(*this, *link);
  for (const grpc::Slice& each : message) {
    const char* const why =
        link->reader.feed(reinterpret_cast<const std::byte*>(each.begin()), each.size(), taker);
    if (why != nullptr) return why;
  }
  return link->reader.between_frames() ? "" : "a message that ends inside a frame";
}

// Connects to worker 0, and retries until this endpoint is closed.
void Endpoint::begin_control() noexcept {
  Peer& worker_0 = at(0);
  {
    const std::scoped_lock lock(members_);
    if (worker_0.control != nullptr || worker_0.life == Life::kLost || worker_0.life == Life::kLeft ||
        refused_)
      return;
    control_retry_ns_ = 0;
    // An instance of worker 0 that has not admitted this worker may have ended since. Any later instance is
    // acceptable.
    worker_0.known = false;
  }
  std::string why;
  const LinkRef link = make_client(worker_0, Purpose::kControl, &why);
  {
    const std::scoped_lock lock(members_);
    worker_0.control = link;
    if (link == nullptr) control_retry_ns_ = steady_now_ns() + kRetryNs;
  }
  if (link == nullptr) return why.empty() ? wake() : cannot_reach(worker_0, why, false);
  static_cast<ClientLink&>(*link).start();
}

// `members_` must be held.
bool Endpoint::know(Peer& peer, const Identity& incarnation) noexcept {
  if (peer.known) return peer.incarnation == incarnation;
  peer.incarnation = incarnation;
  peer.known = true;
  return true;
}

void Endpoint::say(Peer& to, const Frame& frame, const std::byte* data) noexcept {
  LinkRef link;
  {
    const std::scoped_lock lock(members_);
    link = to.control;
    if (link == nullptr) return;
    to.control_queue.put(frame, data);
  }
  link->flush();
}

void Endpoint::say_to_all(const Frame& frame, const std::byte* data, const Peer* but) noexcept {
  for (Peer& peer : peers_) {
    if (peer.number != me() && &peer != but) say(peer, frame, data);
  }
}

// On worker 0: tells a new worker everything it knows about the others, and tells all others about the new
// one.
void Endpoint::introduce(Peer& newcomer) noexcept {
  std::vector<LinkRef> links;
  {
    const std::scoped_lock lock(members_);
    const auto here = [](FrameQueue& queue, const Peer& who) {
      queue.put({.kind = FrameKind::kHere, .id = static_cast<uint64_t>(who.number), .bytes = kIdentityBytes},
                who.incarnation.data());
    };
    for (Peer& peer : peers_) {
      if (&peer == &newcomer || peer.number == me() || !peer.known) continue;
      const auto id = static_cast<uint64_t>(peer.number);
      if (peer.life == Life::kHere) {
        here(newcomer.control_queue, peer);
        if (peer.control != nullptr) {
          here(peer.control_queue, newcomer);
          links.push_back(peer.control);
        }
      } else if (peer.life == Life::kLeft) {
        newcomer.control_queue.put({.kind = FrameKind::kLeft, .id = id, .offset = peer.comes_back ? 1u : 0u});
      } else if (peer.life == Life::kLost) {
        const std::string why =
            peer.why.substr(std::min(peer.name.size(), peer.why.size()), kReasonTextBytes);
        newcomer.control_queue.put({.kind = FrameKind::kLost, .id = id, .bytes = why.size(), .offset = 1},
                                   reinterpret_cast<const std::byte*>(why.data()));
      }
    }
  }
  for (const LinkRef& each : links) each->flush();
}

// The time at which a peer's lease began. If a peer sends no heartbeats to this worker, its silence means
// nothing, so the lease begins now.
int64_t Endpoint::silent_since_ns(const Peer& peer) const noexcept {
  const bool has_heartbeats = hub() || peer.number == 0;
  return has_heartbeats ? peer.heard_ns.load(std::memory_order_relaxed) : steady_now_ns();
}

// `why` continues a sentence that begins with the worker's name. Unless `at_once` is set, messages that the
// peer has sent before are still received over its link, if there is one. `rejects`: the peer has rejected
// this worker.
void Endpoint::declare_lost(Peer& peer, const std::string& why, bool at_once, bool rejects) noexcept {
  bool first;
  LinkRef control;
  {
    const std::scoped_lock lock(members_);
    first = peer.life != Life::kLost && peer.life != Life::kLeft;
    if (first) {
      peer.life = Life::kLost;
      peer.rejects = rejects;
      if (!peer.leaves) peer.why = peer.name + why;
      if (hub()) control = peer.control;
    }
  }
  end_out(peer, Transfer::End::kLost, true);
  bool wait;
  {
    const std::scoped_lock lock(peer.in_mutex);
    wait = !at_once && peer.in != nullptr && !peer.inbox.bye();
    if (wait && peer.in_until_ns == 0) peer.in_until_ns = silent_since_ns(peer) + config_.lease_ns;
  }
  if (!wait) end_in(peer, Transfer::End::kLost, true);
  if (first && hub()) {
    const std::string text = why.substr(0, kReasonTextBytes);
    const auto id = static_cast<uint64_t>(peer.number);
    const Frame lost{.kind = FrameKind::kLost, .id = id, .bytes = text.size(), .offset = at_once ? 1u : 0u};
    // The peer is informed as well, in case it is still alive.
    say_to_all(lost, reinterpret_cast<const std::byte*>(text.data()), nullptr);
    if (control != nullptr) control->end_after_writes("");
  }
  tell();
  wake();
}

void Endpoint::declare_left(Peer& peer, bool comes_back) noexcept {
  {
    const std::scoped_lock lock(members_);
    if (peer.life == Life::kLost) return;
    peer.life = Life::kLeft;
    peer.leaves = true;
    peer.comes_back = comes_back;
    peer.why = peer.name + (comes_back ? " has left to re-form" : " has left");
  }
  end_out(peer, Transfer::End::kLost, true);
  end_in(peer, Transfer::End::kLost, true);
  wake();
}

// On worker 0: a worker that has never joined this generation asks to form the next one.
void Endpoint::leaves_unmet(Peer& peer) noexcept {
  {
    const std::scoped_lock lock(members_);
    if (peer.life != Life::kUnknown) return;
  }
  declare_left(peer, true);
  say_to_all({.kind = FrameKind::kLeft, .id = static_cast<uint64_t>(peer.number), .offset = 1}, nullptr,
             &peer);
}

// This worker is not a member, or no longer one. `rejects`: worker 0 has rejected it.
void Endpoint::refused(const std::string& why, bool rejects) noexcept {
  {
    const std::scoped_lock lock(members_);
    refused_ = true;
  }
  for (Peer& peer : peers_) {
    if (peer.number == me()) continue;
    {
      const std::scoped_lock lock(members_);
      if (peer.life != Life::kLeft && peer.life != Life::kLost) {
        peer.life = Life::kLost;
        peer.rejects = rejects;
        peer.why = why;
      }
    }
    declare_lost(peer, "", true);
  }
}

// Worker 0 considers this worker lost. If this worker waits for a generation to form, it may take part in the
// next one.
void Endpoint::given_up(const std::string& why) noexcept {
  {
    const std::scoped_lock lock(members_);
    given_up_ = config_.forms && !formed_;
    at(me()).why = why;
  }
  is_given_up_ = true;
  refused(why, false);
}

// If this process did not run for longer than the lease, and no peer has confirmed since that it is still a
// member, then its peers consider it lost. Returns a sentence about that, or an empty text.
std::string Endpoint::standstill() const {
  const int64_t known_ns =
      doubts_.load(std::memory_order_relaxed) ? stood_still_ns_.load(std::memory_order_relaxed) : 0;
  // The watcher may not have run since the process resumed.
  const int64_t gap_ns = std::max(known_ns, boot_now_ns() - looked_ns_.load(std::memory_order_acquire));
  if (gap_ns <= config_.lease_ns) return "";
  return std::string("this process did not run for ") + DurationText(gap_ns).text +
         " (it was stopped, or the machine was suspended), longer than the lease of " +
         DurationText(config_.lease_ns).text;
}

// A link to a peer has ended without a reason. `why` continues a sentence that begins with the worker's name.
void Endpoint::link_broke(Peer& peer, const std::string& why, bool at_once) noexcept {
  const std::string own = standstill();
  own.empty() ? declare_lost(peer, why, at_once) : given_up(own);
}

// Retries continue until a peer proves that it belongs to the job, because a failure does not predict which
// process will be at the address next. `answers`: the peer is running and has proven that it belongs to the
// job.
void Endpoint::cannot_reach(Peer& peer, const std::string& status, bool answers) noexcept {
  bool ask = false;
  {
    const std::scoped_lock lock(members_);
    const bool nobody = nobody_listens(status);
    peer.failed_attempts.add(status);
    if (peer.number == 0) {
      turned_away_ = answers;
      nobody_since_ns_ = !nobody ? 0 : nobody_since_ns_ != 0 ? nobody_since_ns_ : steady_now_ns();
    }
    if (answers) {
      peer.causes.clear();
      peer.early_cause.clear();
    }
    // When a program starts to listen there, its first failure is probed at once.
    if (nobody) peer.probe_ns = peer.probe_pause_ns = 0;
    ask = !answers && !nobody && may_probe(peer, steady_now_ns());
    if (peer.life == Life::kHere || peer.life == Life::kUnknown) {
      peer.why = peer.name + (answers ? ": " : " cannot be reached yet: ") + peer.failed_attempts.text();
    }
  }
  if (ask) prober_.ask(static_cast<uint64_t>(peer.number), config_.address(peer.number));
  wake();
}

// `members_` must be held, here and for the next two functions. Describes what is known about a peer's state.
std::string Endpoint::known_of(const Peer& peer) const {
  const std::string cause = peer.causes.empty() ? peer.early_cause : peer.causes.text();
  if (cause.empty()) {
    // Only worker 0 knows which workers have joined.
    const bool missing = hub() && peer.number != me() && peer.life == Life::kUnknown && peer.why.empty();
    return missing ? peer.name + " has not joined" : peer.why;
  }
  if (peer.life == Life::kLost || peer.life == Life::kLeft) {
    // Before the peer ended, it may have been unreachable for another reason.
    return peer.leaves ? peer.why + ". Before that, it could not be reached: " + cause : peer.why;
  }
  const std::string attempts = peer.failed_attempts.text();
  if (attempts.find(cause) != std::string::npos) return peer.name + " cannot be reached: " + attempts;
  const std::string text = peer.name + " cannot be reached: " + cause;
  if (!attempts.empty()) return text + ". Attempts to connect: " + attempts;
  // Worker 0 may have learned more from a process that has connected to it. The probe may only have found
  // that process ending.
  return peer.why.empty() ? text : peer.why + ". It cannot be reached: " + cause;
}

// Whether to probe a peer again now. The pauses between probes become longer.
bool Endpoint::may_probe(Peer& peer, int64_t now) noexcept {
  if (closed_ || now < peer.probe_ns) return false;
  peer.probe_pause_ns = std::clamp(2 * peer.probe_pause_ns, kLeastProbePauseNs, kMostProbePauseNs);
  peer.probe_ns = now + peer.probe_pause_ns;
  peer.probed_ns = now;
  return true;
}

// A link to or from the peer has been proven.
void Endpoint::reached(Peer& peer) noexcept {
  peer.failed_attempts.clear();
  peer.causes.clear();
  peer.early_cause.clear();
}

void Endpoint::probed(Peer& peer, const std::string& cause, bool final) noexcept {
  {
    const std::scoped_lock lock(members_);
    const bool tries = !peer.failed_attempts.empty() || unanswered_since_ns(peer.number) != 0;
    if (peer.life != Life::kUnknown && !(peer.life == Life::kHere && tries)) return;
    peer.early_cause = final ? "" : cause;
    // A probe that finds nothing, for example because the peer has ended, does not disprove an earlier one.
    if (final && !cause.empty()) peer.causes.add(cause);
  }
  wake();
}

// A process that has the job's secret, or any process if the job has none, has connected and has not been
// admitted. This side does not see why TLS has failed, so a probe is due.
void Endpoint::ended_unproven(int from) noexcept {
  if (from < 0 || from >= num_workers() || from == me()) return;
  {
    const std::scoped_lock lock(members_);
    Peer& peer = at(from);
    if (peer.life != Life::kUnknown || !peer.causes.empty()) return;
    peer.probe_ns = std::min(std::max<int64_t>(peer.probe_ns, 1), peer.probed_ns + kLeastProbePauseNs);
  }
  wake();
}

void Endpoint::over_control(Peer& peer, const LinkRef& link, const std::string& why,
                            const std::string& status) noexcept {
  const bool opened = link->stage == Link::Stage::kOpen;
  bool over;
  {
    const std::scoped_lock lock(members_);
    if (peer.control != link) return;
    peer.control = nullptr;
    over = peer.life == Life::kLeft || peer.life == Life::kLost;
    if (!over && !opened && !link->refused) {
      peer.control_queue.clear();
      control_retry_ns_ = steady_now_ns() + kRetryNs;
    }
  }
  if (over || (closed_ && opened)) return wake();
  if (link->refused) return refused(peer.name + " rejected this worker: " + why, true);
  if (!opened)
    return cannot_reach(peer, why.empty() ? status : why,
                        !why.empty() && link->stage == Link::Stage::kAdmission);
  if (peer.number == 0 && why.empty()) {
    const std::scoped_lock lock(members_);
    worker_0_broke_ = true;
  }
  if (why.empty()) return link_broke(peer, " was killed or its connection broke", false);
  declare_lost(peer, " violated the protocol: " + why, false);
}

}  // namespace dist::grpc_link
