// SPDX-License-Identifier: Apache-2.0
// Reads facts about the machine from the system, the compiler and libdist.
#include "tests/bench/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "dist/dist.h"
#include "tests/bench/harness.hpp"

namespace bench {
namespace {

std::string first_line(const char* path, const char* starts_with) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "r"), std::fclose);
  char line[256];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::strncmp(line, starts_with, std::strlen(starts_with)) != 0) continue;
    line[std::strcspn(line, "\n")] = '\0';
    return line;
  }
  return "";
}

std::string cpu_model() {
  const std::string line = first_line("/proc/cpuinfo", "model name");
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? "unknown" : line.substr(colon + 2);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string date_text() {
  char text[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc;
  if (gmtime_r(&now, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

Facts machine_facts() {
  utsname system;
  const bool known = uname(&system) == 0;
  return {
      {"date", date_text()},
      {"libdist", version_text(dist_version())},
      {"cpu", cpu_model()},
      {"usable_cpus", std::to_string(usable_cpus().size())},
      {"system",
       known ? std::string(system.sysname) + " " + system.release + " " + system.machine : "unknown"},
      {"transparent_hugepages", first_line("/sys/kernel/mm/transparent_hugepage/enabled", "")},
      {"load", first_line("/proc/loadavg", "")},
      {"compiler", __VERSION__},
      {"openmp", std::to_string(_OPENMP)},
      {"OMP_WAIT_POLICY", environment("OMP_WAIT_POLICY")},
      {"GOMP_SPINCOUNT", environment("GOMP_SPINCOUNT")},
  };
}

std::string machine_line() {
  return "libdist " + version_text(dist_version()) + " on " + cpu_model() + ", " +
         std::to_string(usable_cpus().size()) + " usable CPUs, load " + first_line("/proc/loadavg", "");
}

}  // namespace bench
