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

// An open descriptor of the system's.
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
  // What the system says: 0 or an errno.
  int close() noexcept;
  // The number, which somebody else closes.
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

// One that there is always something to read from. Throws std::bad_alloc where the system has no further one.
Descriptor always_readable();

// All bytes of a file, as memory that all who map the file share. Who writes to it has a copy of that page, for this process alone:
// a host's mistake ends no process and reaches no file.
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
  // NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT for what is no regular file, which is never waited for.
  Status open(const char* path) noexcept;
  // When it was opened.
  int64_t size() const noexcept { return size_; }
  // All of it: DATA_LOSS where the file has become shorter.
  Status read_at(int64_t offset, void* to, std::size_t bytes) const noexcept;
  // A file that is replaced later stays as it is; one that becomes shorter has no bytes there any more, and who reads them is ended
  // by the system. DATA_LOSS where it has become shorter already. RESOURCE_EXHAUSTED, UNAVAILABLE: in the system's words.
  Status map(MappedFile* out) const noexcept;

 private:
  Descriptor file_;
  int64_t size_ = 0;
};

// Where the file lies whose path this is, once symbolic links have been followed. False: not known; `to` is the path itself then.
bool follow_links(const char* path, char* to, std::size_t size) noexcept;

// The file's first bytes, as many as can be read. No failure is recorded.
std::size_t peek(const char* path, void* to, std::size_t bytes) noexcept;

// Removes the regular files in the folder of `path` for whose names picked(with, name) is true. What cannot be removed stays.
using PickFile = bool (*)(const void* with, const char* name) noexcept;
void remove_beside(const char* path, PickFile picked, const void* with) noexcept;

// For names that nobody else has.
uint64_t unpredictable_number() noexcept;

// A file under a name of its own, ".dist-<16 hexadecimal digits>.tmp", in the folder of the file whose place
// it takes.
class NewFile {
 public:
  NewFile() noexcept = default;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // Without commit() nothing is left. A process that is killed leaves the file under its own name.
  ~NewFile();

  // `path` is used until the end. It may be free, or a regular file, or a symbolic link, which commit()
  // replaces itself.
  Status create(const char* path) noexcept;
  // In any order; what is left out reads as 0.
  Status write_at(int64_t offset, const void* data, std::size_t bytes) noexcept;
  // Writes all to the disk and takes the place of `path` in one step, which is on the disk too at the end.
  Status commit() noexcept;
  // It has taken the place, also where commit() then failed.
  bool in_place() const noexcept { return in_place_; }

 private:
  Status open_folder() noexcept;

  const char* path_ = nullptr;
  const char* name_ = nullptr;  // the last part of path_
  Descriptor folder_;
  Descriptor file_;
  char own_name_[32] = "";  // "" where there is no such file (any more)
  bool in_place_ = false;
};

}  // namespace dist
