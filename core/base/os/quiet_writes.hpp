// SPDX-License-Identifier: Apache-2.0
// Writes that must not raise SIGPIPE in the host.
#pragma once

#include <errno.h>
#include <signal.h>
#include <time.h>

namespace dist {

// While it lives, a write that the system refuses ends in a status, not in the signal that comes with it:
// SIGXFSZ where a file would become larger than the process may make one (RLIMIT_FSIZE), SIGPIPE where nobody
// reads. Both are sent to the thread that writes. What the host does with them elsewhere stays as it is.
class QuietWrites {
 public:
  QuietWrites() noexcept {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    sigaddset(&signals_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    // Those that wait already are the host's.
    for (const int signal : {SIGXFSZ, SIGPIPE}) {
      if (sigismember(&pending, signal) == 1) sigdelset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~QuietWrites() {
    const int error = errno;
    constexpr timespec kNow{0, 0};
    while (sigtimedwait(&signals_, nullptr, &kNow) > 0 || errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  QuietWrites(const QuietWrites&) = delete;
  QuietWrites& operator=(const QuietWrites&) = delete;

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace dist
