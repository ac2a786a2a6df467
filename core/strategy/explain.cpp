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
#include "core/collective/collectives.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/route.hpp"
#include "core/kernel/reduce.hpp"
#include "core/serve/write_metrics.hpp"

namespace dist {
namespace {

// For example "512 B", "64 KiB" or "1.5 MiB".
struct Size {
  explicit Size(std::size_t bytes) noexcept {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
    std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[unit]);
  }
  char text[32];
};

void write_quota(TextOut& out, double quota) {
  if (quota > 0) {
    out.add("a cgroup quota of %.3g CPUs", quota);
  } else {
    out.put("no cgroup quota");
  }
}

void write_width(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  const int usable = usable_cpus(origin.allowed_cpus, origin.cpu_quota);
  out.add("replicas: %d, ", strategy.replicas().local());
  if (has_one_replica(origin.kind)) {
    out.put("since a one-device or default strategy has one\n");
  } else if (origin.num_replicas != 0) {
    out.put("as asked\n");
  } else if (usable > DIST_MAX_REPLICAS) {
    out.put("the most that a strategy can have\n");
  } else {
    out.put("one for each usable CPU, since num_replicas was 0\n");
  }
  const char* const whose = origin.chose_cpus ? "the host's choice" : "an affinity mask";
  char cpus[256];
  list_cpus(origin.cpus, cpus);
  out.add("cpus: %d usable at creation: %s of %d (%s) and ", usable, whose, origin.allowed_cpus, cpus);
  write_quota(out, origin.cpu_quota);
  out.put(". Both are read when the strategy is created, and not again");
  const int allowed = origin.chose_cpus ? origin.allowed_cpus : allowed_cpus();
  const double quota = cgroup_cpu_quota("");
  if (allowed != origin.allowed_cpus || quota != origin.cpu_quota) {
    out.add("; they have changed: %s now allows %d, with ", origin.chose_cpus ? "it" : "this thread's mask",
            allowed);
    write_quota(out, quota);
    out.put(". A new strategy would follow");
  }
  out.put("\n");
}

void write_workers(Strategy& strategy, TextOut& out) {
  const WorkerPlace& place = strategy.worker();
  const ReplicaCount replicas = strategy.replicas();
  out.add("workers: %d", place.num_workers());
  if (!place.job.is_set) {
    out.put(", as there is no cluster\n");
    return;
  }
  out.add(", of which this is %d (task %d of job %s", place.number(), place.task, place.job.text);
  out.put(place.is_chief ? ", which is the chief)" : ")");
  if (place.num_workers() == 1) {
    out.put("; it needs no other\n");
    return;
  }
  out.add(" with replicas %d-%d of %d; ", number(replicas.first()),
          number(replicas.first()) + replicas.local() - 1, replicas.global());
  if (const WorkerLink::Way& way = strategy.workers()->way(); way.network() != nullptr) {
    char how[256];
    way.network()->describe(how, sizeof how);
    out.add("the others are %s\n", how);
  } else {
    out.add("nothing leads to the others: %s\n", way.why());
  }
}

void write_devices(Strategy& strategy, TextOut& out) {
  const auto workers = strategy.devices().workers();
  out.put("devices: ");
  if (workers.empty()) {
    out.put("none, as the default strategy names none\n");
    return;
  }
  const auto first = strategy.devices().parameters();
  const int first_replica = number(strategy.replicas().first());
  out.add("replica %d is %s", first_replica, workers[0].c_str());
  for (int r = 1; r < std::ssize(workers); ++r)
    out.add(", %d %s", first_replica + r, workers[static_cast<std::size_t>(r)].c_str());
  if (strategy.kind() == DIST_STRATEGY_CENTRAL_STORAGE) out.add("; variables are on %s", first[0].c_str());
  out.put(". Names of places: all of them are this host's memory\n");
}

void write_logical_devices(const Strategy& strategy, TextOut& out) {
  const DeviceMesh& mesh = strategy.mesh();
  out.add("logical devices: %d of each replica, axes", mesh.num_devices);
  for (std::size_t i = 0; i < mesh.num_axes(); ++i)
    out.add("%s %s %d", i == 0 ? "" : ",", mesh.names[i].c_str(), mesh.sizes[i]);
  if (mesh.num_devices == 1) {
    out.put("; the replica's own thread is it\n");
  } else {
    out.put("; the replica's own thread is device 0, the others are library threads\n");
  }
  out.put(strategy.spmd() ? "partitioning: SPMD, so no tensor can be assigned to one device\n"
                          : "partitioning: tensors may be split, replicated, or assigned to one device\n");
}

void write_threads(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  const int last = strategy.replicas().local() - 1;
  out.put("threads: ");
  if (origin.threads == DIST_THREADS_HOST) {
    out.put("the host's own, which enter and leave; libdist has started none for replicas\n");
  } else if (origin.threads == DIST_THREADS_LIBRARY) {
    out.add("replicas 0-%d are library threads; dist_run()'s caller waits\n", last);
  } else if (last == 0) {
    out.put("replica 0 is dist_run()'s caller; there is no other\n");
  } else if (last == 1) {
    out.put("replica 0 is dist_run()'s caller, replica 1 a library thread\n");
  } else {
    out.add("replica 0 is dist_run()'s caller, replicas 1-%d are library threads\n", last);
  }
  if (origin.threads != DIST_THREADS_HOST) {
    if (origin.stack_bytes == 0) {
      out.put("stacks: library threads have as much as the system gives by default\n");
    } else {
      out.add("stacks: library threads have %lld bytes, as asked\n",
              static_cast<long long>(origin.stack_bytes));
    }
  }
}

// Which threads are bound to which CPUs. The caller's thread is not bound. Threads for runs inside merge
// functions are not listed, because they are bound like the replicas.
void write_pinned(Strategy& strategy, TextOut& out) {
  const Placement& placement = strategy.placement();
  const int devices = strategy.mesh().num_devices;
  const bool has_caller = strategy.origin().threads == DIST_THREADS_CALLER;
  out.put(placement.named()
              ? "each library thread on the CPU of its device in the assignment"
              : "each library thread on the CPU that fewest of this process's library threads were kept on "
                "at creation, neighbours near");
  const char* before = ": ";
  for (int r = 0; r < strategy.replicas().local(); ++r) {
    for (int d = 0; d < devices; ++d) {
      if (has_caller && r == 0 && d == 0) continue;
      out.add("%sreplica %d", before, r);
      if (devices > 1) out.add(" device %d", d);
      out.add(" on CPU %d", placement.cpu_of(LocalReplica{r}, d));
      before = ", ";
    }
  }
}

void write_host_threads(const StrategyOrigin& origin, TextOut& out) {
  if (origin.move_host_threads) {
    out.put(
        "; a thread of the host's that keeps meeting a peer on its own CPU moves to another of its mask\n");
  } else if (origin.threads == DIST_THREADS_HOST) {
    out.put("; its threads are never moved\n");
  } else {
    out.put("; the caller's thread is never moved\n");
  }
}

void write_placement(Strategy& strategy, TextOut& out) {
  out.put("placement: ");
  if (strategy.origin().threads == DIST_THREADS_HOST) {
    out.put("the host's affair");
  } else if (strategy.placement().pins()) {
    write_pinned(strategy, out);
  } else if (strategy.placement().within() != nullptr) {
    out.put("each library thread on any of the host's choice of CPUs");
  } else if (strategy.group().oversubscribed()) {
    out.put("free: wherever the system puts the threads");
  } else {
    out.put(
        "free: wherever the system puts the threads; a library thread that keeps meeting a peer on its own "
        "CPU moves to another");
  }
  write_host_threads(strategy.origin(), out);
}

// How replicas that met on one CPU were separated, since the workers last formed.
void write_meetings(Strategy& strategy, TextOut& out) {
  const StrategyOrigin& origin = strategy.origin();
  const int replicas = strategy.replicas().local();
  if (replicas == 1 || strategy.group().oversubscribed()) return;
  out.put("shared CPUs:");
  bool stayed = false;
  const char* before = " ";
  for (int r = 0; r < replicas; ++r) {
    const unsigned met = strategy.group().apart(r).met.load(std::memory_order_relaxed);
    const unsigned moved = strategy.group().apart(r).moved.load(std::memory_order_relaxed);
    if (met == 0) continue;
    out.add(
        "%sreplica %d kept meeting another one on its CPU %u times, while one that it may use had none; it "
        "moved %u times",
        before, number(strategy.replicas().first()) + r, met, moved);
    stayed = stayed || moved < met;
    before = ", ";
  }
  if (*before == ' ') out.put(" no replica kept meeting another one while it might have been elsewhere");
  if (stayed && origin.threads != DIST_THREADS_LIBRARY && !origin.move_host_threads)
    out.put(". With move_host_threads the host's threads move, too");
  out.put("\n");
}

void write_loops(Strategy& strategy, TextOut& out) {
  out.put("loops: dist_parallel_for() ");
  if (const Executor& executor = strategy.executor(); executor.execute != nullptr) {
    return out.add(
        "runs on the calling thread and on at most %d of the host's executor, as do reductions from "
        "outside\n",
        executor.num_threads);
  }
  if (!strategy.has_helpers())
    return out.put("runs on the calling thread alone, as do reductions from outside: helper_threads is 0\n");
  const Placement& placement = strategy.placement();
  const StrategyOrigin& origin = strategy.origin();
  const int share =
      std::max(1, usable_cpus(origin.allowed_cpus, origin.cpu_quota) / strategy.replicas().local());
  out.add("has %d of the usable CPUs in each replica, its own thread's among them; ", share);
  if (placement.num_domains() == 0) {
    out.add("on any %s, as libdist sees one NUMA domain\n",
            placement.within() == nullptr ? "CPU" : "of the host's choice of CPUs");
  } else if (share == 1) {
    out.put("so it runs on the replica's own thread alone\n");
  } else {
    out.put("oneTBB's workers are on a NUMA domain meanwhile, the replica's own thread is not moved");
    for (int r = 0; r < strategy.replicas().local(); ++r) {
      const CpuSet* const domain = placement.domain_of(LocalReplica{r}, 0, share);
      out.add("%s replica %d on ", r == 0 ? ":" : ",", r);
      if (domain != nullptr) {
        out.add("domain %d", placement.number_of(*domain));
      } else {
        out.put("any, as its share is more than a domain has");
      }
    }
    out.put("\n");
  }
}

void write_budget(Strategy& strategy, TextOut& out) {
  out.put("budget: ");
  if (strategy.budget() == nullptr)
    return out.put("none: runs and requests begin whatever other strategies do\n");
  const Budget::State state = strategy.budget()->state();
  out.add(
      "%d threads, %d in use, %d runs and requests waiting; a run of this strategy takes %d, a request 1\n",
      state.threads, state.used, state.waiting, std::min(strategy.pool().budget_share(), state.threads));
}

void write_waiting(Strategy& strategy, TextOut& out) {
  const WaitPolicy& policy = strategy.group().policy();
  out.put("waiting: ");
  if (policy.oversubscribed) {
    out.add(
        "oversubscribed, as %s: a waiting replica gives its CPU away at once, and after %g us sleeps; %d "
        "work side "
        "by side\n",
        strategy.replicas().local() > policy.lanes
            ? "there are more replicas than usable CPUs"
            : "the threads that move messages between workers need CPUs, too",
        static_cast<double>(policy.spin_ns) * 1e-3, policy.lanes);
  } else {
    out.add(
        "a short spin, as there is a CPU for each replica; then looks between which it gives its CPU away, "
        "for %g us; then sleep\n",
        static_cast<double>(policy.spin_ns) * 1e-3);
  }
  out.put(policy.asymmetric
              ? "fences: none on the steady path, as the system can order all threads at once for the one "
                "that sleeps\n"
              : "fences: one at each arrival, as the system cannot order all threads at once\n");
  out.put("deadline: ");
  if (strategy.timeout_ns() < 0) {
    out.put("none for a peer's arrival\n");
  } else {
    out.add("%s for a peer's arrival, unless a call has its own\n", DurationText(strategy.timeout_ns()).text);
  }
}

const char* words_of(Route route) noexcept {
  switch (route) {
    case Route::kNothing: break;
    case Route::kTravels:
      return "its bytes travel with the slots on which replicas announce themselves; each reduces all, and "
             "waits once";
    case Route::kAlone:
      return "the last replica to come does the work for all, as waking each would take longer";
    case Route::kParts: return "each replica does an equal part of the work, into all outputs at once";
    case Route::kBlocks: return "each replica takes blocks of its part, and then of the others'";
  }
  return "replicas only meet";
}

// The algorithms for an all_reduce of one tensor, by size.
void write_routes(Strategy& strategy, TextOut& out) {
  RouteQuestion question{.members = strategy.replicas().local(),
                         .oversubscribed = strategy.group().oversubscribed(),
                         .can_travel = true,
                         .bytes = 1};
  for (;;) {
    const std::size_t most = most_bytes_like(question);
    const bool last = most > PTRDIFF_MAX;
    const Route route = route_of(question);
    out.put("algorithm ");
    if (last)
      out.put("above");
    else
      out.add("up to %s", Size(most).text);
    out.add("%s: %s\n", route == Route::kTravels ? ", all_reduce of one tensor" : "", words_of(route));
    if (last) return;
    question.bytes = most + 1;
  }
}

void write_algorithms(Strategy& strategy, TextOut& out) {
  const std::size_t cache = last_level_cache_bytes();
  const auto replicas = static_cast<std::size_t>(strategy.replicas().local());
  write_routes(strategy, out);
  const bool helped = strategy.has_helpers();
  out.add(
      "asynchronous: done by who comes last, %swho waits for them; up to %s (async_bytes) for those under "
      "way, %zu bytes one of all replicas\n",
      helped ? "oneTBB's workers and " : "and, as libdist starts no thread here, ",
      Size(strategy.async_memory().limit()).text, Places::bytes_of_one(strategy.replicas().local()));
  out.add("stores: past the cache for results above %s that are not in place\n",
          Size(Exchange::stream_bytes(replicas, cache)).text);
  out.add("block: %s, after which a replica looks whether the group is in trouble\n",
          Size(Exchange::kBlockUnits * kUnitBytes).text);
  out.add("cache: %s of last level\n", Size(cache).text);
  out.add("simd: %s, chosen for this CPU at run time; all targets give the same bits\n", kernel_targets()[0]);
  static constexpr const char* kNumerics[] = {"ORDERED", "REPRODUCIBLE", "TREE"};
  out.add(
      "numerics: %s where a call does not say; ORDERED folds from left to right by replica id, whatever the "
      "algorithm; REPRODUCIBLE adds exactly and rounds once; TREE folds by a fixed tree over the replica "
      "ids\n",
      kNumerics[strategy.pool().numerics()]);
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
  out.add("groups: 0 of all %d replicas", strategy.replicas().global());
  for (const Shape& shape : shapes) out.add(", %d of %d", shape.number, shape.size);
  out.put("\n");
}

}  // namespace

void explain(Strategy& strategy, TextOut& out) {
  write_width(strategy, out);
  if (strategy.kind() == DIST_STRATEGY_MULTI_WORKER_MIRRORED) write_workers(strategy, out);
  write_devices(strategy, out);
  if (strategy.kind() == DIST_STRATEGY_MESH) write_logical_devices(strategy, out);
  write_threads(strategy, out);
  write_placement(strategy, out);
  write_meetings(strategy, out);
  write_loops(strategy, out);
  write_budget(strategy, out);
  write_waiting(strategy, out);
  write_algorithms(strategy, out);
  write_groups(strategy, out);
  if (Instances* const instances = strategy.known_instances(); instances != nullptr) explain(*instances, out);
  const FlightRecorder& recorder = strategy.recorder();
  out.add("memory: %s held from the strategy's allocator, %s of it by the flight recorder\n",
          Size(strategy.memory().held()).text, Size(recorder.bytes()).text);
  out.add("recorder: the last %d events of each replica, stamped by %s\n", recorder.length(),
          recorder.uses_counter() ? "the CPU's time counter"
                                  : "the system's clock, as the CPU's counter is not steady");
}

}  // namespace dist
