// SPDX-License-Identifier: Apache-2.0
#include "core/net/gloo/guarded.hpp"

#include <gloo/common/error.h>

#include <algorithm>
#include <array>
#include <exception>

#include "core/base/os/socket.hpp"

namespace dist::gloo_link {
namespace {

using gloo::transport::tcp::Op;

// The slot number in the head of every message. No Gloo buffer uses it.
constexpr std::size_t kSlot = 1000;
constexpr std::size_t kMostParts = 3;

template <class Byte>
std::size_t bytes_of(std::span<const std::span<Byte>> parts) noexcept {
  std::size_t bytes = 0;
  for (const auto each : parts) bytes += each.size();
  return bytes;
}

// The first `most` bytes of the parts, in place.
template <class Byte>
std::span<const std::span<Byte>> cut_parts(std::array<std::span<Byte>, kMostParts + 1>& parts, std::size_t n,
                                           std::size_t most) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    parts[i] = parts[i].first(std::min(parts[i].size(), most));
    most -= parts[i].size();
  }
  return {parts.data(), n};
}

}  // namespace

// ---- Gloo's thread ----

GuardedDevice::GuardedDevice(const std::string& host) {
  namespace tcp = gloo::transport::tcp;
  device_ = std::static_pointer_cast<tcp::Device>(tcp::CreateDevice(tcp::attr(host.c_str())));
  // Only the first registration of a descriptor can fail, so it is done here.
  device_->registerDescriptor(turns_.readable.number(), EPOLLIN | EPOLLONESHOT, &turns_);
}

void GuardedDevice::post(Job& job) noexcept {
  const std::scoped_lock lock(turns_.mutex);
  if (!std::exchange(job.posted_, true)) job.next_ = std::exchange(turns_.posted, &job);
  device_->registerDescriptor(turns_.readable.number(), EPOLLIN | EPOLLONESHOT, &turns_);
}

void GuardedDevice::Turns::handleEvents(int) {
  thread.store(std::this_thread::get_id());
  std::unique_lock lock(mutex);
  while (posted != nullptr) {
    Job& job = *std::exchange(posted, posted->next_);
    job.posted_ = false;
    lock.unlock();
    job.run();
    lock.lock();
  }
  ++count;
  turned.notify_all();
}

// Waits until Gloo's thread has handled the events that it has already fetched. Gloo's own function for this
// waits for a condition variable without a predicate, so it may return too early.
void GuardedDevice::turn(std::unique_lock<std::mutex>& lock) {
  const uint64_t before = turns_.count;
  device_->registerDescriptor(turns_.readable.number(), EPOLLIN | EPOLLONESHOT, &turns_);
  turns_.turned.wait(lock, [&] { return turns_.count != before; });
}

void GuardedDevice::run(const std::function<void()>& call) {
  if (turns_.thread.load() == std::this_thread::get_id()) return call();
  struct Call final : Job {
    explicit Call(const std::function<void()>& given) : function(given) {}
    void run() noexcept override {
      try {
        function();
      } catch (...) {
        thrown = std::current_exception();
      }
      done = true;
    }
    const std::function<void()>& function;
    std::exception_ptr thrown;
    std::atomic<bool> done{false};
  } job(call);
  post(job);
  std::unique_lock lock(turns_.mutex);
  while (!job.done) turn(lock);
  // Events that were fetched before the first turn have been handled by the second.
  for (int i = 0; i < 2; ++i) turn(lock);
  if (job.thrown != nullptr) std::rethrow_exception(job.thrown);
}

// ---- Beginning and end ----

void GuardedPair::begin(const std::vector<char>& address) {
  begun_ = true;
  Pair::connect(address);
  const std::scoped_lock lock(m_);
  if (state_ == CONNECTED) device_->registerDescriptor(fd_, EPOLLIN, this);
}

void GuardedPair::end() noexcept {
  const std::scoped_lock lock(m_);
  if (state_ != CLOSED) changeState(CLOSED);
}

bool GuardedPair::ended() noexcept {
  const std::scoped_lock lock(m_);
  return state_ == CLOSED;
}

void GuardedPair::changeState(state next) noexcept {
  const bool closes = next == CLOSED && state_ != CLOSED;
  Pair::changeState(next);
  if (next == CONNECTED && unacknowledged_.count() > 0) {
    limit_unacknowledged(fd_, static_cast<unsigned>(unacknowledged_.count()));
  }
  if (closes) user_.closed();
}

