// SPDX-License-Identifier: Apache-2.0
// A JSON text whose events a parser of the project's takes, in place.
#pragma once

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstddef>

#include "core/base/status.hpp"

namespace dist {

// `text` ends with a NUL, which is not counted in `size`. `Parser` has RapidJSON's events, and status(): why it has ended the
// parse. DATA_LOSS otherwise: `no_json` is what is said of a text that is none, `what` it is: "the header".
template <class Parser>
Status parse_json(char* text, std::size_t size, Parser& parser, const char* no_json, const char* what) {
  constexpr unsigned kHow = rapidjson::kParseInsituFlag | rapidjson::kParseValidateEncodingFlag;
  rapidjson::InsituStringStream stream(text);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kHow>(stream, parser);
  if (!parser.status().ok()) return parser.status();
  if (result.IsError()) {
    return fail(DIST_DATA_LOSS, "%s: %s (byte %zu)", no_json, rapidjson::GetParseError_En(result.Code()),
                result.Offset());
  }
  return stream.Tell() == size ? kOk : fail(DIST_DATA_LOSS, "%s has a NUL inside", what);
}

}  // namespace dist
