// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/inbox.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace dist::grpc_link {

Inbox::~Inbox() { drop_all(); }

// ---- Entries ----

// Returns NULL if no memory is left.
Inbox::Entry* Inbox::make(const MessageKey& key, std::size_t bytes, std::size_t room) noexcept {
  void* const place = memory_.try_allocate(sizeof(Entry) + room, alignof(Entry));
  if (place == nullptr) return nullptr;
  auto* const entry = new (place) Entry;
  entry->key = key;
  entry->bytes = bytes;
  entry->room = room;
  return entry;
}

void Inbox::link_by_key(Entry& entry) noexcept {
  Entry*& first = buckets_[bucket_of(entry.key)].entries;
  entry.next = first;
  entry.before = &first;
  if (first != nullptr) first->before = &entry.next;
  first = &entry;
  ++entries_;
}

void Inbox::unlink_by_key(Entry& entry) noexcept {
  if (entry.before == nullptr) return;
  *entry.before = entry.next;
  if (entry.next != nullptr) entry.next->before = entry.before;
  entry.before = nullptr;
  --entries_;
}

void Inbox::link_by_id(Entry& entry) noexcept {
  Entry*& first = by_id_[entry.id % kBuckets];
  entry.next_by_id = first;
  entry.before_by_id = &first;
  if (first != nullptr) first->before_by_id = &entry.next_by_id;
  first = &entry;
  ++offers_;
}

void Inbox::remove(Entry* entry) noexcept {
  if (entry->state == State::kOffered) --offered_;
  unlink_by_key(*entry);
  if (entry->before_by_id != nullptr) {
    *entry->before_by_id = entry->next_by_id;
    if (entry->next_by_id != nullptr) entry->next_by_id->before_by_id = entry->before_by_id;
    --offers_;
  }
  memory_.free(entry, sizeof(Entry) + entry->room, alignof(Entry));
}

Inbox::Entry* Inbox::find(uint64_t id) const noexcept {
  Entry* each = by_id_[id % kBuckets];
  while (each != nullptr && each->id != id) each = each->next_by_id;
  return each;
}

// ---- Receives ----

void Inbox::wait(Transfer& transfer) noexcept {
  Transfer*& first = buckets_[bucket_of(transfer.message().key)].receives;
  transfer.id = 0;
  transfer.next = first;
  transfer.before = &first;
  if (first != nullptr) first->before = &transfer.next;
  first = &transfer;
}

// Removes and returns the receive that waits for such a message. NULL if none does.
Transfer* Inbox::take_receive(const MessageKey& key) noexcept {
  Transfer* each = buckets_[bucket_of(key)].receives;
  while (each != nullptr && each->message().key != key) each = each->next;
  if (each == nullptr) return nullptr;
  *each->before = each->next;
  if (each->next != nullptr) each->next->before = each->before;
  each->before = nullptr;
  return each;
}

void Inbox::end(Transfer& transfer, Transfer::End end) noexcept {
  ended_ = true;
  transfer.finish(end);
}

bool Inbox::take_ended() noexcept { return std::exchange(ended_, false); }

// Grants the message to the receive. Returns false if their sizes differ; both have then ended.
bool Inbox::grant(Entry& entry, Transfer& transfer) noexcept {
  if (entry.bytes != transfer.message().bytes) {
    sink_.put({.kind = FrameKind::kMisfit, .id = entry.id});
    remove(&entry);
    end(transfer, Transfer::End::kMisfit);
    return false;
  }
  unlink_by_key(entry);
  if (entry.state == State::kOffered) --offered_;
  entry.state = State::kGranted;
  entry.receive = &transfer;
  entry.moved = 0;
  transfer.id = entry.id;
  sink_.put({.kind = FrameKind::kGrant, .id = entry.id});
  return true;
}

