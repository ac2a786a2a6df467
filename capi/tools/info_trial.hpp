// SPDX-License-Identifier: Apache-2.0
// The trial of dist-info --check: two workers, which are processes of dist-info itself, meet on loopback and
// sum a tensor.
#pragma once

#include <cstdint>
#include <string>

namespace dist::info {

// How the trial differs from a job.
struct TrialOptions {
  bool without_tls = false;        // the certificate is not for 127.0.0.1
  bool without_transport = false;  // DIST_TRANSPORT needs a launcher of its own
};

struct Trial {
  std::string error;      // empty: it has succeeded
  std::string transport;  // "shm", "grpc", "gloo", or the name of a link module
  int64_t start_ns = 0;   // from the start of the processes to the result
  int64_t sum_ns = 0;     // the median time of one all_reduce
};

inline constexpr int64_t kTrialTensorBytes = 4096;

Trial run_trial(const TrialOptions& options);

// Starts a process that creates a strategy with the settings of this environment, for a cluster on loopback,
// and ends. Returns why that fails; empty if it does not.
std::string try_settings(const TrialOptions& options);

// The argument that makes dist-info one of these processes, followed by its role and its addresses.
inline constexpr char kTrialArgument[] = "--trial-process";
// The main function of such a process. Returns its exit status.
int run_trial_process(int argc, char** argv);

}  // namespace dist::info
