// SPDX-License-Identifier: Apache-2.0
#include "core/run/inner_pool.hpp"

#include <new>

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
      pool_(memory, group_, wait_graph_, host, with_recorder(options, own_recorder(memory, options))) {}

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

void InnerPool::destroy(InnerPool* pool) noexcept {
  if (pool == nullptr) return;
  Memory& memory = pool->memory_;
  pool->~InnerPool();
  memory.free(pool, sizeof(InnerPool), alignof(InnerPool));
}

}  // namespace dist
