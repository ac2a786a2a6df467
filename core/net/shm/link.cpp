// SPDX-License-Identifier: Apache-2.0
#include "core/net/shm/link.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/os/local_socket.hpp"
#include "core/base/prefetch.hpp"

namespace dist::shm {

using End = Transfer::End;

Link::Link(Memory& memory, std::size_t credit, const std::atomic<int>& pollers,
           const std::atomic<int>& sleepers) noexcept
    : memory_(memory), credit_(credit), layout_(credit), pollers_(pollers), sleepers_(sleepers) {}

Link::~Link() {
  for (Bucket& bucket : buckets_) {
    while (bucket.entries != nullptr) remove(bucket.entries);
  }
  for (Entry* const each : offers_) {
    if (each != nullptr) remove(each);
  }
  // In a forked child the memory is not mapped, and other memory may be at its address.
  if (!memory_.forked()) return;
  new (&connection_.own) SharedMemory;
  new (&connection_.theirs) SharedMemory;
}

void Link::open(Connection connection) noexcept {
  connection_ = std::move(connection);
  reads_.store(connection_.reads, std::memory_order_relaxed);
  own_ = Region(connection_.own.data(), layout_, connection_.own_salt);
  theirs_ = Region(connection_.theirs.data(), layout_, connection_.their_salt);
  next_mark_.store(own_.mark_of(0), std::memory_order_relaxed);
}

void Link::end(Transfer& transfer, End end) noexcept {
  if (std::exchange(transfer.owner, -1) == 1) waiting_.fetch_sub(1, std::memory_order_relaxed);
  // relaxed: an owner that is about to sleep is counted first and then takes the lock (sleep()). So either
  // this thread sees the count, or the owner sees that the transfer has ended.
  if (!transfer.polled || sleepers_.load(std::memory_order_relaxed) != 0) ended_ = true;
  transfer.finish(end);
}

bool Link::take_ended() noexcept { return std::exchange(ended_, false); }

// The owner of the transfer may sleep until it ends.
void Link::began_to_wait(Transfer& transfer) noexcept {
  if (transfer.owner == 1 || (!transfer.sends && transfer.unhurried)) return;
  transfer.owner = 1;
  // seq_cst: in one total order with the number of polling threads, see must_attend().
  waiting_.fetch_add(1, std::memory_order_seq_cst);
}

void Link::violated(const char* rule) noexcept {
  const char* none = nullptr;
  violation_.compare_exchange_strong(none, rule, std::memory_order_release);
  gone_ = true;
}

// ---- The five operations ----

void Link::begin(const Transfer::Message& message, bool sends, Transfer& transfer) noexcept {
  transfer.begin(message);
  transfer.sends = sends;
  transfer.owner = -1;
  transfer.before = nullptr;
  transfer.id = 0;
  transfer.moved = 0;
}

bool Link::send(const Transfer::Message& message, Transfer& transfer) noexcept {
  begin(message, true, transfer);
  std::unique_lock lock(mutex_);
  if (closed_ || gone_) {
    end_at_once(transfer, closed_ ? End::kCancelled : End::kLost);
    return take_ended();
  }
  const std::size_t bytes = message.bytes;
  const std::size_t used = std::min(bytes, transfer.used);
  if (queued_.first == nullptr && has_credit(bytes) && has_room(kLine + padded(used))) {
    sent_ahead_ += Transport::counted(bytes);
    put({.kind = FrameKind::kMessage, .bytes = bytes, .place = used, .key = message.key}, message.data, used);
    end_at_once(transfer, End::kDone);
  } else {
    began_to_wait(transfer);
    busy_.fetch_add(1, std::memory_order_relaxed);
    if (queued_.first != nullptr || !offer(transfer)) append(transfer);
  }
  return settle(lock);
}

bool Link::receive(const Transfer::Message& message, Transfer& transfer) noexcept {
  begin(message, false, transfer);
  std::unique_lock lock(mutex_);
  if (closed_) {
    end_at_once(transfer, End::kCancelled);
    return take_ended();
  }
  // First, so that messages that are being drained find the receive and need not be stored.
  match(transfer, true);
  if (!gone_) drain();
  finish_pulls(lock);
  return settle(lock);
}

bool Link::cancel(Transfer& transfer) noexcept {
  std::unique_lock lock(mutex_);
  if (transfer.over()) return take_ended();
  if (transfer.sends) {
    if (transfer.id == 0) {
      take_out(transfer);
    } else {
      const std::size_t slot = transfer.id - 1;
      if (!withdraw(slot)) {
        look_at_slots();
        return settle(lock);
      }
      offered_[slot] = nullptr;
    }
    busy_.fetch_sub(1, std::memory_order_relaxed);
  } else if (transfer.before != nullptr) {
    unlink(transfer);
  } else {
    Entry* const entry = transfer.id == 0 ? nullptr : offers_[transfer.id - 1];
    if (entry == nullptr || entry->receive != &transfer) return take_ended();
    entry->receive = nullptr;
    const auto slot = static_cast<std::size_t>(entry->slot);
    if (entry->how == Entry::How::kPulls) {
      --pulls_;
      busy_.fetch_sub(1, std::memory_order_relaxed);
      const bool again = answer(slot, SlotState::kPulling, SlotState::kOffered);
      entry->how = again ? Entry::How::kWaits : Entry::How::kVoid;
      if (again) link_by_key(*entry);
    } else {
      (void)answer(slot, SlotState::kGranted, SlotState::kRevoked);
    }
  }
  end(transfer, End::kCancelled);
  return settle(lock);
}

bool Link::forget(uint32_t generation, uint32_t run) noexcept {
  std::unique_lock lock(mutex_);
  first_generation_ = generation;
  first_run_ = run;
  if (!gone_ && !closed_) drain();
  for (Bucket& bucket : buckets_) {
    for (Entry* each = bucket.entries; each != nullptr;) {
      Entry* const entry = each;
      each = each->next;
      if (!forgotten(entry->key)) continue;
      if (entry->slot < 0) {
        const std::size_t bytes = entry->bytes;
        remove(entry);
        give_back(bytes);
      } else if (answer(static_cast<std::size_t>(entry->slot), SlotState::kOffered, SlotState::kForgotten)) {
        remove(entry);
      } else {
        unlink_by_key(*entry);
        entry->how = Entry::How::kVoid;
      }
    }
  }
  return settle(lock);
}

bool Link::lose() noexcept {
  std::unique_lock lock(mutex_);
  if (!gone_ && !closed_) drain();
  gone_ = true;
  end_sends(End::kLost);
  end_receives(End::kLost);
  return take_ended();
}

bool Link::close() noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(closed_, true)) return false;
  end_sends(End::kCancelled);
  end_receives(End::kCancelled);
  if (std::exchange(published_, false)) ring();
  return take_ended();
}

