// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint that consists of several safetensors files: which file has which tensor.
//
//     {"metadata": {"total_size": number, text: text, ...}, "weight_map": {name: file, ...}}
//
// Invariant: an index is not trusted. Each file name accepted by parse() refers to the index's own folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/checkpoint/by_name.hpp"
#include "core/checkpoint/header.hpp"

namespace dist {

inline constexpr char kIndexMetadata[] = "metadata";
inline constexpr char kIndexFiles[] = "weight_map";
inline constexpr char kIndexTotal[] = "total_size";

// Whether a file with these first bytes can be an index. A safetensors file cannot be one: it begins with the
// length of its header, which contains zero bytes.
inline constexpr std::size_t kKindBytes = kHeaderLengthBytes;
bool begins_index(const char (&first)[kKindBytes]) noexcept;

struct IndexEntry {
  const char* name;  // of the tensor
  const char* file;
  std::size_t number;  // index in files()
};

class Index {
 public:
  static constexpr std::size_t kMaxFiles = 4096;  // all files are open at the same time

  explicit Index(Memory& memory)
      : memory_(&memory),
        text_(&memory),
        entries_(&memory),
        files_(&memory),
        texts_(&memory),
        by_name_(&memory),
        by_key_(&memory) {}

  // Allocates memory for the text, which the caller fills before parse().
  char* make_room(std::size_t bytes);
  // Fails with DATA_LOSS for an invalid index, and with UNIMPLEMENTED for more than kMaxFiles files.
  Status parse();

  // In the order of the text.
  std::span<const IndexEntry> entries() const noexcept { return entries_; }
  // Sorted by name, without duplicates.
  std::span<const char* const> files() const noexcept { return files_; }
  std::span<const StoredText> texts() const noexcept { return texts_; }
  // Returns NULL if there is no such tensor.
  const IndexEntry* find(const char* name) const noexcept;
  const char* text(const char* key) const noexcept;
  // The checksum of the text. It identifies the index.
  uint32_t checksum() const noexcept { return checksum_; }

 private:
  class Parser;

  Status number_files();

  Memory* memory_;
  std::size_t size_ = 0;         // size of the text
  std::pmr::vector<char> text_;  // parsed in place; names and texts point into it; NULs follow
  std::pmr::vector<IndexEntry> entries_;
  std::pmr::vector<const char*> files_;
  std::pmr::vector<StoredText> texts_;
  NameIndex by_name_;  // for entries_
  NameIndex by_key_;   // for texts_
  uint32_t checksum_ = 0;
};

}  // namespace dist
