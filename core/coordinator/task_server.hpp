// SPDX-License-Identifier: Apache-2.0
// TaskServer: a task of the cluster that a coordinator gives work to (TensorFlow: tf.distribute.Server): a parameter server,
// or a worker that runs closures. It serves from start() on and ends when its coordinator says so, or is gone for a lease.
//
// What the coordinator calls, besides the methods of ParameterService; each message is a tuple (core/ps/numbers.hpp):
//
//     dist.hello       epoch, index; the job, the parameter servers' addresses       nothing
//     dist.watch       epoch                                                         no answer, until the server ends
//     dist.closure     epoch, id, mark; a function's name, its arguments, new entries of the directory or nothing
//                                      its status, a lost parameter server or -1, entries known; its error's text, its result
//     dist.per_worker  the same, of which the result stays here: id is its number, and the name of it lies before the function's
//     dist.cancel      epoch: closures that run are to end                           nothing
//     dist.end         epoch: the server ends                                        nothing
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
#include "core/coordinator/closure.hpp"
#include "core/engine/grpc_calls.hpp"
#include "core/ps/parameter_service.hpp"
#include "core/rpc/call_threads.hpp"
#include "core/trace/spans.hpp"

namespace dist {

inline constexpr char kPsJob[] = "ps";
inline constexpr char kWorkerJob[] = "worker";
// Of a server that takes whatever part a coordinator has for it.
inline constexpr char kLocalJob[] = "local";

// Of a server's or a coordinator's messages; 0: kDefaultMessageBytes.
Status check_message_bytes(int64_t bytes) noexcept;

struct TaskServerOptions {
  const char* job = kLocalJob;
  int32_t index = 0;
  const char* address = nullptr;       // the task's; port 0: the system chooses
  const char* bind_address = nullptr;  // where it listens; NULL: as the environment says, else at the address
  int32_t num_threads = 0;             // closures that run at a time; 0: 1
  int64_t start_timeout_ns =
      0;  // how long it waits for a coordinator that has not come; 0: 600 s; < 0: no limit
  int64_t message_bytes = 0;  // most of one message; 0: kDefaultMessageBytes
};

class TaskServer final : public Counted, private CallHandler, private CallThreads::Worker {
 public:
  static constexpr int64_t kDefaultStartNs = 600'000'000'000;
  static constexpr int64_t kDefaultMessageBytes = int64_t{1} << 30;
  static constexpr int32_t kMostThreads = 1024;

  static Status create(Memory& memory, const TaskServerOptions& options, Ref<TaskServer>* out);
  TaskServer(Memory& memory, const TaskServerOptions& options);

  // Before start(). Not OK: the function's `end` is not called.
  Status add_closure(const char* name, const ClosureFunction& function);
  Status add_update(const char* name, const UpdateFunction& function);
  Status start();
  // "grpc://host:port", with the port that the system has chosen once it has.
  const char* target() const noexcept { return target_.c_str(); }
  // Waits for its end. OK: its coordinator, or end(), has said so. UNAVAILABLE: the coordinator is gone for a lease.
  // DEADLINE_EXCEEDED: none has come, or not within `timeout_ns` (< 0: no limit), and the server goes on.
  Status join(int64_t timeout_ns, Cancel* cancel);
  // The latest calls, of a parameter server on one row, and closures and what they ask of parameter servers, on a row for each
  // thread. From any thread.
  SpanTrace trace();
  // From any thread: join() returns.
  void end() noexcept;
  // Ends it for good. FAILED_PRECONDITION inside one of its functions.
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
  // Not inside one of its functions, whose end would be waited for.
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
  Ref<IncomingCall> watch_;            // the coordinator's, who is there while this is
  int64_t epoch_ = 0;                  // 0: no coordinator has come
  int64_t part_ = SpanTrace::kNobody;  // that the coordinator has given it, as the number of a process
  int64_t alone_since_ns_ = 0;
  End end_ = End::kNot;
};

}  // namespace dist
