// SPDX-License-Identifier: Apache-2.0
// The connection of a strategy to the other workers. It has the transport and two communicators (WorkerCommunicator):
// one for all replicas, and one with a single leader of each worker, for operations in
// cross-replica context.
//
// Invariant: both communicators count the same runs. These are the runs of the strategy and, between them, the
// turns of the cross-replica context that needed other workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/async/crossings.hpp"
#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "core/comm/worker_communicator.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/communication.hpp"
#include "core/net/network.hpp"
#include "core/net/shared_transport.hpp"
#include "core/net/subset_transport.hpp"
#include "core/net/unreachable.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class WorkerGroup;

class WorkerLink final : public AcrossWorkers {
 public:
  // The connection to the other workers, before a WorkerLink uses it. Joined once; closed on destruction
  // unless moved.
  class Connection {
   public:
    // There is no connection because of `why`.
    explicit Connection(const char* why = "") noexcept { std::snprintf(why_, sizeof why_, "%s", why); }
    Connection(Connection&& other) noexcept
        : network_(std::move(other.network_)), transport_(std::exchange(other.transport_, nullptr)) {
      std::snprintf(why_, sizeof why_, "%s", other.why_);
    }
    Connection& operator=(Connection&&) = delete;
    ~Connection() { close(); }
    static Status join(Network& network, int num_workers, int me, std::optional<Connection>* out) noexcept;
    // May be NULL.
    Network* network() const noexcept { return network_.get(); }
    Transport* transport() const noexcept { return transport_; }
    const char* why() const noexcept { return why_; }
    void close() noexcept {
      if (transport_ != nullptr) transport_->close();
    }

   private:
    Ref<Network> network_;
    Transport* transport_ = nullptr;
    char why_[sizeof ErrorRecord::message];
  };

  // Flags that worker 0 announces to all workers at the end of a run, and that another worker can ask it to
  // announce.
  enum Announcement : uint32_t { kReformDue = 1, kPreempted = 2, kGraceOver = 4 };

  struct Options {
    int me;
    std::span<const int> replicas;  // number of replicas of each worker
    // Numbers in the cluster of the participating workers; empty: all participate.
    std::span<const int> numbers;
    int64_t timeout_ns;         // of the group
    std::size_t cache_bytes;    // size of the last-level cache
    std::size_t staging_bytes;  // 0: the default of WorkerCommunicator
    // of reductions in cross-replica context: the approximate number of bytes in one collective; 0: no limit
    int64_t bytes_per_pack;
    Arena* helpers;      // runs asynchronous collectives; NULL: waiting threads do
    Recorder* recorder;  // for operations in cross-replica context
  };
  // `group` has this worker's replicas. Throws std::bad_alloc.
  WorkerLink(Memory& memory, Group& group, const Host& host, Connection connection, const Options& options);

  WorkerCommunicator& communicator() noexcept { return replicas_; }
  Crossings& crossings() noexcept { return crossings_; }
  SharedTransport& transport() noexcept { return transport_; }
  // Adds or removes a subgroup, which then takes part in all runs. Must be called between runs. add() throws
  // std::bad_alloc.
  void add(WorkerGroup& group) { groups_.push_back(&group); }
  void remove(WorkerGroup& group) noexcept;
  const Connection& connection() const noexcept { return connection_; }
  // Tells the peers that this worker has left. Callable from any thread, even while a replica is in a
  // collective.
  void close() noexcept { connection_.close(); }

  // Must be called for each run of the strategy: after its group has begun the run, and when the run has
  // ended for any reason.
  void begin_run(const RunDeadline& deadline) noexcept;
  void end_run(Status outcome, const ErrorRecord& why) noexcept;
  // Records a run that failed before it got its turn. The next run to begin counts and reports it first.
  // Callable from any thread.
  void owe(const ErrorRecord& why) noexcept;
  // Must be called between two runs. The cross-replica operations of a turn form one run of the workers,
  // which begins when the first of them needs another worker.
  void begin_turn() noexcept;
  void end_turn(uint64_t failures_before) noexcept;

