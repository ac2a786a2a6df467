// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/decode/quota.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace bench::decode {
namespace {

constexpr long kPeriodUs = 100'000;
constexpr char kRoot[] = "/sys/fs/cgroup";

bool write_to(const std::string& path, const std::string& text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "we"), std::fclose);
  return file && std::fputs(text.c_str(), file.get()) >= 0 && std::fflush(file.get()) == 0;
}

bool there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

Quota::Quota(double cpus) {
  const std::string root = kRoot, name = "/dist_bench_decode_" + std::to_string(getpid());
  const bool second = there(root + "/cgroup.controllers");
  if (!second && !there(root + "/cpu")) throw std::runtime_error("there is no control group of CPUs");
  if (second) write_to(root + "/cgroup.subtree_control", "+cpu");  // may fail if it is already enabled
  const std::string folder = root + (second ? "" : "/cpu") + name;
  if (mkdir(folder.c_str(), 0755) != 0)
    throw std::runtime_error("no control group can be made: " + std::string(std::strerror(errno)));
  folder_ = folder;
  const std::string quota = std::to_string(static_cast<long>(cpus * static_cast<double>(kPeriodUs)));
  const std::string period = std::to_string(kPeriodUs);
  const bool set = second ? write_to(folder_ + "/cpu.max", quota + " " + period)
                          : write_to(folder_ + "/cpu.cfs_period_us", period) &&
                                write_to(folder_ + "/cpu.cfs_quota_us", quota);
  if (set) return;
  rmdir(folder_.c_str());
  throw std::runtime_error("the control group takes no quota");
}

// All processes in the group have been waited for.
Quota::~Quota() { rmdir(folder_.c_str()); }

}  // namespace bench::decode
