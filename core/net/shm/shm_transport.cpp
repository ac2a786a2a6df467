// SPDX-License-Identifier: Apache-2.0
#include "core/net/shm/shm_transport.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/os/cpus.hpp"

namespace dist {
namespace {

constexpr int kHeld = -2;  // Transfer::owner while the transfer is held back
constexpr int kCopy = -3;  // the same for a Copy

}  // namespace

ShmTransport::ShmTransport(Memory& memory, Transport& below, const Options& options)
    : ForwardingTransport(below),
      memory_(memory),
      options_(options),
      credit_(*options.refuses != '\0' ? below.credit() : std::min(below.credit(), shm::Layout::kMostCredit)),
      peers_(&memory),
      strangers_(&memory),
      watched_(memory),
      known_(&memory) {
  for (int w = 0; w < below.num_workers(); ++w) peers_.emplace_back(w);
  known_.resize(peers_.size());
  watched_.reserve(2 + 3 * peers_.size());
  below_.listen(this);
  start_thread();
}

ShmTransport::~ShmTransport() {
  if (memory_.forked()) {
    for (Peer& peer : peers_) {
      if (peer.link != nullptr) peer.link->~Link();
    }
    return;
  }
  stopping_ = true;
  if (running_) {
    event_.set();
    thread_.join();
  }
  below_.listen(nullptr);
  for (Peer& peer : peers_) {
    free_copies(peer);
    if (peer.link == nullptr) continue;
    peer.link->~Link();
    memory_.free(peer.link, sizeof(shm::Link), alignof(shm::Link));
  }
}

// ---- The listener ----

void ShmTransport::tell() noexcept {
  const std::scoped_lock lock(listening_);
  if (listener_ != nullptr) listener_->happened();
}

void ShmTransport::listen(TransportListener* listener) noexcept {
  if (memory_.forked()) return;
  const std::scoped_lock lock(listening_);
  listener_ = listener;
}

void ShmTransport::log_to(const Host& host) noexcept {
  const std::scoped_lock lock(listening_);
  host_ = host;
}

void ShmTransport::wake() noexcept {
  if (running_.load(std::memory_order_acquire) && !woken_.exchange(true, std::memory_order_acq_rel))
    event_.set();
}

// The transport below does not report what has happened. If it has transfers for peers of this transport, the
// listener must be notified. It need not be notified of introductions, and the thread checks for all other
// changes.
void ShmTransport::happened() noexcept {
  news_.store(true, std::memory_order_release);
  wake();
  const bool only_below = std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.mode.load(std::memory_order_relaxed) == Mode::kBelow;
  });
  if (only_below || !running_.load(std::memory_order_relaxed)) tell();
}

// ---- Transfers ----

// Called for every transfer of a peer. The first one begins the introduction, unless the peer has already
// introduced itself.
void ShmTransport::touch(Peer& peer) noexcept {
  if (peer.touched.exchange(true, std::memory_order_acq_rel)) return;
  wake();
  const char* why = options_.refuses;
  if (!running_.load(std::memory_order_acquire)) {
    why = "it cannot create a thread or descriptor";
    send_introduction(peer, why);
  }
  if (*why == '\0') return;
  {
    const std::scoped_lock lock(peer.mutex);
    std::snprintf(peer.why, sizeof peer.why, "%s", why);
  }
  if (decide(peer, Mode::kBelow)) tell();
}

// Holds a transfer back. Returns false if the mode of the peer has been decided.
bool ShmTransport::hold(Peer& peer, const Transfer::Message& message, bool sends,
                        Transfer& transfer) noexcept {
  touch(peer);
  const std::scoped_lock lock(peer.mutex);
  if (peer.mode.load(std::memory_order_relaxed) != Mode::kUnknown) return false;
  transfer.begin(message);
  Transfer* held = &transfer;
  if (Copy* const copied = sends ? copy(peer, message, transfer.used) : nullptr; copied != nullptr) {
    transfer.finish(Transfer::End::kDone);
    held = copied;
  }
  held->sends = sends;
  held->owner = held == &transfer ? kHeld : kCopy;
  held->next = peer.held;
  held->before = &peer.held;
  if (peer.held != nullptr) peer.held->before = &held->next;
  peer.held = held;
  return true;
}

