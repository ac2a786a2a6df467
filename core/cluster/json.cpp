// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/json.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstring>

namespace dist {
namespace {

// RapidJSON stops at a NUL. If the text ends inside a UTF-8 sequence, it first reads the rest of the
// sequence.
constexpr std::size_t kEndBytes = 4;

// The length of a text, at most `most` + 1. A text that is too long is not read further.
std::size_t length_up_to(const char* text, std::size_t most) noexcept {
  const void* const end = std::memchr(text, '\0', most + 1);
  return end == nullptr ? most + 1 : static_cast<std::size_t>(static_cast<const char*>(end) - text);
}

}  // namespace

// Handles the events of RapidJSON's parser. Stops if the text nests too deeply or has too many values,
// because the parser recurses for each level.
class JsonTree::Handler {
 public:
  Handler(JsonTree& tree, const char* what) noexcept : tree_(tree), what_(what) {}

  // The error, if this handler stopped the parser.
  Status status() const noexcept { return status_; }

  // The names are prescribed by RapidJSON. NOLINTBEGIN(readability-identifier-naming)
  bool Null() { return add(JsonKind::kNull, {}); }
  bool Bool(bool value) { return add(value ? JsonKind::kTrue : JsonKind::kFalse, {}); }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return add(JsonKind::kText, {text, length});
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_ = {text, length};
    return true;
  }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    const std::string_view number(text, length);
    // RapidJSON accepts these as well, but Python does not.
    if (number == "Inf" || number == "-Inf" || number == "-NaN") {
      status_ = invalid_argument("%s is not JSON: -NaN and Inf are not numbers in JSON", what_);
      return false;
    }
    return add(JsonKind::kNumber, number);
  }
  bool StartObject() { return begin(JsonKind::kObject); }
  bool EndObject(rapidjson::SizeType) { return end(); }
  bool StartArray() { return begin(JsonKind::kList); }
  bool EndArray(rapidjson::SizeType) { return end(); }
  // Never called, because RapidJSON passes numbers as texts.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }
  // NOLINTEND(readability-identifier-naming)

 private:
  bool add(JsonKind kind, std::string_view text) {
    auto& values = tree_.values_;
    if (values.size() == kMaxJsonValues) {
      status_ = invalid_argument("%s has more than %zu values", what_, kMaxJsonValues);
      return false;
    }
    const auto index = static_cast<uint32_t>(values.size());
    Value value;
    value.kind = kind;
    value.text = text;
    value.key = key_;
    values.push_back(value);
    if (depth_ > 0) {
      Value& parent = values[parents_[depth_ - 1]];
      (parent.first == kNone ? parent.first : values[parent.last].next) = index;
      parent.last = index;
    }
    key_ = {};
    return true;
  }
  bool begin(JsonKind kind) {
    if (depth_ == DIST_MAX_CLUSTER_DEPTH) {
      status_ = invalid_argument("%s nests more than %d objects and lists", what_, DIST_MAX_CLUSTER_DEPTH);
      return false;
    }
    if (!add(kind, {})) return false;
    parents_[depth_++] = static_cast<uint32_t>(tree_.values_.size() - 1);
    return true;
  }
  bool end() noexcept {
    --depth_;
    return true;
  }

  JsonTree& tree_;
  const char* const what_;
  std::string_view key_;
  uint32_t parents_[DIST_MAX_CLUSTER_DEPTH] = {};
  int32_t depth_ = 0;
  Status status_;
};

Status JsonTree::parse(const char* text, const char* what) {
  constexpr std::size_t kMost = DIST_MAX_CLUSTER_TEXT_BYTES - 1;
  const std::size_t size = length_up_to(text, kMost);
  if (size > kMost) {
    return invalid_argument("%s has more than %zu bytes, which is the limit", what, kMost);
  }
  values_.clear();
  text_.reserve(size + kEndBytes);
  text_.assign(text, size);
  text_.append(kEndBytes, '\0');
  constexpr unsigned kHow = rapidjson::kParseInsituFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  rapidjson::InsituStringStream stream(text_.data());
  rapidjson::Reader reader;
  Handler handler(*this, what);
  const rapidjson::ParseResult result = reader.Parse<kHow>(stream, handler);
  DIST_TRY(handler.status());
  if (result.IsError()) {
    return invalid_argument("%s is not JSON: %s (byte %zu)", what, rapidjson::GetParseError_En(result.Code()),
                            result.Offset());
  }
  return kOk;
}

const JsonTree::Value* JsonTree::find(const Value& object, std::string_view key) const noexcept {
  const Value* found = nullptr;
  for (const Value* one = first_of(object); one != nullptr; one = next_of(*one)) {
    if (one->key == key) found = one;
  }
  return found;
}

const char* name_of(JsonKind kind) noexcept {
  switch (kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kFalse: return "false";
    case JsonKind::kTrue: return "true";
    case JsonKind::kNumber: return "a number";
    case JsonKind::kText: return "a string";
    case JsonKind::kList: return "a list";
    case JsonKind::kObject: return "an object";
  }
  return "a value";
}

}  // namespace dist
