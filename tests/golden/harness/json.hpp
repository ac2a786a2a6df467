// SPDX-License-Identifier: Apache-2.0
// RapidJSON with error handling: an invalid file causes an exception instead of abort(). Include this file
// everywhere instead of RapidJSON's headers.
#pragma once

#include <string>
#include <string_view>

namespace golden {

// A file does not have the expected format.
struct Malformed {
  std::string what;
};

[[noreturn]] inline void malformed(const char* expression) {
  throw Malformed{std::string("not in the format: ") + expression};
}

}  // namespace golden

// RapidJSON asserts that a value has the type that is asked for.
#define RAPIDJSON_ASSERT(x) ((x) ? static_cast<void>(0) : ::golden::malformed(#x))
#define RAPIDJSON_HAS_STDSTRING 1
#include <rapidjson/document.h>

namespace golden {

using Json = rapidjson::Value;
using JsonMemory = rapidjson::Document::AllocatorType;

inline std::string_view text_of(const Json& json) { return {json.GetString(), json.GetStringLength()}; }

// Returns the member under `key`, or NULL.
inline const Json* find(const Json& object, std::string_view key) {
  const auto at = object.FindMember(Json(rapidjson::StringRef(key.data(), key.size())));
  return at == object.MemberEnd() ? nullptr : &at->value;
}

// Returns the member under `key`, which must exist.
inline const Json& member(const Json& object, std::string_view key) {
  const Json* const found = find(object, key);
  if (found == nullptr) throw Malformed{"\"" + std::string(key) + "\" is missing"};
  return *found;
}

// Returns JSON text, truncated to `limit` bytes.
std::string to_text(const Json& json, std::size_t limit = std::string::npos);

}  // namespace golden
