// SPDX-License-Identifier: Apache-2.0
// A rendezvous: the workers of a job, each of which knows its rank, the number of workers and one address,
// learn each other's addresses. Worker 0 listens at that address during the rendezvous.
#pragma once

#include <cstdint>

#include "core/base/cancel.hpp"
#include "core/base/held_port.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/cluster/resolver.hpp"
#include "core/net/membership/launcher.hpp"

namespace dist {

struct MeetingLimits {
  int64_t timeout_ns = 0;  // 0: kDefaultMeetingNs; < 0: no limit
  Cancel* cancel = nullptr;
};
inline constexpr int64_t kDefaultMeetingNs = int64_t{600} * 1'000'000'000;

// The cluster, in which the tasks of job "worker" are in the order of ranks, and the port of this worker in
// it.
struct Met {
  Ref<ClusterSpec> spec;
  Ref<HeldPort> port;
};

// Finds the place of this process, and blocks until all workers have registered. The job's environment
// specifies the security and the address to listen on.
Status meet(Memory& memory, const RendezvousOptions& options, const MeetingLimits& limits,
            RendezvousPlace* place, Met* out);

// Calls meet() and makes a resolver from its result.
Status create_rendezvous_resolver(Memory& memory, const RendezvousOptions& rendezvous,
                                  const MeetingLimits& limits, const ResolverOptions& options,
                                  Ref<ClusterResolver>* out);

}  // namespace dist
