// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/decode/sides.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace bench::decode {
namespace {

constexpr double kLimit = 60;  // in seconds; spinning members on few CPUs take seconds per token

// In the child: enters the control group, then becomes the side.
[[noreturn]] void become(const SideProgram& side, const Plan& plan, const std::string& group, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  if (!group.empty()) {
    const int file = open(group.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, "0", 1) != 1) _exit(126);  // 0 means the writing process
  }
  dup2(out, STDOUT_FILENO);
  const std::string members = std::to_string(plan.members), reduces = std::to_string(plan.reduces);
  const std::string seconds = std::to_string(plan.seconds), matrices = std::to_string(plan.matrices);
  execl(side.path.c_str(), side.path.c_str(), members.c_str(), reduces.c_str(), seconds.c_str(),
        matrices.c_str(), nullptr);
  _exit(127);
}

// Reads until the end of the output. Returns false if the time limit passes before.
bool read_until(int from, double limit, std::string& text) {
  const double begin = now_s();
  for (;;) {
    pollfd ready{from, POLLIN, 0};
    const double left = begin + limit - now_s();
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left * 1e3) + 1) <= 0) return false;
    char bytes[256];
    const ssize_t n = read(from, bytes, sizeof bytes);
    if (n <= 0) return true;
    text.append(bytes, static_cast<size_t>(n));
  }
}

}  // namespace

Turn take(const SideProgram& side, const Plan& plan, const Quota* quota) {
  int pipe_of[2];
  if (pipe2(pipe_of, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::string group = quota == nullptr ? "" : quota->processes();
  const pid_t child = fork();
  if (child == 0) become(side, plan, group, pipe_of[1]);
  close(pipe_of[1]);
  if (child < 0) throw std::runtime_error("no process");
  std::string text;
  const bool in_time = read_until(pipe_of[0], kLimit, text);
  close(pipe_of[0]);
  if (!in_time) kill(-child, SIGKILL);  // including the processes that it has started
  int status = 0;
  waitpid(child, &status, 0);
  if (!in_time) return {1 / kLimit, 0, 0, true};
  long tokens = 0;
  double took = 0, cpu = 0, reducing = 0;
  if (status != 0 ||
      std::sscanf(text.c_str(), "@tokens %ld %lf %lf %lf", &tokens, &took, &cpu, &reducing) != 4 ||
      tokens < 1 || took <= 0)
    throw std::runtime_error(side.name + " failed");
  const double reduces = static_cast<double>(tokens) * plan.reduces;
  return {static_cast<double>(tokens) / took, cpu / took, reducing / reduces * 1e6, false};
}

}  // namespace bench::decode
