// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/queue.hpp"

#include <algorithm>
#include <cstring>

namespace dist::grpc_link {

void FrameQueue::push(grpc::Slice slice, bool goes_on) noexcept {
  slices_.push_back(std::move(slice));
  goes_on_.push_back(goes_on ? 1 : 0);
}

void FrameQueue::seal() noexcept {
  if (tail_.empty()) return;
  push(grpc::Slice(tail_.data(), tail_.size()));
  tail_.clear();
}

void FrameQueue::put(const Frame& frame, const std::byte* data) noexcept {
  const auto bytes = static_cast<std::size_t>(frame.data_bytes());
  const std::scoped_lock lock(mutex_);
  if (direct_ != nullptr) {
    if (Frame::kBytes + bytes <= direct_room_ - direct_bytes_ && slices_.empty() && tail_.empty()) {
      frame.write(direct_ + direct_bytes_);
      if (bytes != 0) std::memcpy(direct_ + direct_bytes_ + Frame::kBytes, data, bytes);
      direct_bytes_ += Frame::kBytes + bytes;
      return;
    }
    direct_room_ = direct_bytes_;
  }
  if (bytes <= kSharedBytes) return put_small(frame, data, bytes);
  seal();
  grpc::Slice slice(Frame::kBytes + bytes);
  auto* const to = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(slice.begin()));
  frame.write(to);
  std::memcpy(to + Frame::kBytes, data, bytes);
  push(std::move(slice));
}

// Appends a frame to the shared slice.
void FrameQueue::put_small(const Frame& frame, const std::byte* data, std::size_t bytes) noexcept {
  const std::size_t at = tail_.size();
  tail_.resize(at + Frame::kBytes + bytes);
  frame.write(tail_.data() + at);
  if (bytes != 0) std::memcpy(tail_.data() + at + Frame::kBytes, data, bytes);
  if (tail_.size() >= kTailBytes) seal();
}

void FrameQueue::put_held(const Frame& frame, const std::byte* data, Counted& holder) noexcept {
  const auto bytes = static_cast<std::size_t>(frame.data_bytes());
  if (bytes <= kSharedBytes) return put(frame, data);
  const std::scoped_lock lock(mutex_);
  if (direct_ != nullptr) direct_room_ = direct_bytes_;
  put_small(frame, nullptr, 0);
  seal();
  goes_on_.back() = 1;
  holder.retain();
  push(grpc::Slice(
      const_cast<std::byte*>(data), bytes, [](void* held) { static_cast<Counted*>(held)->release(); },
      &holder));
}

bool FrameQueue::take(grpc::ByteBuffer* message) noexcept {
  const std::scoped_lock lock(mutex_);
  seal();
  if (first_ == slices_.size()) return false;
  std::size_t end = first_;
  std::size_t bytes = 0;
  // A message consists of whole frames, so a slice whose last frame continues is taken together with the next
  // one.
  const auto unit = [&](std::size_t at) {
    return slices_[at].size() + (goes_on_[at] != 0 ? slices_[at + 1].size() : 0);
  };
  do {
    bytes += unit(end);
    end += goes_on_[end] != 0 ? 2 : 1;
  } while (end < slices_.size() && bytes + unit(end) <= kWriteBytes);
  *message = grpc::ByteBuffer(&slices_[first_], end - first_);
  for (; first_ < end; ++first_) slices_[first_] = grpc::Slice();
  drop_taken();
  return true;
}

void FrameQueue::drop_taken() noexcept {
  if (first_ == slices_.size()) {
    slices_.clear();
    goes_on_.clear();
    first_ = 0;
  } else if (first_ >= 1024) {
    slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(first_));
    goes_on_.erase(goes_on_.begin(), goes_on_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

std::size_t FrameQueue::drain(std::byte* to, std::size_t room) noexcept {
  const std::scoped_lock lock(mutex_);
  std::size_t bytes = 0;
  if (tail_.size() > room) seal();
  while (first_ < slices_.size() && bytes < room) {
    const grpc::Slice& slice = slices_[first_];
    if (drained_ == 0 && bytes != 0 && slice.size() > room - bytes) return bytes;
    const std::size_t some = std::min(room - bytes, slice.size() - drained_);
    std::memcpy(to + bytes, slice.begin() + drained_, some);
    bytes += some;
    drained_ += some;
    if (drained_ < slice.size()) return bytes;
    slices_[first_++] = grpc::Slice();
    drained_ = 0;
  }
  drop_taken();
  if (!slices_.empty() || tail_.size() > room - bytes) return bytes;
  if (!tail_.empty()) std::memcpy(to + bytes, tail_.data(), tail_.size());
  bytes += tail_.size();
  tail_.clear();
  return bytes;
}

void FrameQueue::begin_direct(std::byte* to, std::size_t room) noexcept {
  const std::scoped_lock lock(mutex_);
  direct_ = to;
  direct_room_ = room;
  direct_bytes_ = 0;
}

std::size_t FrameQueue::end_direct() noexcept {
  const std::scoped_lock lock(mutex_);
  direct_ = nullptr;
  return direct_bytes_;
}

bool FrameQueue::empty() const noexcept {
  const std::scoped_lock lock(mutex_);
  return first_ == slices_.size() && tail_.empty();
}

void FrameQueue::clear() noexcept {
  const std::scoped_lock lock(mutex_);
  slices_.clear();
  goes_on_.clear();
  first_ = 0;
  drained_ = 0;
  tail_.clear();
}

}  // namespace dist::grpc_link