void GuardedPair::fail(const std::exception_ptr& why) noexcept {
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
    if (state_ != CLOSED) changeState(CLOSED);
  }
}

// ---- Events ----

void GuardedPair::handleEvents(int events) {
  bool connected;
  {
    const std::scoped_lock lock(m_);
    try {
      handle(events);
    } catch (...) {
      fail(std::current_exception());
    }
    connected = state_ == CONNECTED && begun_;
  }
  if (!connected) return;
  user_.ready();
  if ((events & EPOLLOUT) == 0) return;
  // The socket was writable, but no write has followed.
  const std::scoped_lock lock(m_);
  if (std::exchange(writable_, false) && state_ == CONNECTED) await_room(false);
}

// Returns false if the system has no memory for the registration.
bool GuardedPair::await_room(bool awaits) noexcept {
  try {
    if (std::exchange(awaits_room_, awaits) != awaits) {
      device_->registerDescriptor(fd_, awaits ? EPOLLIN | EPOLLOUT : EPOLLIN, this);
    }
    return true;
  } catch (...) {
    return false;
  }
}

void GuardedPair::handle(int events) {
  switch (state_) {
    case LISTENING: handleListening(); break;
    case CONNECTING: handleConnecting(); break;
    case CONNECTED:
      if ((events & EPOLLOUT) != 0) writable_ = true;
      if ((events & ~EPOLLOUT) != 0) handleReadWrite((events & ~EPOLLOUT) | EPOLLIN);
      return;
    default: return;
  }
  // Data that arrive before begin() come from a stranger or too early. They stay in the socket.
  if (state_ == CONNECTED && !begun_) device_->registerDescriptor(fd_, 0, this);
}

// Whether the head of a message has arrived, and its data have not all been read.
bool GuardedPair::has_message() noexcept {
  return rx_.nread >= sizeof rx_.preamble && rx_.getOpcode() == Op::SEND_BUFFER && rx_.preamble.slot == kSlot;
}

// Stops Gloo from reading more once it has read the head of a message, because it would find no buffer for
// the data.
bool GuardedPair::read() { return !has_message() && Pair::read(); }

// ---- Data ----

std::ptrdiff_t GuardedPair::write_now(std::span<const std::span<const std::byte>> parts) noexcept {
  const std::scoped_lock lock(m_);
  if (state_ != CONNECTED) return state_ == CLOSED ? -1 : 0;
  if (going_left_ == 0) {
    going_ = Op();
    going_.preamble.opcode = Op::SEND_BUFFER;
    going_.preamble.slot = kSlot;
    going_.preamble.length = bytes_of(parts);
    going_left_ = going_.preamble.nbytes = sizeof going_.preamble + going_.preamble.length;
  }
  const std::size_t data_left = std::min(going_left_, going_.preamble.length);
  const std::size_t head_left = going_left_ - data_left;
  std::array<std::span<const std::byte>, kMostParts + 1> all;
  all[0] = std::as_bytes(std::span(&going_.preamble, 1)).last(head_left);
  std::copy(parts.begin(), parts.end(), all.begin() + 1);
  const auto given = cut_parts(all, parts.size() + 1, going_left_);
  const std::ptrdiff_t went = send_now(fd_, given);
  if (went < 0) return -1;
  const auto bytes = static_cast<std::size_t>(went);
  going_left_ -= bytes;
  writable_ = false;
  if (!await_room(bytes < bytes_of(given))) return -1;
  return static_cast<std::ptrdiff_t>(bytes - std::min(bytes, head_left));
}

std::ptrdiff_t GuardedPair::read_now(std::span<const std::span<std::byte>> parts) noexcept {
  const std::scoped_lock lock(m_);
  if (state_ != CONNECTED || !has_message()) return state_ == CLOSED ? -1 : 0;
  const std::size_t left = sizeof rx_.preamble + rx_.preamble.length - rx_.nread;
  std::array<std::span<std::byte>, kMostParts + 1> all;
  std::copy(parts.begin(), parts.end(), all.begin());
  const std::ptrdiff_t came = receive_now(fd_, cut_parts(all, parts.size(), left));
  if (came <= 0) return came;
  rx_.nread += static_cast<std::size_t>(came);
  if (static_cast<std::size_t>(came) == left) rx_ = Op();
  return came;
}

}  // namespace dist::gloo_link
