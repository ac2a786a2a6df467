// SPDX-License-Identifier: Apache-2.0
// Coordinator: gives closures to workers, and keeps variables on parameter servers (TensorFlow: ClusterCoordinator with a
// ParameterServerStrategy). A thread of its own speaks with the servers; the host's threads schedule and wait, and read and
// change variables themselves.
//
// A worker that is lost gives its closures back, and has work again when it returns. A parameter server that is lost ends the
// job: everything is ABORTED from then on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory_resource>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/coordinator/closure_queue.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/pushes.hpp"
#include "core/ps/remote_variables.hpp"
#include "core/rpc/client.hpp"
#include "core/rpc/remote_value.hpp"
#include "core/trace/spans.hpp"
#include "core/value/value.hpp"

namespace dist {

// Into how many parts each dimension of a variable is divided.
struct PartitionFunction {
  dist_status (*function)(const dist_tensor* spec, int64_t* out_partitions, void* host) = nullptr;
  void* host = nullptr;
};

struct CoordinatorOptions {
  int32_t max_queued = 0;           // closures that have no end; 0: kDefaultQueued
  int32_t closures_per_worker = 0;  // at a time; 0: 1
  int32_t max_losses = 0;           // workers that one closure may be lost with; 0: kDefaultLosses
  int64_t timeout_ns = 0;  // longest wait of a call that has no time-out of its own; 0: 600 s; < 0: no limit
  int64_t message_bytes = 0;      // most of one message; 0: kDefaultMessageBytes
  PartitionFunction partitioner;  // of variables that do not say it; none: whole
};

struct RemoteVariableOptions {
  int32_t max_staleness = 0;
  std::span<const int64_t> partitions;  // none: as the partitioner says
  const char* colocate_with = nullptr;  // another one's name: its parts lie with those of that one
};

// What it does, in numbers.
struct CoordinatorNumbers {
  int32_t num_ps = 0;
  int32_t num_workers = 0;
  int32_t workers_up = 0;
  int64_t queued = 0;
  int64_t in_flight = 0;
  int64_t scheduled = 0;
  int64_t completed = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t losses = 0;  // of closures with their workers
  int64_t mark = 0;    // all closures below have an end
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
};

class Coordinator final : public Counted {
 public:
  static constexpr int32_t kDefaultQueued = 262'144;
  static constexpr int32_t kMostQueued = 1 << 22;
  static constexpr int32_t kMostPerWorker = 1024;
  static constexpr int32_t kDefaultLosses = 16;
  static constexpr int32_t kMostServers = 4096;

  // Waits for nobody. INVALID_ARGUMENT: the cluster has no worker, or no ps.
  static Status create(Memory& memory, const ClusterSpec& cluster, const CoordinatorOptions& options,
                       Ref<Coordinator>* out);
  Coordinator(Memory& memory, const CoordinatorOptions& options, int num_ps, int num_workers, int64_t epoch);

  // Tells the servers to end, and ends itself: what waits is CANCELLED, and calls of the host's that are inside have returned.
  // Again is the same as once.
  void end() noexcept;

  // A call of the host's, while it is inside.
  class Use {
   public:
    explicit Use(Coordinator& coordinator) noexcept;
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Coordinator& coordinator_;
  };

  // ---- variables.cpp: the variables ----
  Status create_variable(const char* name, const dist_tensor& initial, const RemoteVariableOptions& options);
  Status find(const char* name, const RemoteVariable** out) const noexcept {
    return directory_.find(name, out);
  }
  std::size_t num_variables() const noexcept { return directory_.size(); }
  const RemoteVariable& variable(std::size_t index) const noexcept { return directory_.at(index); }
  // "/job:ps/replica:0/task:1/device:CPU:0"
  const char* device(int32_t ps) const noexcept { return devices_[static_cast<std::size_t>(ps)].c_str(); }
  Status read(std::span<const char* const> names, std::span<ValueRef> out);
  Status rows(const char* name, Value& indices, ValueRef* out);
  Status assign(const char* name, int32_t how, Value& value);
  Status scatter(const char* name, int32_t how, Value& slices);
  Status update(const char* function, std::span<const char* const> names, Value* arguments);
  // saving.cpp: variables, and which closures each server has applied, in a checkpoint; while closures run, too.
  Status save(const char* path);
  // The same back, before the first closure of this coordinator, whose numbers go on from the mark that was saved.
  Status restore(const char* path);

  // ---- coordinator.cpp: closures, as the host sees them. timeout_ns 0: the coordinator's ----
  // Waits while there is no place. An error that an earlier closure had comes out here, in join() or in done(), once.
  Status schedule(const char* function, Value* arguments, int64_t timeout_ns, Cancel* cancel,
                  Ref<RemoteValue>* out);
  Status join(int64_t timeout_ns, Cancel* cancel);
  Status done(bool* out);
  // Runs a function on every worker, and on each that returns, and keeps there what it gives.
  Status create_per_worker(const char* name, const char* function, Value* arguments);

