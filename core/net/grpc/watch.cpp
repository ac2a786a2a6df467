// SPDX-License-Identifier: Apache-2.0
// Periodic work: heartbeats, leases, retries, and closing links that have not proven their identity.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/base/os/clock.hpp"
#include "core/base/os/socket.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kFar = int64_t{1} << 62;
// How long a worker waits for a peer before it begins to look for the reason why it is missing. Deadlines may be short.
constexpr int64_t kProbeAfterNs = 300'000'000;

}  // namespace

void* Endpoint::watch_main(void* self) {
  block_async_signals();
  static_cast<Endpoint*>(self)->watch();
  return nullptr;
}

void Endpoint::wake() noexcept {
  const std::scoped_lock lock(waking_);
  ++changes_;
  woken_.notify_all();
}

void Endpoint::watch() noexcept {
  const int64_t beat = std::max<int64_t>(config_.lease_ns / 5, 1);
  int64_t next_beat = 0;
  int64_t due = steady_now_ns();
  std::unique_lock lock(waking_);
  while (!stopping_) {
    const uint64_t seen = changes_;
    lock.unlock();
    const int64_t now = steady_now_ns();
    // A process that did not run has received nothing, even if its peers sent heartbeats.
    const bool paused = now - due > beat;
    const int64_t awake_ns = boot_now_ns();
    const int64_t gap_ns = awake_ns - looked_ns_.load(std::memory_order_relaxed);
    if (gap_ns >= doubtful_ns()) doubt(gap_ns);
    looked_ns_.store(awake_ns, std::memory_order_release);
    if (now >= next_beat) {
      const bool doubts = doubts_.load(std::memory_order_relaxed);
      say_to_all({.kind = FrameKind::kBeat, .id = doubts ? question_ : 0}, nullptr, nullptr);
      next_beat = now + beat;
    }
    due = std::min(next_beat, look(now, paused));
    lock.lock();
    const int64_t left = std::max<int64_t>(due - steady_now_ns(), 0);
    woken_.wait_for(lock, std::chrono::nanoseconds(left), [&] { return stopping_ || changes_ != seen; });
    if (changes_ != seen) due = std::max(due, steady_now_ns());
  }
}

// Messages that have arrived may be old, so the next heartbeats ask: worker 0 asks all workers, the others ask worker
// 0.
void Endpoint::doubt(int64_t gap_ns) noexcept {
  const bool doubts = doubts_.load(std::memory_order_relaxed);
  stood_still_ns_ = doubts ? std::max<int64_t>(gap_ns, stood_still_ns_) : gap_ns;
  const std::scoped_lock lock(members_);
  ++question_;
  for (Peer& peer : peers_) {
    peer.asked = peer.number != me() && (hub() || peer.number == 0) && peer.life != Life::kUnknown;
  }
  doubts_.store(true, std::memory_order_relaxed);
}

// A peer that was lost meanwhile may have given this worker up. One answer is necessary and sufficient.
void Endpoint::trust_if_answered() noexcept {
  if (!doubts_.load(std::memory_order_relaxed)) return;
  bool asked = false;
  bool answered = false;
  {
    const std::scoped_lock lock(members_);
    for (const Peer& peer : peers_) {
      if (!peer.asked) continue;
      asked = true;
      const bool this_one = peer.answered == question_;
      if (!this_one && peer.life == Life::kHere) return;
      answered = answered || this_one;
    }
  }
  if (asked && !answered) {
    if (hub()) return;
    const std::string own = standstill();
    given_up(own.empty() ? std::string("this process did not run for ") + DurationText(stood_still_ns_).text +
                               ", and worker 0 has ended and may have considered this worker lost"
                         : own);
    return;
  }
  {
    const std::scoped_lock lock(members_);
    for (Peer& peer : peers_) peer.asked = false;
  }
  doubts_.store(false, std::memory_order_relaxed);
  tell();
}

