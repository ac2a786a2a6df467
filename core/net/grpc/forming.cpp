// SPDX-License-Identifier: Apache-2.0
// Forms generations: worker 0 waits for the workers of the previous generation and for those that have asked
// to join, and then sends the list of participants to all of them.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {
namespace {

// Size of a set in a message: a bit for each worker of the cluster.
constexpr std::size_t set_bytes(std::size_t workers) noexcept {
  return std::max<std::size_t>(32, (workers + 7) / 8);
}
// A worker that has not been admitted asks ten times a second, so an older question means that it has stopped
// asking.
constexpr int64_t kAsksWithinNs = 2'000'000'000;
// Between two generations, no program listens at worker 0's address for a moment, which can be long on a busy
// machine. Connections may be refused for half a lease, and at least for this long.
constexpr int64_t kLeastNobodyNs = 2'000'000'000;
constexpr int64_t kSliceNs = 20'000'000;

// `to` must be all zero.
void write(const WorkerSet& set, std::size_t workers, std::byte* to) noexcept {
  for (std::size_t w = 0; w < workers; ++w) {
    if (set[w]) to[w / 8] |= std::byte{1} << (w % 8);
  }
}

WorkerSet read(const std::byte* from, std::size_t workers) noexcept {
  WorkerSet set;
  for (std::size_t w = 0; w < workers; ++w)
    set.set(w, (from[w / 8] >> (w % 8) & std::byte{1}) != std::byte{0});
  return set;
}

std::size_t index(int worker) noexcept { return static_cast<std::size_t>(worker); }

}  // namespace

// `members_` must be held, here and for the next two functions. Returns the workers that are present.
WorkerSet Endpoint::come() const noexcept {
  WorkerSet set;
  for (const Peer& peer : peers_) set.set(index(peer.number), peer.life == Life::kHere);
  return set;
}

// Returns the workers that will not arrive any more.
WorkerSet Endpoint::away() const noexcept {
  WorkerSet set;
  for (const Peer& peer : peers_) {
    set.set(index(peer.number), peer.life == Life::kLost || (peer.life == Life::kLeft && !peer.comes_back));
  }
  return set;
}

WorkerSet Endpoint::newcomers() const noexcept {
  WorkerSet set;
  const int64_t now = steady_now_ns();
  for (const Peer& peer : peers_) {
    set.set(index(peer.number), peer.asked_ns != 0 && now - peer.asked_ns < kAsksWithinNs);
  }
  return set;
}

bool Endpoint::has_newcomers() const noexcept {
  const int64_t asked = asked_ns_.load(std::memory_order_relaxed);
  return asked != 0 && steady_now_ns() - asked < kAsksWithinNs;
}

Parting Endpoint::knows() noexcept {
  const std::scoped_lock lock(members_);
  Parting known{met_ || hub(), away(), newcomers(), {}};
  if (known.met) known.job = job_;
  for (const Peer& peer : peers_) {
    // The peer was told that this worker leaves, but has not acknowledged it for a lease, or its link has
    // ended.
    if (peer.left_told && !peer.left_taken && peer.life == Life::kHere) known.gone.set(index(peer.number));
  }
  // The fault may be this worker's: it may have been cut off or have stood still. If worker 0 is alive, it
  // will decide.
  const Peer& worker_0 = peers_.front();
  const bool broken = worker_0.life == Life::kHere && worker_0.control == nullptr;
  if (!hub() && (worker_0.life == Life::kLost || broken)) known.gone.reset(0);
  return known;
}

// ---- Worker 0 ----

dist_status Endpoint::look_as_leader(const Forming& wanted, int64_t waited_ns, std::string* why) noexcept {
  const std::scoped_lock lock(members_);
  const WorkerSet here = come();
  const WorkerSet missing = wanted.expected - here - away();
  const bool enough = here.count() >= index(wanted.least);
  if (enough && (missing.none() || waited_ns >= wanted.window_ns)) {
    begin_generation(wanted);
    return DIST_OK;
  }
  // A worker that died after its arrival and was restarted cannot take part in this network, and without it
  // there are too few workers.
  if (const WorkerSet again = newcomers() & away(); !enough && again.any()) {
    *why = "a worker that had arrived was restarted";
    return DIST_ABORTED;
  }
  if (wanted.timeout_ns == 0 || waited_ns < wanted.timeout_ns) return DIST_OK;
  *why =
      std::to_string(here.count()) + " of at least " + std::to_string(wanted.least) + " workers have arrived";
  for (const Peer& peer : peers_) {
    if (!missing[index(peer.number)]) continue;
    const std::string known = known_of(peer);
    *why += "; " + (known.empty() ? peer.name + " has not" : known);
    break;
  }
  return DIST_DEADLINE_EXCEEDED;
}

