// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tests/faults/comparison.hpp"

namespace faults {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

namespace {

double microseconds(std::vector<int64_t>& latencies_ns, double share) {
  if (latencies_ns.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::lround(share * static_cast<double>(latencies_ns.size() - 1)));
  std::nth_element(latencies_ns.begin(), latencies_ns.begin() + static_cast<std::ptrdiff_t>(at),
                   latencies_ns.end());
  return static_cast<double>(latencies_ns[at]) * 1e-3;
}

class Table {
 public:
  Table() {
    std::printf("%-18s %-13s %8s %7s %9s %12s %12s\n", "fault", "form", "cells", "wrong", "leftovers",
                "p50 µs", "p99 µs");
  }

  void add(const char* fault, const char* form, ClassResult& result) {
    const double p50 = microseconds(result.latencies_ns, 0.5);
    const double p99 = microseconds(result.latencies_ns, 0.99);
    std::printf("%-18s %-13s %8" PRId64 " %7" PRId64 " %9" PRId64 " %11.1f %11.1f\n", fault, form,
                result.cells, result.wrong, result.leftovers, p50, p99);
    for (const std::string& finding : result.findings) std::printf("    %s\n", finding.c_str());
    std::fflush(stdout);
    char line[256];
    std::snprintf(line, sizeof line,
                  "{\"fault\": \"%s\", \"form\": \"%s\", \"cells\": %" PRId64 ", \"wrong\": %" PRId64
                  ", \"leftovers\": %" PRId64 ", \"p50_us\": %.1f, \"p99_us\": %.1f, \"findings\": [",
                  fault, form, result.cells, result.wrong, result.leftovers, p50, p99);
    json_ += std::string(json_.empty() ? "" : ",\n") + "    " + line;
    for (std::size_t i = 0; i < result.findings.size(); ++i)
      json_ += (i == 0 ? "" : ", ") + quoted(result.findings[i]);
    json_ += "]}";
  }
  const std::string& json() const { return json_; }

 private:
  std::string json_;
};

bool write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool well = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) == 0 && well) return true;
  std::fprintf(stderr, "%s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

}  // namespace

bool report(const Options& options, const ReportOptions& to) {
  std::printf("seed %" PRIu64
              "; from the cause to each peer's return; deadlines by a clock moved by hand\n\n",
              options.seed);
  Table table;
  ClassResult total;
  std::vector<ClassResult> results;
  for (int fault = 0; fault < kFaults; ++fault) {
    for (ClassResult& result : play_all(static_cast<Fault>(fault), options)) {
      table.add(fault_name(result.fault), form_name(result.form), result);
      total.cells += result.cells, total.wrong += result.wrong, total.leftovers += result.leftovers;
      total.latencies_ns.insert(total.latencies_ns.end(), result.latencies_ns.begin(),
                                result.latencies_ns.end());
      results.push_back(std::move(result));
    }
  }
  const std::string classes = table.json();
  table.add("total", "", total);
  const bool well = total.wrong == 0 && total.leftovers == 0 && total.cells > 0;
  std::string more;
  if (!to.peers.empty()) more = ",\n" + compare({to.peers, !options.whole, options.filter}, results);
  if (to.json.empty()) return well;
  const std::string head =
      "{\n  \"seed\": " + std::to_string(options.seed) +
      ",\n  \"members\": [2, 3, 4, 8],\n  \"total\": {\"cells\": " + std::to_string(total.cells) +
      ", \"wrong\": " + std::to_string(total.wrong) + ", \"leftovers\": " + std::to_string(total.leftovers) +
      "},\n";
  return write_file(to.json, head + "  \"classes\": [\n" + classes + "\n  ]" + more + "\n}\n") && well;
}

}  // namespace faults
