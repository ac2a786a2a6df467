// SPDX-License-Identifier: Apache-2.0
// Parses a JSON text in place and passes its events to a handler.
#pragma once

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstddef>

#include "core/base/status.hpp"

namespace dist {

// Counts the events of a JSON value of any kind that a parser ignores. Other readers ignore such values too,
// but accept only kMostDepth levels. The limit also bounds the stack, because RapidJSON's parser is
// recursive.
class SkippedValue {
 public:
  static constexpr int kMostDepth = 100;

  // Each of these functions returns whether the value is complete.
  bool scalar() const noexcept { return depth_ == 0; }
  bool begin() noexcept { return ++depth_, false; }
  bool end() noexcept { return --depth_ == 0; }
  bool too_deep() const noexcept { return depth_ > kMostDepth; }

 private:
  int depth_ = 0;
};

inline bool is_ascii(const char* text, std::size_t size) noexcept {
  unsigned char all = 0;
  for (std::size_t i = 0; i < size; ++i)
    all = static_cast<unsigned char>(all | static_cast<unsigned char>(text[i]));
  return all < 0x80;
}

// `text` ends with a NUL, which `size` does not include. `Parser` handles RapidJSON's events. If it has
// stopped the parse, its status() is the reason, which is returned. Fails with DATA_LOSS and the message
// `no_json` if the text is not JSON. `what` names the text.
template <class Parser>
Status parse_json(char* text, std::size_t size, Parser& parser, const char* no_json, const char* what) {
  constexpr unsigned kInPlace = rapidjson::kParseInsituFlag;
  rapidjson::InsituStringStream stream(text);
  rapidjson::Reader reader;
  // Validating each character takes most of the time and is not needed for ASCII.
  const rapidjson::ParseResult result =
      is_ascii(text, size) ? reader.Parse<kInPlace>(stream, parser)
                           : reader.Parse<kInPlace | rapidjson::kParseValidateEncodingFlag>(stream, parser);
  if (!parser.status().ok()) return parser.status();
  if (result.IsError()) {
    return fail(DIST_DATA_LOSS, "%s: %s (byte %zu)", no_json, rapidjson::GetParseError_En(result.Code()),
                result.Offset());
  }
  return stream.Tell() == size ? kOk : fail(DIST_DATA_LOSS, "%s contains a NUL byte", what);
}

}  // namespace dist
