// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/outbox.hpp"

#include <algorithm>
#include <utility>

namespace dist::grpc_link {

void Outbox::link(Transfer& transfer, int list) noexcept {
  transfer.owner = list;
  transfer.next = nullptr;
  transfer.before = lists_[list].end;
  *transfer.before = &transfer;
  lists_[list].end = &transfer.next;
}

void Outbox::take_out(Transfer& transfer) noexcept {
  *transfer.before = transfer.next;
  if (transfer.next != nullptr) {
    transfer.next->before = transfer.before;
  } else {
    lists_[transfer.owner].end = transfer.before;
  }
  transfer.before = nullptr;
}

bool Outbox::go_ahead(std::size_t bytes) noexcept {
  if (Transport::counted(bytes) > credit_ - used_) return false;
  used_ += Transport::counted(bytes);
  return true;
}

bool Outbox::send(Transfer& transfer) noexcept {
  const Transfer::Message& message = transfer.message();
  if (go_ahead(message.bytes)) {
    sink_.put({.kind = FrameKind::kMessage, .key = message.key, .bytes = message.bytes}, message.data);
    transfer.finish(Transfer::End::kDone);
    return true;
  }
  if (offers_ == kMostOffers || message.bytes > kMostMessageBytes) {
    transfer.finish(Transfer::End::kLost);
    return true;
  }
  ++offers_;
  offer(transfer);
  return false;
}

void Outbox::offer(Transfer& transfer) noexcept {
  transfer.id = ++last_id_;
  transfer.moved = 0;
  // A message larger than the whole credit must not keep others from using the credit.
  link(transfer, Transport::counted(transfer.message().bytes) > credit_ ? kTooLarge : kOffered);
  Transfer*& bucket = by_id_[transfer.id % kBuckets];
  transfer.next_by_id = bucket;
  transfer.before_by_id = &bucket;
  if (bucket != nullptr) bucket->before_by_id = &transfer.next_by_id;
  bucket = &transfer;
  const Transfer::Message& message = transfer.message();
  sink_.put({.kind = FrameKind::kOffer, .id = transfer.id, .key = message.key, .bytes = message.bytes});
}

Transfer* Outbox::find(uint64_t id) const noexcept {
  Transfer* each = by_id_[id % kBuckets];
  while (each != nullptr && each->id != id) each = each->next_by_id;
  return each;
}

void Outbox::unlink(Transfer& transfer) noexcept {
  take_out(transfer);
  *transfer.before_by_id = transfer.next_by_id;
  if (transfer.next_by_id != nullptr) transfer.next_by_id->before_by_id = transfer.before_by_id;
}

void Outbox::end(Transfer& transfer, Transfer::End end) noexcept {
  unlink(transfer);
  --offers_;
  ended_ = true;
  transfer.finish(end);
}

bool Outbox::cancel(Transfer& transfer) noexcept {
  if (transfer.over() || transfer.before == nullptr) return false;
  sink_.put({.kind = FrameKind::kDrop, .id = transfer.id});
  end(transfer, Transfer::End::kCancelled);
  promote();
  return take_ended();
}

bool Outbox::end_all(Transfer::End end_of_all) noexcept {
  for (const List& list : lists_) {
    while (list.first != nullptr) end(*list.first, end_of_all);
  }
  return take_ended();
}

bool Outbox::take_ended() noexcept { return std::exchange(ended_, false); }

// Credit has been returned, or a message that waited for it has ended.
void Outbox::promote() noexcept {
  const List& offered = lists_[kOffered];
  while (offered.first != nullptr && go_ahead(offered.first->message().bytes)) {
    Transfer& transfer = *offered.first;
    const Transfer::Message& message = transfer.message();
    sink_.put({.kind = FrameKind::kAhead, .id = transfer.id, .bytes = message.bytes}, message.data);
    end(transfer, Transfer::End::kDone);
  }
}

const char* Outbox::begin(const Frame& frame, std::byte** to) noexcept {
  *to = nullptr;
  switch (frame.kind) {
    case FrameKind::kGrant:
    case FrameKind::kRevoke:
    case FrameKind::kMisfit:
    case FrameKind::kForgotten:
      return frame.id == 0 || frame.id > last_id_ ? "it referred to an unknown message" : nullptr;
    case FrameKind::kCredit: return frame.bytes > used_ ? "it returned more credit than was used" : nullptr;
    case FrameKind::kByeTaken:
    case FrameKind::kLeaving: return nullptr;
    default: return "it sent a frame that a receiver must not send";
  }
}

void Outbox::finish(const Frame& frame) noexcept {
  switch (frame.kind) {
    case FrameKind::kCredit: used_ -= static_cast<std::size_t>(frame.bytes); return promote();
    case FrameKind::kByeTaken: bye_taken_ = true; return;
    case FrameKind::kLeaving: peer_leaves_ = true; return;
    default: break;
  }
  // While the frame was in flight, the transfer may have ended here, because it was cancelled or because
  // credit was returned.
  Transfer* const transfer = find(frame.id);
  if (transfer == nullptr) return;
  if (frame.kind == FrameKind::kMisfit) {
    end(*transfer, Transfer::End::kMisfit);
  } else if (frame.kind == FrameKind::kForgotten) {
    end(*transfer, Transfer::End::kDone);
  } else if (frame.kind == FrameKind::kGrant && transfer->owner < kGranted) {
    take_out(*transfer);
    link(*transfer, kGranted);
  } else if (frame.kind == FrameKind::kRevoke && transfer->owner >= kGranted) {
    // The receiver discards the data in flight. If the message is sent again, it is a new message.
    sink_.put({.kind = FrameKind::kDrop, .id = transfer->id});
    unlink(*transfer);
    offer(*transfer);
  }
  promote();
}

Transfer* Outbox::granted(bool apart) const noexcept {
  Transfer* const first = lists_[kGranted].first;
  return first != nullptr && (first->message().bytes >= least_apart_) == apart ? first : nullptr;
}

bool Outbox::put_chunk() noexcept {
  if (granted(false) == nullptr) return false;
  Transfer& transfer = *granted(false);
  const Transfer::Message& message = transfer.message();
  const std::size_t bytes = std::min(chunk_, message.bytes - transfer.moved);
  sink_.put({.kind = FrameKind::kChunk, .id = transfer.id, .bytes = bytes, .offset = transfer.moved},
            message.data + transfer.moved);
  transfer.moved += bytes;
  if (transfer.moved == message.bytes) end(transfer, Transfer::End::kDone);
  return true;
}

// ---- Pieces ----

bool Outbox::next_apart(Piece* piece) noexcept {
  if (granted(true) == nullptr || piece_) return false;
  Transfer& transfer = *granted(true);
  const std::size_t left = transfer.message().bytes - transfer.moved;
  *piece = {transfer.id, transfer.moved, std::min(Piece::kMostBytes, left)};
  piece_ = {*piece};
  transfer.moved += static_cast<std::size_t>(piece->bytes);
  if (piece->bytes == left) {
    take_out(transfer);
    link(transfer, kGoing);
  }
  return true;
}

Outbox::Going Outbox::apart() noexcept {
  static constexpr std::byte kNothing[4096] = {};
  static constexpr std::byte kEnds[2] = {std::byte{0}, std::byte{1}};
  if (!piece_) return {};
  UnderWay& first = *piece_;
  const Transfer* const transfer = first.whole ? find(first.piece.id) : nullptr;
  first.whole = transfer != nullptr;
  const std::size_t left = static_cast<std::size_t>(first.piece.bytes) - first.gone;
  const std::span<const std::byte> end(&kEnds[first.whole ? 1 : 0], 1);
  if (first.whole) return {{transfer->message().data + first.piece.offset + first.gone, left}, end};
  if (left <= sizeof kNothing) return {{kNothing, left}, end};
  return {kNothing, {}};
}

void Outbox::apart_gone(std::size_t bytes) noexcept {
  UnderWay& first = *piece_;
  first.gone += bytes;
  if (first.gone <= first.piece.bytes) return;
  Transfer* const transfer = first.whole ? find(first.piece.id) : nullptr;
  const uint64_t end_of_piece = first.piece.offset + first.piece.bytes;
  piece_.reset();
  if (transfer != nullptr && end_of_piece == transfer->message().bytes) end(*transfer, Transfer::End::kDone);
}

}  // namespace dist::grpc_link
