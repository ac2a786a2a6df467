// SPDX-License-Identifier: Apache-2.0
// Frame: one message of the module between two processes of an MPI job, in memory of its own. MPI uses that
// memory until the transfer is complete, so a frame can outlive the connection that has sent it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace dist::mpi_link {

enum class Kind : uint32_t {
  kNone,    // a frame that has not arrived
  kData,    // bytes of a connection
  kCredit,  // the receiver has taken `value` bytes, so the sender may send that many more
  kEnd,     // the connection has ended
  kText,    // rank 0's text of the meeting `value`
  kAsk,     // asks whether this rank is alive; it answers with kAlive
  kAlive,
  kLeave,  // this rank waits for permission to finalize MPI
  kGo      // rank 0's decision: `value` is 1 if all ranks finalize MPI, 0 if none does
};

struct Head {
  uint64_t to = 0;    // number of the connection at the receiver
  uint64_t from = 0;  // number of the connection at the sender
  uint64_t value = 0;
  Kind kind = Kind::kNone;
  uint32_t bytes = 0;  // of data
};

struct Frame {
  std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }

  Frame* next = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
  std::size_t capacity = 0;
  std::size_t bytes = 0;  // of data
  Head head;              // followed by the data, so that both are one message
};
static_assert(offsetof(Frame, head) + sizeof(Head) == sizeof(Frame));

// The largest number of data bytes in a frame.
inline constexpr std::size_t kMostData = std::size_t{256} << 10;

struct FrameFree {
  void operator()(Frame* frame) const noexcept;
};
using FrameRef = std::unique_ptr<Frame, FrameFree>;

// Returns NULL if memory is exhausted. Large frames are kept for reuse, because obtaining fresh pages takes
// longer than copying the data.
FrameRef make_frame(std::size_t bytes) noexcept;

// A queue of frames. Adding a frame does not allocate memory.
class FrameQueue {
 public:
  FrameQueue() = default;
  ~FrameQueue() {
    while (pop() != nullptr) continue;
  }
  FrameQueue(const FrameQueue&) = delete;
  FrameQueue& operator=(const FrameQueue&) = delete;

  Frame* front() const noexcept { return first_; }
  void push(FrameRef frame) noexcept {
    Frame* const added = frame.release();
    (first_ == nullptr ? first_ : last_->next) = added;
    last_ = added;
  }
  FrameRef pop() noexcept {
    FrameRef taken(first_);
    if (taken != nullptr) first_ = std::exchange(taken->next, nullptr);
    return taken;
  }

 private:
  Frame* first_ = nullptr;
  Frame* last_ = nullptr;
};

}  // namespace dist::mpi_link
