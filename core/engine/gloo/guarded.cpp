// SPDX-License-Identifier: Apache-2.0
#include "core/engine/gloo/guarded.hpp"

#include <gloo/common/error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <span>
#include <utility>

#include "core/base/os/file.hpp"
#include "core/base/os/quiet_writes.hpp"
#include "core/base/os/socket.hpp"
#include "core/base/os/thread.hpp"

namespace dist::grpc_link {
namespace {

// The slot number of messages that the users move themselves. No buffer has it.
constexpr std::size_t kApartSlot = 1000;

bool is_apart(gloo::transport::tcp::Op& op) noexcept {
  return op.getOpcode() == gloo::transport::tcp::Op::SEND_BUFFER && op.preamble.slot == kApartSlot;
}

class GuardedPair final : public gloo::transport::tcp::Pair {
 public:
  GuardedPair(gloo::transport::tcp::Context* context, gloo::transport::tcp::Device* device, int rank,
              std::chrono::milliseconds timeout, std::chrono::milliseconds unacknowledged,
              ConnectionUser* user)
      : Pair(context, device, rank, timeout), unacknowledged_(unacknowledged), user_(user) {}
  void give_up() noexcept { given_up_ = true; }
  // Ends the connection while this class still guards it. Gloo's thread may have closed it, and may still be
  // inside.
  void stop() noexcept {
    const std::scoped_lock nobody_is(inside_);
    user_ = nullptr;
    stopped_ = true;
    const std::scoped_lock lock(m_);
    if (state_ != CLOSED) changeState(CLOSED);
  }
  bool stopped() const noexcept { return stopped_; }
  void send_apart(const Piece& piece) {
    gloo::transport::tcp::Op op;
    op.preamble.opcode = gloo::transport::tcp::Op::SEND_BUFFER;
    op.preamble.slot = kApartSlot;
    op.preamble.offset = piece.offset;
    op.preamble.length = piece.bytes + 1;
    op.preamble.roffset = piece.id;
    op.preamble.nbytes = sizeof op.preamble + op.preamble.length;
    Pair::send(op);
  }

  // On Gloo's thread, like the base class. A thread that holds a lock may wait for this thread, so this
  // thread must not wait for locks.
  void handleEvents(int events) override {
    const std::unique_lock here(inside_, std::try_to_lock);
    if (!here) return yield_this_thread();
    {
      const std::unique_lock lock(m_, std::try_to_lock);
      if (!lock) return await_write();
      try {
        handle(events);
      } catch (...) {
        fail(std::current_exception());
      }
    }
    if (user_ != nullptr) user_->came();
  }

 protected:
  bool write(gloo::transport::tcp::Op& op) override {
    writing_ = true;
    const bool done = is_apart(op) ? write_apart(op) : write_quietly(op);
    no_longer_writes();
    return done;
  }
  bool read() override {
    if (!comes_apart()) {
      if (Pair::read()) {
        if (user_ != nullptr) user_->one_came();
        return true;
      }
      // Gloo knows no buffer for a piece.
      if (!comes_apart()) return false;
    }
    return read_apart();
  }
  void waitUntilConnected(std::unique_lock<std::mutex>& lock, bool) override {
    constexpr std::chrono::milliseconds kLook{10};
    const auto end = std::chrono::steady_clock::now() + timeout_;
    while (throwIfException(), state_ < CONNECTED) {
      if (given_up_) throw gloo::IoException("given up");
      if (std::chrono::steady_clock::now() >= end) throw gloo::IoException("no connection in time");
      cv_.wait_for(lock, kLook);
    }
  }
  void changeState(state next) noexcept override {
    no_longer_writes();  // otherwise waits for Gloo's thread
    Pair::changeState(next);
    if (next == CONNECTED && unacknowledged_.count() > 0) {
      limit_unacknowledged(fd_, static_cast<unsigned>(unacknowledged_.count()));
    }
    if (next == CLOSED && user_ != nullptr) user_->closed();
  }

