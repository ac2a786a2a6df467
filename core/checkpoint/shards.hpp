// SPDX-License-Identifier: Apache-2.0
// The shards of a checkpoint: which shard has which variable, their names, and the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/checkpoint/new_texts.hpp"

namespace dist {

// Assigns each item to one of n shares of about equal size: the largest item first, each to the share that is
// smallest at that time. The result is the same on all workers that pass the same arguments.
std::pmr::vector<int32_t> share_out(Memory& memory, std::span<const uint64_t> bytes, int32_t n);

// "PATH.<16 digits of the save>-00001-of-00003.safetensors"; `number` starts at 0.
std::pmr::string shard_path(Memory& memory, const char* path, uint64_t save, int32_t number, int32_t of);
// The key of a text that an index and its shards have in common: the 16 digits of the save.
inline constexpr char kSaveText[] = "libdist.save";
// The part of the path after the last '/'.
const char* name_of_path(const char* path) noexcept;

// Removes the shards of all saves to `path` except `kept` (0: no exception). Files that cannot be removed
// remain.
void remove_shards_but(const char* path, uint64_t kept) noexcept;
void remove_shards_of(const char* path, uint64_t save) noexcept;
// Whether the file at this path is an index.
bool is_index(const char* path) noexcept;

struct NewIndexEntry {
  const char* name;  // of the tensor
  const char* file;
};
// Writes the text of an index.
Status make_index(std::span<const NewIndexEntry> entries, const NewTexts& texts, uint64_t total_bytes,
                  std::pmr::string* text);

}  // namespace dist