bool Inbox::receive(Transfer& transfer, bool gone) noexcept {
  const Transfer::Message& message = transfer.message();
  transfer.before = nullptr;
  transfer.id = 0;
  Entry* each = buckets_[bucket_of(message.key)].entries;
  while (each != nullptr && (each->key != message.key || (gone && each->state != State::kHere)))
    each = each->next;
  if (each == nullptr) {
    if (gone) {
      end(transfer, Transfer::End::kLost);
    } else {
      wait(transfer);
    }
  } else if (each->state == State::kHere) {
    const bool fits = each->bytes == message.bytes;
    if (fits && message.bytes != 0) std::memcpy(message.data, each->data(), message.bytes);
    const std::size_t bytes = each->bytes;
    remove(each);
    give_back(bytes);
    end(transfer, fits ? Transfer::End::kDone : Transfer::End::kMisfit);
  } else {
    grant(*each, transfer);
  }
  return take_ended();
}

bool Inbox::cancel(Transfer& transfer) noexcept {
  if (transfer.over()) return false;
  if (transfer.before != nullptr) {
    *transfer.before = transfer.next;
    if (transfer.next != nullptr) transfer.next->before = transfer.before;
    transfer.before = nullptr;
  } else if (Entry* const entry = transfer.id == 0 ? nullptr : find(transfer.id);
             entry != nullptr && entry->receive == &transfer) {
    entry->receive = nullptr;
    entry->state = State::kRevoked;
    sink_.put({.kind = FrameKind::kRevoke, .id = entry->id});
  } else {
    return false;
  }
  end(transfer, Transfer::End::kCancelled);
  return take_ended();
}

void Inbox::forget(uint32_t generation, uint32_t run) noexcept {
  first_generation_ = generation;
  first_run_ = run;
  if (entries_ == 0) return;
  for (Bucket& bucket : buckets_) {
    for (Entry* each = bucket.entries; each != nullptr;) {
      Entry* const entry = each;
      each = each->next;
      if (!forgotten(entry->key)) continue;
      if (entry->state == State::kOffered) {
        sink_.put({.kind = FrameKind::kForgotten, .id = entry->id});
        remove(entry);
      } else {
        const std::size_t bytes = entry->bytes;
        remove(entry);
        give_back(bytes);
      }
    }
  }
}

bool Inbox::end_all(Transfer::End end_of_all) noexcept {
  for (Bucket& bucket : buckets_) {
    while (bucket.receives != nullptr) {
      Transfer& transfer = *bucket.receives;
      bucket.receives = transfer.next;
      transfer.before = nullptr;
      end(transfer, end_of_all);
    }
  }
  for (Entry*& first : by_id_) {
    while (first != nullptr) {
      Transfer* const receive = first->receive;
      remove(first);
      if (receive != nullptr) end(*receive, end_of_all);
    }
  }
  // The link has ended in the middle of this message.
  if (coming_ != nullptr) remove(std::exchange(coming_, nullptr));
  if (into_ != nullptr) end(*std::exchange(into_, nullptr), end_of_all);
  return take_ended();
}

void Inbox::close() noexcept {
  closed_ = true;
  end_all(Transfer::End::kCancelled);
  drop_all();
}

void Inbox::drop_all() noexcept {
  for (Bucket& bucket : buckets_) {
    while (bucket.entries != nullptr) remove(bucket.entries);
  }
  for (Entry*& first : by_id_) {
    while (first != nullptr) remove(first);
  }
  if (coming_ != nullptr) remove(std::exchange(coming_, nullptr));
}

// ---- Credit ----

// Reports consumed credit to the sender. Usually later, because a sender of small messages would otherwise
// get as many frames as it sends; at once if the sender may be waiting for credit.
void Inbox::tell_credit(bool at_once) noexcept {
  if (owed_ == 0 || (!at_once && owed_ < credit_ / 4)) return;
  used_ -= owed_;
  sink_.put({.kind = FrameKind::kCredit, .bytes = std::exchange(owed_, 0)});
}

void Inbox::give_back(std::size_t bytes) noexcept {
  owed_ += Transport::counted(bytes);
  tell_credit(offered_ != 0);
}

// ---- Frames ----

