// SPDX-License-Identifier: Apache-2.0
// core/base/os/cpus: quotas of made-up cgroup trees (v1, v2, nested, broken), and the affinity mask.
#include <sched.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/os/cpus.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

namespace fs = std::filesystem;

// A file tree in a folder of its own, removed at the end.
class Tree {
 public:
  Tree() {
    std::string pattern = (fs::temp_directory_path() / "dist-cgroup-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Tree& file(const std::string& path, const std::string& text) {
    const fs::path whole = root_ / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
    return *this;
  }
  double quota() const { return cgroup_cpu_quota(root_.c_str()); }

 private:
  fs::path root_;
};

void is(double quota, double expected) {
  if (quota != expected) fail_msg("a quota of %f instead of %f", quota, expected);
}

void no_quota(void**) {
  is(Tree().quota(), 0);
  is(Tree().file("proc/self/cgroup", "").quota(), 0);
  is(Tree().file("proc/self/cgroup", "nonsense\n::\n0:\n:::\n").quota(), 0);
  is(Tree().file("proc/self/cgroup", "0::/\n").quota(), 0);
  is(Tree().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "max 100000\n").quota(), 0);
  is(Tree().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "").quota(), 0);
  is(Tree().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "200000\n").quota(), 0);
  is(Tree().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "200000 0\n").quota(), 0);
  is(Tree().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "-5 100000\n").quota(), 0);
}

void version_2(void**) {
  is(Tree().file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "150000 100000\n").quota(), 1.5);
  is(Tree()
         .file("proc/self/cgroup", "0::/a/b\n")
         .file("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n")
         .quota(),
     4);
  // The least on the way up.
  is(Tree()
         .file("proc/self/cgroup", "0::/a/b\n")
         .file("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n")
         .file("sys/fs/cgroup/a/cpu.max", "200000 100000\n")
         .file("sys/fs/cgroup/cpu.max", "max 100000\n")
         .quota(),
     2);
  // A container that sees its host's path but its own root.
  is(Tree()
         .file("proc/self/cgroup", "0::/docker/0123\n")
         .file("sys/fs/cgroup/cpu.max", "50000 100000\n")
         .quota(),
     0.5);
}

void version_1(void**) {
  const std::string groups = "5:memory:/x\n4:cpu,cpuacct:/a/b\n1:name=systemd:/x\n0::/\n";
  is(Tree()
         .file("proc/self/cgroup", groups)
         .file("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "300000\n")
         .file("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n")
         .quota(),
     3);
  is(Tree()
         .file("proc/self/cgroup", groups)
         .file("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n")
         .file("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n")
         .file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n")
         .file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n")
         .quota(),
     5);
  // Other controllers whose names hold "cpu" have no quota.
  is(Tree()
         .file("proc/self/cgroup", "3:cpuset:/a\n2:cpuacct:/a\n")
         .file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n")
         .file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
         .quota(),
     0);
}

void long_paths(void**) {
  const std::string deep(3000, 'x');
  is(Tree()
         .file("proc/self/cgroup", "0::/" + deep + "\n")
         .file("sys/fs/cgroup/cpu.max", "100000 100000\n")
         .quota(),
     1);
  // Longer than any path: no crash, whatever it gives.
  assert_true(Tree().file("proc/self/cgroup", "0::/" + std::string(20000, 'y') + "\n").quota() >= 0);
}

void the_affinity_mask(void**) {
  cpu_set_t all;
  cpu_set_t one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  assert_in_range(usable_cpus(), 1, CPU_COUNT(&all));
  int cpus[CPU_SETSIZE];
  const int n = cpus_by_core(cpus, CPU_SETSIZE);
  assert_int_equal(n, CPU_COUNT(&all));
  cpu_set_t seen;
  CPU_ZERO(&seen);
  for (int i = 0; i < n; ++i) {
    assert_true(CPU_ISSET(static_cast<unsigned>(cpus[i]), &all));
    CPU_SET(static_cast<unsigned>(cpus[i]), &seen);
  }
  assert_int_equal(CPU_COUNT(&seen), n);  // each once

  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpus[n - 1]), &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  const int usable = usable_cpus();
  int only = -1;
  const int count = cpus_by_core(&only, 1);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_int_equal(usable, 1);
  assert_int_equal(count, 1);
  assert_int_equal(only, cpus[n - 1]);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(no_quota),   cmocka_unit_test(version_2),         cmocka_unit_test(version_1),
      cmocka_unit_test(long_paths), cmocka_unit_test(the_affinity_mask),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