  CoordinatorNumbers numbers() const noexcept;
  // The latest closures that have ended, from when each was sent: a row for each worker.
  SpanTrace trace() const;

 private:
  friend class ClosureResult;
  class Link;
  class Await;
  class Snapshot;
  struct Server;
  struct Flight;
  struct PerWorker;

  ~Coordinator() override;

  Status start(const ClusterSpec& cluster);
  Status add_server(const ClusterSpec& cluster, const char* job, int index);

  // ---- The host's threads ----
  template <class Ready>
  Status await(std::unique_lock<std::mutex>& lock, Await& await, const char* what, const Ready& ready);
  Status check_use() noexcept;
  Status take_error() noexcept;
  // Until all parameter servers are there.
  Status await_servers();
  // What needs the lock under which a partitioner is called.
  Status check_not_dividing(const char* what) const noexcept;
  Status place(RemoteVariable* variable, const RemoteVariableOptions& options);
  Status find_all(std::span<const char* const> names, RemoteVariables::List* out);
  template <class Push>
  Status change(std::span<const char* const> names, const Push& push);
  Status commit(const Pushes& pushes);
  RemoteWait patience() const noexcept { return {timeout_ns_, ended_.get()}; }
  void cancel(int64_t id, const char* reason) noexcept;
  void describe_absent(char* text, std::size_t size) const noexcept;

  // ---- exchange.cpp: the thread that speaks with servers ----
  static void* exchange_main(void* self);
  void exchange() noexcept;
  void signal() noexcept;
  Link* next_event() noexcept;
  void forget(Link& link) noexcept;
  void look(int64_t now);
  void say_hello(Server& server);
  void heard_hello(Server& server);
  void heard_watch(Server& server);
  void prepare(Server& server);
  void heard_prepared(Server& server);
  void heard_closure(Flight& flight);
  void lost(Server& server, const char* why);
  // flights.cpp: what it does with closures.
  void send(int64_t id, Server& server);
  void give_back(Flight& flight, const char* why) noexcept;
  void settle(Flight& flight, dist_status status, const char* text, ValueRef value) noexcept;
  void fail_closure(Flight& flight, dist_status status, const char* text) noexcept;
  void cancel_rest() noexcept;
  void keep_error(dist_status status, const char* text) noexcept;
  void end_all(dist_status status, const char* text) noexcept;
  void say_end() noexcept;

  const int64_t timeout_ns_;
  const std::size_t max_queued_;
  const PartitionFunction partitioner_;
  const std::size_t message_bytes_;
  const int num_ps_;
  const int num_workers_;
  const int64_t epoch_;
  const Ref<Cancel> ended_;  // ends what the host's threads have asked parameter servers
  Ref<GrpcCalls> calls_;
  Directory directory_;
  RemoteVariables variables_;
  std::pmr::vector<std::pmr::string> devices_;
  std::mutex creating_;                  // variables are created one after another
  std::pmr::vector<int64_t> num_parts_;  // that each parameter server has
  int64_t next_ps_ = 0;                  // which one gets the next part

  Thread thread_;
  std::atomic<uint32_t> signal_{0};  // changes where the thread has something to look at
  std::atomic<bool> asleep_{false};
  std::mutex events_mutex_;  // the last in the order of locks; under it nothing is called
  Link* first_event_ = nullptr;
  Link* last_event_ = nullptr;

  mutable std::mutex mutex_;         // of all that follows
  std::condition_variable changed_;  // for those that wait
  std::pmr::deque<Server> servers_;  // parameter servers, then workers
  ClosureQueue queue_;
  std::pmr::map<int64_t, Flight> flights_;      // closures that have no end
  bool all_ps_up_ = false;                      // for good: one that is lost ends the job
  std::pmr::deque<PerWorker> per_worker_;       // in the order in which they are made
  bool more_per_worker_ = false;                // than workers have been told of
  std::pmr::vector<Ref<RemoteValue>> cancels_;  // that have been asked for, until they are answered
  std::pmr::vector<Ref<Counted>> trash_;        // what may call the host when it goes: not under the lock
  ErrorRecord error_;                           // of a closure, until somebody takes it; OK: none
  ErrorRecord fatal_;  // a parameter server is lost, or the coordinator has ended; OK: neither
  bool stopping_ = false;
  int num_uses_ = 0;
  int64_t next_retry_ns_ = INT64_MAX;
  CoordinatorNumbers counts_;
  SpanLog spans_;
};

}  // namespace dist
