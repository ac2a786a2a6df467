// SPDX-License-Identifier: Apache-2.0
// Reads the CPU quota of this process's Linux control group, in CPUs.
#pragma once

namespace dist {

// The least CPU quota, in CPUs, of this process's control group and all above it that can be seen: version 1,
// version 2 or both; 0 where none is set or none can be read. `root` is "" on a real system; tests give a
// made-up one, with proc/self/cgroup, proc/self/mountinfo and the hierarchies' folders below it.
double cgroup_cpu_quota(const char* root) noexcept;

}  // namespace dist
