// SPDX-License-Identifier: Apache-2.0
// Checkpoint: a safetensors file, of libdist or of any other program, that is open for reading.
#pragma once

#include <cstddef>

#include "core/base/memory.hpp"
#include "core/base/os/file.hpp"
#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"
#include "core/value/value.hpp"

namespace dist {

class Checkpoint final : public Counted {
 public:
  static Status open(Memory& memory, const char* path, Ref<Checkpoint>* out);

  const Header& header() const noexcept { return header_; }
  // NOT_FOUND with names that are there.
  Status find(const char* name, const StoredTensor** out) const noexcept;

  // Reads the data and compares their checksum, where the file has one. `room` is a buffer of kRoomBytes for
  // them.
  static constexpr std::size_t kRoomBytes = std::size_t{1} << 20;
  Status verify(const StoredTensor& tensor, std::byte* room) const;
  // All data of a tensor, row-major, compared too. On an error what lies at `to` is unspecified. Allocates
  // nothing.
  Status read(const StoredTensor& tensor, void* to) const;
  Status read(const StoredTensor& tensor, ValueRef* out) const;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  explicit Checkpoint(Memory& memory) : Counted(memory), header_(memory) {}
  Status read_header();
  Status read_blocks(const StoredTensor& tensor, std::byte* to, bool keep) const;

  InputFile file_;
  Header header_;
  int64_t data_at_ = 0;
};

}  // namespace dist