 private:
  bool write_quietly(gloo::transport::tcp::Op& op) {
    const QuietWrites quiet;
    return Pair::write(op);
  }
  bool write_apart(gloo::transport::tcp::Op& op) {
    // Gloo continues to use a connection that has just failed.
    if (state_ != CONNECTED || user_ == nullptr) return false;
    while (op.nwritten < op.preamble.nbytes) {
      std::span<const std::byte> before = std::as_bytes(std::span(&op.preamble, 1));
      before = before.subspan(std::min(op.nwritten, before.size()));
      const std::ptrdiff_t went = user_->send_apart(fd_, before);
      if (went < 0) signalException("the connection is gone");
      if (went <= 0) return false;
      op.nwritten += static_cast<std::size_t>(went);
    }
    return true;
  }
  bool comes_apart() noexcept { return rx_.nread >= sizeof rx_.preamble && is_apart(rx_); }
  bool read_apart() {
    if (state_ != CONNECTED || user_ == nullptr) return false;
    const Piece piece{rx_.preamble.roffset, rx_.preamble.offset, rx_.preamble.length - 1};
    const auto refused = [&] {
      signalException("the connection is gone, or breaks the protocol");
      return false;
    };
    if (!begun_ && (piece.bytes > Piece::kMostBytes || !user_->begin_apart(piece))) return refused();
    begun_ = true;
    const std::size_t all = sizeof rx_.preamble + rx_.preamble.length;
    while (rx_.nread < all) {
      const std::ptrdiff_t came = user_->receive_apart(fd_, all - rx_.nread);
      if (came < 0) return refused();
      if (came == 0) return false;
      rx_.nread += static_cast<std::size_t>(came);
    }
    rx_ = gloo::transport::tcp::Op();
    begun_ = false;
    return true;
  }
  // Waits for a write, which takes a while, instead of spinning: epoll would report the socket as readable
  // again and again.
  void await_write() noexcept {
    if (!writing_) return yield_this_thread();
    writing_.wait(true);
  }
  void no_longer_writes() noexcept {
    if (writing_.exchange(false)) writing_.notify_all();
  }
  void handle(int events) {
    switch (state_) {
      case LISTENING: handleListening(); break;
      case CONNECTING: handleConnecting(); break;
      case CONNECTED: return handleReadWrite(events);
      default: return;
    }
    // Gloo sets the socket's send buffer to the size of the largest message so far. The rest of a message
    // then waits for the acknowledgement of its first part, which the system delays by 40 ms. The system
    // chooses a better size itself.
    sendBufferSize_ = std::numeric_limits<std::size_t>::max();
  }
  void fail(const std::exception_ptr& why) noexcept {
    if (state_ == CLOSED) return;
    try {
      // A connection that has just been accepted is not registered yet, but Gloo's cleanup relies on that.
      if (fd_ >= 0) device_->registerDescriptor(fd_, EPOLLIN, this);
    } catch (...) {
      const Descriptor closes(std::exchange(fd_, -1));
    }
    try {
      signalException(why);
    } catch (...) {
      // Some waiting operations have not been notified; they run into their deadlines.
      if (state_ != CLOSED) changeState(CLOSED);
    }
  }

  std::mutex inside_;  // held by Gloo's thread
  std::atomic<bool> given_up_{false};
  std::atomic<bool> writing_{false};  // a thread is writing, under the lock
  const std::chrono::milliseconds unacknowledged_;
  ConnectionUser* user_;
  bool begun_ = false;  // receiving a piece
  bool stopped_ = false;
};

}  // namespace

GuardedDevice::GuardedDevice(const std::string& host) {
  namespace tcp = gloo::transport::tcp;
  device_ = std::static_pointer_cast<tcp::Device>(tcp::CreateDevice(tcp::attr(host.c_str())));
}

// Events that were fetched before the first turn have been handled by the second.
void GuardedDevice::await_turn() noexcept {
  try {
    for (int i = 0; i < 2; ++i) turns_.await_next(*device_, [] {});
  } catch (...) {
    // Registering something again allocates nothing.
  }
}

void GuardedDevice::run(const std::function<void()>& job) {
  std::exception_ptr thrown;
  turns_.await_next(*device_, [&] {
    try {
      job();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void GuardedDevice::Turns::handleEvents(int) {
  const std::scoped_lock lock(mutex_);
  for (const std::function<void()>* const each : jobs_) (*each)();
  jobs_.clear();
  ++count_;
  turned_.notify_all();
}

void GuardedDevice::Turns::await_next(gloo::transport::tcp::Device& device,
                                      const std::function<void()>& job) {
  std::unique_lock lock(mutex_);
  const uint64_t before = count_;
  device.registerDescriptor(readable.number(), EPOLLIN | EPOLLONESHOT, this);
  jobs_.push_back(&job);
  turned_.wait(lock, [&] { return count_ != before; });
}

std::unique_ptr<gloo::transport::Pair>& GuardedContext::createPair(int other) {
  auto& pair = pairs_[static_cast<std::size_t>(other)];
  // Gloo's constructor already listens. On this thread, nobody can connect before the whole object exists.
  device_->run([&] {
    pair = std::make_unique<GuardedPair>(this, device_->get().get(), other, getTimeout(), unacknowledged_,
                                         user_);
  });
  return pair;
}

// All connections are GuardedPairs.
void GuardedContext::send_apart(const Piece& piece) {
  static_cast<GuardedPair&>(connection()).send_apart(piece);
}
void GuardedContext::give_up() noexcept { static_cast<GuardedPair&>(connection()).give_up(); }
void GuardedContext::stop() noexcept {
  auto* const pair = static_cast<GuardedPair*>(pairs_[static_cast<std::size_t>(1 - rank)].get());
  if (pair == nullptr || pair->stopped()) return;
  pair->stop();
  device_->await_turn();
}

}  // namespace dist::grpc_link