// Returns NULL if the message does not fit into the credit, or if no memory is left.
ShmTransport::Copy* ShmTransport::copy(Peer& peer, const Transfer::Message& message,
                                       std::size_t used) noexcept {
  const std::size_t bytes = message.bytes;
  if (counted(bytes) > credit_ - peer.copied_bytes) return nullptr;
  void* const place = memory_.try_allocate(sizeof(Copy) + bytes, alignof(Copy));
  if (place == nullptr) return nullptr;
  Copy* const made = new (place) Copy;
  made->bytes = bytes;
  made->used = used;
  made->next_copy = peer.copies;
  peer.copies = made;
  peer.copied_bytes += counted(bytes);
  if (bytes != 0) std::memcpy(made->data(), message.data, bytes);
  made->begin({message.worker, message.key, made->data(), bytes});
  return made;
}

void ShmTransport::free_copies(Peer& peer) noexcept {
  for (Copy** at = &peer.copies; *at != nullptr;) {
    Copy* const each = *at;
    if (!each->over()) {
      at = &each->next_copy;
      continue;
    }
    *at = each->next_copy;
    const std::size_t bytes = each->bytes;
    each->~Copy();
    memory_.free(each, sizeof(Copy) + bytes, alignof(Copy));
  }
}

// Removes and returns the transfers that were held back, the earliest first.
Transfer* ShmTransport::take_held(Peer& peer) noexcept {
  Transfer* first = nullptr;
  while (peer.held != nullptr) {
    Transfer& each = *peer.held;
    peer.held = each.next;
    each.before = nullptr;
    each.next = first;
    first = &each;
  }
  return first;
}

// Begins the transfers that were held back, in their order.
bool ShmTransport::decide(Peer& peer, Mode mode) noexcept {
  const std::scoped_lock lock(peer.mutex);
  if (peer.mode.load(std::memory_order_relaxed) != Mode::kUnknown) return false;
  Transfer* first = take_held(peer);
  // Transfers that end in the transport below before the mode is stored notify no listener.
  bool ended = first != nullptr && mode == Mode::kBelow;
  while (first != nullptr) {
    Transfer& each = *first;
    first = each.next;
    each.owner = -1;
    const Transfer::Message message = each.message();
    if (mode == Mode::kShared) {
      ended = (each.sends ? peer.link->send(message, each) : peer.link->receive(message, each)) || ended;
    } else if (each.sends) {
      below_.send(message.worker, message.key, message.data, message.bytes, each);
    } else {
      below_.receive(message.worker, message.key, message.data, message.bytes, each);
    }
  }
  free_copies(peer);
  if (mode == Mode::kShared) links_.fetch_add(1, std::memory_order_relaxed);
  // release: publishes the link.
  peer.mode.store(mode, std::memory_order_release);
  return ended;
}

void ShmTransport::send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
                        Transfer& transfer) noexcept {
  const Transfer::Message message{to, key, const_cast<std::byte*>(data), bytes};
  if (memory_.forked()) {
    transfer.begin(message);
    return transfer.finish(Transfer::End::kLost);
  }
  Peer& peer = at(to);
  Mode mode = peer.mode.load(std::memory_order_acquire);
  if (mode == Mode::kUnknown) {
    if (closed_ || gone(peer)) return below_.send(to, key, data, bytes, transfer);
    if (hold(peer, message, true, transfer)) return;
    mode = peer.mode.load(std::memory_order_acquire);
  }
  if (mode == Mode::kBelow) return below_.send(to, key, data, bytes, transfer);
  if (peer.link->send(message, transfer)) tell();
}

void ShmTransport::receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
                           Transfer& transfer) noexcept {
  const Transfer::Message message{from, key, data, bytes};
  if (memory_.forked()) {
    transfer.begin(message);
    return transfer.finish(Transfer::End::kLost);
  }
  Peer& peer = at(from);
  Mode mode = peer.mode.load(std::memory_order_acquire);
  if (mode == Mode::kUnknown) {
    if (closed_ || gone(peer)) return below_.receive(from, key, data, bytes, transfer);
    if (hold(peer, message, false, transfer)) return;
    mode = peer.mode.load(std::memory_order_acquire);
  }
  if (mode == Mode::kBelow) return below_.receive(from, key, data, bytes, transfer);
  if (peer.link->receive(message, transfer)) tell();
}

