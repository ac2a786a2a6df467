// SPDX-License-Identifier: Apache-2.0
// RpcServer: offers methods to other processes. They run on the server's own threads, several at a time, in
// order of arrival.
//
// Invariant: the set of methods does not change after start(), so running calls read it without a lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <string>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/grpc_calls.hpp"
#include "core/net/rpc/call_threads.hpp"
#include "core/value/value.hpp"

namespace dist {

// What a method learns about its call.
struct RpcContext {
  const char* method;
  Cancel* cancel;      // signalled when the client no longer waits for the result
  int64_t timeout_ns;  // how long the client waits in total; 0: unknown
};

// A method. The caller owns *out_value and must release it; NULL: no result.
struct RpcMethod {
  dist_status (*function)(const RpcContext& context, Value* arguments, Value** out_value,
                          void* host) = nullptr;
  void* host = nullptr;
  void (*end)(void* host) = nullptr;  // called when the method is removed; may be NULL
};

struct RpcServerOptions {
  const char* address = nullptr;  // "host:port"; port 0: chosen by the system
  int32_t num_threads = 0;        // 0: kDefaultThreads
  int32_t max_queued = 0;         // calls that wait for a thread; 0: kDefaultQueued
};

class RpcServer final : public Counted, private CallHandler, private CallThreads::Worker {
 public:
  static constexpr int32_t kDefaultThreads = 4;
  static constexpr int32_t kMostThreads = 1024;
  static constexpr int32_t kDefaultQueued = 1024;
  static constexpr int32_t kMostQueued = 1 << 20;
  // Clients call this to list the methods. The name is reserved.
  static constexpr char kMethods[] = "dist.methods";

  static Status create(Memory& memory, const RpcServerOptions& options, Ref<RpcServer>* out);
  RpcServer(Memory& memory, const RpcServerOptions& options);

  // Must be called before start(). If it fails, the method's `end` is not called.
  Status add(const char* name, const RpcMethod& method);
  // Starts listening.
  Status start();
  // "host:port", with the port that the system chose. Valid as long as the server exists.
  const char* address() const noexcept { return address_.c_str(); }
  // Rejects new calls, cancels existing ones, and waits for running methods. Further calls have no effect.
  // Fails with FAILED_PRECONDITION inside a method.
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
