// SPDX-License-Identifier: Apache-2.0
// The report that dist-info prints without --check: the library, its modules, and the machine as the library
// sees it.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capi/tools/info_cluster.hpp"

namespace dist::info {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

// A feature or a module.
struct Available {
  std::string name;
  bool is_available = false;
  std::string file;  // of a module, if it is available
  std::string why;   // why it is not available
};

struct Cpus {
  int allowed = 0;   // in the affinity mask
  std::string list;  // "0-3, 6"
  double quota = 0;  // of the cgroup, in CPUs; 0: none
  int usable = 0;    // by both
  int packages = 0;  // of the allowed CPUs, like each of the following
  int numa_domains = 0;
  int cores = 0;
  std::size_t cache_bytes = 0;  // of the last level
};

struct Clock {
  std::string source;              // as Linux names it
  bool is_counter_steady = false;  // the CPU's time-stamp counter
  int64_t read_ns = 0;             // the time of one reading
  bool is_synchronized = false;    // with a time server, as far as the kernel knows
};

struct Limit {
  const char* name;              // "NOFILE"
  std::optional<uint64_t> most;  // the soft limit; empty: unlimited
};

struct Report {
  std::string version;
  std::string library;  // the file of libdist
  std::vector<Available> features;
  std::vector<Available> modules;
  std::vector<std::string> transports;  // names for DIST_TRANSPORT, and "shm"
  Cpus cpus;
  std::string simd;
  Clock clock;
  std::vector<Limit> limits;
  Cluster cluster;
  std::vector<std::string> environment;  // the names of the DIST_ variables that are set, and TF_CONFIG

  const Limit* limit(const char* name) const;
};

Report make_report();
std::string text_of(const Report& report);
// Writes the members of an object.
void write_json(const Report& report, JsonWriter& json);
void write_text(JsonWriter& json, const char* key, const std::string& text);

}  // namespace dist::info
