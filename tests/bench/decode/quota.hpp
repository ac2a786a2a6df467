// SPDX-License-Identifier: Apache-2.0
// A control group that limits the total CPU time of its processes, as containers do: cgroup v1 or v2.
#pragma once

#include <string>

namespace bench::decode {

class Quota {
 public:
  // Limits the processes to the time of `cpus` CPUs in each period of 100 ms. Throws std::runtime_error with
  // the reason if no group can be made.
  explicit Quota(double cpus);
  ~Quota();
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // A process enters the group by writing its number to this file.
  std::string processes() const { return folder_ + "/cgroup.procs"; }

 private:
  std::string folder_;
};

}  // namespace bench::decode
