// SPDX-License-Identifier: Apache-2.0
// Coordinator: schedules closures on workers and keeps variables on parameter servers, like TensorFlow's
// ClusterCoordinator with a ParameterServerStrategy. Its own thread communicates with the servers about
// closures; host threads schedule and wait, and access variables directly.
//
// If a worker is lost, its closures are run by others, and it gets work again when it returns. If a parameter
// server is lost, the job is over: everything fails with ABORTED from then on.
//
// Invariants:
// - Only the coordinator's thread starts and completes calls of closures.
// - No host function is called under `mutex_`. Objects that may call the host when released are put into
//   `trash_` and released outside of the lock.
// - `events_mutex_` is the innermost lock.
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
#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/net/rpc/client.hpp"
#include "core/net/rpc/remote_value.hpp"
#include "core/ps/closure_queue.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/pushes.hpp"
#include "core/ps/remote_variables.hpp"
#include "core/trace/spans.hpp"
#include "core/value/value.hpp"

namespace dist {

// A host function that decides how many parts each dimension of a variable is divided into.
struct PartitionFunction {
  dist_status (*function)(const dist_tensor* spec, int64_t* out_partitions, void* host) = nullptr;
  void* host = nullptr;
};

struct CoordinatorOptions {
  int32_t max_queued = 0;           // maximum number of unfinished closures; 0: kDefaultQueued
  int32_t closures_per_worker = 0;  // at a time; 0: 1
  int32_t max_losses = 0;           // maximum number of lost workers per closure; 0: kDefaultLosses
  int64_t timeout_ns = 0;           // for calls without their own timeout; 0: 600 s; < 0: no limit
  int64_t message_bytes = 0;        // maximum size of a message; 0: kDefaultMessageBytes
  PartitionFunction partitioner;    // for variables without `partitions`; none: not divided
};

struct RemoteVariableOptions {
  int32_t max_staleness = 0;
  std::span<const int64_t> partitions;  // empty: use the partitioner
  const char* colocate_with = nullptr;  // name of another variable whose parts determine the placement
};

// Statistics.
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
  int64_t losses = 0;     // of closures with their workers
  int64_t watermark = 0;  // all closures below have ended
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

  // Does not block. INVALID_ARGUMENT if the cluster has no worker or no parameter server.
  static Status create(Memory& memory, const ClusterSpec& cluster, const CoordinatorOptions& options,
                       Ref<Coordinator>* out);
  Coordinator(Memory& memory, const CoordinatorOptions& options, int num_ps, int num_workers, int64_t epoch);

  // Tells the servers to end, fails everything that waits with CANCELLED, and waits until the host's calls
  // have returned. Calling it again has no effect.
  void end() noexcept;

  // Registers a host's call while it is inside.
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
  // In saving.cpp: saves variables, and the closures applied by each server, to a checkpoint. Closures may
  // run meanwhile.
  Status save(const char* path);
  // Restores a checkpoint. Must be called before the first closure of this coordinator; its numbers continue
  // after the saved watermark.
  Status restore(const char* path);

  // ---- coordinator.cpp: closures as the host sees them. timeout_ns 0: the coordinator's ----
  // Waits until there is room. The error of an earlier closure is returned once, by this function, join() or
  // done().
  Status schedule(const char* function, Value* arguments, int64_t timeout_ns, Cancel* cancel,
                  Ref<RemoteValue>* out);
  Status join(int64_t timeout_ns, Cancel* cancel);
  Status done(bool* out);
  // Runs a function on every worker, also on those that return later, and keeps its result there.
  Status create_per_worker(const char* name, const char* function, Value* arguments);

  CoordinatorNumbers numbers() const noexcept;
  // The latest finished closures since they were sent, one row per worker.
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
  // Waits until all parameter servers are available.
  Status await_servers();
  // Fails inside a partitioner for operations that need the lock held there.
  Status check_not_dividing(const char* what) const noexcept;
  Status place(RemoteVariable* variable, const RemoteVariableOptions& options);
  Status find_all(std::span<const char* const> names, RemoteVariables::List* out);
  template <class Push>
  Status change(std::span<const char* const> names, const Push& push);
  Status commit(const Pushes& pushes);
  RemoteWait patience() const noexcept { return {timeout_ns_, ended_.get()}; }
  void cancel(int64_t id, const char* reason) noexcept;
  // Returns with the lock held, but unlocks it meanwhile.
  void describe_absent(std::unique_lock<std::mutex>& lock, char* text, std::size_t size) noexcept;

  // ---- exchange.cpp: the thread that communicates with servers ----
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
  // flights.cpp: its handling of closures.
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
  const Ref<Cancel> ended_;  // ends the calls of host threads to parameter servers
  Ref<GrpcCalls> calls_;
  Directory directory_;
  RemoteVariables variables_;
  std::pmr::vector<std::pmr::string> devices_;
  std::mutex creating_;                  // serializes the creation of variables
  std::pmr::vector<int64_t> num_parts_;  // parts on each parameter server
  int64_t next_ps_ = 0;                  // gets the next part

  Thread thread_;
  std::atomic<uint32_t> signal_{0};  // changes when the thread has something to do
  std::atomic<bool> asleep_{false};
  std::mutex events_mutex_;  // innermost lock; nothing is called under it
  IntrusiveList<Link, Coordinator> events_;

  mutable std::mutex mutex_;         // protects everything below
  std::condition_variable changed_;  // for waiting threads
  std::pmr::deque<Server> servers_;  // parameter servers, then workers
  ClosureQueue queue_;
  std::pmr::map<int64_t, Flight> flights_;      // unfinished closures
  bool all_ps_up_ = false;                      // never reset, because a lost server ends the job
  std::pmr::deque<PerWorker> per_worker_;       // in the order of creation
  bool more_per_worker_ = false;                // some have not been sent to all workers
  std::pmr::vector<Ref<RemoteValue>> cancels_;  // requested cancellations that have not been answered
  // Objects that may call the host when released, which must happen outside of the lock.
  std::pmr::vector<Ref<Counted>> trash_;
  ErrorRecord error_;  // of a closure, until the host retrieves it; OK: none
  ErrorRecord fatal_;  // a parameter server was lost, or the coordinator has ended; OK: neither
  bool stopping_ = false;
  int num_uses_ = 0;
  int64_t next_retry_ns_ = INT64_MAX;
  CoordinatorNumbers counts_;
  SpanLog spans_;
};

}  // namespace dist