// ---- Progress ----

// Does all work except reading the peer's memory.
void Link::work() noexcept {
  drain();
  if (slots_in_use_ != 0 || queued_.first != nullptr || drops_ != 0) look_at_slots();
  tell_read();
}

void Link::finish_pulls(std::unique_lock<std::mutex>& lock) noexcept {
  while (pulls_ != 0 && open_for_use()) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (offers_[slot] == nullptr || offers_[slot]->how != Entry::How::kPulls) continue;
      pull(slot);
      if (pulls_ == 0) return;
      // Lets other threads take the lock, for example to cancel.
      lock.unlock();
      lock.lock();
      if (!open_for_use()) return;
    }
  }
}

bool Link::advance() noexcept {
  std::unique_lock lock(mutex_);
  if (!open_for_use()) return take_ended();
  work();
  finish_pulls(lock);
  return settle(lock);
}

// The last step of every operation. Wakes the peer if something has been published for it, and tells it
// whether it must wake this process.
bool Link::settle(std::unique_lock<std::mutex>& lock) noexcept {
  for (;;) {
    if (gone_ && !closed_) {
      end_sends(End::kLost);
      end_receives(End::kLost);
    }
    if (std::exchange(published_, false)) ring();
    if (!open_for_use()) break;
    std::atomic<uint32_t>& bell = own_.control().bell;
    // seq_cst: in one total order with the changes of these counters, after which attend() is called.
    const bool wanted = pollers_.load(std::memory_order_seq_cst) == 0 &&
                        (waiting_ > 0 || sleepers_.load(std::memory_order_seq_cst) > 0);
    if ((bell.load(std::memory_order_relaxed) != 0) == wanted) break;
    bell.store(wanted ? 1 : 0, std::memory_order_relaxed);
    if (!wanted) break;
    // seq_cst: with the fence in ring(), either the peer sees the bell, or this thread sees what the peer has
    // published.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    work();
    finish_pulls(lock);
  }
  return take_ended();
}