const char* Inbox::begin(const Frame& frame, std::byte** to) noexcept {
  *to = nullptr;
  if (bye_) return "it sent a frame after its goodbye";
  if (closed_) return nullptr;
  switch (frame.kind) {
    case FrameKind::kMessage: return begin_ahead(&frame.key, frame, to);
    case FrameKind::kOffer: return begin_offer(frame);
    case FrameKind::kAhead: return begin_offered_ahead(frame, to);
    case FrameKind::kChunk: return begin_chunk(frame, to);
    case FrameKind::kDrop:
      return frame.id == 0 || frame.id > last_id_ ? "it dropped an unknown message" : nullptr;
    case FrameKind::kBye: return nullptr;
    default: return "it sent a frame that a sender must not send";
  }
}

const char* Inbox::begin_ahead(const MessageKey* key, const Frame& frame, std::byte** to) noexcept {
  if (frame.bytes > credit_ || Transport::counted(static_cast<std::size_t>(frame.bytes)) > credit_ - used_) {
    return "it sent more than its credit";
  }
  const auto bytes = static_cast<std::size_t>(frame.bytes);
  used_ += Transport::counted(bytes);
  coming_bytes_ = bytes;
  into_ = nullptr;
  if (key == nullptr || forgotten(*key)) return nullptr;
  // A message that arrives in pieces is not stored in a receive's memory, because the receive may be
  // cancelled between two pieces.
  if (bytes <= whole_) into_ = take_receive(*key);
  if (into_ != nullptr) {
    if (into_->message().bytes == bytes) *to = into_->message().data;
    return nullptr;
  }
  coming_ = make(*key, bytes, bytes);
  if (coming_ == nullptr) return "no memory is left for a message that it sent ahead";
  *to = coming_->data();
  return nullptr;
}

const char* Inbox::begin_offered_ahead(const Frame& frame, std::byte** to) noexcept {
  if (frame.id == 0 || frame.id > last_id_) return "it referred to an unknown message";
  Entry* const entry = find(frame.id);
  if (entry == nullptr) {  // a misfit or a forgotten message: counts towards the credit and is discarded
    return begin_ahead(nullptr, frame, to);
  }
  if (entry->bytes != frame.bytes) return "it sent a message of another size than it offered";
  if (entry->moved != 0) return "it sent a message twice";
  const MessageKey key = entry->key;
  Transfer* const receive = entry->receive;
  remove(entry);
  // The receive to which it was granted gets it.
  if (receive != nullptr) wait(*receive);
  return begin_ahead(&key, frame, to);
}

const char* Inbox::begin_offer(const Frame& frame) noexcept {
  if (frame.id != last_id_ + 1) return "it offered messages out of order";
  if (offers_ >= kMostOffers) return "it offered too many messages";
  coming_ = make(frame.key, static_cast<std::size_t>(frame.bytes), 0);
  return coming_ == nullptr ? "no memory is left for a message that it offered" : nullptr;
}

const char* Inbox::check_part(uint64_t id, uint64_t offset, uint64_t bytes, std::size_t most) const noexcept {
  const Entry* const entry = id == 0 ? nullptr : find(id);
  if (entry == nullptr || (entry->state != State::kGranted && entry->state != State::kRevoked)) {
    return "it sent a message that was not granted";
  }
  if (offset != entry->moved || bytes > entry->bytes - entry->moved || bytes > most ||
      (bytes == 0 && entry->bytes != 0)) {
    return "it sent invalid pieces of a message";
  }
  return nullptr;
}

const char* Inbox::begin_chunk(const Frame& frame, std::byte** to) noexcept {
  const char* const why = check_part(frame.id, frame.offset, frame.bytes, kChunkBytes);
  if (why != nullptr) return why;
  Entry* const entry = find(frame.id);
  if (entry->receive != nullptr && frame.bytes != 0) *to = entry->receive->message().data + entry->moved;
  return nullptr;
}

