// SPDX-License-Identifier: Apache-2.0
// The shards of a checkpoint: which of them has a variable, their names, and the index of them all.
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

// Which of n shares each of the items is in, so that all shares have about equal bytes: the largest first, each to the share
// that has least. Equal on all workers that ask the same.
std::pmr::vector<int32_t> share_out(Memory& memory, std::span<const uint64_t> bytes, int32_t n);

// "PATH.<16 digits of the save>-00001-of-00003.safetensors"; `number` counts from 0.
std::pmr::string shard_path(Memory& memory, const char* path, uint64_t save, int32_t number, int32_t of);
// The text that an index and its shards have in common: 16 digits of the save.
inline constexpr char kSaveText[] = "libdist.save";
// The part of a path after its last '/'.
const char* name_of_path(const char* path) noexcept;

// Removes all shards of saves to `path`, but those of `kept` (0: none). What cannot be removed stays.
void remove_shards_but(const char* path, uint64_t kept) noexcept;
void remove_shards_of(const char* path, uint64_t save) noexcept;
// The file there is an index.
bool is_index(const char* path) noexcept;

struct NewIndexEntry {
  const char* name;  // of the tensor
  const char* file;
};
// The text of an index.
Status make_index(std::span<const NewIndexEntry> entries, const NewTexts& texts, uint64_t total_bytes,
                  std::pmr::string* text);

}  // namespace dist