bool Link::attend() noexcept {
  std::unique_lock lock(mutex_);
  return settle(lock);
}

bool Link::take_bell() noexcept {
  std::byte bytes[64];
  std::ptrdiff_t came;
  while ((came = receive_message(connection_.socket, bytes, nullptr)) > 0) {
  }
  return came == 0;
}

void Link::ring() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<uint32_t>& bell = theirs_.control().bell;
  if (bell.load(std::memory_order_relaxed) == 0 || bell.exchange(0, std::memory_order_relaxed) == 0) return;
  const std::byte one{1};
  // If the socket is full, the peer still has earlier messages to read, which wake it as well.
  (void)send_message(connection_.socket, {&one, 1}, -1);
}

// ---- Sending ----

bool Link::has_room(std::size_t bytes) noexcept {
  if (written_ + bytes - read_by_peer_ <= layout_.ring) return true;
  for (const bool again : {false, true}) {
    // acquire: the peer has finished reading the bytes that are overwritten next.
    const uint64_t read = theirs_.control().read.load(std::memory_order_acquire);
    if (read < read_by_peer_ || read > written_) return violated("it read more than was written"), false;
    read_by_peer_ = read;
    if (written_ + bytes - read_by_peer_ <= layout_.ring) return true;
    if (again) break;
    theirs_.control().wants_room.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    published_ = true;
  }
  return false;
}

bool Link::has_credit(std::size_t bytes) noexcept {
  const uint64_t more = Transport::counted(bytes);
  if (more > credit_) return false;
  if (sent_ahead_ + more - returned_ <= credit_) return true;
  const uint64_t returned = theirs_.control().returned.load(std::memory_order_relaxed);
  if (returned < returned_ || returned > sent_ahead_)
    return violated("it returned more credit than was used"), false;
  returned_ = returned;
  return sent_ahead_ + more - returned_ <= credit_;
}

// Writes a frame. The ring must have room for it.
void Link::put(const Frame& frame, const std::byte* data, std::size_t bytes) noexcept {
  const std::size_t ring = layout_.ring;
  const auto at = static_cast<std::size_t>(written_ % ring);
  if (bytes != 0) {
    const std::size_t from = at + kLine == ring ? 0 : at + kLine;
    const std::size_t first = std::min(bytes, ring - from);
    std::memcpy(theirs_.bytes_at(from), data, first);
    if (first != bytes) std::memcpy(theirs_.bytes_at(0), data + first, bytes - first);
  }
  Header& header = theirs_.header(at);
  header.frame = frame;
  // release: publishes the data and the rest of the header.
  header.mark.store(theirs_.mark_of(written_), std::memory_order_release);
  written_ += kLine + padded(bytes);
  published_ = true;
  fetch_ahead(kLine + padded(bytes));
}

// The next frame will probably have the same size. The peer was the last to read its cache lines, so they are
// still in the cache of the peer's CPU.
void Link::fetch_ahead(std::size_t bytes) const noexcept {
  constexpr std::size_t kMost = 2048;
  for (std::size_t i = 0; i < std::min(bytes, kMost); i += kLine)
    fetch_to_write(theirs_.bytes_at(static_cast<std::size_t>((written_ + i) % layout_.ring)));
}

