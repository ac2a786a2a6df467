// SPDX-License-Identifier: Apache-2.0
// Sink: standard output or error of dist-launch, to which whole lines are queued. Writing never blocks, so that who reads
// slowly holds up the tasks' output, and not the signals that are to end them.
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
  // Once poll() says that it takes something. What cannot be written is dropped, and so is all that comes later.
  void write_some();
  // As write_some(), until all is out: at the end, or before there is a loop.
  void flush();
  void drop() noexcept;

  int fd() const noexcept { return fd_; }
  bool is_pending() const noexcept { return written_ < queue_.size(); }
  // Whether streams that come here are read on.
  bool has_room() const noexcept { return queue_.size() - written_ < kMostQueued; }
  // The errno of a write that failed; 0: none did.
  int error() const noexcept { return error_; }
  bool is_coloured() const;  // a terminal, and colours are not refused by NO_COLOR or TERM

 private:
  static constexpr std::size_t kMostQueued = std::size_t{256} * 1024;
  // What a pipe takes at least once poll() says so.
  static constexpr std::size_t kMostAtOnce = 4096;

  const int fd_;
  std::string queue_;
  std::size_t written_ = 0;  // of the queue
  int error_ = 0;
};

// Whether both descriptors lead to one file, pipe or terminal.
bool is_same_file(int a, int b) noexcept;

}  // namespace dist::launch
