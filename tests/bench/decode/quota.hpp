// SPDX-License-Identifier: Apache-2.0
// A control group that limits the total CPU time of its processes, as containers do: cgroup v1 or v2.
#pragma once

#include <string>

namespace bench::decode {

class Quota {
 public:
  // cpus: of every 100 ms. Throws std::runtime_error with the reason where there may be none.
  explicit Quota(double cpus);
  ~Quota();
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // Where a process writes its number to be in it.
  std::string processes() const { return folder_ + "/cgroup.procs"; }

 private:
  std::string folder_;
};

}  // namespace bench::decode