void Inbox::finish(const Frame& frame) noexcept {
  if (closed_ && frame.kind != FrameKind::kBye) return;
  switch (frame.kind) {
    case FrameKind::kMessage:
    case FrameKind::kAhead: return finish_ahead();
    case FrameKind::kOffer: {
      last_id_ = frame.id;
      Entry* const entry = std::exchange(coming_, nullptr);
      if (forgotten(frame.key)) {
        remove(entry);
        return sink_.put({.kind = FrameKind::kForgotten, .id = frame.id});
      }
      entry->id = frame.id;
      entry->state = State::kOffered;
      ++offered_;
      link_by_id(*entry);
      if (Transfer* const receive = take_receive(frame.key); receive != nullptr) {
        grant(*entry, *receive);
      } else {
        link_by_key(*entry);
        tell_credit(true);
      }
      return;
    }
    case FrameKind::kChunk: return finish_chunk(frame);
    case FrameKind::kDrop: return finish_drop(frame.id);
    case FrameKind::kBye: bye_ = true; return;
    default: return;
  }
}

void Inbox::finish_ahead() noexcept {
  if (Entry* const entry = std::exchange(coming_, nullptr); entry != nullptr) {
    const MessageKey key = entry->key;
    Transfer* const receive = entry->bytes > whole_ ? take_receive(key) : nullptr;
    entry->state = State::kHere;
    link_by_key(*entry);
    // The receive, or a call of forget(), has arrived between two pieces.
    if (receive != nullptr) {
      this->receive(*receive, false);
      ended_ = true;
    } else if (forgotten(key)) {
      remove(entry);
      give_back(coming_bytes_);
    }
    return;
  }
  give_back(coming_bytes_);
  Transfer* const into = std::exchange(into_, nullptr);
  if (into == nullptr) return;
  end(*into, into->message().bytes == coming_bytes_ ? Transfer::End::kDone : Transfer::End::kMisfit);
}

void Inbox::finish_chunk(const Frame& frame) noexcept {
  moved(*find(frame.id), static_cast<std::size_t>(frame.bytes));
}

void Inbox::moved(Entry& entry, std::size_t bytes) noexcept {
  entry.moved += bytes;
  if (entry.moved != entry.bytes) return;
  Transfer* const receive = entry.receive;
  remove(&entry);
  if (receive != nullptr) end(*receive, Transfer::End::kDone);
}

// ---- Pieces ----

const char* Inbox::begin_apart(const Piece& piece) noexcept {
  if (closed_) return nullptr;
  if (!may_come_apart_ || bye_) return "it sent data apart from its frames, which this link does not allow";
  if (const char* const why = check_part(piece.id, piece.offset, piece.bytes, Piece::kMostBytes);
      why != nullptr)
    return why;
  piece_ = piece;
  piece_left_ = static_cast<std::size_t>(piece.bytes) + 1;
  return nullptr;
}

Inbox::Coming Inbox::apart() noexcept {
  if (piece_left_ == 0) return {};
  const std::size_t left = piece_left_ - 1;
  const Entry* const entry = find(piece_.id);
  if (entry != nullptr && entry->receive != nullptr) {
    const std::size_t at = entry->moved + (static_cast<std::size_t>(piece_.bytes) - left);
    return {{entry->receive->message().data + at, left}, {&piece_end_, 1}};
  }
  if (left <= sizeof nowhere_) return {{nowhere_, left}, {&piece_end_, 1}};
  return {nowhere_, {}};
}

const char* Inbox::apart_came(std::size_t bytes) noexcept {
  piece_left_ -= bytes;
  if (piece_left_ != 0) return nullptr;
  const auto whole = static_cast<uint8_t>(piece_end_);
  if (whole > 1) return "it ended a piece of data with an invalid byte";
  // Otherwise the sender will drop the message next.
  Entry* const entry = whole == 1 ? find(piece_.id) : nullptr;
  if (entry != nullptr) moved(*entry, static_cast<std::size_t>(piece_.bytes));
  return nullptr;
}

void Inbox::finish_drop(uint64_t id) noexcept {
  Entry* const entry = find(id);
  if (entry == nullptr) return;  // a misfit or a forgotten message
  Transfer* const receive = entry->receive;
  remove(entry);
  // The receive continues to wait for another message with its key.
  const bool told = ended_;
  if (receive != nullptr) ended_ = this->receive(*receive, false) || told;
}

}  // namespace dist::grpc_link
