// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/sink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "capi/tools/fd.hpp"

namespace dist::launch {

bool make_pipe(Fd* read_end, Fd* write_end) noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  *read_end = Fd(ends[0]);
  *write_end = Fd(ends[1]);
  return true;
}

void Sink::append(std::string_view lines) {
  if (error_ == 0) queue_.append(lines);
}

void Sink::drop() noexcept {
  queue_.clear();
  written_ = 0;
}

void Sink::write_some() {
  if (error_ != 0) return drop();
  if (!is_pending()) return;
  const ssize_t n = write(fd_, queue_.data() + written_, std::min(queue_.size() - written_, kMostAtOnce));
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    error_ = errno;
    return drop();
  }
  written_ += static_cast<std::size_t>(n);
  if (!is_pending()) {
    drop();
  } else if (written_ >= kMostQueued) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

void Sink::flush() {
  while (is_pending()) {
    pollfd ready = {fd_, POLLOUT, 0};
    poll(&ready, 1, -1);
    write_some();
  }
}

bool Sink::is_coloured() const {
  const char* const refused = getenv("NO_COLOR");
  const char* const terminal = getenv("TERM");
  return isatty(fd_) == 1 && (refused == nullptr || *refused == '\0') && terminal != nullptr &&
         std::strcmp(terminal, "dumb") != 0;
}

bool is_same_file(int a, int b) noexcept {
  struct stat of_a;
  struct stat of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino && of_a.st_rdev == of_b.st_rdev;
}

}  // namespace dist::launch
