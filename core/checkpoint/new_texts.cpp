// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/new_texts.hpp"

#include <cstring>

#include "core/base/text.hpp"
#include "core/checkpoint/by_name.hpp"
#include "core/checkpoint/header.hpp"
#include "core/checkpoint/text_checksum.hpp"

namespace dist {

Status not_utf8(const char* what, const char* text) noexcept {
  return invalid_argument("%s \"%s\" is not UTF-8, which a safetensors file requires", what,
                          Shown(text).c_str());
}

Status called_twice(const char* name) noexcept {
  return invalid_argument(
      "two variables have the name \"%s\". Give them different names, or set options->names.",
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

Status NewTexts::put(NewJson& json) const {
  for (const Text& text : texts_) {
    if (!json.Key(text.key.c_str())) return not_utf8("the key", text.key.c_str());
    if (!json.String(text.text.c_str())) return not_utf8("the text", text.text.c_str());
  }
  return kOk;
}

std::size_t put_no_checksum(NewJson& json, const char* key, const std::pmr::string& out) {
  if (!json.Key(key)) return 0;
  json.String(kNoChecksum);
  return out.size() - 1 - kChecksumDigits;
}

}  // namespace dist
