// SPDX-License-Identifier: Apache-2.0
// Writes the JSON file: all data behind the table, and the median of every round.
#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/bench/machine.hpp"
#include "tests/bench/report.hpp"

namespace bench {
namespace {

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::kTimesAsFast: return "times_as_fast";
    case Unit::kOfLimit: return "share_of_limit";
    case Unit::kHops: return "hops";
    case Unit::kTimePerByte: return "times_f32_per_byte";
    case Unit::kCpuShare: return "cpu_share";
    case Unit::kOfOrdered: return "times_ordered";
    case Unit::kOfLonger: return "times_longer";
    case Unit::kOfInPlace: return "times_in_place";
    case Unit::kExponent: return "exponent";
    case Unit::kOfC: return "times_c";
    case Unit::kAboveC: return "us_above_c";
  }
  return "";
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNone: return "none";
    case Verdict::kMet: return "met";
    case Verdict::kLevel: return "level";
    case Verdict::kMissed: return "missed";
  }
  return "";
}

const char* operation_name(const RowSpec& row) {
  switch (row.operation) {
    case Operation::kAllReduce: return "all_reduce";
    case Operation::kBarrier: return "barrier";
    case Operation::kRun: return row.caller_waits ? "run_on_library_threads" : "run";
    case Operation::kIdle: return "idle";
    case Operation::kList: return "all_reduce_list";
    case Operation::kReduceTo: return "batch_reduce_to";
    case Operation::kStep: return "reduce_apply";
    case Operation::kWideSum:
      return row.numerics == DIST_NUMERICS_TREE ? "all_reduce_tree" : "all_reduce_reproducible";
    case Operation::kPlanned: return "all_reduce_planned";
    case Operation::kOverlap: return "all_reduce_overlapped";
    case Operation::kHanding: break;  // each of these has its own name
    case Operation::kGrowth: return "growth";
    case Operation::kPush:
    case Operation::kPull:
    case Operation::kClosure:
    case Operation::kClosurePush:
    case Operation::kEncode: break;  // not in this program
  }
  return "";
}

void write_list(FILE* f, const std::vector<std::string>& texts) {
  std::fprintf(f, "[");
  for (const std::string& text : texts)
    std::fprintf(f, "%s%s", &text == &texts.front() ? "" : ", ", quoted(text).c_str());
  std::fprintf(f, "]");
}

void write_programs(FILE* f, const char* kind, const Peers& programs) {
  std::fprintf(f, "  \"%s\": ", kind);
  write_list(f, programs.names());
  std::fprintf(f, ",\n  \"%s_skipped\": ", kind);
  write_list(f, programs.skipped());
  std::fprintf(f, ",\n");
}

void write_side(FILE* f, const SideResult& side) {
  std::fprintf(f, "{\"name\": %s, \"median_us\": %.6g, \"min_us\": %.6g, \"rounds_us\": [",
               quoted(side.name).c_str(), side.median_us, side.min_us);
  for (size_t i = 0; i < side.round_us.size(); ++i)
    std::fprintf(f, "%s%.6g", i ? ", " : "", side.round_us[i]);
  std::fprintf(f, "]}");
}

void write_comparison(FILE* f, const Comparison& c) {
  std::fprintf(f,
               "{\"with\": %s, \"group\": %s, \"unit\": \"%s\", \"more_is_better\": %s, \"ratio\": %.6g, "
               "\"min\": %.6g, "
               "\"max\": %.6g",
               quoted(c.with).c_str(), quoted(c.group).c_str(), unit_name(c.unit),
               more_is_better(c.unit) ? "true" : "false", c.ratio, c.ratio_min, c.ratio_max);
  if (c.target) {
    std::fprintf(f, ", \"floor\": %.6g, \"goal\": %.6g, \"floor_verdict\": \"%s\", \"goal_verdict\": \"%s\"",
                 c.target->floor, c.target->goal, verdict_name(c.floor), verdict_name(c.goal));
  }
  if (c.most != 0) std::fprintf(f, ", \"limit\": %.6g", c.most);
  std::fprintf(f, "}");
}

void write_row(FILE* f, const RowResult& row) {
  const RowSpec& spec = row.spec;
  std::fprintf(f, "    {\"name\": %s, \"operation\": \"%s%s\", \"replicas\": %d, \"pace\": \"%s\"",
               quoted(spec.name()).c_str(), spec.bindings != Threads::kNone ? "bindings_" : "",
               spec.operation == Operation::kHanding ? handing_name(spec.handing) : operation_name(spec),
               spec.replicas, pace_name(spec.pace));
  if (spec.bindings != Threads::kNone)
    std::fprintf(f, ", \"threads\": \"%s\"", spec.bindings == Threads::kHost ? "host" : "library");
  if (spec.operation == Operation::kAllReduce) {
    std::fprintf(f, ", \"dtype\": \"%s\", \"bytes\": %zu, \"layout\": \"%s\"", dtype_name(spec.dtype),
                 spec.bytes, layout_name(spec.layout));
  } else if (spec.bytes != 0) {
    std::fprintf(f, ", \"bytes\": %zu", spec.bytes);
  }
  if (row.hop_us != 0) std::fprintf(f, ", \"hop_us\": %.4g", row.hop_us);
  std::fprintf(f, ", \"others_cpu\": %.3g", row.others_cpu);
  if (!row.note.empty()) std::fprintf(f, ", \"note\": %s", quoted(row.note).c_str());
  std::fprintf(f, ",\n     \"sides\": [");
  for (size_t i = 0; i < row.sides.size(); ++i) {
    if (i != 0) std::fprintf(f, ",\n               ");
    write_side(f, row.sides[i]);
  }
  std::fprintf(f, "],\n     \"comparisons\": [");
  for (size_t i = 0; i < row.comparisons.size(); ++i) {
    if (i != 0) std::fprintf(f, ",\n                     ");
    write_comparison(f, row.comparisons[i]);
  }
  std::fprintf(f, "]}");
}

}  // namespace

bool write_json(const std::string& path, const Settings& settings, const std::vector<RowResult>& rows,
                const Runner& runner) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  if (!file) {
    std::fprintf(stderr, "dist_bench: %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
  }
  FILE* const f = file.get();
  std::fprintf(f, "{\n  \"rounds\": %d,\n  \"judged\": %s,\n  \"machine\": {", settings.rounds,
               settings.judged ? "true" : "false");
  const char* comma = "";
  for (const auto& [key, value] : machine_facts()) {
    std::fprintf(f, "%s\n    %s: %s", comma, quoted(key).c_str(), quoted(value).c_str());
    comma = ",";
  }
  std::fprintf(f, "\n  },\n");
  write_programs(f, "peers", runner.peers());
  write_programs(f, "bindings", runner.bindings());
  const Tally sum = tally(rows);
  std::fprintf(f,
               "  \"floors\": {\"met\": %d, \"level\": %d, \"missed\": %d, \"missed_disturbed\": "
               "%d, \"out_of_reach\": %d},\n  \"rows\": [\n",
               sum.met, sum.level, sum.missed, sum.missed_disturbed, sum.out_of_reach);
  for (size_t i = 0; i < rows.size(); ++i) {
    write_row(f, rows[i]);
    std::fprintf(f, "%s\n", i + 1 < rows.size() ? "," : "");
  }
  std::fprintf(f, "  ]\n}\n");
  const bool written = std::ferror(f) == 0;
  if (std::fclose(file.release()) == 0 && written) return true;
  std::fprintf(stderr, "dist_bench: %s could not be written\n", path.c_str());
  return false;
}

}  // namespace bench