void Link::append(Transfer& transfer) noexcept {
  transfer.id = 0;
  transfer.next = nullptr;
  transfer.before = queued_.end;
  *queued_.end = &transfer;
  queued_.end = &transfer.next;
}

void Link::take_out(Transfer& transfer) noexcept {
  *transfer.before = transfer.next;
  if (transfer.next != nullptr) transfer.next->before = transfer.before;
  if (queued_.end == &transfer.next) queued_.end = transfer.before;
  transfer.before = nullptr;
}

// Returns -1 if all slots are in use.
int Link::free_slot() noexcept {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (mine_[slot] == Mine::kAwaitsRelease &&
        theirs_.slot(slot).state.load(std::memory_order_acquire) == SlotState::kReleased)
      mine_[slot] = Mine::kFree;
    if (mine_[slot] == Mine::kFree) return static_cast<int>(slot);
  }
  return -1;
}

bool Link::offer(Transfer& transfer) noexcept {
  if (!has_room(kLine)) return false;
  const int slot = free_slot();
  if (slot < 0) return false;
  const auto at = static_cast<std::size_t>(slot);
  mine_[at] = Mine::kInUse;
  offered_[at] = &transfer;
  ++slots_in_use_;
  transfer.id = at + 1;
  transfer.moved = 0;
  transfer.before = nullptr;
  // relaxed: the frame that follows publishes it.
  theirs_.slot(at).state.store(SlotState::kOffered, std::memory_order_relaxed);
  const Transfer::Message& message = transfer.message();
  put({.kind = FrameKind::kOffer,
       .slot = static_cast<uint32_t>(slot),
       .bytes = message.bytes,
       .place = reinterpret_cast<std::uintptr_t>(message.data),
       .key = message.key},
      nullptr, 0);
  return true;
}

// The offer in this slot becomes void, because its transfer ends or is offered again, and the peer must be
// told.
void Link::must_drop(std::size_t slot) noexcept {
  mine_[slot] = Mine::kMustDrop;
  --slots_in_use_;
  ++drops_;
  busy_.fetch_add(1, std::memory_order_relaxed);
  put_drops();
}

void Link::put_drops() noexcept {
  for (std::size_t slot = 0; drops_ != 0 && slot < kSlots; ++slot) {
    if (mine_[slot] != Mine::kMustDrop) continue;
    if (!has_room(kLine)) return;
    put({.kind = FrameKind::kDrop, .slot = static_cast<uint32_t>(slot)}, nullptr, 0);
    mine_[slot] = Mine::kAwaitsRelease;
    --drops_;
    busy_.fetch_sub(1, std::memory_order_relaxed);
  }
}

// Withdraws an offer. Returns false if the peer has already ended the transfer.
bool Link::withdraw(std::size_t slot) noexcept {
  std::atomic<SlotState>& state = theirs_.slot(slot).state;
  SlotState seen = state.load(std::memory_order_acquire);
  while (seen == SlotState::kOffered || seen == SlotState::kGranted || seen == SlotState::kPulling) {
    // acq_rel: the peer's own change then fails, and it discards what it has read.
    if (!state.compare_exchange_weak(seen, SlotState::kCancelled, std::memory_order_acq_rel)) continue;
    seen = SlotState::kRevoked;
  }
  if (seen != SlotState::kRevoked) return false;
  must_drop(slot);
  return true;
}

