// SPDX-License-Identifier: Apache-2.0
// Sink: a queue of lines for the standard output or error of dist-launch.
//
// Invariant: writing never blocks in the event loop, so a slow reader delays the tasks' output, but not the
// signals that end the job.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dist::launch {

class Sink {
 public:
  explicit Sink(int fd) noexcept : fd_(fd) {}

  void append(std::string_view lines);
  std::string* queue() noexcept { return &queue_; }
  // Called when poll() reports room. After an error, discards this and all later output.
  void write_some();
  // Writes everything and may block. For the end, and before the event loop runs.
  void flush();
  void drop() noexcept;

  int fd() const noexcept { return fd_; }
  bool is_pending() const noexcept { return written_ < queue_.size(); }
  // Whether to continue reading the streams that write here.
  bool has_room() const noexcept { return queue_.size() - written_ < kMostQueued; }
  // The errno of a failed write; 0: none.
  int error() const noexcept { return error_; }
  bool is_coloured() const;  // a terminal, unless NO_COLOR or TERM forbids colours

 private:
  static constexpr std::size_t kMostQueued = std::size_t{256} * 1024;
  // The number of bytes that a pipe accepts without blocking when poll() reports room.
  static constexpr std::size_t kMostAtOnce = 4096;

  const int fd_;
  std::string queue_;
  std::size_t written_ = 0;  // bytes of the queue
  int error_ = 0;
};

// Whether both descriptors refer to the same file, pipe or terminal.
bool is_same_file(int a, int b) noexcept;

}  // namespace dist::launch
