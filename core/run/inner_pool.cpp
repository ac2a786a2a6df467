// SPDX-License-Identifier: Apache-2.0
#include "core/run/inner_pool.hpp"

#include <cxxabi.h>

#include <atomic>
#include <cstdio>
#include <new>

#include "core/base/host_call.hpp"

namespace dist {
namespace {

ReplicaPool::Options with_recorder(ReplicaPool::Options options,
                                   std::optional<FlightRecorder>& recorder) noexcept {
  if (recorder) options.recorder = &*recorder;
  return options;
}

}  // namespace

InnerPool::InnerPool(Memory& memory, const WaitPolicy& policy, const Host& host, ReplicaPool::Options options)
    : memory_(memory),
      wait_graph_(memory, options.num_replicas),
      group_(memory, options.num_replicas, policy, host, options.timeout_ns,
             Membership{0, nullptr, &wait_graph_, options.naming, options.keeper}),
      pool_(memory, group_, wait_graph_, host, with_recorder(options, own_recorder(memory, options))),
      runs_alone_(options.instance != kNoLocalReplica && options.party == nullptr &&
                  options.lent == nullptr) {}

// An instance runs on its replica's thread and uses its records.
std::optional<FlightRecorder>& InnerPool::own_recorder(Memory& memory, const ReplicaPool::Options& options) {
  if (options.instance == kNoLocalReplica) recorder_.emplace(memory, ReplicaCount(options.num_replicas));
  return recorder_;
}

Status InnerPool::create(Memory& memory, const WaitPolicy& policy, const Host& host,
                         ReplicaPool::Options options, InnerPool** out) {
  void* const place = memory.allocate(sizeof(InnerPool), alignof(InnerPool));
  InnerPool* pool;
  try {
    pool = new (place) InnerPool(memory, policy, host, options);
  } catch (...) {
    memory.free(place, sizeof(InnerPool), alignof(InnerPool));
    throw;
  }
  if (const Status started = pool->pool_.start(); !started.ok()) {
    destroy(pool);
    return started;
  }
  *out = pool;
  return kOk;
}

// The part of the calling thread in a request, as in ReplicaPool::Turn.
class InnerPool::Turn {
 public:
  Turn(InnerPool& of, Replica& replica, const Caller& by) noexcept
      : of_(of), failures_(by.failures), within_(by.current, &replica, false) {}
  ~Turn() {
    if (over_) [[likely]]
      return;
    ReplicaPool::Seat& seat = of_.pool_.seats_[0];
    seat.thread_ended = true;
    uint64_t ended = 0;
    (void)of_.end_badly(failed_precondition("%s %d's thread ended inside its run (pthread_exit)",
                                            seat.replica.name().word(), seat.replica.name().number()),
                        failures_, &ended);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void returns() noexcept { over_ = true; }
  uint64_t failures_before() const noexcept { return failures_; }

 private:
  InnerPool& of_;
  const uint64_t failures_;
  const Within within_;
  bool over_ = false;
};

void InnerPool::begin_alone(const RunDeadline& deadline) noexcept {
  const bool cancelled = group_.poisoned();
  group_.begin_run(deadline);
  // The caller checks next whether the request was cancelled before. The check must not come before the group
  // is clean, because a cancellation has no effect until then.
  if (cancelled) [[unlikely]]
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

Status InnerPool::call_alone(const Body& body, const Caller& by, uint64_t begun, uint64_t* out_ended) {
  ReplicaPool::Seat& seat = pool_.seats_[0];
  Replica& replica = seat.replica;
  pool_.group_run_ = group_.run();
  ++pool_.run_;
  // relaxed: no other thread waits for these.
  pool_.started_.value.store(pool_.run_, std::memory_order_relaxed);
  dist_status status;
  {
    Turn turn(*this, replica, by);
    replica.begin_alone(begun);
    try {
      status = body.call(replica, body);
    } catch (abi::__forced_unwind&) {
      throw;  // the thread is being ended; Turn's destructor reports it
    } catch (...) {
      char who[64];
      std::snprintf(who, sizeof who, "%s %d's function", replica.name().word(), replica.name().number());
      status = status_of_exception(who).code();
    }
    turn.returns();
    // A forked child has no threads to notify, and its locks may never open.
    if (pool_.memory().forked()) [[unlikely]]
      return Status(status);
    if (status != DIST_OK || !replica.is_alone_here() || !replica.works().empty()) [[unlikely]]
      return end_badly(Status(status), turn.failures_before(), out_ended);
    replica.end_alone();
  }
  *out_ended = replica.recorder().now();
  replica.recorder().end_plain_run(*out_ended);
  seat.result = DIST_OK;
  seat.finished.value.store(pool_.run_, std::memory_order_relaxed);
  if (pool_.pins_.any()) [[unlikely]]
    end_seeing();
  return group_.poisoned() ? pool_.outcome() : kOk;
}

// The run has failed, or there is more to end than usual.
[[gnu::noinline, gnu::cold]] Status InnerPool::end_badly(Status status, uint64_t failures_before,
                                                         uint64_t* out_ended) noexcept {
  ReplicaPool::Seat& seat = pool_.seats_[0];
  pool_.conclude(seat, status, failures_before);
  *out_ended = seat.replica.recorder().now();
  const Status outcome = pool_.outcome();
  if (pool_.pins_.any()) end_seeing();
  return outcome;
}

// Releases the versions that the run has seen.
[[gnu::noinline, gnu::cold]] void InnerPool::end_seeing() noexcept {
  Unseen unseen;
  // A shutdown may have taken the lock for good. It uses none of them.
  const bool locked = pool_.lock_.lock(Host{}, 0, nullptr) == RunLock::Wait::kLocked;
  pool_.let_go(unseen);
  if (locked) pool_.lock_.unlock();
}

void InnerPool::destroy(InnerPool* pool) noexcept {
  if (pool == nullptr) return;
  Memory& memory = pool->memory_;
  pool->~InnerPool();
  memory.free(pool, sizeof(InnerPool), alignof(InnerPool));
}

}  // namespace dist
