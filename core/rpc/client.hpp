// SPDX-License-Identifier: Apache-2.0
// RpcClient: who calls methods of a server. RemoteValue: what a call comes to, later.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/grpc_calls.hpp"
#include "core/value/value.hpp"

namespace dist {

class RemoteValue;

struct RpcCallOptions {
  int64_t timeout_ns = 0;  // 0: the client's; < 0: no limit
  Cancel* cancel = nullptr;
};

class RpcClient final : public Counted {
 public:
  static constexpr int64_t kDefaultTimeoutNs = int64_t{600} * 1'000'000'000;

  // The server need not be there yet. timeout_ns: of calls that have none; 0: kDefaultTimeoutNs; < 0: no limit.
  static Status create(Memory& memory, const char* address, int64_t timeout_ns, Ref<RpcClient>* out);
  RpcClient(Memory& memory, const char* address, int64_t timeout_ns);

  const char* address() const noexcept { return address_.c_str(); }
  // Calls a method, and waits for nothing. `arguments` NULL: nothing.
  Status begin(std::string_view method, Value* arguments, const RpcCallOptions& options,
               Ref<RemoteValue>* out);
  // Its calls that have no answer are CANCELLED.
  void end() noexcept { channel_->end(); }

 private:
  friend class RemoteValue;
  ~RpcClient() override;

  const std::pmr::string address_;
  const int64_t timeout_ns_;
  Ref<GrpcCalls> calls_;
  CallChannel* channel_ = nullptr;
};

// Any thread may ask for it, several at a time.
class RemoteValue final : public Counted, private OutgoingCall, private Cancel::Link {
 public:
  RemoteValue(Memory& memory, RpcClient& client, std::string_view method, Cancel* cancel, int64_t until_ns);

  // Whether it is there, or an error.
  bool ready() noexcept;
  // Waits at most so long (< 0: until the call's deadline). DEADLINE_EXCEEDED: it is not there yet, or will never be, by the
  // call's own deadline. Else what the call came to.
  Status get(int64_t timeout_ns, ValueRef* out);
  // The call ends, with CANCELLED, unless it has ended.
  void cancel(const char* reason) noexcept;

 private:
  friend class RpcClient;
  ~RemoteValue() override;
  void answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept override;
  void cancelled(const char* reason) noexcept override { cancel(reason); }
  void expire() noexcept;
  bool over() const noexcept { return over_.load(std::memory_order_acquire) != 0; }

  const Ref<RpcClient> client_;
  const std::pmr::string method_;
  const Ref<Cancel> cancel_;
  bool linked_ = false;  // with it
  const int64_t until_ns_;
  std::atomic<uint32_t> over_{0};

  // ---- What it came to ----
  std::mutex mutex_;
  dist_status status_ = DIST_OK;
  char text_[768] = "";
  Ref<CallMessage> message_;
  ValueRef value_;  // what the message says, once somebody has asked
};

}  // namespace dist
