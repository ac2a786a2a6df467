// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/overlap/start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace bench::overlap {
namespace {

// Each side has its own ports on a loopback address that no other benchmark uses.
std::string config_of(int side, int workers, int me) {
  const auto process = static_cast<unsigned>(getpid());
  const std::string host =
      "127." + std::to_string(1 + process % 250) + "." + std::to_string(process / 250 % 250) + ".11:";
  std::string cluster;
  for (int w = 0; w < workers; ++w)
    cluster += (w == 0 ? "\"" : ", \"") + host + std::to_string(21000 + kMostWorkers * side + w) + "\"";
  return "{\"cluster\": {\"worker\": [" + cluster +
         "]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(me) + "}}";
}

}  // namespace

Processes::~Processes() {
  {
    const std::lock_guard lock(mutex_);
    for (const Process& each : running_) kill(each.pid, SIGKILL);
  }
  await();
}

void Processes::start(Page& page, int page_fd, int side, const std::vector<std::string>& command) {
  const pid_t parent = getpid();
  for (int me = 0; me < page.workers; ++me) {
    std::vector<std::string> words = command;
    words.push_back(std::to_string(side));
    words.push_back(std::to_string(me));
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string config = config_of(side, page.workers, me);
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("no process left");
    if (pid != 0) {
      running_.push_back({pid, side});
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TF_CONFIG", config.c_str(), 1);
    const bool given = page_fd == kPageFd ? fcntl(kPageFd, F_SETFD, 0) == 0 : dup2(page_fd, kPageFd) >= 0;
    if (getppid() == parent && given) execvp(arguments.front(), arguments.data());
    _exit(127);
  }
}

std::vector<pid_t> Processes::running() {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> pids;
  for (const Process& each : running_) pids.push_back(each.pid);
  return pids;
}

void Processes::ended(Page& page, pid_t pid, int status) {
  const std::lock_guard lock(mutex_);
  const auto it =
      std::find_if(running_.begin(), running_.end(), [&](const Process& p) { return p.pid == pid; });
  if (it == running_.end()) return;
  const int side = it->side;
  running_.erase(it);
  if (status == 0) return;
  page.sides[static_cast<std::size_t>(side)].fail("a process ended with " + std::to_string(status));
  for (const Process& each : running_) {
    if (each.side == side) kill(each.pid, SIGKILL);
  }
}

// The processes end with the thread that started them, so that thread must not be this one.
void Processes::watch(Page& page) {
  watch_ = std::thread([this, &page] {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, 0)) > 0;) ended(page, pid, status);
  });
}

}  // namespace bench::overlap
