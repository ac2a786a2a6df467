// SPDX-License-Identifier: Apache-2.0
// TensorFile: an open safetensors file, written by libdist or any other program.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/base/memory.hpp"
#include "core/base/os/file.hpp"
#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"

namespace dist {

class TensorFile {
 public:
  explicit TensorFile(Memory& memory) : header_(memory) {}
  Status open(InputFile file);

  const Header& header() const noexcept { return header_; }

  // Reads the data and compares the checksum if the file has one. `room` has the size of the tensor, but at
  // most kRoomBytes.
  static constexpr std::size_t kRoomBytes = std::size_t{1} << 18;
  Status verify(const StoredTensor& tensor, std::byte* room) const;
  // Reads all data of a tensor in row-major order into one or several copies, and compares the checksum.
  // After an error, the contents of the copies are unspecified. Allocates no memory.
  Status read(const StoredTensor& tensor, std::span<std::byte* const> copies) const;
  Status read(const StoredTensor& tensor, void* to) const {
    std::byte* const only = static_cast<std::byte*>(to);
    return read(tensor, {&only, 1});
  }
  // Maps the file; offset() is the position of a tensor's data in it.
  Status map(MappedFile* out) const noexcept { return file_.map(out); }
  std::size_t offset(const StoredTensor& tensor) const noexcept {
    return static_cast<std::size_t>(data_at_) + static_cast<std::size_t>(tensor.begin);
  }
  // Compares the checksum with the data, which are already in memory.
  Status verify_at(const StoredTensor& tensor, const std::byte* data) const noexcept;

 private:
  static Status compare(const StoredTensor& tensor, uint32_t checksum) noexcept;
  template <class Place, class Use>
  Status read_blocks(const StoredTensor& tensor, Place&& place, Use&& use) const;

  InputFile file_;
  Header header_;
  int64_t data_at_ = 0;
};

}  // namespace dist
