// SPDX-License-Identifier: Apache-2.0
// File access: reads at any offset, and writes to a temporary file that atomically replaces the old one once
// its data is on the disk.
//
// Error messages contain the system's reason but not the path, which the caller knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/status.hpp"

namespace dist {

// An open file descriptor.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  bool is_open() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  // Returns 0 or an errno.
  int close() noexcept;
  // Returns the descriptor, which the caller must close.
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

// A descriptor that is always readable. Throws std::bad_alloc if the system has no more descriptors.
Descriptor always_readable();

// The bytes of a file as memory, which is shared with other processes that map the file. Pages are
// copy-on-write, so a host that writes to them by mistake neither crashes nor changes the file.
class MappedFile {
 public:
  MappedFile() noexcept = default;
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();
  const std::byte* data() const noexcept { return data_; }

 private:
  friend class InputFile;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A regular file that is read.
class InputFile {
 public:
  // Fails with NOT_FOUND, with PERMISSION_DENIED, or, if it is not a regular file, with INVALID_ARGUMENT.
  // Never blocks.
  Status open(const char* path) noexcept;
  // The size of the file when it was opened.
  int64_t size() const noexcept { return size_; }
  // Reads exactly this many bytes. Fails with DATA_LOSS if the file has become shorter.
  Status read_at(int64_t offset, void* to, std::size_t bytes) const noexcept;
  // Maps the file. If the file is replaced later, the mapping keeps the old content. If the file is truncated
  // later, the system terminates a process that reads the missing bytes. Fails with DATA_LOSS if it is
  // already shorter, and with RESOURCE_EXHAUSTED or UNAVAILABLE and the system's message.
  Status map(MappedFile* out) const noexcept;

 private:
  Descriptor file_;
  int64_t size_ = 0;
};

// Resolves symbolic links. Returns false if that fails; then `to` is the path itself.
bool follow_links(const char* path, char* to, std::size_t size) noexcept;

// Reads as many of the file's first bytes as possible. Records no failure.
std::size_t peek(const char* path, void* to, std::size_t bytes) noexcept;

// Removes the regular files in the folder of `path` for whose names picked(with, name) returns true. Ignores
// failures.
using PickFile = bool (*)(const void* with, const char* name) noexcept;
void remove_beside(const char* path, PickFile picked, const void* with) noexcept;

// A number for unique names.
uint64_t unpredictable_number() noexcept;

// A temporary file, ".dist-<16 hexadecimal digits>.tmp", in the folder of the file that it will replace.
class NewFile {
 public:
  NewFile() noexcept = default;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // Removes the file unless commit() has been called. If the process is killed, the temporary file remains.
  ~NewFile();

  // `path` must stay valid until the object is destroyed. It may not exist yet, or be a regular file or a
  // symbolic link; commit() replaces the link itself.
  Status create(const char* path) noexcept;
  // Writes may come in any order. Gaps read as 0.
  Status write_at(int64_t offset, const void* data, std::size_t bytes) noexcept;
  // Writes everything to disk and atomically replaces `path`; the replacement is on disk, too, when this
  // returns.
  Status commit() noexcept;
  // Whether the file has replaced `path`. This is possible even if commit() failed afterwards.
  bool in_place() const noexcept { return in_place_; }

 private:
  Status open_folder() noexcept;

  const char* path_ = nullptr;
  const char* name_ = nullptr;  // the last component of path_
  Descriptor folder_;
  Descriptor file_;
  char own_name_[32] = "";  // "" if the file does not exist (any more)
  bool in_place_ = false;
};

}  // namespace dist
