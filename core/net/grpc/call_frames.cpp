// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/call_frames.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace dist::grpc_link {

// ---- Sending ----

void CallSender::add(const Frame& first, FrameKind rest, Ref<CallParts> parts) {
  turns_.push_back({first, rest, std::move(parts)});
  try {
    by_id_.emplace(first.id, std::prev(turns_.end()));
  } catch (...) {
    turns_.pop_back();
    throw;
  }
}

void CallSender::end(Place place) noexcept {
  by_id_.erase(place->first.id);
  turns_.erase(place);
}

bool CallSender::drop(uint64_t id) noexcept {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  end(found->second);
  return true;
}

bool CallSender::waits(uint64_t id) const noexcept {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && !found->second->begun;
}

void CallSender::begin_anew() noexcept {
  for (Place at = turns_.begin(); at != turns_.end();) {
    const Place next = std::next(at);
    if (at->begun) end(at);
    at = next;
  }
}

void CallSender::clear() noexcept {
  by_id_.clear();
  turns_.clear();
}

bool CallSender::put_chunk(FrameSink& sink) noexcept {
  if (turns_.empty()) return false;
  const Place turn = turns_.begin();
  if (!std::exchange(turn->begun, true)) sink.put(turn->first);
  const auto bytes =
      static_cast<std::size_t>(std::min<uint64_t>(turn->first.bytes - turn->sent, kChunkBytes));
  if (bytes != 0) {
    const auto parts = turn->parts->parts();
    const Frame frame{.kind = turn->rest, .id = turn->first.id, .bytes = bytes, .offset = turn->sent};
    while (parts[turn->part].size() == turn->at) ++turn->part, turn->at = 0;
    const std::byte* data = parts[turn->part].data() + turn->at;
    bool stays = false;
    if (parts[turn->part].size() - turn->at >= bytes) {
      turn->at += bytes;
      stays = turn->parts->stays(turn->part);
    } else {
      gathered_.resize(bytes);
      for (std::size_t got = 0; got < bytes;) {
        const std::size_t some = std::min(bytes - got, parts[turn->part].size() - turn->at);
        std::copy_n(parts[turn->part].data() + turn->at, some, gathered_.data() + got);
        got += some;
        turn->at += some;
        if (turn->at == parts[turn->part].size() && got < bytes) ++turn->part, turn->at = 0;
      }
      data = gathered_.data();
    }
    stays ? sink.put_held(frame, data, *turn->parts) : sink.put(frame, data);
    turn->sent += bytes;
  }
  if (turn->sent == turn->first.bytes) {
    end(turn);
  } else {
    turns_.splice(turns_.end(), turns_, turn);
  }
  return true;
}

// ---- Receiving ----

const char* CallReceiver::begin(const Frame& frame, std::byte** to) noexcept {
  try {
    switch (frame.kind) {
      case FrameKind::kBeat: return nullptr;
      case FrameKind::kCall: return serves_ ? begin_message(frame) : "a call that came from a server";
      case FrameKind::kCallData:
        return serves_ ? begin_data(frame, to) : "data of a call that came from a server";
      case FrameKind::kTakeBack:
        if (!serves_) return "a cancellation that came from a server";
        // If the message is incomplete, its remaining frames will not arrive.
        forget(frame.id);
        if (coming_.erase(frame.id) == 0) events_.push_back({What::kTakenBack, frame.id, 0, {}});
        return nullptr;
      case FrameKind::kAnswer: return serves_ ? "an answer that came from a client" : begin_message(frame);
      case FrameKind::kAnswerData:
        return serves_ ? "data of an answer that came from a client" : begin_data(frame, to);
      default: return "a frame that does not belong to calls";
    }
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
}

const char* CallReceiver::begin_message(const Frame& frame) noexcept {
  // Discarded messages are tracked until they end, so they count as well.
  if (coming_.size() > 2 * limits_.calls) return "too many messages at a time";
  if (serves_) {
    if (frame.id <= last_id_) return "a call whose number does not increase";
    last_id_ = frame.id;
  } else if (frame.offset > 16) {
    return "an unknown status";
  }
  Coming coming;
  coming.bytes = frame.bytes;
  coming.word = frame.offset;
  const bool wanted = serves_ || expected_.erase(frame.id) != 0;
  bool refused = false;
  if (wanted) {
    const bool fits = frame.bytes <= limits_.message_bytes && frame.bytes <= limits_.bytes - held_;
    if (fits) coming.message = CallMessage::create(memory_, static_cast<std::size_t>(frame.bytes), pool_);
    refused = coming.message.get() == nullptr;
    if (!refused) held_ += static_cast<std::size_t>(frame.bytes);
  }
  if (!coming_.emplace(frame.id, std::move(coming)).second) return "a message that has already begun";
  if (refused) events_.push_back({What::kRefused, frame.id, frame.bytes, {}});
  return nullptr;
}

const char* CallReceiver::begin_data(const Frame& frame, std::byte** to) noexcept {
  const auto found = coming_.find(frame.id);
  if (found == coming_.end()) return "data of an unknown message";
  Coming& coming = found->second;
  if (frame.bytes == 0 || frame.bytes > kChunkBytes) return "data of an invalid size";
  if (frame.offset != coming.came || frame.bytes > coming.bytes - coming.came) return "data out of order";
  if (coming.message) *to = coming.message->data() + coming.came;
  return nullptr;
}

void CallReceiver::whole(uint64_t id) noexcept {
  const auto found = coming_.find(id);
  if (found->second.message) {
    events_.push_back({What::kWhole, id, found->second.word, std::move(found->second.message)});
  }
  coming_.erase(found);
}

void CallReceiver::finish(const Frame& frame) noexcept {
  switch (frame.kind) {
    case FrameKind::kCall:
    case FrameKind::kAnswer:
      if (frame.bytes == 0) whole(frame.id);
      return;
    case FrameKind::kCallData:
    case FrameKind::kAnswerData: {
      Coming& coming = coming_.find(frame.id)->second;
      coming.came += frame.bytes;
      if (coming.came == coming.bytes) whole(frame.id);
      return;
    }
    default: return;
  }
}

void CallReceiver::forget(uint64_t id) noexcept {
  expected_.erase(id);
  const auto found = coming_.find(id);
  if (found == coming_.end() || !found->second.message) return;
  held_ -= found->second.message->bytes();
  found->second.message = {};
}

void CallReceiver::begin_anew() noexcept {
  for (const auto& [id, coming] : coming_) {
    if (coming.message) held_ -= coming.message->bytes();
  }
  coming_.clear();
  expected_.clear();
  events_.clear();
  last_id_ = 0;
}

}  // namespace dist::grpc_link