  // Between runs: reads what worker 0 announced at the end of the latest run. Waits for it until `cancelled`
  // is true.
  Status hear_leader(const std::atomic<bool>& cancelled, uint32_t* out_announced) noexcept {
    return replicas_.hear_leader(cancelled, out_announced);
  }
  // Asks worker 0 to announce `what`. Callable from any thread and from a signal handler.
  void ask_for(Announcement what) noexcept { asked_.fetch_or(what, std::memory_order_relaxed); }
  // On workers other than 0: whether worker 0 was lost without leaving in order.
  bool reporter_lost() const noexcept {
    return me() != 0 && replicas_share_.lost(0) && !replicas_share_.left(0);
  }
  // On worker 0: whether a worker is lost or a new one wants to join.
  bool reform_due() const noexcept;

  // End the current run. Callable from any thread.
  void cancel(const char* reason) noexcept;
  void condemn(const ErrorRecord& why) noexcept { leaders_group_.condemn(why); }

  // While it exists, the cross-replica operations of a turn use these communication options where they are
  // set, instead of the strategy's. The thread must have begun the turn. `link` may be NULL.
  class Overriding {
   public:
    Overriding(WorkerLink* link, const Communication& over) noexcept : link_(link) {
      if (link_ == nullptr) return;
      before_ = link_->limits_;
      if (over.timeout_ns != 0) link_->limits_.timeout_ns = over.timeout_ns;
      if (over.bytes_per_pack != 0) link_->limits_.bytes_per_pack = over.bytes_per_pack;
    }
    ~Overriding() {
      if (link_ != nullptr) link_->limits_ = before_;
    }
    Overriding(const Overriding&) = delete;
    Overriding& operator=(const Overriding&) = delete;

   private:
    WorkerLink* const link_;
    struct Limits {
      int64_t timeout_ns = 0;  // of one collective; 0: the strategy's, < 0: none
      int64_t bytes_per_pack = 0;
    } before_;
    friend class WorkerLink;
  };

  int num_workers() const noexcept override { return replicas_.num_workers(); }
  int me() const noexcept override { return replicas_.me(); }
  int worker_of(GlobalReplica replica) const noexcept override;
  Status reduce(dist_reduce_op op, dist_numerics numerics, std::span<const dist_tensor> in,
                std::span<dist_tensor> outs) override;
  Status join(const dist_tensor& mine, int32_t axis, ValueRef* out) override;
  Status broadcast(dist_tensor& tensor, const char* tag, uint64_t detail) override;
  Status largest(std::span<int64_t> words, const char* tag, uint64_t detail) override;

 private:
  // A group number that no group of replicas has.
  static constexpr int32_t kLeaders = -1;

  uint32_t to_announce() noexcept;
  void settle() noexcept;
  void begin_runs() noexcept;
  Member leader() noexcept {
    return {leaders_group_, 0, nullptr, limits_.timeout_ns, cache_bytes_, recorder_, nullptr, &leaders_};
  }

  Memory& memory_;
  const std::size_t cache_bytes_;
  Overriding::Limits limits_;  // changed only during a turn
  Recorder* const recorder_;
  Connection connection_;
  UnreachableTransport unreachable_;
  std::optional<SubsetTransport> some_;  // used if some workers of the cluster do not participate
  SharedTransport transport_;
  Crossings crossings_;
  SharedTransport::Share replicas_share_;
  WorkerCommunicator replicas_;
  SharedTransport::Share leaders_share_;
  Group leaders_group_;
  WorkerCommunicator leaders_;
  std::pmr::vector<WorkerGroup*> groups_;
  bool open_ = false;  // a run is in progress
  std::atomic<uint32_t> asked_{0};
  std::mutex owing_;
  int owed_ = 0;
  ErrorRecord owed_why_;  // of the latest one
};

}  // namespace dist