void Link::look_at_slots() noexcept {
  put_drops();
  for (std::size_t slot = 0; slots_in_use_ != 0 && slot < kSlots && open_for_use(); ++slot) {
    Transfer* const transfer = offered_[slot];
    if (transfer == nullptr) continue;
    // acquire: the peer has finished reading the data.
    const SlotState state = theirs_.slot(slot).state.load(std::memory_order_acquire);
    switch (state) {
      case SlotState::kOffered:
      case SlotState::kPulling: break;
      case SlotState::kGranted: put_chunks(slot); break;
      case SlotState::kDone:
      case SlotState::kForgotten:
      case SlotState::kMisfit:
        offered_[slot] = nullptr;
        mine_[slot] = Mine::kFree;
        --slots_in_use_;
        busy_.fetch_sub(1, std::memory_order_relaxed);
        end(*transfer, state == SlotState::kMisfit ? End::kMisfit : End::kDone);
        break;
      case SlotState::kRevoked:
        offered_[slot] = nullptr;
        must_drop(slot);
        append(*transfer);
        break;
      default: violated("it changed an offer in an invalid way"); break;
    }
  }
  while (queued_.first != nullptr && open_for_use()) {
    Transfer& first = *queued_.first;
    take_out(first);
    if (offer(first)) continue;
    // Put the transfer back to the front of the queue.
    first.next = queued_.first;
    first.before = &queued_.first;
    if (first.next != nullptr) first.next->before = &first.next;
    if (queued_.first == nullptr) queued_.end = &first.next;
    queued_.first = &first;
    first.id = 0;
    return;
  }
}

void Link::put_chunks(std::size_t slot) noexcept {
  Transfer& transfer = *offered_[slot];
  const Transfer::Message& message = transfer.message();
  while (transfer.moved != message.bytes) {
    const std::size_t bytes = std::min(message.bytes - transfer.moved, Layout::kMostChunk);
    // Chunks use only a part of the ring. The rest is reserved for messages that are sent ahead.
    if (!has_room(kLine + padded(bytes) + layout_.ring - Layout::kChunkRoom)) return;
    put({.kind = FrameKind::kChunk,
         .slot = static_cast<uint32_t>(slot),
         .bytes = bytes,
         .place = transfer.moved},
        message.data + transfer.moved, bytes);
    transfer.moved += bytes;
  }
  offered_[slot] = nullptr;
  mine_[slot] = Mine::kAwaitsRelease;
  --slots_in_use_;
  busy_.fetch_sub(1, std::memory_order_relaxed);
  end(transfer, End::kDone);
}

void Link::end_sends(End end_of_all) noexcept {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    Transfer* const transfer = std::exchange(offered_[slot], nullptr);
    if (transfer == nullptr) continue;
    busy_.fetch_sub(1, std::memory_order_relaxed);
    const SlotState state = theirs_.slot(slot).state.load(std::memory_order_acquire);
    const bool withdrawn = withdraw(slot);
    const bool done = !withdrawn && (state == SlotState::kDone || state == SlotState::kForgotten);
    if (!withdrawn) {
      mine_[slot] = Mine::kFree;
      --slots_in_use_;
    }
    end(*transfer, done ? End::kDone : end_of_all);
  }
  while (queued_.first != nullptr) {
    Transfer& first = *queued_.first;
    take_out(first);
    busy_.fetch_sub(1, std::memory_order_relaxed);
    end(first, end_of_all);
  }
}

// ---- Receiving: transfers and entries ----

Link::Entry* Link::make(const MessageKey& key, std::size_t bytes, std::size_t room) noexcept {
  void* const place = memory_.try_allocate(sizeof(Entry) + room, alignof(Entry));
  if (place == nullptr) return nullptr;
  auto* const entry = new (place) Entry;
  entry->key = key;
  entry->bytes = bytes;
  entry->room = room;
  return entry;
}

void Link::link_by_key(Entry& entry) noexcept {
  Entry*& first = buckets_[bucket_of(entry.key)].entries;
  entry.next = first;
  entry.before = &first;
  if (first != nullptr) first->before = &entry.next;
  first = &entry;
}

void Link::unlink_by_key(Entry& entry) noexcept {
  if (entry.before == nullptr) return;
  *entry.before = entry.next;
  if (entry.next != nullptr) entry.next->before = entry.before;
  entry.before = nullptr;
}

void Link::remove(Entry* entry) noexcept {
  unlink_by_key(*entry);
  if (entry->slot >= 0) offers_[entry->slot] = nullptr;
  memory_.free(entry, sizeof(Entry) + entry->room, alignof(Entry));
}