// `members_` must be held. Decides on the members of the generation. Workers that arrive later are newcomers.
void Endpoint::begin_generation(const Forming& wanted) noexcept {
  generation_.generation = wanted.generation;
  generation_.members = come();
  for (const Peer& peer : peers_) {
    const std::size_t at = index(peer.number);
    generation_.stayed.set(at, generation_.members[at] && wanted.before[at] &&
                                   (peer.number == me() || peer.came_from == wanted.generation - 1));
  }
  const std::size_t each = set_bytes(peers_.size());
  std::vector<std::byte> sets(2 * each);
  write(generation_.members, peers_.size(), sets.data());
  write(generation_.stayed, peers_.size(), sets.data() + each);
  const Frame formed{.kind = FrameKind::kFormed, .id = generation_.generation, .bytes = sets.size()};
  for (Peer& peer : peers_) {
    if (peer.control != nullptr && peer.life == Life::kHere) peer.control_queue.put(formed, sets.data());
  }
  formed_ = true;
}

// Marks the workers outside the generation as having left, so that nothing is exchanged with them.
void Endpoint::leave_out_others() noexcept {
  std::vector<LinkRef> links;
  for (Peer& peer : peers_) {
    bool out = false;
    {
      const std::scoped_lock lock(members_);
      if (peer.control != nullptr) links.push_back(peer.control);
      if (!generation_.members[index(peer.number)] && peer.life == Life::kUnknown) {
        peer.life = Life::kLeft;
        peer.why = peer.name + " is not in generation " + std::to_string(generation_.generation);
        out = true;
      }
    }
    if (!out) continue;
    end_out(peer, Transfer::End::kLost, true);
    end_in(peer, Transfer::End::kLost, true);
  }
  for (const LinkRef& each : links) each->flush();
}

// ---- The other workers ----

// Returns NULL if this frame is valid and worker 0 may send it.
const char* Endpoint::check_formed(const Frame& frame) const noexcept {
  const bool may = !hub() && config_.forms && frame.bytes == 2 * set_bytes(peers_.size()) && frame.id >= 1 &&
                   frame.id < kNoGeneration;
  return may ? nullptr : "an invalid frame 'formed'";
}

void Endpoint::take_formed(const Frame& frame, const std::byte* data) noexcept {
  {
    const std::scoped_lock lock(members_);
    const std::size_t workers = peers_.size();
    Formed formed{static_cast<uint32_t>(frame.id), read(data, workers),
                  read(data + set_bytes(workers), workers)};
    formed.stayed &= formed.members;
    if (formed_ || !formed.members[0] || !formed.members[index(me())]) return;
    generation_ = formed;
    formed_ = true;
  }
  leave_out_others();
  wake();
}

// Restarts the measurement of worker 0's silence: while this process did not run, it could not receive an
// answer.
void Endpoint::stood_still(int64_t now) noexcept {
  const std::scoped_lock lock(members_);
  answered_ns_ = now;
  nobody_since_ns_ = 0;
}

dist_status Endpoint::look_for_leader(int64_t now, std::string* why) const noexcept {
  const std::scoped_lock lock(members_);
  const Peer& worker_0 = peers_.front();
  const bool lost = worker_0.life == Life::kLost || worker_0.life == Life::kLeft || refused_;
  const bool linked = worker_0.control != nullptr && worker_0.control->opened();
  const bool silent = now - answered_ns_ >= config_.lease_ns;
  const bool nobody =
      nobody_since_ns_ != 0 && now - nobody_since_ns_ >= std::max(kLeastNobodyNs, config_.lease_ns / 2);
  if (!lost && (linked || (!silent && !nobody))) return DIST_OK;
  const std::string known = known_of(worker_0);
  *why = known.empty() ? worker_0.name + " does not answer" : known;
  // Worker 0 may have died, or may not have had the time for a message. The next attempt will show which.
  const bool again = given_up_ || (worker_0.life == Life::kLeft && worker_0.comes_back) ||
                     (worker_0.life == Life::kLost && worker_0_broke_ && !refused_);
  if (again) return DIST_ABORTED;
  return refused_ ? DIST_PERMISSION_DENIED : DIST_UNAVAILABLE;
}

// ---- All workers ----

dist_status Endpoint::form(const Forming& wanted, Formed* out, std::string* why) noexcept {
  const int64_t begin_ns = steady_now_ns();
  int64_t looked_ns = begin_ns;
  for (;;) {
    const uint64_t seen = changes();
    const int64_t now = steady_now_ns();
    if (now - std::exchange(looked_ns, now) >= doubtful_ns()) stood_still(now);
    dist_status looked = hub() ? look_as_leader(wanted, now - begin_ns, why) : look_for_leader(now, why);
    bool formed;
    {
      const std::scoped_lock lock(members_);
      formed = formed_;
      *out = generation_;
    }
    if (formed) {
      if (hub()) leave_out_others();
      return DIST_OK;
    }
    if (looked != DIST_OK) return looked;
    if (closed_ || (wanted.cancelled != nullptr && wanted.cancelled->load(std::memory_order_relaxed))) {
      *why = "it was cancelled";
      return DIST_CANCELLED;
    }
    if (!hub() && wanted.timeout_ns != 0 && now - begin_ns >= wanted.timeout_ns) {
      const std::scoped_lock lock(members_);
      const std::string known = known_of(peers_.front());
      *why = known.empty() ? "worker 0 has not announced the members" : known;
      return DIST_DEADLINE_EXCEEDED;
    }
    (void)wait_for_change(seen, std::chrono::steady_clock::now() + std::chrono::nanoseconds(kSliceNs));
  }
}

}  // namespace dist::grpc_link
