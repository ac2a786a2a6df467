// SPDX-License-Identifier: Apache-2.0
// WorkerLink: what a strategy has of the other workers: the transport to them, the meeting of all replicas, and a meeting
// of one member each for what the cross-replica context does. Both take part in the same runs, which are those of the
// strategy and, between them, what operations from outside need others for.
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
#include "core/comm/workers.hpp"
#include "core/cross_replica/across_workers.hpp"
#include "core/engine/network.hpp"
#include "core/engine/shared_transport.hpp"
#include "core/engine/subset_transport.hpp"
#include "core/engine/unreachable.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class WorkerGroup;

class WorkerLink final : public AcrossWorkers {
 public:
  // How the others are reached. Joined once; what nobody keeps is closed.
  class Way {
   public:
    // Nothing leads to the others, because of `why`, a sentence without its end.
    explicit Way(const char* why = "") noexcept { std::snprintf(why_, sizeof why_, "%s", why); }
    Way(Way&& other) noexcept
        : network_(std::move(other.network_)), transport_(std::exchange(other.transport_, nullptr)) {
      std::snprintf(why_, sizeof why_, "%s", other.why_);
    }
    Way& operator=(Way&&) = delete;
    ~Way() { close(); }
    static Status join(Network& network, int num_workers, int me, std::optional<Way>* out) noexcept;
    // NULL: there is none.
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

  // What worker 0 announces at the end of a run, for all workers from there on; and what another one asks it to. Bits.
  enum Announcement : uint32_t { kReformDue = 1, kPreempted = 2, kGraceOver = 4 };

  struct Options {
    int me;
    std::span<const int> replicas;  // of each worker
    std::span<const int> numbers;   // in the cluster, of those that take part; empty: all do
    int64_t timeout_ns;             // the group's
    std::size_t cache_bytes;        // of the last-level cache
    std::size_t staging_bytes;      // 0: the meetings' default
    Arena* helpers;                 // where asynchronous collectives go on; NULL: where somebody waits
    Recorder* recorder;             // of what the cross-replica context does
  };
  // `group`: of this worker's replicas. Throws std::bad_alloc.
  WorkerLink(Memory& memory, Group& group, const Host& host, Way way, const Options& options);

  WorkerMeeting& meeting() noexcept { return replicas_; }
  Crossings& crossings() noexcept { return crossings_; }
  SharedTransport& transport() noexcept { return transport_; }
  // Groups of some replicas, which are in the runs too: between runs. add() throws std::bad_alloc.
  void add(WorkerGroup& group) { groups_.push_back(&group); }
  void remove(WorkerGroup& group) noexcept;
  const Way& way() const noexcept { return way_; }
  // Peers hear that this worker has left. Any thread, also while a replica is inside a collective.
  void close() noexcept { way_.close(); }

  // A run of the strategy, after its group's has begun; and its end, however it ends.
  void begin_run(const RunDeadline& deadline) noexcept;
  void end_run(Status outcome, const ErrorRecord& why) noexcept;
  // A run that had no turn here. Any thread: the next one to begin is told of it, and counted, before.
  void owe(const ErrorRecord& why) noexcept;
  // Between two runs, with none under way: what the cross-replica context does is a run of the workers, from when it
  // first needs them.
  void begin_turn() noexcept;
  void end_turn(uint64_t failures_before) noexcept;

  // Between runs: what worker 0 has announced at the end of the latest one, which is waited for until `cancelled` is true.
  Status hear_leader(const std::atomic<bool>& cancelled, uint32_t* out_announced) noexcept {
    return replicas_.hear_leader(cancelled, out_announced);
  }
  // Any thread, also a signal's handler: worker 0 is to announce it.
  void ask_for(Announcement what) noexcept { asked_.fetch_or(what, std::memory_order_relaxed); }
  // At the others: worker 0 is, and has not ended as it should.
  bool leader_lost() const noexcept {
    return me() != 0 && replicas_share_.lost(0) && !replicas_share_.left(0);
  }
  // At worker 0: somebody is lost, or wants to be let in.
  bool reform_due() const noexcept;

  // What ends a run, from any thread.
  void cancel(const char* reason) noexcept;
  void condemn(const ErrorRecord& why) noexcept { carriers_group_.condemn(why); }

  int num_workers() const noexcept override { return replicas_.num_workers(); }
  int me() const noexcept override { return replicas_.me(); }
  int worker_of(GlobalReplica replica) const noexcept override;
  Status reduce(dist_reduce_op op, int32_t numerics, std::span<const dist_tensor> in,
                std::span<dist_tensor> outs) override;
  Status join(const dist_tensor& mine, int32_t axis, ValueRef* out) override;
  Status broadcast(dist_tensor& tensor, const char* tag, uint64_t detail) override;
  Status largest(std::span<int64_t> words, const char* tag, uint64_t detail) override;

 private:
  // No group of replicas has it.
  static constexpr int32_t kCarriers = -1;

  uint32_t to_announce() noexcept;
  void settle() noexcept;
  void begin_meetings() noexcept;
  Member carrier() noexcept {
    return {carriers_group_, 0, nullptr, 0, cache_bytes_, recorder_, nullptr, &carriers_};
  }

  Memory& memory_;
  const std::size_t cache_bytes_;
  Recorder* const recorder_;
  Way way_;
  UnreachableTransport unreachable_;
  std::optional<SubsetTransport> some_;  // where not all of the cluster take part
  SharedTransport transport_;
  Crossings crossings_;
  SharedTransport::Share replicas_share_;
  WorkerMeeting replicas_;
  SharedTransport::Share carriers_share_;
  Group carriers_group_;
  WorkerMeeting carriers_;
  std::pmr::vector<WorkerGroup*> groups_;
  bool open_ = false;  // a run
  std::atomic<uint32_t> asked_{0};
  std::mutex owing_;
  int owed_ = 0;
  ErrorRecord owed_why_;  // of the latest
};

}  // namespace dist
