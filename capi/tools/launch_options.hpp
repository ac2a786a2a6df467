// SPDX-License-Identifier: Apache-2.0
// The command line of dist-launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dist::launch {

inline constexpr int32_t kMaxLocalTasks = 65536;  // DIST_MAX_CLUSTER_TASKS
inline constexpr int32_t kMaxRestarts = 1000000;
inline constexpr int32_t kMaxGraceSeconds = 86400;

enum class RestartWhat : uint8_t { kTask, kJob };

// A machine in --hosts.
struct Host {
  std::string name;  // as used in addresses: IPv6 in brackets
  int32_t num_tasks = 1;
};

struct Options {
  int32_t workers = 0;   // on all machines, including the chief (also that of --ps)
  int32_t replicas = 0;  // 0: not given
  int32_t ps = 0;        // if positive, the chief decides when the job ends
  bool chief = false;
  int32_t restarts = 0;  // for the whole job
  RestartWhat restart = RestartWhat::kTask;
  std::vector<Host> hosts;  // empty: only this machine
  int32_t index = 0;        // of this machine in hosts
  int32_t first_port = 29500;
  int64_t grace_ns = 10'000'000'000;
  bool prefix = true;
  char** program = nullptr;  // with its arguments and a final NULL
};

enum class Asked : uint8_t { kRun, kHelp, kVersion, kNonsense };

struct Parsed {
  Asked asked = Asked::kRun;
  Options options;
  std::string error;  // for kNonsense: the problem, without a newline
};

// Changes nothing but getopt's variables, and prints nothing.
Parsed parse_options(int argc, char** argv);

extern const char kHelp[];

}  // namespace dist::launch