// Returns when there will be work again.
int64_t Endpoint::look(int64_t now, bool paused) noexcept {
  int64_t next = kFar;
  const bool named = named_.exchange(false);
  const auto is_due = [&](int64_t when) {
    if (when == 0) return false;
    if (when > now) next = std::min(next, when);
    return when <= now;
  };
  // Retries need not wait any longer if a host name has been resolved.
  const auto is_retry_due = [&](int64_t when) { return is_due(when) || (named && when != 0); };
  bool control = false;
  std::vector<LinkRef> ended;
  {
    const std::scoped_lock lock(members_);
    const int64_t within = prove_within_ns(config_.lease_ns);
    for (const LinkRef& each : unproven_) {
      // If its proof is in flight, this worker made the link, and the peer's lease decides.
      if (each->opened() || each->stage == Link::Stage::kVerdict) continue;
      if (is_due(each->born_ns + within)) ended.push_back(each);
    }
    control = is_retry_due(control_retry_ns_);
  }
  for (const LinkRef& each : ended) each->end("it did not authenticate in time");
  if (control) begin_control();
  retry_if_moved(now, &next);
  let_retired_go();
  join_carriers(false);
  end_late_carriers(now, &next);
  for (Peer& peer : peers_) {
    if (peer.number == me()) continue;
    if (paused) peer.heard_ns.store(now, std::memory_order_relaxed);
    bool silent = false;
    bool missing = false;
    {
      const std::scoped_lock lock(members_);
      // The other workers probe when they fail to connect, or get no answer. Worker 0 only waits for connections.
      const int64_t tries_since_ns = tries_since_ns_of(peer);
      if (tries_since_ns != 0 && !closed_ && is_due(tries_since_ns + kProbeAfterNs)) {
        missing = may_probe(peer, now);
        next = std::min(next, peer.probe_ns);
      }
      if (hub() && peer.life == Life::kUnknown && !closed_) {
        if (peer.probe_ns == 0) peer.probe_ns = now + kProbeAfterNs;
        missing = may_probe(peer, now) || missing;
        next = std::min(next, peer.probe_ns);
      }
      if (peer.control != nullptr && peer.control->stage == Link::Stage::kOpen && peer.life == Life::kHere) {
        silent = is_due(peer.heard_ns.load(std::memory_order_relaxed) + config_.lease_ns);
      }
    }
    if (missing) look_for(peer);
    if (silent) {
      const DurationText lease(config_.lease_ns);
      declare_lost(peer, std::string(" sent no heartbeat for ") + lease.text, true);
    }
    bool retry;
    {
      const std::scoped_lock lock(peer.out_mutex);
      retry = is_retry_due(peer.out_retry_ns) && !peer.out_gone;
    }
    if (retry) begin_out(peer);
    bool over;
    {
      const std::scoped_lock lock(peer.in_mutex);
      over = is_due(peer.in_until_ns);
    }
    if (over) end_in(peer, Transfer::End::kLost, true);
  }
  trust_if_answered();
  return next;
}

// On worker 0: finds out why a worker has not joined, although this worker need not connect to it yet.
void Endpoint::look_for(Peer& peer) noexcept {
  const std::string& address = config_.address(peer.number);
  const HostAddresses found = names_.ask(host_of(address));
  // The prober waits until the system answers.
  if (found.list.empty() && !found.why.empty())
    probed(peer, "its host name does not resolve: " + found.why, true);
  prober_.ask(static_cast<uint64_t>(peer.number), address);
}

// `members_` must be held. Since when a connection to this peer has been attempted without an answer; 0: there is none.
int64_t Endpoint::tries_since_ns_of(const Peer& peer) const noexcept {
  for (const LinkRef& each : unproven_) {
    if (each->outgoing && each->peer == peer.number && each->stage == Link::Stage::kAnswer)
      return each->born_ns;
  }
  return 0;
}

// An attempt that nobody has answered ends if the peer's host name has other addresses by now. `next` receives when its
// name is to be resolved again.
void Endpoint::retry_if_moved(int64_t now, int64_t* next) noexcept {
  std::vector<LinkRef> trying;
  {
    const std::scoped_lock lock(members_);
    for (const LinkRef& each : unproven_) {
      if (each->outgoing && each->stage == Link::Stage::kAnswer) trying.push_back(each);
    }
  }
  for (const LinkRef& each : trying) {
    const std::string host = host_of(config_.address(each->peer));
    if (is_ip_address(host)) continue;
    if (names_.moved(host, each->hosts)) {
      each->end("its host name resolves to another address now");
    } else {
      *next = std::min(*next, now + Names::kAgainNs);
    }
  }
}

void Endpoint::let_retired_go() noexcept {
  std::vector<std::shared_ptr<grpc::Channel>> idle;
  {
    const std::scoped_lock lock(retiring_);
    idle = take_idle(retired_);
  }
  release(std::move(idle));
}

}  // namespace dist::grpc_link
