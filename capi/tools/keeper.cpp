// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/keeper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "capi/tools/launch_options.hpp"

namespace dist::launch {
namespace {

// Runs in the keeper: closes the launcher's descriptors, blocks signals, and reads from the pipe until it
// ends.
[[noreturn]] void keep(int from) noexcept {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();
  prctl(PR_SET_NAME, "dist-launch-end");
  if (dup2(from, 0) != 0 || chdir("/") != 0) _exit(1);
  closefrom(1);
  static pid_t groups[kMaxLocalTasks];
  for (pid_t number = 0; read(0, &number, sizeof number) == sizeof number;) {
    for (pid_t& group : groups) {
      if (group != (number > 0 ? 0 : -number)) continue;
      group = number > 0 ? number : 0;
      break;
    }
  }
  for (const pid_t group : groups) {
    if (group > 0) kill(-group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

bool Keeper::start() {
  Fd from;
  if (!make_pipe(&from, &to_)) return false;
  pid_ = fork();
  if (pid_ == 0) keep(from.get());
  return pid_ > 0;
}

Keeper::~Keeper() {
  to_.reset();
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void Keeper::tell(pid_t number) const noexcept {
  // A write of so few bytes is atomic. Without a keeper (EPIPE), the launcher still ends the tasks itself.
  while (write(to_.get(), &number, sizeof number) < 0 && errno == EINTR) continue;
}

}  // namespace dist::launch
