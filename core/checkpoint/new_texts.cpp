// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/new_texts.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "core/base/json_out.hpp"
#include "core/base/text.hpp"
#include "core/checkpoint/by_name.hpp"
#include "core/checkpoint/header.hpp"
#include "core/checkpoint/text_checksum.hpp"

namespace dist {

namespace {

using ValidatingWriter = rapidjson::Writer<JsonOut, rapidjson::UTF8<>, rapidjson::UTF8<>, JsonPool,
                                           rapidjson::kWriteValidateEncodingFlag>;

// Whether a JSON string contains the character unescaped.
constexpr bool is_plain(char c) noexcept { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// RapidJSON writes both quotation marks, and `out` already contains the first one.
[[gnu::noinline, gnu::cold]] bool put_escaped(std::pmr::string& out, const char* text) {
  char buffer[256];
  JsonPool pool(buffer, sizeof buffer);
  const std::size_t begin = out.size();
  JsonOut stream(out);
  ValidatingWriter writer(stream, &pool, 1);
  if (!writer.String(text)) return false;
  out.erase(begin, 1);
  return true;
}

}  // namespace

bool put_string(std::pmr::string& out, const char* prefix, const char* text) {
  out.append(1, '"').append(prefix);
  const std::string_view all(text);
  if (!std::all_of(all.begin(), all.end(), is_plain)) [[unlikely]]
    return put_escaped(out, text);
  out.append(all).append(1, '"');
  return true;
}

void put_number(std::pmr::string& out, uint64_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

Status not_utf8(const char* what, const char* text) noexcept {
  return invalid_argument("%s \"%s\" is not UTF-8, which a safetensors file requires", what,
                          Shown(text).c_str());
}

Status called_twice(const char* name) noexcept {
  return invalid_argument(
      "two variables have the name \"%s\". Give them different names, or set `options->names`.",
      Shown(name).c_str());
}

Status NewTexts::add(const char* key, const char* text, bool own) {
  if (!own && std::strncmp(key, kOwnPrefix, sizeof kOwnPrefix - 1) == 0) {
    return invalid_argument("metadata \"%s\": keys that start with \"%s\" are reserved for libdist",
                            Shown(key).c_str(), kOwnPrefix);
  }
  texts_.push_back({std::pmr::string(key, memory_), std::pmr::string(text, memory_)});
  return kOk;
}

Status NewTexts::check() const {
  constexpr auto kKeyOf = [](const Text& text) { return text.key.c_str(); };
  NameIndex by_key(memory_);
  sort_by_name(texts_, by_key, kKeyOf);
  const char* const key = twice(texts_, by_key, kKeyOf);
  return key == nullptr ? kOk : invalid_argument("metadata key \"%s\" is set twice", Shown(key).c_str());
}

Status NewTexts::put(std::pmr::string& out) const {
  for (const Text& text : texts_) {
    if (!put_string(out, "", text.key.c_str())) return not_utf8("the key", text.key.c_str());
    out.append(1, ':');
    if (!put_string(out, "", text.text.c_str())) return not_utf8("the text", text.text.c_str());
    out.append(1, ',');
  }
  return kOk;
}

std::size_t put_no_checksum(std::pmr::string& out, const char* prefix, const char* name) {
  if (!put_string(out, prefix, name)) return 0;
  out.append(":\"").append(kNoChecksum).append(1, '"');
  return out.size() - 1 - kChecksumDigits;
}

}  // namespace dist
