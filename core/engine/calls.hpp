// SPDX-License-Identifier: Apache-2.0
// Calls: requests from this process to a server, usually in another process, and the responses. Both are byte
// strings up to a size limit; their meaning is up to the client and the server.
//
// A channel leads to one server. It connects when the first call needs it, and if the server is not there yet
// it retries for as long as a call waits. Once part of a request has been sent, a broken connection fails the
// call, because nobody knows whether the server has executed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/message_pool.hpp"

namespace dist {

// Bytes that have come, in one block that is aligned for any element.
class alignas(64) CallMessage final : public Counted {
 public:
  static constexpr std::size_t kAlign = 64;

  // NULL: no memory. Where it is large its memory is the pool's, which may be NULL.
  static Ref<CallMessage> create(Memory& memory, std::size_t bytes, MessagePool* pool = nullptr) noexcept {
    try {
      if (pool == nullptr || bytes < MessagePool::kLeastBytes) {
        return make_counted_with_room<CallMessage>(memory, bytes, bytes);
      }
      Ref<CallMessage> made = make_counted<CallMessage>(memory, bytes);
      made->pooled_ = pool->take(bytes, &made->capacity_);
      if (made->pooled_ == nullptr) return {};
      made->pool_ = Ref<MessagePool>::share(pool);
      return made;
    } catch (const std::bad_alloc&) {
      return {};
    }
  }
  CallMessage(Memory& memory, std::size_t bytes) noexcept : Counted(memory), bytes_(bytes) {}

  std::byte* data() noexcept { return pooled_ != nullptr ? pooled_ : reinterpret_cast<std::byte*>(this + 1); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  ~CallMessage() override {
    if (pool_) pool_->give(pooled_, capacity_);
  }
  const std::size_t bytes_;
  Ref<MessagePool> pool_;
  std::byte* pooled_ = nullptr;
  std::size_t capacity_ = 0;
};

// Bytes that are sent: parts that lie anywhere, and stay as they are until the last reference is gone.
class CallParts : public Counted {
 public:
  virtual std::span<const std::span<const std::byte>> parts() const noexcept = 0;
  // Of all of them.
  virtual std::size_t bytes() const noexcept = 0;
  // Whether part `part` lies where it does until the last reference is gone, whatever becomes of who has asked for the call. If
  // not, it is copied while that one waits.
  virtual bool stays(std::size_t part) const noexcept {
    static_cast<void>(part);
    return false;
  }

 protected:
  explicit CallParts(Memory& memory) noexcept : Counted(memory) {}
  ~CallParts() override = default;
};

// A call, at who makes it.
class OutgoingCall {
 public:
  // Once, unless it has been taken back. `answer` is there where the status is OK, and `text` says why where it is not. On
  // any thread, under a lock of the channel's: nothing of the channel may be called.
  virtual void answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept = 0;

  uint64_t id = 0;  // the channel's

 protected:
  ~OutgoingCall() = default;
};

class CallChannel {
 public:
  // `timeout_ns` is for the server to know: how long the answer is waited for; 0: not said. The call stays where it is
  // until it has been answered or taken back.
  virtual void begin(OutgoingCall& call, Ref<CallParts> request, int64_t timeout_ns) noexcept = 0;
  // Afterwards it has been answered, or never will be. The server hears of it.
  virtual void take_back(OutgoingCall& call) noexcept = 0;
  // Calls that have not been answered are CANCELLED, and so is each that begins later.
  virtual void end() noexcept = 0;
  // Why the server cannot be reached so far; "": it can, or has not been tried.
  virtual void why_not(char* text, std::size_t size) const noexcept = 0;

 protected:
  ~CallChannel() = default;
};

// A call, at who serves it.
class IncomingCall : public Counted {
 public:
  CallMessage& request() const noexcept { return *request_; }
  // How long its maker waits from when it came; 0: not said.
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  // Once; on any thread. `status` is one that has a name. `answer`: where it is OK. Nobody may hear it any more.
  virtual void answer(dist_status status, const char* text, Ref<CallParts> answer) noexcept = 0;

  Ref<Counted> work;  // the handler's own

 protected:
  IncomingCall(Memory& memory, Ref<CallMessage> request, int64_t timeout_ns) noexcept
      : Counted(memory), request_(std::move(request)), timeout_ns_(timeout_ns) {}
  ~IncomingCall() override = default;

 private:
  const Ref<CallMessage> request_;
  const int64_t timeout_ns_;
};

// Who serves. Called on threads of the network's, which must not wait; for one call in this order.
class CallHandler {
 public:
  virtual void called(Ref<IncomingCall> call) noexcept = 0;
  // Its maker does not wait for the answer any more, or is gone.
  virtual void given_up(IncomingCall& call) noexcept = 0;

 protected:
  ~CallHandler() = default;
};

// What one who is called, or who calls, may keep of the others at a time. Beyond it a call is RESOURCE_EXHAUSTED.
struct CallLimits {
  std::size_t message_bytes = std::size_t{256} << 20;  // of one request or answer
  std::size_t bytes = std::size_t{1} << 30;  // of all requests of one client, or answers of one server
  std::size_t calls = 1024;                  // of one client
  std::size_t clients = 1024;
};

class CallNetwork {
 public:
  // The port that it listens on; 0: it does not.
  virtual int port() const noexcept = 0;
  // `address` has been checked. NULL: no memory.
  virtual CallChannel* open(const char* address) noexcept = 0;
  // The channel ends, and is no more: no call on it is left that could be taken back.
  virtual void close(CallChannel* channel) noexcept = 0;

 protected:
  ~CallNetwork() = default;
};

}  // namespace dist
