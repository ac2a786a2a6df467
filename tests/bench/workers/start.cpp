// SPDX-License-Identifier: Apache-2.0
// Each worker is a new instance of this program, with TF_CONFIG and the shared page. The workers form a
// process group, so that waiting for them does not reap other children.
#include "tests/bench/workers/start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/bench/workers/worker.hpp"

namespace bench {
namespace {

std::string address_of(int worker) {
  const auto process = static_cast<unsigned>(getpid());
  // An address on loopback that only this process uses, so that its ports do not conflict with others.
  return "127." + std::to_string(1 + process % 250) + "." + std::to_string(process / 250 % 250) +
         ".9:" + std::to_string(21000 + worker);
}

pid_t start(int page_fd, const std::string& config, int me, pid_t group) {
  const std::string number = std::to_string(me);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process left");
  if (pid != 0) {
    setpgid(pid, group);
    return pid;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, group);
  setenv("TF_CONFIG", config.c_str(), 1);
  const bool given = page_fd == kPageFd ? fcntl(kPageFd, F_SETFD, 0) == 0 : dup2(page_fd, kPageFd) >= 0;
  if (getppid() != parent || !given) _exit(127);
  execl("/proc/self/exe", "dist_bench_workers", "--worker", number.c_str(), nullptr);
  _exit(127);
}

}  // namespace

std::vector<pid_t> start_workers(Page& page, int page_fd) {
  std::snprintf(page.bare_address.data(), page.bare_address.size(), "%s", address_of(kMostWorkers).c_str());
  std::string cluster;
  for (int w = 0; w < page.workers; ++w) cluster += (w == 0 ? "\"" : ", \"") + address_of(w) + "\"";
  std::vector<pid_t> all;
  for (int w = 0; w < page.workers; ++w) {
    const std::string config = "{\"cluster\": {\"worker\": [" + cluster +
                               "]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(w) + "}}";
    all.push_back(start(page_fd, config, w, all.empty() ? 0 : all.front()));
  }
  return all;
}

bool await_workers(Page& page, const std::vector<pid_t>& workers) {
  bool well = true;
  for (std::size_t left = workers.size(); left > 0; --left) {
    int status = 0;
    // A worker that was killed cannot report its failure itself.
    const pid_t pid = waitpid(-workers.front(), &status, 0);
    if (pid >= 0 && status == 0) continue;
    well = false;
    page.fail("a worker ended with " + std::to_string(status));
    if (pid < 0) break;
  }
  return well;
}

}  // namespace bench
