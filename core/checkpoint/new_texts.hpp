// SPDX-License-Identifier: Apache-2.0
// The texts of a new file. Also writes names and texts as JSON. A file has several texts for each of its
// tensors, so texts without special characters are copied directly; RapidJSON writes the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

// Appends a JSON string that consists of `prefix`, which needs no escapes, and `text`. Returns false if
// `text` is not UTF-8.
bool put_string(std::pmr::string& out, const char* prefix, const char* text);
void put_number(std::pmr::string& out, uint64_t number);

Status not_utf8(const char* what, const char* text) noexcept;
// The error for two variables with the same name.
Status called_twice(const char* name) noexcept;

class NewTexts {
 public:
  explicit NewTexts(Memory& memory) : memory_(&memory), texts_(&memory) {}

  // Rejects keys with libdist's prefix unless `own` is set.
  Status add(const char* key, const char* text, bool own);
  Status check() const;
  // Appends the texts as members of a JSON object, each followed by a comma.
  Status put(std::pmr::string& out) const;

 private:
  struct Text {
    std::pmr::string key;
    std::pmr::string text;
  };

  Memory* memory_;
  std::pmr::vector<Text> texts_;
};

// Appends a checksum of zeros as a member of a JSON object. Its key is `prefix` followed by `name`. Returns
// the position of its digits in `out`, or 0 if the name is not UTF-8.
std::size_t put_no_checksum(std::pmr::string& out, const char* prefix, const char* name);

}  // namespace dist