void ShmTransport::cancel(Transfer& transfer) noexcept {
  if (transfer.over() || memory_.forked()) return;
  Peer& peer = at(transfer.message().worker);
  bool was_held = false;
  if (peer.mode.load(std::memory_order_acquire) == Mode::kUnknown) {
    const std::scoped_lock lock(peer.mutex);
    if (transfer.over()) return;
    was_held = transfer.owner == kHeld;
    if (was_held) {
      *transfer.before = transfer.next;
      if (transfer.next != nullptr) transfer.next->before = transfer.before;
      transfer.before = nullptr;
      transfer.owner = -1;
      transfer.finish(Transfer::End::kCancelled);
    }
  }
  if (was_held) return tell();
  if (peer.mode.load(std::memory_order_acquire) != Mode::kShared) return below_.cancel(transfer);
  if (peer.link->cancel(transfer)) tell();
}

void ShmTransport::forget(uint32_t generation, uint32_t run) noexcept {
  if (memory_.forked()) return;
  below_.forget(generation, run);
  bool ended = false;
  for (Peer& peer : peers_) {
    if (peer.mode.load(std::memory_order_acquire) == Mode::kShared)
      ended = peer.link->forget(generation, run) || ended;
  }
  if (ended) tell();
}

// ---- Progress ----

void ShmTransport::progress() noexcept {
  if (memory_.forked()) return;
  below_.progress();
  bool ended = false;
  if (links_.load(std::memory_order_relaxed) != 0) {
    for (Peer& peer : peers_) {
      if (peer.mode.load(std::memory_order_acquire) == Mode::kShared) ended = peer.link->progress() || ended;
    }
  }
  if (ended) tell();
  // relaxed: the exchange in sweep() provides the order.
  if (news_.load(std::memory_order_relaxed)) sweep();
}

// Ends the transfers of peers that are lost.
void ShmTransport::sweep() noexcept {
  if (!news_.exchange(false, std::memory_order_acq_rel)) return;
  bool ended = false;
  for (Peer& peer : peers_) {
    if (!peer.touched.load(std::memory_order_relaxed) || !gone(peer)) continue;
    if (peer.mode.load(std::memory_order_acquire) == Mode::kUnknown) {
      // The transport below ends these transfers, unless the thread has decided otherwise meanwhile.
      (void)decide(peer, Mode::kBelow);
      ended = true;
    }
    if (peer.mode.load(std::memory_order_acquire) != Mode::kShared) continue;
    {
      const std::scoped_lock lock(peer.mutex);
      if (std::exchange(peer.swept, true)) continue;
    }
    (void)peer.link->lose();
    ended = true;
  }
  if (ended) tell();
}

void ShmTransport::poll(bool begins) noexcept {
  if (memory_.forked()) return;
  // seq_cst: in one total order with the loads in Link::settle().
  const int before = pollers_.fetch_add(begins ? 1 : -1, std::memory_order_seq_cst);
  if (before != (begins ? 0 : 1) || links_.load(std::memory_order_relaxed) == 0) return;
  bool ended = false;
  for (Peer& peer : peers_) {
    if (peer.mode.load(std::memory_order_acquire) == Mode::kShared && peer.link->must_attend())
      ended = peer.link->attend() || ended;
  }
  if (ended) tell();
}

void ShmTransport::sleep(bool begins) noexcept {
  if (memory_.forked()) return;
  sleepers_.fetch_add(begins ? 1 : -1, std::memory_order_seq_cst);
  if (!begins) return;
  // Takes the lock of each link: see Link::end().
  bool ended = false;
  for (Peer& peer : peers_) {
    if (peer.mode.load(std::memory_order_acquire) == Mode::kShared) ended = peer.link->attend() || ended;
  }
  if (ended) tell();
}

bool ShmTransport::shares_cpu() noexcept {
  if (memory_.forked()) return false;
  const int cpu = current_cpu();
  bool shared = false;
  for (Peer& peer : peers_) {
    if (peer.mode.load(std::memory_order_acquire) == Mode::kShared)
      shared = peer.link->shares_cpu(cpu) || shared;
  }
  return shared;
}

// ---- Peers ----

int ShmTransport::num_connections() const noexcept {
  int touched = 0;
  for (const Peer& peer : peers_) touched += peer.touched.load(std::memory_order_relaxed) ? 1 : 0;
  return std::min(touched, below_.num_connections());
}

bool ShmTransport::lost(int worker) const noexcept {
  const Peer& peer = at(worker);
  return peer.broken.load(std::memory_order_relaxed) || below_.lost(worker);
}

