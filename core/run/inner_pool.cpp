// SPDX-License-Identifier: Apache-2.0
#include "core/run/inner_pool.hpp"

#include <cxxabi.h>

#include <cstdio>
#include <new>

#include "core/base/host_call.hpp"

namespace dist {
namespace {

PoolSettings with_recorder(PoolSettings settings, std::optional<FlightRecorder>& recorder) noexcept {
  if (recorder) settings.recorder = &*recorder;
  return settings;
}

}  // namespace

InnerPool::InnerPool(Memory& memory, const WaitPolicy& policy, const Host& host, PoolSettings settings)
    : memory_(memory),
      wait_graph_(memory, settings.num_replicas),
      group_(memory, settings.num_replicas, policy, host, settings.timeout_ns,
             GroupMembers{0, nullptr, &wait_graph_, settings.naming, settings.keeper}),
      pool_(memory, group_, wait_graph_, host, with_recorder(settings, own_recorder(memory, settings))),
      runs_alone_(settings.nesting.instance != kNoLocalReplica && settings.party == nullptr &&
                  settings.nesting.lent == nullptr) {}

// An instance runs on its replica's thread and uses its records.
std::optional<FlightRecorder>& InnerPool::own_recorder(Memory& memory, const PoolSettings& settings) {
  if (settings.nesting.instance == kNoLocalReplica)
    recorder_.emplace(memory, ReplicaCount(settings.num_replicas));
  return recorder_;
}

Status InnerPool::create(Memory& memory, const WaitPolicy& policy, const Host& host, PoolSettings settings,
                         InnerPool** out) {
  void* const place = memory.allocate(sizeof(InnerPool), alignof(InnerPool));
  InnerPool* pool;
  try {
    pool = new (place) InnerPool(memory, policy, host, settings);
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

Status InnerPool::call_alone(const Body& body, const Caller& by, uint64_t begun, uint64_t* out_ended) {
  Replica& replica = pool_.members().replica(0);
  const uint64_t failures_before = by.failures;
  pool_.latest_run().begin_alone();
  {
    const Within within(by.current, &replica, false);
    replica.begin_alone(begun);
    dist_status status;
    try {
      status = body.call(replica, body);
    } catch (abi::__forced_unwind&) {
      thread_ends(failures_before);
      throw;
    } catch (...) {
      char who[64];
      std::snprintf(who, sizeof who, "%s %d's function", replica.name().word(), replica.name().number());
      status = status_of_exception(who).code();
    }
    if (status != DIST_OK || !replica.is_alone_here() || !replica.works().empty()) [[unlikely]]
      return end_badly(Status(status), failures_before, out_ended);
    replica.end_alone();
  }
  *out_ended = replica.recorder().now();
  replica.recorder().end_plain_run(*out_ended);
  if (!pool_.has_pins() && !group_.aborted()) [[likely]]
    return kOk;
  pool_.members().succeed(0);
  return end_in_full();
}

// The thread is being ended inside the function.
[[gnu::noinline, gnu::cold]] void InnerPool::thread_ends(uint64_t failures_before) noexcept {
  const MemberName& name = pool_.members().replica(0).name();
  uint64_t ended = 0;
  (void)end_badly(
      failed_precondition("%s %d's thread ended inside its run (pthread_exit)", name.word(), name.number()),
      failures_before, &ended);
}

// The run has failed, or there is more to end than usual.
[[gnu::noinline, gnu::cold]] Status InnerPool::end_badly(Status status, uint64_t failures_before,
                                                         uint64_t* out_ended) noexcept {
  // A forked child has no threads to notify, and its locks may never open.
  if (pool_.memory().forked()) return status;
  pool_.latest_run().set_group_run(group_.run());
  pool_.members().conclude(0, status, failures_before);
  *out_ended = pool_.members().replica(0).recorder().now();
  return end_in_full();
}

[[gnu::noinline, gnu::cold]] Status InnerPool::end_in_full() noexcept {
  return pool_.memory().forked() ? kOk : pool_.end_alone();
}

void InnerPool::destroy(InnerPool* pool) noexcept {
  if (pool == nullptr) return;
  Memory& memory = pool->memory_;
  pool->~InnerPool();
  memory.free(pool, sizeof(InnerPool), alignof(InnerPool));
}

}  // namespace dist
