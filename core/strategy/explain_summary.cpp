// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/explain_summary.hpp"

#include <cstdio>
#include <iterator>

namespace dist {
namespace {

void write_threads(const ExplainSummary& s, TextOut& out) {
  const int all = s.local_replicas * s.logical_devices;
  int library = all;
  if (s.threads == DIST_THREADS_CALLER) {
    library = all - 1;
    out.put("the thread that starts the run");
  } else if (s.threads == DIST_THREADS_HOST) {
    library = all - s.local_replicas;
    out.put(Count(s.local_replicas, "host thread").text);
  }
  if (library == 0) return out.put("\n");
  out.add("%s%s\n", library == all ? "" : " and ", Count(library, "library thread").text);
}

void write_strategy(const ExplainSummary& s, TextOut& out) {
  out.add("%s strategy with %s", s.kind, Count(s.replicas, "replica").text);
  if (s.logical_devices > 1) {
    out.add(" of %s%s", Count(s.logical_devices, "logical device").text, s.replicas > 1 ? " each" : "");
  }
  out.add(" on %s", Count(s.workers, "worker").text);
  if (s.workers > 1) {
    out.add(" (this is worker %d, with replica%s %d", s.worker, s.local_replicas == 1 ? "" : "s",
            s.first_replica);
    if (s.local_replicas > 1) out.add("-%d", s.first_replica + s.local_replicas - 1);
    out.put(")");
  }
  out.put("; threads: ");
  write_threads(s, out);
}

void write_machine(const ExplainSummary& s, TextOut& out) {
  out.add("machine: %s", Count(s.usable_cpus, "usable CPU").text);
  if (s.usable_cpus != s.allowed_cpus) {
    out.add(" (%d allowed, with a cgroup quota of %.3g)", s.allowed_cpus, s.cpu_quota);
  }
  out.add(", %s, SIMD target %s, %s of memory held\n", Count(s.numa_domains, "NUMA domain").text, s.simd,
          Size(s.held_bytes).text);
}

// Puts a separator between warnings, and "none" if there are none.
class Warnings {
 public:
  explicit Warnings(TextOut& out) : out_(out) { out_.put("warnings: "); }
  TextOut& next() {
    if (any_) out_.put("; ");
    any_ = true;
    return out_;
  }
  void end() { out_.put(any_ ? "\n" : "none\n"); }

 private:
  TextOut& out_;
  bool any_ = false;
};

void write_cpu_warning(const ExplainSummary& s, Warnings& warnings) {
  // The logical devices of a replica run at the same time. They matter only if the replicas fit.
  const bool by_device = s.logical_devices > 1 && s.local_replicas <= s.usable_cpus;
  const int wanted = s.local_replicas * (by_device ? s.logical_devices : 1);
  const Count who(wanted, by_device ? "logical device" : "replica");
  const char* const share = wanted == 1 ? "has" : "share";
  if (s.cpu_quota > 0 && s.cpu_quota < s.allowed_cpus && s.cpu_quota < wanted) {
    warnings.next().add("%s %s a cgroup quota of %.3g CPUs", who.text, share, s.cpu_quota);
  } else if (wanted > s.usable_cpus) {
    warnings.next().add("%s share %s", who.text, Count(s.usable_cpus, "usable CPU").text);
  } else if (s.network_threads && wanted == s.usable_cpus) {
    warnings.next().add("%s and the network threads share %s", who.text,
                        Count(s.usable_cpus, "usable CPU").text);
  }
}

}  // namespace

Size::Size(std::size_t bytes) noexcept {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  std::snprintf(text, sizeof text, "%.4g %s", value, kUnits[unit]);
}

Count::Count(long long number, const char* noun) noexcept {
  std::snprintf(text, sizeof text, "%lld %s%s", number, noun, number == 1 ? "" : "s");
}

void write_summary(const ExplainSummary& s, TextOut& out) {
  write_strategy(s, out);
  write_machine(s, out);
  // The most important ones first.
  Warnings warnings(out);
  if (s.no_connection != nullptr) {
    warnings.next().add("the other workers cannot be reached: %s", s.no_connection);
  }
  if (s.stuck != 0) {
    warnings.next().add(s.stuck == 1 ? "%s is stuck, and another thread has taken over"
                                     : "%s are stuck, and other threads have taken over",
                        Count(static_cast<long long>(s.stuck), "request function").text);
  }
  write_cpu_warning(s, warnings);
  if (s.exposed) {
    warnings.next().put("data sent to other machines is not encrypted");
  }
  if (s.budget_threads != 0 && s.budget_threads < s.run_threads) {
    warnings.next().add("a run keeps %s busy, but the budget has %d", Count(s.run_threads, "CPU").text,
                        s.budget_threads);
  }
  // It cannot be otherwise if there are more threads than CPUs.
  if (s.pinned_cpu >= 0 && s.local_replicas * s.logical_devices <= s.usable_cpus) {
    warnings.next().add("several library threads are pinned to CPU %d", s.pinned_cpu);
  }
  if (s.colliding != 0) {
    warnings.next().add("%s kept sharing a CPU with another one while a CPU was free",
                        Count(s.colliding, "replica").text);
  }
  if (s.quota_changed) warnings.next().put("the cgroup quota has changed since the strategy was created");
  warnings.end();
}

}  // namespace dist
