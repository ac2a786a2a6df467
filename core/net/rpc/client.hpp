// SPDX-License-Identifier: Apache-2.0
// RpcClient: calls methods of a server. RpcCall: the pending result of a call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/grpc_calls.hpp"
#include "core/net/rpc/remote_value.hpp"
#include "core/value/value.hpp"

namespace dist {

// Is notified when a call has been answered. It must outlive the call.
class RpcObserver {
 public:
  // Called at most once, and not after the last reference to the call has been released. It may be called on
  // any thread and under a lock of the client, so it must not call the client.
  virtual void answered() noexcept = 0;

 protected:
  ~RpcObserver() = default;
};

struct RpcCallOptions {
  int64_t timeout_ns = 0;  // 0: that of the client; < 0: no limit
  Cancel* cancel = nullptr;
  RpcObserver* observer = nullptr;  // may be NULL
};

class RpcClient final : public Counted {
 public:
  static constexpr int64_t kDefaultTimeoutNs = int64_t{600} * 1'000'000'000;

  // The server need not be running yet. `timeout_ns` applies to calls without a timeout of their own; 0:
  // kDefaultTimeoutNs; < 0: no limit. `calls`: the network, which clients can share.
  static Status create(Memory& memory, const Ref<GrpcCalls>& calls, const char* address, int64_t timeout_ns,
                       Ref<RpcClient>* out);
  RpcClient(Memory& memory, const char* address, int64_t timeout_ns);

  const char* address() const noexcept { return address_.c_str(); }
  // Starts a call without waiting. `arguments` may be NULL.
  Status begin(std::string_view method, Value* arguments, const RpcCallOptions& options,
               Ref<RemoteValue>* out);
  // Why the server could not be reached so far; "" if it was reached, or if no attempt was made.
  void why_not(char* text, std::size_t size) const noexcept { channel_->why_not(text, size); }
  int64_t lease_ns() const noexcept { return calls_->lease_ns(); }
  // Total bytes of the requests sent, and of the answers received.
  uint64_t bytes_sent() const noexcept { return bytes_sent_.load(std::memory_order_relaxed); }
  uint64_t bytes_received() const noexcept { return bytes_received_.load(std::memory_order_relaxed); }
  // Fails all unanswered calls with CANCELLED.
  void end() noexcept { channel_->end(); }

 private:
  friend class RpcCall;
  ~RpcClient() override;

  const std::pmr::string address_;
  const int64_t timeout_ns_;
  Ref<GrpcCalls> calls_;
  CallChannel* channel_ = nullptr;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
};

// A call and its pending result.
class RpcCall final : public RemoteValue, private OutgoingCall, private Cancel::Link {
 public:
  RpcCall(Memory& memory, RpcClient& client, std::string_view method, const RpcCallOptions& options,
          int64_t until_ns);

  void cancel(const char* reason) noexcept override;

 private:
  friend class RpcClient;
  ~RpcCall() override;
  void answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept override;
  void cancelled(const char* reason) noexcept override { cancel(reason); }
  void describe(char* text, std::size_t size) const noexcept override;
  Status read(ValueRef* out) override;
  void expire() noexcept override;

  const Ref<RpcClient> client_;
  const std::pmr::string method_;
  const Ref<Cancel> cancel_;
  RpcObserver* const observer_;
  bool linked_ = false;  // to cancel_
  Ref<CallMessage> message_;
};

}  // namespace dist
