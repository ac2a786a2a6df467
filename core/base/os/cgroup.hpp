// SPDX-License-Identifier: Apache-2.0
// Reads the CPU quota of this process's Linux control group, in CPUs.
#pragma once

namespace dist {

// The smallest CPU quota, in CPUs, of this process's control group and its visible ancestors, for version 1,
// version 2 or both; 0 if none is set or readable. `root` is "" on a real system; tests pass a directory with
// proc/self/cgroup, proc/self/mountinfo and the hierarchies.
double cgroup_cpu_quota(const char* root) noexcept;

}  // namespace dist
