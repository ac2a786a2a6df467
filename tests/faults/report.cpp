// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tests/faults/comparison.hpp"
#include "tests/faults/namespaces.hpp"
#include "tests/faults/process_matrix.hpp"
#include "tests/faults/worker_matrix.hpp"

namespace faults {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

namespace {

double microseconds(const std::vector<int64_t>& latencies_ns, double share) {
  return quantile({latencies_ns.begin(), latencies_ns.end()}, share) * 1e-3;
}

class Table {
 public:
  // `classes` names the axis by which a fault's cells are classified.
  Table(const char* classes, uint64_t seed, const char* deadlines = "deadlines by a clock moved by hand")
      : classes_(classes), seed_(seed) {
    std::printf("seed %" PRIu64 "; from the cause to each peer's return; %s\n\n", seed, deadlines);
    std::printf("%-18s %-13s %8s %7s %9s %8s %12s %12s %12s\n", "fault", classes, "cells", "wrong",
                "leftovers", "returns", "p50 µs", "p99 µs", "max µs");
  }

  void add(const char* fault, const char* part, Tally& result) {
    total_.cells += result.cells, total_.wrong += result.wrong, total_.leftovers += result.leftovers;
    total_.latencies_ns.insert(total_.latencies_ns.end(), result.latencies_ns.begin(),
                               result.latencies_ns.end());
    const std::string line = print(fault, part, result);
    json_ += (json_.empty() ? "" : ",\n") + line;
  }
  // Prints the total, and returns whether everything is correct.
  bool end(bool may_be_empty = false) {
    (void)print("total", "", total_);
    return total_.wrong == 0 && total_.leftovers == 0 && (total_.cells > 0 || may_be_empty);
  }
  std::string json(const char* axes, const std::string& more) const {
    return "{\n  \"seed\": " + std::to_string(seed_) + ",\n  " + axes +
           ",\n  \"total\": {\"cells\": " + std::to_string(total_.cells) +
           ", \"wrong\": " + std::to_string(total_.wrong) +
           ", \"leftovers\": " + std::to_string(total_.leftovers) + "},\n  \"classes\": [\n" + json_ +
           "\n  ]" + more + "\n}\n";
  }

 private:
  std::string print(const char* fault, const char* part, Tally& result) const {
    const double p50 = microseconds(result.latencies_ns, 0.5);
    const double p99 = microseconds(result.latencies_ns, 0.99);
    const double most = microseconds(result.latencies_ns, 1);
    std::printf("%-18s %-13s %8" PRId64 " %7" PRId64 " %9" PRId64 " %8zu %11.1f %11.1f %11.1f\n", fault, part,
                result.cells, result.wrong, result.leftovers, result.latencies_ns.size(), p50, p99, most);
    for (const std::string& finding : result.findings) std::printf("    %s\n", finding.c_str());
    std::fflush(stdout);
    char numbers[256];
    std::snprintf(numbers, sizeof numbers,
                  "    {\"fault\": \"%s\", \"%s\": \"%s\", \"cells\": %" PRId64 ", \"wrong\": %" PRId64
                  ", \"leftovers\": %" PRId64
                  ", \"returns\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, \"findings\": [",
                  fault, classes_, part, result.cells, result.wrong, result.leftovers,
                  result.latencies_ns.size(), p50, p99, most);
    std::string line = numbers;
    for (std::size_t i = 0; i < result.findings.size(); ++i)
      line += (i == 0 ? "" : ", ") + quoted(result.findings[i]);
    return line + "]}";
  }

  const char* const classes_;
  const uint64_t seed_;
  Tally total_;
  std::string json_;
};

bool write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool well = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) == 0 && well) return true;
  std::fprintf(stderr, "%s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

// Whether the peers returned within the documented time.
bool holds(WorkerFault fault, const Tally& result) {
  const int64_t most_ns = most_ns_of(fault);
  int64_t slowest = 0;
  for (const int64_t each : result.latencies_ns) slowest = std::max(slowest, each);
  if (most_ns == 0 || slowest <= most_ns) return true;
  std::printf("    the slowest return took %.2f of the %.1f s in which it must be\n",
              static_cast<double>(slowest) / static_cast<double>(most_ns),
              static_cast<double>(most_ns) * 1e-9);
  return false;
}

}  // namespace

bool report(const Options& options, const ReportOptions& to) {
  Table table("form", options.seed);
  std::vector<ClassResult> results;
  for (int fault = 0; fault < kFaults; ++fault) {
    for (ClassResult& result : play_all(static_cast<Fault>(fault), options)) {
      table.add(fault_name(result.fault), form_name(result.form), result);
      results.push_back(std::move(result));
    }
  }
  const bool well = table.end();
  std::string more;
  if (!to.peers.empty())
    more = ",\n" + compare({to.peers, !options.whole, options.filter, false}, compared(results));
  return (to.json.empty() || write_file(to.json, table.json("\"members\": [2, 3, 4, 8]", more))) && well;
}

bool report_workers(const Options& options, const ReportOptions& to) {
  Table table("when", options.seed);
  for (int fault = 0; fault < kWorkerFaults; ++fault) {
    for (WorkerResult& result : play_all(static_cast<WorkerFault>(fault), options))
      table.add(worker_fault_name(result.fault), when_name(result.when), result);
  }
  const bool well = table.end();
  const char* const axes = "\"workers\": [2, 3, 4], \"replicas\": [1, 2]";
  return (to.json.empty() || write_file(to.json, table.json(axes, ""))) && well;
}

bool report_processes(const Options& options, const ReportOptions& to, bool namespaces, bool hold) {
  Table table("form", options.seed, "a lease of 2 s");
  bool held = true;
  std::string why_not;
  std::vector<ProcessResult> results;
  for (int fault = 0; fault < kLinkFaults && namespaces; ++fault) {
    std::string why;
    for (LinkResult& result : play_links(static_cast<LinkFault>(fault), options, &why)) {
      table.add(link_fault_name(result.fault), result.tls ? "TLS" : "plain text", result);
      if (result.fault == LinkFault::kDown && hold) held = holds(WorkerFault::kCutOff, result) && held;
    }
    if (why.empty()) continue;
    std::printf("%-18s skipped: %s\n", link_fault_name(static_cast<LinkFault>(fault)), why.c_str());
    why_not = why;
  }
  for (int fault = 0; fault < kProcessFaults && !namespaces; ++fault) {
    for (ProcessResult& result : play_all_processes(static_cast<WorkerFault>(fault), options)) {
      table.add(worker_fault_name(result.fault), form_name(result.form), result);
      held = (!hold || holds(result.fault, result)) && held;
      results.push_back(std::move(result));
    }
  }
  const bool well = table.end(!why_not.empty()) && held;
  std::string more;
  if (!to.peers.empty())
    more = ",\n" + compare({to.peers, !options.whole, options.filter, true}, compared(results));
  const char* const axes = "\"workers\": [2, 3], \"replicas\": [1, 2]";
  return (to.json.empty() || write_file(to.json, table.json(axes, more))) && well;
}

}  // namespace faults
