// SPDX-License-Identifier: Apache-2.0
// SharedMemory: memory that two processes of one machine map. It has no name in the file system: one process
// creates it, and the other one receives its descriptor over a socket (local_socket.hpp). read_process()
// reads another process's private memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/os/file.hpp"
#include "core/base/status.hpp"

namespace dist {

class SharedMemory {
 public:
  SharedMemory() noexcept = default;
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  // Creates memory filled with zeros, whose size cannot be changed. All of it is allocated now, so that a
  // lack of memory is an error here and not a SIGBUS later. `out_descriptor` is for the other process.
  Status create(std::size_t bytes, Descriptor* out_descriptor) noexcept;
  // Maps memory that another process has created. Fails unless it has this size and cannot shrink.
  Status open(const Descriptor& descriptor, std::size_t bytes) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  Status map(int descriptor, std::size_t bytes) noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Reads from the memory of a process of the same user. Returns false if the system forbids that, the process
// does not exist, or it has no such memory; then the content of `to` is undefined.
bool read_process(int64_t process, uint64_t address, void* to, std::size_t bytes) noexcept;

}  // namespace dist
