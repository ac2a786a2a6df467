// SPDX-License-Identifier: Apache-2.0
// Periodic work: heartbeats, leases and retries.
#include <algorithm>
#include <string>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kFar = int64_t{1} << 62;

}  // namespace

// Messages that have already arrived may be old, so the next heartbeats ask: worker 0 asks all workers, the
// others ask worker 0.
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

// Every peer that is not lost must answer. If all of them were lost meanwhile, they may consider this worker
// lost, so at least one answer is necessary.
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

int64_t Endpoint::look(const Turn& turn) noexcept {
  const int64_t now = turn.now_ns;
  const int64_t awake_ns = boot_now_ns();
  const int64_t gap_ns = awake_ns - looked_ns_.load(std::memory_order_relaxed);
  if (gap_ns >= doubtful_ns()) doubt(gap_ns);
  looked_ns_.store(awake_ns, std::memory_order_release);
  if (turn.beats) {
    const bool doubts = doubts_.load(std::memory_order_relaxed);
    say_to_all({.kind = FrameKind::kBeat, .id = doubts ? question_ : 0}, nullptr, nullptr);
  }
  int64_t next = kFar;
  const auto is_due = [&](int64_t when) {
    if (when == 0) return false;
    if (when > now) next = std::min(next, when);
    return when <= now;
  };
  const auto is_retry_due = [&](int64_t when) { return is_due(when) || (turn.named && when != 0); };
  bool control = false;
  {
    const std::scoped_lock lock(members_);
    control = is_retry_due(control_retry_ns_);
  }
  if (control) begin_control();
  join_carriers(false);
  end_late_carriers(now, &next);
  for (Peer& peer : peers_) {
    if (peer.number == me()) continue;
    if (turn.paused) peer.heard_ns.store(now, std::memory_order_relaxed);
    bool silent = false;
    bool missing = false;
    {
      const std::scoped_lock lock(members_);
      // The other workers probe when they fail to connect or get no answer. Worker 0 only waits for
      // connections.
      const int64_t tries_since_ns = unanswered_since_ns(peer.number);
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

// On worker 0: finds out why a worker has not joined, even if this worker need not connect to it yet.
void Endpoint::look_for(Peer& peer) noexcept {
  const std::string& address = config_.address(peer.number);
  const HostAddresses found = names_.ask(host_of(address));
  // The lookup has failed. The prober would wait for the system's answer.
  if (found.list.empty() && !found.why.empty())
    probed(peer, "its host name does not resolve: " + found.why, true);
  prober_.ask(static_cast<uint64_t>(peer.number), address);
}

}  // namespace dist::grpc_link
