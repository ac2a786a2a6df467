// SPDX-License-Identifier: Apache-2.0
// TaskServer: a task of the cluster that works for a coordinator, like tf.distribute.Server: a parameter
// server, or a worker that runs closures.
//
// Invariant: it serves from start() on, and ends when its coordinator ends it or has been silent for a lease.
//
// These are the calls of the coordinator besides those of ParameterService; each message is a tuple
// (core/ps/numbers.hpp):
//
//     dist.hello       epoch, index; the job, the parameter servers' addresses       returns nothing
//     dist.watch       epoch                                                         is answered when the server ends
//     dist.closure     epoch, id, watermark; a function's name, its arguments, new entries of the directory or nothing
//                      returns its status, a lost parameter server or -1, entries known; its error's text, its result
//     dist.per_worker  like dist.closure, but the result stays here: id is its number, and its name precedes the
//                      function's
//     dist.cancel      epoch; running closures must end                              returns nothing
//     dist.end         epoch; the server must end                                    returns nothing
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/net/grpc_calls.hpp"
#include "core/net/rpc/call_threads.hpp"
#include "core/ps/closure.hpp"
#include "core/ps/parameter_service.hpp"
#include "core/trace/spans.hpp"

namespace dist {

inline constexpr char kPsJob[] = "ps";
inline constexpr char kWorkerJob[] = "worker";
// A server that accepts any job that a coordinator assigns.
inline constexpr char kLocalJob[] = "local";

// Checks the maximum message size of a server or coordinator; 0: kDefaultMessageBytes.
Status check_message_bytes(int64_t bytes) noexcept;

struct TaskServerOptions {
  const char* job = kLocalJob;
  int32_t index = 0;
  const char* address = nullptr;       // of the task; port 0: chosen by the system
  const char* bind_address = nullptr;  // where to listen; NULL: JobCallOptions::of_cluster
  int32_t num_threads = 0;             // number of closures that run at a time; 0: 1
  int64_t start_timeout_ns =
      0;  // how long it waits for the first contact of a coordinator; 0: 600 s; < 0: no limit
  int64_t message_bytes = 0;  // maximum size of a message; 0: kDefaultMessageBytes
};

class TaskServer final : public Counted, private CallHandler, private CallThreads::Worker {
 public:
  static constexpr int64_t kDefaultStartNs = 600'000'000'000;
  static constexpr int64_t kDefaultMessageBytes = int64_t{1} << 30;
  static constexpr int32_t kMostThreads = 1024;

  static Status create(Memory& memory, const TaskServerOptions& options, Ref<TaskServer>* out);
  TaskServer(Memory& memory, const TaskServerOptions& options);

  // Must be called before start(). If it fails, the function's `end` is not called.
  Status add_closure(const char* name, const ClosureFunction& function);
  Status add_update(const char* name, const UpdateFunction& function);
  Status start();
  // "grpc://host:port", with the port that the system chose.
  const char* target() const noexcept { return target_.c_str(); }
  // Waits until the server ends. OK if the coordinator or end() has ended it; UNAVAILABLE if the coordinator
  // was silent for a lease; DEADLINE_EXCEEDED if no coordinator has come, or if `timeout_ns` has expired (<
  // 0: no limit) and the server continues.
  Status join(int64_t timeout_ns, Cancel* cancel);
  // The latest calls: those of a parameter server on one row, closures and their calls to parameter servers
  // on one row per thread. Callable from any thread.
  SpanTrace trace();
  // Makes join() return. Callable from any thread.
  void end() noexcept;
  // Ends the server permanently. FAILED_PRECONDITION inside one of its functions.
  Status stop(const char* call) noexcept;

 private:
  using Closures = std::pmr::map<std::pmr::string, ClosureFunction, std::less<>>;
  enum class End { kNot, kSaid, kLost };
  class JoinEnd;

  ~TaskServer() override;
  void called(Ref<IncomingCall> call) noexcept override;
  void given_up(IncomingCall& call) noexcept override;
  void run(IncomingCall& call, Cancel& cancel) noexcept override;

  Status check_registration(const char* name, const char* what) const noexcept;
  // Fails inside one of its functions, because the call would wait for that function.
  Status check_outside(const char* call) noexcept;
  Status manage(std::string_view method, IncomingCall& call);
  Status hello(std::span<const int64_t> numbers, const Value& message);
  Status check_epoch(int64_t epoch) noexcept;
  Status run_closure(IncomingCall& call, Cancel& cancel, Ref<CallParts>* out);

  std::pmr::string job_;
  const int32_t index_;
  std::pmr::string target_;
  std::pmr::string address_;
  std::pmr::string bind_address_;
  const std::size_t num_threads_;
  const int64_t start_timeout_ns_;
  const std::size_t message_bytes_;
  int64_t lease_ns_ = 0;
  bool started_ = false;
  Closures closures_;
  SpanLog spans_;
  ParameterService service_;
  CallThreads threads_;
  Ref<GrpcCalls> calls_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Ref<WorkerJob> work_;
  Ref<IncomingCall> watch_;            // the coordinator's pending call; it is connected while this exists
  int64_t epoch_ = 0;                  // 0: no coordinator yet
  int64_t part_ = SpanTrace::kNobody;  // assigned by the coordinator, as the number of a process
  int64_t alone_since_ns_ = 0;
  End end_ = End::kNot;
};

}  // namespace dist
