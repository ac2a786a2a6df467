// SPDX-License-Identifier: Apache-2.0
// RpcServer: methods that other processes call. They run on threads of the server's, several at a time, in the order in
// which their calls have come.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <string>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/grpc_calls.hpp"
#include "core/rpc/call_threads.hpp"
#include "core/value/value.hpp"

namespace dist {

// What a method knows of a call.
struct RpcContext {
  const char* method;
  Cancel* cancel;      // signalled when nobody waits for the result any more
  int64_t timeout_ns;  // how long the client waits in all; 0: not said
};

// A method: its result in *out_value, a reference that is handed over, or NULL for nothing.
struct RpcMethod {
  dist_status (*function)(const RpcContext& context, Value* arguments, Value** out_value,
                          void* host) = nullptr;
  void* host = nullptr;
  void (*end)(void* host) = nullptr;  // when the method is no more; may be NULL
};

struct RpcServerOptions {
  const char* address = nullptr;  // "host:port"; port 0: the system chooses
  int32_t num_threads = 0;        // 0: kDefaultThreads
  int32_t max_queued = 0;         // calls that wait for a thread; 0: kDefaultQueued
};

class RpcServer final : public Counted, private CallHandler, private CallThreads::Worker {
 public:
  static constexpr int32_t kDefaultThreads = 4;
  static constexpr int32_t kMostThreads = 1024;
  static constexpr int32_t kDefaultQueued = 1024;
  static constexpr int32_t kMostQueued = 1 << 20;
  // What a client asks for to hear which methods there are. No method of a host's has it.
  static constexpr char kMethods[] = "dist.methods";

  static Status create(Memory& memory, const RpcServerOptions& options, Ref<RpcServer>* out);
  RpcServer(Memory& memory, const RpcServerOptions& options);

  // Before start(). Not OK: the method's `end` is not called.
  Status add(const char* name, const RpcMethod& method);
  // Listens from here on.
  Status start();
  // "host:port", with the port that the system has chosen once it has; valid as long as the server.
  const char* address() const noexcept { return address_.c_str(); }
  // Refuses what comes, cancels what is there, and waits for methods that run. Again is the same as once.
  // FAILED_PRECONDITION inside a method.
  Status stop(const char* call) noexcept;

 private:
  using Methods = std::pmr::map<std::pmr::string, RpcMethod, std::less<>>;

  ~RpcServer() override;
  void called(Ref<IncomingCall> call) noexcept override { threads_.add(std::move(call)); }
  void given_up(IncomingCall& call) noexcept override { threads_.given_up(call); }
  void run(IncomingCall& call, Cancel& cancel) noexcept override;
  Status list(ValueRef* out);

  std::pmr::string address_;
  const std::size_t num_threads_;
  Methods methods_;
  bool started_ = false;
  Ref<GrpcCalls> calls_;
  CallThreads threads_;
};

}  // namespace dist
