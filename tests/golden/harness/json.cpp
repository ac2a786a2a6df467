// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace golden {

std::string to_text(const Json& json, std::size_t limit) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  json.Accept(writer);
  std::string text(buffer.GetString(), buffer.GetSize());
  if (text.size() > limit) text.replace(limit, std::string::npos, "...");
  return text;
}

}  // namespace golden
