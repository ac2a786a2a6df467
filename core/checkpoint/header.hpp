// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: its tensors, their positions, and its texts ("__metadata__").
//
//     8 bytes    N, little-endian
//     N bytes    {"__metadata__": {text: text, ...}, name: {"dtype": ..., "shape": [...],
//                "data_offsets": [begin, end]}, ...}
//     the rest   the tensors' data, consecutive and without gaps; offsets are relative to its beginning
//
// Invariant: files are not trusted. A header accepted by parse() is consistent, and matches the size of the
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/text.hpp"
#include "core/checkpoint/by_name.hpp"
#include "core/checkpoint/dtypes.hpp"

namespace dist {

inline constexpr std::size_t kHeaderLengthBytes = 8;
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as in the safetensors library
// RapidJSON stops at a NUL. If the text ends inside a UTF-8 sequence, it first reads the rest of the
// sequence.
inline constexpr std::size_t kJsonEndBytes = 4;
inline constexpr char kMetadataName[] = "__metadata__";

// Texts that libdist itself writes have keys with this prefix. A tensor's checksum covers its data; its key
// is the second prefix followed by the tensor's name. text_checksum.hpp describes the header's own checksum.
inline constexpr char kOwnPrefix[] = "libdist.";
inline constexpr char kTensorChecksumPrefix[] = "libdist.crc32:";

struct StoredTensor {
  const char* name;
  const StoredDtype* dtype;
  std::size_t first_size;  // index in the header's sizes
  int32_t ndim;
  uint64_t begin;  // offset in the data
  uint64_t end;
  bool has_checksum;
  uint32_t checksum;  // of the data
};

struct StoredText {
  const char* key;
  const char* text;
};

class Header {
 public:
  explicit Header(Memory& memory)
      : memory_(&memory),
        text_(&memory),
        sizes_(&memory),
        tensors_(&memory),
        texts_(&memory),
        by_name_(&memory),
        by_key_(&memory) {}

  // Allocates memory for the header's text, which the caller fills before parse().
  char* make_room(std::size_t bytes);
  // `data_bytes` is the size of the data after the header. Fails with DATA_LOSS for an invalid header, and
  // with UNIMPLEMENTED if a tensor has more dimensions than DIST_MAX_NDIM.
  Status parse(uint64_t data_bytes);

  // In the order of their data.
  std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  std::span<const StoredText> texts() const noexcept { return texts_; }
  // Returns NULL if there is no such tensor.
  const StoredTensor* find(const char* name) const noexcept;
  const char* text(const char* key) const noexcept;
  // A tensor's dtype and shape without data. The dtype is 0 if libdist does not support it.
  dist_tensor spec(const StoredTensor& tensor) const noexcept;

 private:
  class Parser;

  Status parse_text();
  Status check_places(uint64_t data_bytes);
  Status index_names();
  Status take_checksums();

  Memory* memory_;
  std::size_t size_ = 0;         // size of the header's text
  std::pmr::vector<char> text_;  // parsed in place; names and texts point into it; NULs follow
  std::pmr::vector<int64_t> sizes_;
  std::pmr::vector<StoredTensor> tensors_;
  std::pmr::vector<StoredText> texts_;
  NameIndex by_name_;  // for tensors_
  NameIndex by_key_;   // for texts_
};

}  // namespace dist
