// SPDX-License-Identifier: Apache-2.0
// The clock, the stopwatch, and a check in /proc whether other threads are running.
#include "tests/bench/harness.hpp"

#include <dirent.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace bench {
namespace {

// 'S' sleeps, 'R' is running or runnable. This is the field after the name, which may contain any character.
char thread_state(const std::string& tasks, const char* tid) {
  const std::string path = tasks + tid + "/stat";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  char line[256];
  if (!file || std::fgets(line, sizeof line, file.get()) == nullptr) return 'X';  // it has just ended
  const char* after_name = std::strrchr(line, ')');
  return after_name != nullptr && after_name[1] == ' ' ? after_name[2] : 'X';
}

bool others_sleep(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/task/";
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(folder.c_str()), closedir);
  if (!tasks) return true;
  while (const dirent* task = readdir(tasks.get())) {
    if (task->d_name[0] == '.' || std::atoi(task->d_name) == gettid()) continue;
    if (thread_state(folder, task->d_name) == 'R') return false;
  }
  return true;
}

double clock_us(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace

const char* pace_name(Pace pace) {
  switch (pace) {
    case Pace::kHot: return "hot";
    case Pace::kPaused: return "1 ms pauses";
    case Pace::kAsleep: return "from sleep";
    case Pace::kWork: return "work loop";
  }
  return "?";
}

void sleep_us(double us) {
  timespec left{static_cast<time_t>(us / 1e6), static_cast<long>(us * 1e3) % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) != 0) {
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

double now_us() { return clock_us(CLOCK_MONOTONIC); }
double process_cpu_us() { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

double machine_cpu_us() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/stat", "r"), std::fclose);
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
  if (file && std::fscanf(file.get(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                          &idle, &wait, &irq, &softirq, &steal) != 8) {
    return 0;
  }
  const auto ticks = static_cast<double>(user + nice + system + irq + softirq + steal);
  return ticks * 1e6 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int online_cpus() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

double median(Samples values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

bool wait_until_quiet() { return wait_until_quiet({getpid()}, 500e3); }

bool wait_until_quiet(const std::vector<pid_t>& processes, double limit_us) {
  const double begin = now_us();
  int in_a_row = 0;  // a thread that yields appears to sleep for moments
  while (now_us() - begin < limit_us) {
    in_a_row = std::all_of(processes.begin(), processes.end(), others_sleep) ? in_a_row + 1 : 0;
    if (in_a_row == 3) return true;
    sleep_us(200);
  }
  return false;
}

Stopwatch::Stopwatch(int replicas, const Plan& plan) : lines_(static_cast<size_t>(replicas)) {
  const bool hot = plan.pace == Pace::kHot;
  iterations_ = hot ? plan.iterations : 1;
  warm_up_ = hot ? 1 : plan.iterations;
  const int intervals = (plan.batches + 1) * (hot ? 1 : plan.iterations);
  for (Line& line : lines_) line.intervals.reserve(static_cast<size_t>(intervals));
}

void Stopwatch::record(int replica, double begin_us, double end_us) noexcept {
  lines_[static_cast<size_t>(replica)].intervals.push_back({begin_us, end_us});
}

void Stopwatch::collect(Samples& samples) const {
  size_t count = lines_[0].intervals.size();
  for (const Line& line : lines_) count = std::min(count, line.intervals.size());
  for (size_t i = static_cast<size_t>(warm_up_); i < count; ++i) {
    double begin = 0, end = 0;
    for (const Line& line : lines_) {
      begin = std::max(begin, line.intervals[i].begin_us);
      end = std::max(end, line.intervals[i].end_us);
    }
    samples.push_back((end - begin) / iterations_);
  }
}

}  // namespace bench
