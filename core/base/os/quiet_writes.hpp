// SPDX-License-Identifier: Apache-2.0
// Writes that must not raise SIGXFSZ or SIGPIPE in the host.
#pragma once

#include <errno.h>
#include <signal.h>
#include <time.h>

namespace dist {

// While an object of this class exists, a write that the system refuses fails with an error instead of
// raising a signal in this thread: SIGXFSZ if the file would exceed RLIMIT_FSIZE, SIGPIPE if the reader is
// gone. Other threads and the host's signal handlers are not affected.
class QuietWrites {
 public:
  QuietWrites() noexcept {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    sigaddset(&signals_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    // Signals that are already pending belong to the host.
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
