// SPDX-License-Identifier: Apache-2.0
// core/base/os/cpus and cgroup: quotas in simulated file trees (version 1, 2 and both; nested, in containers,
// invalid), and the affinity mask.
#include <sched.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/os/cgroup.hpp"
#include "core/base/os/cpus.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

namespace fs = std::filesystem;

// Files below a root, and the quota that they specify.
struct Case {
  const char* what;
  std::vector<std::pair<std::string, std::string>> files;
  double quota;
};

// A file tree in a folder of its own, removed at the end.
class Tree {
 public:
  explicit Tree(const Case& made) {
    std::string pattern = (fs::temp_directory_path() / "dist-cgroup-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    for (const auto& [path, text] : made.files) {
      const fs::path whole = root_ / path;
      fs::create_directories(whole.parent_path());
      std::ofstream(whole) << text;
    }
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  const char* root() const { return root_.c_str(); }

 private:
  fs::path root_;
};

void check(const std::vector<Case>& cases) {
  for (const Case& made : cases) {
    const double quota = cgroup_cpu_quota(Tree(made).root());
    if (quota != made.quota) fail_msg("%s: a quota of %f instead of %f", made.what, quota, made.quota);
  }
}

const std::string kGroup = "proc/self/cgroup";
const std::string kMounts = "proc/self/mountinfo";

// A line of mountinfo, with optional fields as they come: none, one or two.
std::string mount(const std::string& part, const std::string& point, const std::string& type,
                  const std::string& options = "rw") {
  static int made = 0;
  const char* optional[] = {"", "shared:4 ", "shared:4 master:1 "};
  return "31 23 0:28 " + part + " " + point + " rw,nosuid " + optional[made++ % 3] + "- " + type +
         " cgroup " + options + "\n";
}

void where_nothing_is_said_there_is_no_quota(void**) {
  check({{"no files", {}, 0},
         {"no groups", {{kGroup, ""}}, 0},
         {"no groups among garbage", {{kGroup, "nonsense\n::\n0:\n:::\n0::relative\n"}}, 0},
         {"no cpu.max", {{kGroup, "0::/\n"}}, 0}});
}

void text_of_cpu_max(void**) {
  std::vector<Case> cases;
  const std::pair<const char*, double> texts[] = {
      {"150000 100000\n", 1.5},
      {"150000 100000", 1.5},  // no newline
      {"150000 100000\nmore\n", 1.5},
      {"1000 1000000\n", 0.001},
      {"9223372036854775807 1\n", 9223372036854775807.0},
      {"9223372036854775808 100000\n", 0},  // does not fit into 64 bits
      {"200000 99999999999999999999999\n", 0},
      {"max 100000\n", 0},
      {"max\n", 0},
      {"", 0},
      {"\n", 0},
      {"200000\n", 0},
      {"200000 \n", 0},
      {"200000 0\n", 0},
      {"0 100000\n", 0},
      {"-5 100000\n", 0},
      {"200000 -100000\n", 0},
      {"-200000 -100000\n", 0},
      {"nan 100000\n", 0},
      {"inf 100000\n", 0},
      {"2e5 100000\n", 0},
      {"200000x 100000\n", 0},
      {"200000 100000 7\n", 0},
      {" 200000 100000\n", 0},
      {"200000\t100000\n", 0},
  };
  for (const auto& [text, quota] : texts)
    cases.push_back({text, {{kGroup, "0::/\n"}, {"sys/fs/cgroup/cpu.max", text}}, quota});
  const std::string zero(1, '\0');
  cases.push_back({"a zero byte", {{kGroup, "0::/\n"}, {"sys/fs/cgroup/cpu.max", "2" + zero + "0 1\n"}}, 0});
  const std::string digits(100'000, '9');
  cases.push_back({"many digits", {{kGroup, "0::/\n"}, {"sys/fs/cgroup/cpu.max", digits + " 1\n"}}, 0});
  cases.push_back({"a folder", {{kGroup, "0::/\n"}, {"sys/fs/cgroup/cpu.max/file", "1 1\n"}}, 0});
  check(cases);
}

void the_least_on_the_way_up_counts(void**) {
  check({{"the group's own", {{kGroup, "0::/a/b\n"}, {"sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"}}, 4},
         {"its parent's",
          {{kGroup, "0::/a/b\n"},
           {"sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"},
           {"sys/fs/cgroup/a/cpu.max", "200000 100000\n"},
           {"sys/fs/cgroup/cpu.max", "max 100000\n"}},
          2},
         {"not a sibling's, nor what lies above the mount",
          {{kGroup, "0::/a/b\n"},
           {"sys/fs/cgroup/a/c/cpu.max", "100000 100000\n"},
           {"sys/fs/cpu.max", "100000 100000\n"}},
          0},
         {"a group that was removed",
          {{kGroup, "0::/a/b (deleted)\n"}, {"sys/fs/cgroup/a/cpu.max", "300000 100000\n"}},
          3},
         {"a name with colons and dots",
          {{kGroup, "0::/a:b/..c\n"},
           {kMounts, mount("/", "/sys/fs/cgroup", "cgroup2")},
           {"sys/fs/cgroup/a:b/..c/cpu.max", "300000 100000\n"}},
          3}});
}

void version_1(void**) {
  const std::string groups = "5:memory:/x\n4:cpu,cpuacct:/a/b\n1:name=systemd:/x\n0::/\n";
  const std::string at = "sys/fs/cgroup/cpu/a/";
  check(
      {{"the usual place",
        {{kGroup, groups}, {at + "b/cpu.cfs_quota_us", "300000\n"}, {at + "b/cpu.cfs_period_us", "100000\n"}},
        3},
       {"its parent's",
        {{kGroup, groups},
         {at + "b/cpu.cfs_quota_us", "-1\n"},
         {at + "b/cpu.cfs_period_us", "100000\n"},
         {at + "cpu.cfs_quota_us", "250000\n"},
         {at + "cpu.cfs_period_us", "50000\n"}},
        5},
       {"no period", {{kGroup, groups}, {at + "b/cpu.cfs_quota_us", "300000\n"}}, 0},
       {"no quota", {{kGroup, groups}, {at + "b/cpu.cfs_period_us", "100000\n"}}, 0},
       {"other controllers whose names hold cpu",
        {{kGroup, "3:cpuset:/a\n2:cpuacct:/a\n"},
         {at + "cpu.cfs_quota_us", "100000\n"},
         {at + "cpu.cfs_period_us", "100000\n"}},
        0},
       {"mounted elsewhere, with other controllers",
        {{kGroup, groups},
         {kMounts,
          mount("/", "/cg/set", "cgroup", "rw,cpuset") + mount("/", "/cg/cpu", "cgroup", "rw,cpuacct,cpu")},
         {"cg/set/a/b/cpu.cfs_quota_us", "100000\n"},
         {"cg/set/a/b/cpu.cfs_period_us", "100000\n"},
         {"cg/cpu/a/b/cpu.cfs_quota_us", "700000\n"},
         {"cg/cpu/a/b/cpu.cfs_period_us", "100000\n"}},
        7}});
}

void both_versions_at_once(void**) {
  const std::string groups = "4:cpu:/old\n0::/new\n";
  const std::string mounts = mount("/", "/cg/cpu", "cgroup", "rw,cpu") + mount("/", "/cg/unified", "cgroup2");
  const std::vector<std::pair<std::string, std::string>> common = {
      {kGroup, groups},
      {kMounts, mounts},
      {"cg/cpu/old/cpu.cfs_quota_us", "600000\n"},
      {"cg/cpu/old/cpu.cfs_period_us", "100000\n"},
      {"cg/unified/old/cpu.max", "100000 100000\n"}};
  auto less = common;
  less.emplace_back("cg/unified/new/cpu.max", "500000 100000\n");
  auto more = common;
  more.emplace_back("cg/unified/new/cpu.max", "800000 100000\n");
  check({{"version 1 alone", common, 6}, {"version 2 has less", less, 5}, {"version 2 has more", more, 6}});
}

// The view of a container: a part of the hierarchy, under the host's names or under its own.
void namespaces(void**) {
  check({{"the host's name, no mountinfo",
          {{kGroup, "0::/docker/0123\n"}, {"sys/fs/cgroup/cpu.max", "50000 100000\n"}},
          0.5},
         {"the host's name, and its part mounted",
          {{kGroup, "0::/docker/0123/app\n"},
           {kMounts, mount("/docker/0123", "/sys/fs/cgroup", "cgroup2")},
           {"sys/fs/cgroup/app/cpu.max", "200000 100000\n"},
           {"sys/fs/cgroup/cpu.max", "300000 100000\n"},
           {"sys/fs/cgroup/docker/0123/app/cpu.max", "100000 100000\n"}},
          2},
         {"a part whose name only begins alike",
          {{kGroup, "0::/docker/0123\n"},
           {kMounts, mount("/docker/01", "/other", "cgroup2") + mount("/docker", "/mine", "cgroup2")},
           {"other/cpu.max", "100000 100000\n"},
           {"other23/cpu.max", "100000 100000\n"},
           {"mine/0123/cpu.max", "400000 100000\n"}},
          4},
         {"a group outside the namespace",
          {{kGroup, "0::/../../elsewhere\n"},
           {kMounts, mount("/", "/sys/fs/cgroup", "cgroup2")},
           {"sys/elsewhere/cpu.max", "100000 100000\n"},
           {"sys/fs/cgroup/cpu.max", "300000 100000\n"}},
          3},
         {"a mount from outside the namespace",
          {{kGroup, "0::/\n"},
           {kMounts, mount("/../..", "/sys/fs/cgroup", "cgroup2")},
           {"sys/fs/cgroup/cpu.max", "300000 100000\n"}},
          3},
         {"a group outside, and another's mount after that of the namespace",
          {{kGroup, "0::/../elsewhere\n"},
           {kMounts, mount("/", "/sys/fs/cgroup", "cgroup2") + mount("/b", "/seen/b", "cgroup2")},
           {"seen/b/cpu.max", "100000 100000\n"},
           {"sys/fs/cgroup/cpu.max", "300000 100000\n"}},
          3},
         {"another group's mount before one's own",
          {{kGroup, "0::/a\n"},
           {kMounts, mount("/b", "/seen/b", "cgroup2") + mount("/a", "/seen/a", "cgroup2")},
           {"seen/b/cpu.max", "100000 100000\n"},
           {"seen/a/cpu.max", "600000 100000\n"}},
          6}});
}

void mountinfo(void**) {
  const std::string text = "300000 100000\n";
  const std::string own = mount("/", "/sys/fs/cgroup", "cgroup2");
  check(
      {{"escapes in both paths",
        {{kGroup, "0::/a b\\c/d\n"},
         {kMounts, mount("/a\\040b\\134c", "/cg\\011tab\\012line\\040x", "cgroup2")},
         {"cg\ttab\nline x/d/cpu.max", text}},
        3},
       {"what only looks like an escape",
        {{kGroup, "0::/\n"}, {kMounts, mount("/", "/cg\\9\\04", "cgroup2")}, {"cg\\9\\04/cpu.max", text}},
        3},
       {"an escape at the end",
        {{kGroup, "0::/\n"}, {kMounts, mount("/", "/cg\\", "cgroup2")}, {"cg\\/cpu.max", text}},
        3},
       {"cut short in the midst of a line",
        {{kGroup, "0::/\n"},
         {kMounts, own + "32 23 0:29 / /other rw - cgro"},
         {"sys/fs/cgroup/cpu.max", text}},
        3},
       {"only part of a line", {{kGroup, "0::/\n"}, {kMounts, "32 23"}, {"sys/fs/cgroup/cpu.max", text}}, 3},
       {"no separator",
        {{kGroup, "0::/\n"}, {kMounts, "31 23 0:28 / /cg rw cgroup2 cgroup rw\n"}, {"cg/cpu.max", "1 1\n"}},
        0},
       {"empty lines and garbage",
        {{kGroup, "0::/\n"}, {kMounts, "\n\n - \nx\n" + own}, {"sys/fs/cgroup/cpu.max", text}},
        3},
       {"after a line longer than any buffer, whose end looks like a mount",
        {{kGroup, "0::/a\n"},
         {kMounts, "30 1 0:1 / / rw - overlay o lower=" + std::string(50'000, 'l') +
                       mount("/a", "/fake", "cgroup2") + mount("/", "/cg", "cgroup2")},
         {"fake/cpu.max", "100000 100000\n"},
         {"cg/a/cpu.max", text}},
        3},
       {"other file systems at that place",
        {{kGroup, "0::/\n"},
         {kMounts, mount("/", "/sys/fs/cgroup", "tmpfs") + mount("/", "/cg", "cgroup2")},
         {"cg/cpu.max", text}},
        3}});
}

void long_paths(void**) {
  const std::string long_name(3000, 'x');
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "/yyy";
  const std::string most = "sys/fs/cgroup/cpu.max";
  check({{"a name that no file has", {{kGroup, "0::/" + long_name + "\n"}, {most, "100000 100000\n"}}, 1},
         {"a thousand groups deep", {{kGroup, "0::" + deep + "\n"}, {most, "100000 100000\n"}}, 1},
         {"longer than any path",
          {{kGroup, "0::" + deep + deep + deep + deep + "\n"}, {most, "100000 100000\n"}},
          0},
         {"after a longer one",
          {{kGroup, "0::" + deep + deep + deep + deep + "\n0::/\n"}, {most, "100000 100000\n"}},
          1}});
  assert_true(cgroup_cpu_quota(std::string(20'000, '/').c_str()) >= 0);  // must not crash
}

void the_less_of_mask_and_quota(void**) {
  cpu_set_t all;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  const int cpus = CPU_COUNT(&all);
  const auto with = [](const char* text) {
    return usable_cpus(Tree({"", {{kGroup, "0::/\n"}, {"sys/fs/cgroup/cpu.max", text}}, 0}).root());
  };
  assert_int_equal(usable_cpus(Tree({"", {}, 0}).root()), cpus);
  assert_int_equal(with("1 100000\n"), 1);
  assert_int_equal(with("100000 100000\n"), 1);
  assert_int_equal(with("199999 100000\n"), 1);
  assert_int_equal(with("9223372036854775807 1\n"), cpus);
  if (cpus > 1) assert_int_equal(with((std::to_string(cpus) + "99999 100000\n").c_str()), cpus);
  if (cpus > 1) assert_int_equal(with((std::to_string(cpus - 1) + "99999 100000\n").c_str()), cpus - 1);
}

void the_affinity_mask(void**) {
  cpu_set_t all;
  cpu_set_t one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  assert_in_range(usable_cpus(), 1, CPU_COUNT(&all));
  const CpuSet mine = cpus_of_this_thread();
  assert_int_equal(mine.count(), CPU_COUNT(&all));
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    assert_int_equal(mine.has(cpu), CPU_ISSET(static_cast<unsigned>(cpu), &all) != 0);
    if (mine.has(cpu)) last = cpu;
  }
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(last), &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  const int usable = usable_cpus();
  const CpuSet only = cpus_of_this_thread();
  CpuPlace place{};
  bool by_hwloc = false;
  const int known = cpu_places(only, &place, 1, &by_hwloc);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_int_equal(usable, 1);
  assert_true(only.count() == 1 && only.has(last));
  assert_int_equal(known, 1);
  assert_int_equal(place.cpu, last);
  // It also accepts CPUs that the calling thread may not use.
  std::vector<CpuPlace> places(static_cast<std::size_t>(mine.count()));
  assert_int_equal(cpu_places(mine, places.data(), mine.count(), &by_hwloc), mine.count());
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(where_nothing_is_said_there_is_no_quota),
      cmocka_unit_test(text_of_cpu_max),
      cmocka_unit_test(the_least_on_the_way_up_counts),
      cmocka_unit_test(version_1),
      cmocka_unit_test(both_versions_at_once),
      cmocka_unit_test(namespaces),
      cmocka_unit_test(mountinfo),
      cmocka_unit_test(long_paths),
      cmocka_unit_test(the_less_of_mask_and_quota),
      cmocka_unit_test(the_affinity_mask),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
