// SPDX-License-Identifier: Apache-2.0
// TensorFile: a safetensors file, of libdist or of any other program, that is open for reading.
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

  // Reads the data and compares their checksum, where the file has one. `room` is a buffer of kRoomBytes for
  // them.
  static constexpr std::size_t kRoomBytes = std::size_t{1} << 18;
  Status verify(const StoredTensor& tensor, std::byte* room) const;
  // All data of a tensor, row-major, to one copy or several, compared too. On an error what lies there is
  // unspecified. Allocates nothing.
  Status read(const StoredTensor& tensor, std::span<std::byte* const> copies) const;
  Status read(const StoredTensor& tensor, void* to) const {
    std::byte* const only = static_cast<std::byte*>(to);
    return read(tensor, {&only, 1});
  }
  // Where the tensor's data are in the mapped file.
  Status map(MappedFile* out) const noexcept { return file_.map(out); }
  std::size_t offset(const StoredTensor& tensor) const noexcept {
    return static_cast<std::size_t>(data_at_) + static_cast<std::size_t>(tensor.begin);
  }
  // The same checksum, of data that are there.
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
