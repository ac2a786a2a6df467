// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/explain.hpp"
#include "core/kernel/targets.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory_resource>
#include <vector>

#include "core/async/channel.hpp"
#include "core/base/os/cgroup.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/text.hpp"
#include "core/collective/algorithm.hpp"
#include "core/collective/collectives.hpp"
#include "core/collective/exchange.hpp"
#include "core/kernel/reduce.hpp"
#include "core/serve/write_metrics.hpp"
#include "core/strategy/explain_summary.hpp"

namespace dist {
namespace {

// ---- The summary ----

const char* kind_of(const Strategy& strategy) noexcept {
  switch (strategy.kind()) {
    case DIST_STRATEGY_ONE_DEVICE: return "one-device";
    case DIST_STRATEGY_DEFAULT: return "default";
    case DIST_STRATEGY_CENTRAL_STORAGE: return "central-storage";
    case DIST_STRATEGY_MESH: return "mesh";
    case DIST_STRATEGY_MULTI_WORKER_MIRRORED: return "multi-worker mirrored";
    case DIST_STRATEGY_PARAMETER_SERVER: return "parameter-server";
    default: return "mirrored";
  }
}

// Which library threads are pinned: all but the caller's.
template <class Each>
void for_each_pinned(Strategy& strategy, Each&& each) {
  const bool has_caller = strategy.origin().threads == DIST_THREADS_CALLER;
  for (int r = 0; r < strategy.replicas().local(); ++r) {
    for (int d = 0; d < strategy.mesh().num_devices; ++d) {
      if (!has_caller || r != 0 || d != 0) each(r, d, strategy.placement().cpu_of(LocalReplica{r}, d));
    }
  }
}

// -1: every pinned thread has a CPU of its own.
int cpu_pinned_twice(Strategy& strategy) {
  if (!strategy.placement().pins()) return -1;
  CpuSet seen;
  int twice = -1;
  for_each_pinned(strategy, [&](int, int, int cpu) {
    if (twice < 0 && seen.has(cpu)) twice = cpu;
    if (cpu >= 0) seen.add(cpu);
  });
  return twice;
}

// How often a replica shared a CPU while another one was free, and how often it moved there.
struct Collisions {
  unsigned met, moved;
};
Collisions collisions_of(Strategy& strategy, int replica) noexcept {
  const auto& apart = strategy.group().apart(replica);
  return {apart.met.load(std::memory_order_relaxed), apart.moved.load(std::memory_order_relaxed)};
}

ExplainSummary summary_of(Strategy& strategy) {
  const StrategyOrigin& origin = strategy.origin();
  const ReplicaCount replicas = strategy.replicas();
  ExplainSummary s;
  s.kind = kind_of(strategy);
  s.replicas = replicas.global();
  s.first_replica = number(replicas.first());
  s.local_replicas = replicas.local();
  s.logical_devices = strategy.mesh().num_devices;
  s.workers = strategy.worker().num_workers();
  s.worker = strategy.worker().number();
  s.threads = origin.threads;
  s.allowed_cpus = origin.allowed_cpus;
  s.usable_cpus = usable_cpus(origin.allowed_cpus, origin.cpu_quota);
  s.cpu_quota = origin.cpu_quota;
  s.numa_domains = std::max(1, strategy.placement().num_domains());
  s.simd = kernel_targets()[0];
  s.held_bytes = strategy.memory().held();
  if (s.workers > 1) {
    const WorkerLink::Connection& connection = strategy.workers()->connection();
    const Network* const network = connection.network();
    if (network == nullptr) s.no_connection = connection.why();
    s.exposed = network != nullptr && network->is_exposed();
    s.network_threads = network != nullptr && network->has_threads();
  }
  s.quota_changed = cgroup_cpu_quota("") != origin.cpu_quota;
  s.pinned_cpu = cpu_pinned_twice(strategy);
  for (int r = 0; r < s.local_replicas && !strategy.group().oversubscribed(); ++r) {
    const Collisions seen = collisions_of(strategy, r);
    if (seen.moved < seen.met) ++s.colliding;
  }
  if (strategy.budget() != nullptr) {
    s.budget_threads = strategy.budget()->state().threads;
    s.run_threads = strategy.pool().budget_share();
  }
  if (Instances* const instances = strategy.known_instances(); instances != nullptr) {
    s.stuck = instances->counts().stuck;
  }
  return s;
}

// ---- Replicas ----

// "replica 2", "replicas 2-3": by their ids among all workers, from the local one `from` on.
struct ReplicaRange {
  ReplicaRange(Strategy& strategy, int from) noexcept {
    const int first = number(strategy.replicas().first());
    const int last = first + strategy.replicas().local() - 1;
    if (first + from == last) {
      std::snprintf(text, sizeof text, "replica %d", last);
    } else {
      std::snprintf(text, sizeof text, "replicas %d-%d", first + from, last);
    }
  }
  char text[64];
};

void write_replicas(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  out.add("\nReplicas\n  replicas: %d, ", strategy.replicas().local());
  if (has_one_replica(origin.kind)) {
    out.put("the only one of a strategy of this kind\n");
  } else if (origin.num_replicas != 0) {
    out.put("as requested\n");
  } else {
    out.put("one per usable CPU (the default)\n");
  }
}

void write_workers(Strategy& strategy, TextOut& out) {
  const WorkerPlace& place = strategy.worker();
  const ReplicaCount replicas = strategy.replicas();
  out.add("  workers: %d", place.num_workers());
  if (!place.job.is_set) {
    out.put(", because no cluster is configured\n");
    return;
  }
  out.add("; this is worker %d (task %d of job %s%s)", place.number(), place.task, place.job.text,
          place.is_chief ? ", the chief" : "");
  if (place.num_workers() == 1) {
    out.put(", which runs without peers\n");
    return;
  }
  out.add(" with %s of %d\n", ReplicaRange(strategy, 0).text, replicas.global());
  if (const WorkerLink::Connection& connection = strategy.workers()->connection();
      connection.network() != nullptr) {
    char how[512];
    connection.network()->describe(how, sizeof how);
    out.add("  other workers: %s\n", how);
  } else {
    out.put("  other workers: cannot be reached; see the warnings\n");
  }
}

void write_devices(Strategy& strategy, TextOut& out) {
  const auto workers = strategy.devices().workers();
  out.put("  devices: ");
  if (workers.empty()) {
    out.put("none; the default strategy has no devices\n");
    return;
  }
  const int first_replica = number(strategy.replicas().first());
  const int last = static_cast<int>(std::ssize(workers)) - 1;
  for (int r = 0; r <= last; ++r) {
    // dist_strategy_device() has them all.
    if (last > 4 && r > 1 && r < last) {
      if (r == 2) out.put(", ...");
      continue;
    }
    out.add("%s%d is %s", r == 0 ? "replica " : ", ", first_replica + r,
            workers[static_cast<std::size_t>(r)].c_str());
  }
  if (strategy.kind() == DIST_STRATEGY_CENTRAL_STORAGE)
    out.add("; variables are on %s", strategy.devices().parameters()[0].c_str());
  out.put(". These are names only: all data is in this process's memory\n");
}

void write_logical_devices(const Strategy& strategy, TextOut& out) {
  const DeviceMesh& mesh = strategy.mesh();
  out.add("  logical devices: %d per replica, axes", mesh.num_devices);
  for (std::size_t i = 0; i < mesh.num_axes(); ++i)
    out.add("%s %s %d", i == 0 ? "" : ",", mesh.names[i].c_str(), mesh.sizes[i]);
  if (mesh.num_devices == 1) {
    out.put("; the replica's own thread is the device\n");
  } else {
    out.put("; the replica's own thread is device 0, library threads are the others\n");
  }
  out.put(strategy.spmd() ? "  partitioning: SPMD; a tensor cannot be assigned to one device\n"
                          : "  partitioning: tensors can be split, replicated, or assigned to one device\n");
}

void write_groups(Strategy& strategy, TextOut& out) {
  struct Shape {
    int32_t number;
    int size;
  };
  std::pmr::vector<Shape> shapes(&strategy.memory());
  strategy.pool().groups().each([&](const Subgroup& group) {
    shapes.push_back({group.number, group.size()});
  });
  const int all = strategy.replicas().global();
  out.add("  groups: group 0 has all %s", Count(all, "replica").text);
  for (const Shape& shape : shapes) out.add(", group %d has %d", shape.number, shape.size);
  out.put("\n");
}

// ---- Threads ----

void write_threads(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  out.put("\nThreads\n  replica threads: ");
  if (origin.threads == DIST_THREADS_HOST) {
    out.put("threads of the host program, which enter each run\n");
    return;
  }
  if (origin.threads == DIST_THREADS_LIBRARY) {
    out.add("%s on library threads, while the thread that starts the run waits\n",
            ReplicaRange(strategy, 0).text);
  } else {
    out.add("replica %d on the thread that starts the run", number(strategy.replicas().first()));
    if (strategy.replicas().local() > 1) out.add(", %s on library threads", ReplicaRange(strategy, 1).text);
    out.put("\n");
  }
  if (origin.stack_bytes == 0) {
    out.put("  stacks: the system's default size\n");
  } else {
    out.add("  stacks: %lld bytes per library thread, as requested\n",
            static_cast<long long>(origin.stack_bytes));
  }
}

void write_pinned(Strategy& strategy, TextOut& out) {
  const int devices = strategy.mesh().num_devices;
  out.put(strategy.placement().named()
              ? "each library thread is pinned to the CPU that the device assignment gives"
              : "each library thread is pinned to a CPU, chosen when the strategy was created");
  const char* before = ": ";
  for_each_pinned(strategy, [&](int replica, int device, int cpu) {
    out.add("%sreplica %d", before, number(strategy.replicas().first()) + replica);
    if (devices > 1) out.add(" device %d", device);
    out.add(" to CPU %d", cpu);
    before = ", ";
  });
}

void write_placement(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  const bool host = origin.threads == DIST_THREADS_HOST;
  out.put("  placement: ");
  if (host) {
    out.put("chosen by the host program");
  } else if (strategy.placement().pins()) {
    write_pinned(strategy, out);
  } else if (strategy.placement().within() != nullptr) {
    out.put("library threads run on any CPU of the option `cpus`");
  } else {
    out.put("the operating system schedules library threads");
    if (!strategy.group().oversubscribed())
      out.put("; one that keeps sharing a CPU with another replica moves to a free CPU");
  }
  if (origin.move_host_threads) {
    out.put("; a host thread that keeps sharing a CPU with another replica moves within its affinity mask\n");
  } else {
    out.add("; libdist never moves %s\n", host ? "host threads" : "the caller's thread");
  }
}

void write_collisions(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  const int replicas = strategy.replicas().local();
  if (replicas == 1 || strategy.group().oversubscribed()) return;
  out.put("  shared CPUs:");
  bool stayed = false;
  const char* before = " ";
  for (int r = 0; r < replicas; ++r) {
    const Collisions seen = collisions_of(strategy, r);
    if (seen.met == 0) continue;
    out.add("%sreplica %d shared a CPU %u times while another one was free, and moved %u times", before,
            number(strategy.replicas().first()) + r, seen.met, seen.moved);
    stayed = stayed || seen.moved < seen.met;
    before = "; ";
  }
  if (*before == ' ') out.put(" no replica kept sharing a CPU while another one was free");
  if (stayed && origin.threads != DIST_THREADS_LIBRARY && !origin.move_host_threads)
    out.put(". Set move_host_threads to let host threads move");
  out.put("\n");
}

void write_loops(Strategy& strategy, TextOut& out) {
  out.put("  parallel loops: ");
  if (const Executor& executor = strategy.executor(); executor.execute != nullptr) {
    return out.add(
        "and reductions outside replicas use the calling thread and up to %d threads of the host's "
        "executor\n",
        executor.num_threads);
  }
  if (!strategy.has_helpers()) {
    return out.put(
        "and reductions outside replicas use only the calling thread, because helper_threads is 0\n");
  }
  const Placement& placement = strategy.placement();
  const StrategyOrigin& origin = strategy.origin();
  const int share =
      std::max(1, usable_cpus(origin.allowed_cpus, origin.cpu_quota) / strategy.replicas().local());
  out.add("uses up to %s per replica, including the replica's own", Count(share, "thread").text);
  if (share == 1) return out.put("\n");
  if (placement.num_domains() == 0) {
    out.put(placement.within() == nullptr ? ", on any CPU\n" : ", on any CPU of the option `cpus`\n");
    return;
  }
  out.put("; oneTBB threads stay on a NUMA domain while they help");
  for (int r = 0; r < strategy.replicas().local(); ++r) {
    const CpuSet* const domain = placement.domain_of(LocalReplica{r}, 0, share);
    out.add("%s replica %d on ", r == 0 ? ":" : ",", number(strategy.replicas().first()) + r);
    if (domain != nullptr) {
      out.add("domain %d", placement.number_of(*domain));
    } else {
      out.put("any, because no domain has enough CPUs");
    }
  }
  out.put("\n");
}

void write_budget(Strategy& strategy, TextOut& out) {
  out.put("  budget: ");
  if (strategy.budget() == nullptr)
    return out.put("none; runs and requests start regardless of other strategies\n");
  const Budget::State state = strategy.budget()->state();
  out.add(
      "%d threads, %d in use, %d runs and requests queued; a run of this strategy takes %d, a request 1\n",
      state.threads, state.used, state.waiting, std::min(strategy.pool().budget_share(), state.threads));
}

// ---- Machine ----

void write_quota(TextOut& out, double quota) {
  if (quota > 0) {
    out.add("with a cgroup quota of %.3g CPUs", quota);
  } else {
    out.put("without a cgroup quota");
  }
}

void write_machine(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  char cpus[256];
  list_cpus(origin.cpus, cpus);
  out.add("\nMachine\n  CPUs: %d usable when the strategy was created: %s %d (%s), ",
          usable_cpus(origin.allowed_cpus, origin.cpu_quota),
          origin.chose_cpus ? "the option `cpus` names" : "the affinity mask has", origin.allowed_cpus, cpus);
  write_quota(out, origin.cpu_quota);
  const int allowed = origin.chose_cpus ? origin.allowed_cpus : allowed_cpus();
  const double quota = cgroup_cpu_quota("");
  if (allowed != origin.allowed_cpus || quota != origin.cpu_quota) {
    out.add("; now it is %d for the calling thread, ", allowed);
    write_quota(out, quota);
    out.put(", which only a new strategy uses");
  }
  out.add("\n  NUMA: %s\n", Count(std::max(1, strategy.placement().num_domains()), "domain").text);
  out.add("  cache: %s, last level\n", Size(last_level_cache_bytes()).text);
  out.add("  SIMD: %s, chosen for this CPU at run time; results are bit-identical on all targets\n",
          kernel_targets()[0]);
}

// ---- Synchronization ----

void write_waiting(Strategy& strategy, TextOut& out) {
  const WaitPolicy& policy = strategy.group().policy();
  const double spin_us = static_cast<double>(policy.spin_ns) * 1e-3;
  out.put("\nSynchronization\n  waiting: ");
  if (policy.oversubscribed) {
    out.add(
        "oversubscribed, because %s: a waiting replica yields its CPU at once and sleeps after %g us; %s can "
        "run at a time\n",
        strategy.replicas().local() > policy.stripes ? "there are more replicas than usable CPUs"
        : strategy.replicas().local() > kMostBySlots ? "there are more than 256 replicas"
                                                     : "network threads need CPUs, too",
        spin_us, Count(policy.stripes, "replica").text);
  } else {
    out.add(
        "a waiting replica spins briefly, then spins and yields its CPU for up to %g us, or up to %g us if "
        "its recent waits were that short, then sleeps\n",
        spin_us, static_cast<double>(Patience::kMostNs) * 1e-3);
  }
  out.put(policy.asymmetric
              ? "  memory fences: none on the fast path; a thread that is about to sleep uses membarrier()\n"
              : "  memory fences: one per arrival, because the system does not support membarrier()\n");
  out.put("  timeout: ");
  if (strategy.timeout_ns() < 0) {
    out.put("none; a replica waits for its peers without limit\n");
  } else {
    out.add("a replica waits %s for its peers unless the call sets another timeout\n",
            DurationText(strategy.timeout_ns()).text);
  }
}

// ---- Collectives ----

const char* words_of(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::kNothing: break;
    case Algorithm::kTravels:
      return "each replica publishes its data when it arrives; every replica reduces all of it after one "
             "wait";
    case Algorithm::kAlone:
      return "the last replica to arrive does all the work, faster than waking the others";
    case Algorithm::kParts: return "each replica reduces an equal part and writes it to all outputs";
    case Algorithm::kBlocks: return "each replica reduces its part block by block, then helps the others";
  }
  return "replicas only synchronize";
}

// The algorithms of an all_reduce of one tensor, by size.
void write_algorithms(Strategy& strategy, TextOut& out) {
  AlgorithmQuestion question{.members = strategy.replicas().local(),
                             .oversubscribed = strategy.group().oversubscribed(),
                             .can_travel = true,
                             .bytes = 1};
  if (question.members == 1) return;
  for (;;) {
    const std::size_t most = most_bytes_like(question);
    const bool last = most > PTRDIFF_MAX;
    const Algorithm algorithm = algorithm_of(question);
    if (last) {
      out.put("  larger");
    } else {
      out.add("  up to %s", Size(most).text);
    }
    out.add("%s: %s\n", algorithm == Algorithm::kTravels ? ", all_reduce of one tensor" : "",
            words_of(algorithm));
    if (last) return;
    question.bytes = most + 1;
  }
}

void write_collectives(Strategy& strategy, TextOut& out) {
  const int replicas = strategy.replicas().local();
  out.put("\nCollectives\n");
  write_algorithms(strategy, out);
  static constexpr const char* kNumerics[] = {"ORDERED", "REPRODUCIBLE", "TREE"};
  out.add(
      "  numerics: %s unless a call sets another mode. ORDERED adds from left to right by replica id; "
      "REPRODUCIBLE adds exactly and rounds once; TREE adds in a fixed tree over replica ids\n",
      kNumerics[strategy.pool().numerics() - DIST_NUMERICS_ORDERED]);
  out.add(
      "  asynchronous: run by the last replica to arrive%s and replicas that wait; pending ones take %zu "
      "bytes "
      "each, %s in total at most\n",
      strategy.has_helpers() ? ", oneTBB threads" : "", Places::bytes_of_one(replicas),
      Size(strategy.async_memory().limit()).text);
  out.add("  block size: %s; between blocks a replica checks whether its group has failed\n",
          Size(Exchange::kBlockUnits * kUnitBytes).text);
  out.add("  non-temporal stores: for results above %s that are not in place\n",
          Size(Exchange::stream_bytes(static_cast<std::size_t>(replicas), last_level_cache_bytes())).text);
}

void write_memory(Strategy& strategy, TextOut& out) {
  const FlightRecorder& recorder = strategy.recorder();
  out.add(
      "\nMemory and tracing\n  memory: %s held from the strategy's allocator, %s of it by the flight "
      "recorder\n",
      Size(strategy.memory().held()).text, Size(recorder.bytes()).text);
  out.add("  flight recorder: the last %d events of each replica, timed by %s\n", recorder.length(),
          recorder.uses_counter() ? "the CPU's time-stamp counter"
                                  : "the system's clock, because the CPU's time-stamp counter is not steady");
}

}  // namespace

void explain(Strategy& strategy, TextOut& out) {
  write_summary(summary_of(strategy), out);
  write_replicas(strategy, out);
  if (strategy.kind() == DIST_STRATEGY_MULTI_WORKER_MIRRORED) write_workers(strategy, out);
  write_devices(strategy, out);
  if (strategy.kind() == DIST_STRATEGY_MESH) write_logical_devices(strategy, out);
  write_groups(strategy, out);
  write_threads(strategy, out);
  write_placement(strategy, out);
  write_collisions(strategy, out);
  write_loops(strategy, out);
  write_budget(strategy, out);
  write_machine(strategy, out);
  write_waiting(strategy, out);
  write_collectives(strategy, out);
  if (Instances* const instances = strategy.known_instances(); instances != nullptr) {
    out.put("\nServing\n");
    explain(*instances, out);
  }
  write_memory(strategy, out);
}

}  // namespace dist
