// SPDX-License-Identifier: Apache-2.0
// Calls: requests from this process to a server, usually in another process, and the responses. Both are byte
// strings up to a size limit. The client and the server define what they contain.
//
// A channel connects to one server when its first call needs the connection. If the server does not accept
// connections yet, the channel retries for as long as a call waits. Once part of a request has been sent, a
// broken connection fails the call, because the client cannot know whether the server has executed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/message_pool.hpp"

namespace dist {

// Received bytes, in one block that is aligned for any element type.
class alignas(64) CallMessage final : public Counted {
 public:
  static constexpr std::size_t kAlign = 64;

  // Returns NULL if no memory is left. Large messages take their memory from the pool, which may be NULL.
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

// Bytes to send. The parts may be anywhere and must not change until the last reference has been released.
class CallParts : public Counted {
 public:
  virtual std::span<const std::span<const std::byte>> parts() const noexcept = 0;
  // The size of all parts.
  virtual std::size_t bytes() const noexcept = 0;
  // Whether part `part` stays in place until the last reference has been released, even if the caller has
  // returned. Otherwise it is copied while the caller waits.
  virtual bool stays(std::size_t part) const noexcept {
    static_cast<void>(part);
    return false;
  }

 protected:
  explicit CallParts(Memory& memory) noexcept : Counted(memory) {}
  ~CallParts() override = default;
};

// A call, on the client.
class OutgoingCall {
 public:
  // Called once, unless the call has been taken back. If the status is OK, `answer` is the response;
  // otherwise `text` is the reason. Called on any thread, under a lock of the channel: it must not call the
  // channel.
  virtual void answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept = 0;

  uint64_t id = 0;  // assigned by the channel

 protected:
  ~OutgoingCall() = default;
};

class CallChannel {
 public:
  // `timeout_ns` tells the server how long the client waits; 0: not specified. The call must stay in place
  // until it has been answered or taken back.
  virtual void begin(OutgoingCall& call, Ref<CallParts> request, int64_t timeout_ns) noexcept = 0;
  // When this returns, either the call has been answered, or it never will be. The channel notifies the
  // server.
  virtual void take_back(OutgoingCall& call) noexcept = 0;
  // Fails all unanswered calls and all later ones with CANCELLED.
  virtual void end() noexcept = 0;
  // Why the server cannot be reached so far. Empty if it can be reached, or if the channel has not tried yet.
  virtual void why_not(char* text, std::size_t size) const noexcept = 0;
  // Whether the server has proven that it knows the secret and has rejected this client. No later attempt can
  // succeed then.
  virtual bool rejected() const noexcept = 0;

 protected:
  ~CallChannel() = default;
};

// A call, on the server.
class IncomingCall : public Counted {
 public:
  CallMessage& request() const noexcept { return *request_; }
  // How long the client waits, counted from the call's arrival; 0: not specified.
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  // Time since the last message from the client.
  virtual int64_t silent_ns() const noexcept { return 0; }
  // The IP address from which the client has connected; "" if it is not known.
  virtual const char* client_host() const noexcept { return ""; }
  // Must be called exactly once, on any thread, even if the client no longer waits. `status` must be a known
  // status. `answer` is the response if the status is OK.
  virtual void answer(dist_status status, const char* text, Ref<CallParts> answer) noexcept = 0;

  Ref<Counted> work;  // for the handler's use

 protected:
  IncomingCall(Memory& memory, Ref<CallMessage> request, int64_t timeout_ns) noexcept
      : Counted(memory), request_(std::move(request)), timeout_ns_(timeout_ns) {}
  ~IncomingCall() override = default;

 private:
  const Ref<CallMessage> request_;
  const int64_t timeout_ns_;
};

// The server's side. The network calls these functions on its own threads, so they must not wait. For one
// call they are called in this order.
class CallHandler {
 public:
  virtual void called(Ref<IncomingCall> call) noexcept = 0;
  // The client no longer waits for the response, or has disconnected.
  virtual void given_up(IncomingCall& call) noexcept = 0;
  // A process has presented a token that was made with another secret. Called on the listener's thread.
  virtual void wrong_secret() noexcept {}

 protected:
  ~CallHandler() = default;
};

// Limits on what a client or a server stores for its peers at a time. Calls beyond a limit fail with
// RESOURCE_EXHAUSTED.
struct CallLimits {
  std::size_t message_bytes = std::size_t{256} << 20;  // for one request or response
  std::size_t bytes = std::size_t{1} << 30;  // for all requests of one client, or all responses of one server
  std::size_t calls = 1024;                  // for one client
  std::size_t clients = 1024;
};

class CallNetwork {
 public:
  // The port on which the network listens; 0 if it does not listen.
  virtual int port() const noexcept = 0;
  // `address` must be valid. Returns NULL if no memory is left.
  virtual CallChannel* open(const char* address) noexcept = 0;
  // Destroys the channel. All calls on it must have been answered or taken back.
  virtual void close(CallChannel* channel) noexcept = 0;

 protected:
  ~CallNetwork() = default;
};

}  // namespace dist
