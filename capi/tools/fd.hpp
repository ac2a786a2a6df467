// SPDX-License-Identifier: Apache-2.0
// Fd: owns a file descriptor and closes it.
#pragma once

#include <unistd.h>

#include <utility>

namespace dist::launch {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }
  void reset() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Creates a pipe that is closed on exec. Returns false and sets errno on failure.
bool make_pipe(Fd* read_end, Fd* write_end) noexcept;

}  // namespace dist::launch
