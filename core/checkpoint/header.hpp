// SPDX-License-Identifier: Apache-2.0
// Header: the parsed header of a safetensors file: its tensors, where they are, and its texts
// ("__metadata__").
//
//     8 bytes    N, little-endian
//     N bytes    {"__metadata__": {text: text, ...}, name: {"dtype": ..., "shape": [...], "data_offsets":
//     [begin, end]}, ...} the rest   the tensors' data, one after another without gaps; offsets count from
//     here
//
// A file is not trusted: what parse() accepts is consistent with itself and with the file's size.
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
// RapidJSON ends at a NUL; where the text breaks off inside a UTF-8 sequence, it takes all of that first.
inline constexpr std::size_t kJsonEndBytes = 4;
inline constexpr char kMetadataName[] = "__metadata__";

// libdist's own texts in a file. A tensor's checksum, under this prefix and the tensor's name, is that of its data; the
// header's is text_checksum.hpp's.
inline constexpr char kOwnPrefix[] = "libdist.";
inline constexpr char kTensorChecksumPrefix[] = "libdist.crc32:";

struct StoredTensor {
  const char* name;
  const StoredDtype* dtype;
  std::size_t first_size;  // in the header's sizes
  int32_t ndim;
  uint64_t begin;  // in the data
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

  // Room for the header's text, which is the caller's to fill before parse().
  char* make_room(std::size_t bytes);
  // `data_bytes` follow the header in the file. DATA_LOSS, or UNIMPLEMENTED for more dimensions than
  // DIST_MAX_NDIM.
  Status parse(uint64_t data_bytes);

  // In the order of their data.
  std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  std::span<const StoredText> texts() const noexcept { return texts_; }
  // NULL where there is none.
  const StoredTensor* find(const char* name) const noexcept;
  const char* text(const char* key) const noexcept;
  // The tensor without data; its dtype is 0 where libdist has no such dtype.
  dist_tensor spec(const StoredTensor& tensor) const noexcept;

 private:
  class Parser;

  Status parse_text();
  Status check_places(uint64_t data_bytes);
  Status index_names();
  Status take_checksums();

  Memory* memory_;
  std::size_t size_ = 0;         // of the header
  std::pmr::vector<char> text_;  // it, parsed in place: names and texts lie in it; then some NULs
  std::pmr::vector<int64_t> sizes_;
  std::pmr::vector<StoredTensor> tensors_;
  std::pmr::vector<StoredText> texts_;
  NameIndex by_name_;  // of tensors_
  NameIndex by_key_;   // of texts_
};

}  // namespace dist
