// SPDX-License-Identifier: Apache-2.0
#include "core/net/mpi/connection.hpp"

#include <algorithm>
#include <cstring>

namespace dist::mpi_link {
namespace {

constexpr int64_t kWindow = int64_t{1} << 20;
// Besides its data, each frame uses this much of the window, so that the number of small frames is limited,
// too.
constexpr int64_t kCost = 128;
// Only the last frame of a write may be smaller than this.
constexpr int64_t kLeast = int64_t{32} << 10;
// The receiver returns credit in portions of this size. The remaining window is always enough for kLeast.
constexpr int64_t kPortion = kWindow / 4;

// Reads or writes consecutive bytes of blocks.
class Blocks {
 public:
  Blocks(const dist_link_block* blocks, std::size_t n) noexcept : blocks_(blocks), n_(n) {
    for (std::size_t i = 0; i < n; ++i) left_ += blocks[i].size_bytes;
  }
  std::size_t left() const noexcept { return left_; }
  // `copy` receives an address in the blocks, an offset in `bytes`, and a size.
  template <class Copy>
  void move(std::size_t bytes, const Copy& copy) noexcept {
    left_ -= bytes;
    for (std::size_t done = 0; done < bytes && n_ > 0;) {
      const std::size_t some = std::min(bytes - done, blocks_->size_bytes - at_);
      if (some > 0) copy(static_cast<std::byte*>(blocks_->data) + at_, done, some);
      done += some;
      at_ += some;
      if (at_ < blocks_->size_bytes) continue;
      ++blocks_;
      --n_;
      at_ = 0;
    }
  }

 private:
  const dist_link_block* blocks_;
  std::size_t n_;
  std::size_t at_ = 0;
  std::size_t left_ = 0;
};

}  // namespace

Connection::Connection(Module& module, dist_link* link)
    : job_(module.job),
      callbacks_(module.callbacks),
      link_(link),
      number_(job_.add(*this)),
      may_send_(kWindow) {}

Connection::~Connection() {
  cut();
  job_.remove(number_, *this, [&] { return !started_ || ended_; });
}

void Connection::connect(const void* address, std::size_t bytes) noexcept {
  job_.post_after(*this, [&] {
    started_ = true;
    good_ = bytes == sizeof given_;
    if (good_) std::memcpy(&given_, address, bytes);
  });
}

void Connection::cut() noexcept {
  if (!cut_.exchange(true)) job_.post(*this);
}

FrameRef Connection::frame_for(Kind kind, std::size_t bytes) const noexcept {
  FrameRef frame = make_frame(bytes);
  if (frame != nullptr) frame->head = {peer_number_, number_, 0, kind};
  return frame;
}

std::ptrdiff_t Connection::write(const dist_link_block* blocks, std::size_t n) noexcept {
  if (cut_ || broken_) return -1;
  if (!open_) return 0;
  Blocks from(blocks, n);
  std::ptrdiff_t moved = 0;
  while (from.left() > 0) {
    const auto left = static_cast<int64_t>(from.left());
    const int64_t some = std::min({left, static_cast<int64_t>(kMostData), may_send_ - kCost});
    if (some < std::min(left, kLeast) || !job_.room(*this)) break;
    const auto bytes = static_cast<std::size_t>(some);
    FrameRef frame = frame_for(Kind::kData, bytes);
    if (frame == nullptr) return -1;
    from.move(bytes, [&](const std::byte* data, std::size_t at, std::size_t size) {
      std::memcpy(frame->data() + at, data, size);
    });
    may_send_ -= some + kCost;
    job_.send(rank_, std::move(frame));
    moved += some;
  }
  return moved;
}

std::ptrdiff_t Connection::read(const dist_link_block* blocks, std::size_t n) noexcept {
  Blocks to(blocks, n);
  std::ptrdiff_t moved = 0;
  bool last = false;
  while (to.left() > 0 && next_frame(&last)) {
    const std::size_t some = std::min(to.left(), frame_->bytes - at_);
    to.move(some, [&](std::byte* data, std::size_t at, std::size_t size) {
      std::memcpy(data, frame_->data() + at_ + at, size);
    });
    at_ += some;
    moved += static_cast<std::ptrdiff_t>(some);
    if (at_ < frame_->bytes) continue;
    taken_ += static_cast<int64_t>(frame_->bytes) + kCost;
    frame_ = nullptr;
  }
  if (taken_ >= kPortion && open_) {
    FrameRef credit = frame_for(Kind::kCredit, 0);
    if (credit != nullptr) {
      credit->head.value = static_cast<uint64_t>(std::exchange(taken_, 0));
      job_.send(rank_, std::move(credit));
    }
  }
  return moved == 0 && (last || cut_ || broken_) ? -1 : moved;
}

// Stores the next frame in frame_ if that is empty. Returns false if no frame has arrived; *out_last is then
// true if none will arrive any more.
bool Connection::next_frame(bool* out_last) noexcept {
  if (frame_ != nullptr) return true;
  const std::scoped_lock lock(arriving_);
  frame_ = arrived_.pop();
  at_ = 0;
  *out_last = frame_ == nullptr && last_;
  return frame_ != nullptr;
}

// ---- On the job's thread ----

void Connection::take(FrameRef frame) noexcept {
  const Head& head = frame->head;
  if (cut_) return;
  if (head.kind == Kind::kCredit) {
    may_send_ += static_cast<int64_t>(head.value);
    return;
  }
  const std::scoped_lock lock(arriving_);
  if (head.kind == Kind::kEnd) {
    last_ = true;
  } else {
    arrived_.push(std::move(frame));
  }
}

// Returns NULL, or the reason for which the connection ends.
const char* Connection::begin() noexcept {
  if (!good_ || given_.rank < 0 || given_.rank >= job_.size())
    return "the peer's address is not one of this module";
  if (given_.job != job_.id()) return "the peer belongs to another MPI job";
  peer_number_ = given_.number;
  rank_ = given_.rank;
  open_ = true;
  return nullptr;
}

void Connection::run() noexcept {
  struct {
    bool started, ended;
  } const now = job_.locked([&] { return decltype(now){started_, ended_}; });
  if (!now.started || now.ended) return;
  const char* why = nullptr;
  if (!cut_ && !open_) why = begin();
  if (!cut_ && why == nullptr) return callbacks_.ready(link_);
  cut_ = true;
  if (open_ && !broken_) {
    FrameRef end = frame_for(Kind::kEnd, 0);
    if (end != nullptr) job_.send(rank_, std::move(end));
  }
  callbacks_.ended(link_, why);
  job_.locked([&] { return ended_ = true; });
}

}  // namespace dist::mpi_link