void ShmTransport::why_lost(int worker, char* text, std::size_t size) const noexcept {
  if (size == 0) return;
  below_.why_lost(worker, text, size);
  if (*text != '\0' || memory_.forked() || !at(worker).broken) return;
  const shm::Link* const link = at(worker).link;
  const char* const rule = link == nullptr ? nullptr : link->violation();
  std::snprintf(text, size, "worker %d %s%s", worker,
                rule == nullptr ? "was killed" : "violated the protocol of the shared memory: ",
                rule == nullptr ? "" : rule);
}

void ShmTransport::describe_way(const Peer& peer, char* text, std::size_t size) const noexcept {
  if (peer.mode.load(std::memory_order_acquire) == Mode::kShared) {
    std::snprintf(text, size, "by shared memory of %.1f MiB%s",
                  static_cast<double>(peer.link->shared_bytes()) / (1 << 20),
                  peer.link->reads()
                      ? ""
                      : ", with two copies because the system does not let processes read each other");
    return;
  }
  const std::scoped_lock lock(peer.mutex);
  std::snprintf(text, size, "by sockets%s%s", *peer.why == '\0' ? "" : ": ", peer.why);
}

// Lists consecutive workers that are reached in the same way together.
void ShmTransport::describe(char* text, std::size_t size) const noexcept {
  if (size == 0) return;
  text[0] = '\0';
  std::size_t length = 0;
  const auto add = [&](const char* format, auto... arguments) {
    if (length >= size) return;
    const int more = std::snprintf(text + length, size - length, format, arguments...);
    length += more > 0 ? static_cast<std::size_t>(more) : 0;
  };
  char way[shm::kReasonBytes + 32] = "";
  int first = -1;
  int last = -1;
  const auto add_last = [&] {
    if (first < 0) return;
    add("%sworker%s %d", length == 0 ? "" : "; ", first == last ? "" : "s", first);
    if (first != last) add(" to %d", last);
    add(" %s", way);
  };
  for (const Peer& peer : peers_) {
    if (peer.number == me() || peer.mode.load(std::memory_order_acquire) == Mode::kUnknown) continue;
    char its[sizeof way] = "";
    describe_way(peer, its, sizeof its);
    if (first < 0 || peer.number != last + 1 || std::strcmp(its, way) != 0) {
      add_last();
      first = peer.number;
      std::memcpy(way, its, sizeof way);
    }
    last = peer.number;
  }
  add_last();
}

void ShmTransport::close() noexcept {
  if (memory_.forked()) return;
  close_links();
  below_.close();
  tell();
}

void ShmTransport::close_links() noexcept {
  if (memory_.forked() || closed_.exchange(true)) return;
  // From here on, the thread does nothing more for peers.
  stopping_ = true;
  if (running_) {
    event_.set();
    thread_.join();
    running_ = false;
  }
  for (Peer& peer : peers_) {
    if (peer.mode.load(std::memory_order_acquire) == Mode::kShared) {
      (void)peer.link->close();
    } else {
      leave(peer);
    }
  }
  tell();
}

// Sends the copies over the transport below, after a message that makes the peer use that transport, too. If
// this worker has already agreed to shared memory, the peer may use either, so each copy is sent both ways,
// and the peer receives one of them.
void ShmTransport::leave(Peer& peer) noexcept {
  const std::scoped_lock lock(peer.mutex);
  Transfer* first = take_held(peer);
  bool told = peer.stage == Stage::kDecided || peer.stage == Stage::kConcluding;
  while (first != nullptr) {
    Transfer& each = *first;
    first = each.next;
    const bool copied = std::exchange(each.owner, -1) == kCopy;
    if (!copied) {
      each.finish(Transfer::End::kCancelled);
      continue;
    }
    if (!std::exchange(told, true)) {
      // An empty reason, which is not logged.
      constexpr char kWhy[] = "";
      peer.stage == Stage::kUntouched ? send_introduction(peer, kWhy) : send_outcome(peer, kWhy);
    }
    const Transfer::Message message = each.message();
    if (peer.link != nullptr) {
      Transfer also;
      also.used = each.used;
      (void)peer.link->send(message, also);
      (void)peer.link->cancel(also);
    }
    below_.send(message.worker, message.key, message.data, message.bytes, each);
  }
  if (peer.link != nullptr) (void)peer.link->close();
  peer.mode.store(Mode::kBelow, std::memory_order_release);
}

}  // namespace dist