void Link::unlink(Transfer& transfer) noexcept {
  *transfer.before = transfer.next;
  if (transfer.next != nullptr) transfer.next->before = transfer.before;
  transfer.before = nullptr;
}

void Link::wait(Transfer& transfer) noexcept {
  Transfer*& first = buckets_[bucket_of(transfer.message().key)].receives;
  transfer.id = 0;
  transfer.next = first;
  transfer.before = &first;
  if (first != nullptr) first->before = &transfer.next;
  first = &transfer;
  began_to_wait(transfer);
}

// Removes and returns the receive that waits for such a message. NULL if none does.
Transfer* Link::take_receive(const MessageKey& key) noexcept {
  Transfer* each = buckets_[bucket_of(key)].receives;
  while (each != nullptr && each->message().key != key) each = each->next;
  if (each != nullptr) unlink(*each);
  return each;
}

// Gives the receive a message that has arrived for it, or lets it wait.
void Link::match(Transfer& transfer, bool begins) noexcept {
  const auto ends = [&](End how) { begins ? end_at_once(transfer, how) : end(transfer, how); };
  const Transfer::Message& message = transfer.message();
  for (Entry* each = buckets_[bucket_of(message.key)].entries; each != nullptr;) {
    Entry* const entry = each;
    each = each->next;
    if (entry->key != message.key) continue;
    if (entry->slot >= 0) {
      if (!gone_ && grant(*entry, transfer)) return;
      continue;
    }
    const bool fits = entry->bytes == message.bytes;
    if (fits && entry->moved != 0) std::memcpy(message.data, entry->data(), entry->moved);
    const std::size_t bytes = entry->bytes;
    remove(entry);
    if (!gone_) give_back(bytes);
    return ends(fits ? End::kDone : End::kMisfit);
  }
  gone_ ? ends(End::kLost) : wait(transfer);
}

// Changes the state of a slot. Returns false if the sender has cancelled the message.
bool Link::answer(std::size_t slot, SlotState from, SlotState to) noexcept {
  // acq_rel: once the sender sees that the transfer has ended, it may overwrite the data and the slot.
  const bool changed = own_.slot(slot).state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  if (changed) published_ = true;
  return changed;
}

