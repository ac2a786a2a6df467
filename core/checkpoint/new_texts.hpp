// SPDX-License-Identifier: Apache-2.0
// NewTexts: the texts of a file that is written; and how it is written as JSON.
#pragma once

#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/json_out.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

// A text that is not UTF-8 is refused: its call returns false.
using NewJson = rapidjson::Writer<JsonOut, rapidjson::UTF8<>, rapidjson::UTF8<>, JsonPool,
                                  rapidjson::kWriteValidateEncodingFlag>;
inline constexpr std::size_t kNewJsonDepth = 8;

Status not_utf8(const char* what, const char* text) noexcept;
// Two variables of one name.
Status called_twice(const char* name) noexcept;

class NewTexts {
 public:
  explicit NewTexts(Memory& memory) : memory_(&memory), texts_(&memory) {}

  // A key with libdist's prefix is refused, unless it is libdist's own.
  Status add(const char* key, const char* text, bool own);
  Status check() const;
  // Into an object.
  Status put(NewJson& json) const;

 private:
  struct Text {
    std::pmr::string key;
    std::pmr::string text;
  };

  Memory* memory_;
  std::pmr::vector<Text> texts_;
};

// Puts a checksum of zeros under `key`. Returns where its digits are in `out`, the text that is written; 0: the key is not
// UTF-8.
std::size_t put_no_checksum(NewJson& json, const char* key, const std::pmr::string& out);

}  // namespace dist
