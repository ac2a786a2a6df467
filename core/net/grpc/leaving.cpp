// SPDX-License-Identifier: Apache-2.0
// How a worker leaves: it waits until its peers have received what it sent, and then tells the others that it
// leaves and whether it will return. Workers can start and end in any order, so it also waits, for at most
// the lease, for workers that it has not met: worker 0 waits for all others, and the others wait for worker
// 0.
#include <chrono>
#include <utility>
#include <vector>

#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {

void Endpoint::close() noexcept {
  if (memory_.forked() || closed_.exchange(true)) return;
  for (Peer& peer : peers_) {
    LinkRef out;
    bool drop = false;
    {
      const std::scoped_lock lock(peer.out_mutex);
      peer.outbox.end_all(Transfer::End::kCancelled);
      if (!peer.out_gone && peer.out_wanted && !peer.bye_said) {
        peer.bye_said = true;
        peer.out_queue.put({.kind = FrameKind::kBye});
        // The peer has consumed all messages that were sent ahead.
        drop = peer.outbox.owes_nothing() && (peer.out == nullptr || !peer.out->opened());
      }
      out = peer.out;
    }
    LinkRef in;
    {
      const std::scoped_lock lock(peer.in_mutex);
      peer.inbox.close();
      if (peer.in != nullptr) peer.in->reader.let_data_go();
      if (!peer.in_gone && peer.in != nullptr) peer.in_queue.put({.kind = FrameKind::kLeaving});
      in = peer.in;
    }
    if (drop) {
      end_out(peer, Transfer::End::kCancelled, true);
    } else if (out != nullptr) {
      out->flush();
    }
    if (in != nullptr) in->flush();
  }
  tell();
  leave_if_done();
}

void Endpoint::stop(Parting* known) noexcept {
  if (memory_.forked() || !serving()) return;
  if (known != nullptr) to_form_ = true;
  close();
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(config_.lease_ns);
  for (;;) {
    const uint64_t seen = changes();
    if (all_taken() || !wait_for_change(seen, end)) break;
  }
  // All workers that are alive have answered by now.
  if (known != nullptr) *known = knows();
  stop_thread();
  std::vector<LinkRef> links = unproven();
  for (Peer& peer : peers_) {
    {
      const std::scoped_lock lock(peer.out_mutex);
      peer.out_gone = true;
      links.push_back(peer.out);
    }
    {
      const std::scoped_lock lock(peer.in_mutex);
      peer.in_gone = true;
      links.push_back(peer.in);
    }
    const std::scoped_lock lock(members_);
    links.push_back(peer.control);
  }
  for (const LinkRef& link : links) {
    if (link != nullptr) link->end("");
  }
  links.clear();
  stop_server();
  for (Peer& peer : peers_) {
    const std::scoped_lock lock(peer.out_mutex, peer.in_mutex, members_);
    peer.out = peer.in = peer.control = nullptr;
  }
  // Carriers hold references to their links, so they are joined first.
  join_carriers(true);
  retire(std::move(control_route_.channel));
  for (Peer& peer : peers_) retire(std::move(peer.route.channel));
  free_all();
}

// Announces the end once all others have received what was sent to them, so that a peer that waits for more
// learns that nothing will follow.
void Endpoint::leave_if_done() noexcept {
  if (!closed_) return;
  for (Peer& peer : peers_) {
    const std::scoped_lock lock(peer.out_mutex);
    if (peer.out_wanted && !peer.out_gone) return;
  }
  std::vector<LinkRef> links;
  {
    const std::scoped_lock lock(members_);
    for (Peer& peer : peers_) {
      if (peer.number == me() || peer.control == nullptr || peer.control->stage != Link::Stage::kOpen)
        continue;
      // Sent to a peer that leaves at the same time as well, so that it does not mistake this for a crash.
      if (peer.life == Life::kLost || std::exchange(peer.left_told, true)) continue;
      peer.control_queue.put(
          {.kind = FrameKind::kLeft, .id = static_cast<uint64_t>(me()), .offset = to_form_ ? 1u : 0u});
      links.push_back(peer.control);
    }
  }
  for (const LinkRef& each : links) each->flush();
  wake();
}

// `members_` must be held. Whether a worker that this one has not met must still learn that this one ends.
// Worker 0 informs the others. There is no need if this worker returns, because it is at its address again or
// asks worker 0 to form a generation, or if it was never in a generation, because no worker then waits for
// it.
bool Endpoint::must_learn(const Peer& peer) const noexcept {
  // Worker 0 may have admitted this worker already.
  if (!hub() && peer.number == 0 && peer.control != nullptr && peer.control->stage == Link::Stage::kAdmission)
    return true;
  const bool is_in_none = config_.forms && !formed_;
  return peer.life == Life::kUnknown && (hub() || peer.number == 0) && !to_form_ && !refused_ &&
         !turned_away_ && !is_in_none;
}

bool Endpoint::all_taken() noexcept {
  for (Peer& peer : peers_) {
    if (peer.number == me()) continue;
    {
      const std::scoped_lock lock(peer.out_mutex);
      if (peer.out_wanted && !peer.out_gone) return false;
    }
    bool sends;
    {
      // Over this link the peer learns that this worker leaves, even if there is no worker 0 to report it.
      // The peer then ends the link.
      const std::scoped_lock lock(peer.in_mutex);
      sends = peer.in != nullptr && peer.in->opened() && !peer.in_gone;
    }
    const std::scoped_lock lock(members_);
    if (peer.life == Life::kLost) continue;
    if (sends || must_learn(peer)) return false;
    if (peer.control == nullptr) continue;
    // This also applies to a peer that leaves at the same time: it would mistake a broken link for a crash.
    // If it is about to be told, leave_if_done() tells it and wakes this thread.
    if (peer.control->stage == Link::Stage::kOpen && !(peer.left_told && peer.left_taken)) return false;
  }
  return true;
}

}  // namespace dist::grpc_link
