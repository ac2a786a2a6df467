// SPDX-License-Identifier: Apache-2.0
// The texts of a new file, and writing them as JSON.
#pragma once

#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/json_out.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

// Its functions return false for a text that is not UTF-8.
using NewJson = rapidjson::Writer<JsonOut, rapidjson::UTF8<>, rapidjson::UTF8<>, JsonPool,
                                  rapidjson::kWriteValidateEncodingFlag>;
inline constexpr std::size_t kNewJsonDepth = 8;

Status not_utf8(const char* what, const char* text) noexcept;
// The error for two variables with the same name.
Status called_twice(const char* name) noexcept;

class NewTexts {
 public:
  explicit NewTexts(Memory& memory) : memory_(&memory), texts_(&memory) {}

  // Rejects keys with libdist's prefix unless `own` is set.
  Status add(const char* key, const char* text, bool own);
  Status check() const;
  // Writes the texts into the current JSON object.
  Status put(NewJson& json) const;

 private:
  struct Text {
    std::pmr::string key;
    std::pmr::string text;
  };

  Memory* memory_;
  std::pmr::vector<Text> texts_;
};

// Writes a checksum of zeros under `key`. Returns the position of its digits in the output text `out`, or 0
// if the key is not UTF-8.
std::size_t put_no_checksum(NewJson& json, const char* key, const std::pmr::string& out);

}  // namespace dist
