// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/shards.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <queue>
#include <utility>

#include "core/base/os/file.hpp"
#include "core/checkpoint/by_name.hpp"
#include "core/checkpoint/index.hpp"
#include "core/checkpoint/text_checksum.hpp"

namespace dist {
namespace {

constexpr char kShardForm[] = ".%016" PRIx64 "-%05" PRId32 "-of-%05" PRId32 ".safetensors";
constexpr std::size_t kShardRoom = 80;  // maximum length of the result of kShardForm

// The saves whose shards are removed.
struct Removed {
  const char* name;  // file name of the index
  uint64_t save;
  bool but;  // all saves except `save`
};

// Whether shard_path() creates this file name for one of these saves.
bool is_removed(const Removed& removed, const char* file) noexcept {
  const std::size_t length = std::strlen(removed.name);
  if (std::strncmp(file, removed.name, length) != 0) return false;
  uint64_t save = 0;
  int32_t number = 0;
  int32_t of = 0;
  if (std::sscanf(file + length, ".%16" SCNx64 "-%9" SCNd32 "-of-%9" SCNd32, &save, &number, &of) != 3)
    return false;
  char again[kShardRoom];
  std::snprintf(again, sizeof again, kShardForm, save, number, of);
  return std::strcmp(file + length, again) == 0 && (save == removed.save) != removed.but;
}

void remove_shards(const char* path, uint64_t save, bool but) noexcept {
  const Removed removed{name_of_path(path), save, but};
  remove_beside(
      path,
      [](const void* which, const char* file) noexcept {
        return is_removed(*static_cast<const Removed*>(which), file);
      },
      &removed);
}

}  // namespace

std::pmr::vector<int32_t> share_out(Memory& memory, std::span<const uint64_t> bytes, int32_t n) {
  std::pmr::vector<std::size_t> order(bytes.size(), &memory);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : a < b; });
  using Share = std::pair<uint64_t, int32_t>;  // bytes so far, number
  std::pmr::vector<Share> shares(&memory);
  for (int32_t share = 0; share < n; ++share) shares.emplace_back(0, share);
  std::priority_queue least(std::greater<Share>(), std::move(shares));
  std::pmr::vector<int32_t> share_of(bytes.size(), &memory);
  for (const std::size_t i : order) {
    Share share = least.top();
    least.pop();
    share_of[i] = share.second;
    share.first += bytes[i];
    least.push(share);
  }
  return share_of;
}

const char* name_of_path(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

std::pmr::string shard_path(Memory& memory, const char* path, uint64_t save, int32_t number, int32_t of) {
  char end[kShardRoom];
  std::snprintf(end, sizeof end, kShardForm, save, number + 1, of);
  std::pmr::string shard(path, &memory);
  return shard.append(end);
}

void remove_shards_but(const char* path, uint64_t kept) noexcept { remove_shards(path, kept, true); }
void remove_shards_of(const char* path, uint64_t save) noexcept { remove_shards(path, save, false); }

bool is_index(const char* path) noexcept {
  char first[kKindBytes] = "";
  return peek(path, first, sizeof first) == sizeof first && begins_index(first);
}

Status make_index(std::span<const NewIndexEntry> entries, const NewTexts& texts, uint64_t total_bytes,
                  std::pmr::string* text) {
  DIST_TRY(texts.check());
  text->assign(1, '{');
  (void)put_string(*text, "", kIndexMetadata);
  text->append(":{");
  (void)put_string(*text, "", kIndexTotal);
  text->append(1, ':');
  put_number(*text, total_bytes);
  text->append(1, ',');
  DIST_TRY(texts.put(*text));
  const std::size_t digits = put_no_checksum(*text, "", kTextChecksumKey);
  text->append("},");
  (void)put_string(*text, "", kIndexFiles);
  text->append(":{");
  const char* separator = "";
  for (const NewIndexEntry& entry : entries) {
    text->append(std::exchange(separator, ","));
    if (!put_string(*text, "", entry.name)) return not_utf8("the name", entry.name);
    text->append(1, ':');
    if (!put_string(*text, "", entry.file)) return not_utf8("the file's name", entry.file);
  }
  text->append("}}");
  sign(*text, digits);
  if (text->size() <= kMaxHeaderBytes) return kOk;
  return invalid_argument("the index would have %zu bytes, but can have at most %" PRIu64, text->size(),
                          kMaxHeaderBytes);
}

}  // namespace dist