// Grants the offer to the receive. Returns false if the sender has withdrawn the offer.
bool Link::grant(Entry& entry, Transfer& transfer) noexcept {
  const auto slot = static_cast<std::size_t>(entry.slot);
  const bool fits = entry.bytes == transfer.message().bytes;
  const bool at_once = !fits || entry.bytes == 0;
  const SlotState to = !fits              ? SlotState::kMisfit
                       : entry.bytes == 0 ? SlotState::kDone
                       : reads()          ? SlotState::kPulling
                                          : SlotState::kGranted;
  unlink_by_key(entry);
  if (!answer(slot, SlotState::kOffered, to)) {
    entry.how = Entry::How::kVoid;
    return false;
  }
  if (at_once) {
    remove(&entry);
    end(transfer, fits ? End::kDone : End::kMisfit);
    return true;
  }
  entry.receive = &transfer;
  entry.moved = 0;
  entry.how = to == SlotState::kPulling ? Entry::How::kPulls : Entry::How::kChunks;
  transfer.id = slot + 1;
  transfer.before = nullptr;
  began_to_wait(transfer);
  if (entry.how == Entry::How::kPulls) {
    ++pulls_;
    busy_.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

// The sender has cancelled the message that was granted to a receive, which now waits for another one.
void Link::wait_again(Entry& entry) noexcept {
  entry.how = Entry::How::kVoid;
  Transfer* const receive = std::exchange(entry.receive, nullptr);
  if (receive != nullptr) match(*receive, false);
}

void Link::pull(std::size_t slot) noexcept {
  Entry& entry = *offers_[slot];
  Transfer& receive = *entry.receive;
  const std::size_t bytes = std::min(entry.bytes - entry.moved, kSlice);
  if (!read_process(connection_.process, entry.place + entry.moved, receive.message().data + entry.moved,
                    bytes))
    return cannot_pull(slot);
  entry.moved += bytes;
  if (entry.moved != entry.bytes) return;
  // If the peer has ended, another process may have its id, and the data may be from that process.
  if (has_ended(connection_.ends)) return cannot_pull(slot);
  --pulls_;
  busy_.fetch_sub(1, std::memory_order_relaxed);
  if (!answer(slot, SlotState::kPulling, SlotState::kDone)) return wait_again(entry);
  remove(&entry);
  end(receive, End::kDone);
}

// From now on, the sender copies the data. If the sender has died, the transfer ends when that is noticed.
void Link::cannot_pull(std::size_t slot) noexcept {
  Entry& entry = *offers_[slot];
  --pulls_;
  busy_.fetch_sub(1, std::memory_order_relaxed);
  // A sender that has cancelled the message may have freed its memory, so the failure says nothing about
  // other messages.
  if (!answer(slot, SlotState::kPulling, SlotState::kGranted)) return wait_again(entry);
  reads_.store(false, std::memory_order_relaxed);
  entry.moved = 0;
  entry.how = Entry::How::kChunks;
}

void Link::end_receives(End end_of_all) noexcept {
  for (Bucket& bucket : buckets_) {
    while (bucket.receives != nullptr) {
      Transfer& transfer = *bucket.receives;
      unlink(transfer);
      end(transfer, end_of_all);
    }
  }
  for (Entry* const entry : offers_) {
    if (entry == nullptr) continue;
    if (entry->how == Entry::How::kPulls) {
      --pulls_;
      busy_.fetch_sub(1, std::memory_order_relaxed);
    }
    Transfer* const receive = entry->receive;
    remove(entry);
    if (receive != nullptr) end(*receive, end_of_all);
  }
}

// ---- Receiving: frames ----

void Link::give_back(std::size_t bytes) noexcept {
  owed_ += Transport::counted(bytes);
  if (owed_ < credit_ / 4) return;
  gave_back_ += std::exchange(owed_, 0);
  own_.control().returned.store(gave_back_, std::memory_order_relaxed);
}

void Link::tell_read() noexcept {
  if (told_read_ == read_) return;
  std::atomic<uint32_t>& wanted = own_.control().wants_room;
  const bool wants = wanted.load(std::memory_order_relaxed) != 0;
  if (!wants && read_ - told_read_ < layout_.read_step()) return;
  told_read_ = read_;
  if (wants) wanted.store(0, std::memory_order_relaxed);
  // release: all data have been copied out of the ring.
  own_.control().read.store(read_, std::memory_order_release);
  published_ = published_ || wants;
}

void Link::copy_out(uint64_t at, std::byte* to, std::size_t bytes) const noexcept {
  const std::size_t ring = layout_.ring;
  const auto from = static_cast<std::size_t>(at % ring);
  const std::size_t first = std::min(bytes, ring - from);
  if (first != 0) std::memcpy(to, own_.bytes_at(from), first);
  if (first != bytes) std::memcpy(to + first, own_.bytes_at(0), bytes - first);
}

void Link::drain() noexcept {
  for (;;) {
    const auto at = static_cast<std::size_t>(read_ % layout_.ring);
    const Header& header = own_.header(at);
    // acquire: pairs with the sender's release of the mark.
    if (header.mark.load(std::memory_order_acquire) != own_.mark_of(read_)) return;
    // The peer may change the header at any time, so only a copy of it is used.
    const Frame frame = header.frame;
    take(frame, read_ + kLine);
    if (gone_) return;
    const uint64_t data = frame.kind == FrameKind::kMessage ? frame.place
                          : frame.kind == FrameKind::kChunk ? frame.bytes
                                                            : 0;
    read_ += kLine + padded(static_cast<std::size_t>(data));
    next_at_.store(static_cast<std::size_t>(read_ % layout_.ring), std::memory_order_relaxed);
    next_mark_.store(own_.mark_of(read_), std::memory_order_relaxed);
    tell_read();
  }
}

void Link::take(const Frame& frame, uint64_t at) noexcept {
  switch (frame.kind) {
    case FrameKind::kMessage: return take_message(frame, at);
    case FrameKind::kOffer: return take_offer(frame);
    case FrameKind::kChunk: return take_chunk(frame, at);
    case FrameKind::kDrop: return take_drop(frame);
  }
  violated("it sent an invalid frame");
}

void Link::take_message(const Frame& frame, uint64_t at) noexcept {
  if (frame.bytes > credit_ || frame.place > frame.bytes ||
      came_ahead_ + Transport::counted(static_cast<std::size_t>(frame.bytes)) - gave_back_ > credit_)
    return violated("it sent more than its credit");
  const auto bytes = static_cast<std::size_t>(frame.bytes);
  const auto used = static_cast<std::size_t>(frame.place);
  came_ahead_ += Transport::counted(bytes);
  if (forgotten(frame.key)) return give_back(bytes);
  if (Transfer* const receive = take_receive(frame.key); receive != nullptr) {
    const bool fits = receive->message().bytes == bytes;
    if (fits) copy_out(at, receive->message().data, used);
    give_back(bytes);
    return end(*receive, fits ? End::kDone : End::kMisfit);
  }
  Entry* const entry = make(frame.key, bytes, used);
  if (entry == nullptr) return violated("no memory is left for its message");
  copy_out(at, entry->data(), used);
  entry->moved = used;
  link_by_key(*entry);
}

void Link::take_offer(const Frame& frame) noexcept {
  if (frame.slot >= kSlots || offers_[frame.slot] != nullptr || frame.bytes > SIZE_MAX / 2)
    return violated("it made an invalid offer");
  if (forgotten(frame.key) && answer(frame.slot, SlotState::kOffered, SlotState::kForgotten)) return;
  Entry* const entry = make(frame.key, static_cast<std::size_t>(frame.bytes), 0);
  if (entry == nullptr) return violated("no memory is left for its message");
  entry->slot = static_cast<int>(frame.slot);
  entry->place = frame.place;
  offers_[frame.slot] = entry;
  if (forgotten(frame.key)) {
    entry->how = Entry::How::kVoid;
    return;
  }
  link_by_key(*entry);
  Transfer* const receive = take_receive(frame.key);
  if (receive != nullptr && !grant(*entry, *receive)) wait(*receive);
}

void Link::take_chunk(const Frame& frame, uint64_t at) noexcept {
  Entry* const entry = frame.slot < kSlots ? offers_[frame.slot] : nullptr;
  if (entry == nullptr || entry->how != Entry::How::kChunks || frame.place != entry->moved ||
      frame.bytes == 0 || frame.bytes > Layout::kMostChunk || frame.bytes > entry->bytes - entry->moved)
    return violated("it sent data that were not requested");
  const auto bytes = static_cast<std::size_t>(frame.bytes);
  if (entry->receive != nullptr) copy_out(at, entry->receive->message().data + entry->moved, bytes);
  entry->moved += bytes;
  if (entry->moved != entry->bytes) return;
  Transfer* const receive = entry->receive;
  // release: this process no longer uses the slot.
  own_.slot(frame.slot).state.store(SlotState::kReleased, std::memory_order_release);
  published_ = true;
  remove(entry);
  if (receive != nullptr) end(*receive, End::kDone);
}

void Link::take_drop(const Frame& frame) noexcept {
  Entry* const entry = frame.slot < kSlots ? offers_[frame.slot] : nullptr;
  if (entry == nullptr) return violated("it dropped an unknown message");
  if (entry->how == Entry::How::kPulls) {
    --pulls_;
    busy_.fetch_sub(1, std::memory_order_relaxed);
  }
  Transfer* const receive = std::exchange(entry->receive, nullptr);
  remove(entry);
  own_.slot(frame.slot).state.store(SlotState::kReleased, std::memory_order_release);
  published_ = true;
  // The receive continues to wait for another message with its key.
  if (receive != nullptr) match(*receive, false);
}

}  // namespace dist::shm
