// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/header.hpp"

#include <rapidjson/error/en.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstring>
#include <numeric>
#include <string_view>

#include "core/checkpoint/crc32.hpp"
#include "core/checkpoint/header_parser.hpp"

namespace dist {
namespace {

// Indices of `items`, sorted by name(item).
template <class Items, class Name>
void sort_index(const Items& items, std::pmr::vector<std::size_t>& index, const Name& name) {
  index.resize(items.size());
  std::iota(index.begin(), index.end(), std::size_t{0});
  std::sort(index.begin(), index.end(),
            [&](std::size_t a, std::size_t b) { return std::strcmp(name(items[a]), name(items[b])) < 0; });
}

// The first name that stands there twice, or NULL.
template <class Items, class Name>
const char* twice(const Items& items, const std::pmr::vector<std::size_t>& index, const Name& name) {
  const auto at = std::adjacent_find(index.begin(), index.end(), [&](std::size_t a, std::size_t b) {
    return std::strcmp(name(items[a]), name(items[b])) == 0;
  });
  return at == index.end() ? nullptr : name(items[*at]);
}

template <class Items, class Name>
auto find_in(const Items& items, const std::pmr::vector<std::size_t>& index, const char* wanted,
             const Name& name) -> decltype(items.data()) {
  const auto at = std::lower_bound(index.begin(), index.end(), wanted, [&](std::size_t i, const char* text) {
    return std::strcmp(name(items[i]), text) < 0;
  });
  if (at == index.end() || std::strcmp(name(items[*at]), wanted) != 0) return nullptr;
  return &items[*at];
}

// RapidJSON ends at a NUL; where the text breaks off inside a UTF-8 sequence, it takes all of that first.
constexpr std::size_t kEndBytes = 4;

// Exactly as many digits as a checksum has.
bool read_digits(std::string_view text, uint32_t* out) noexcept {
  const char* const end = text.data() + text.size();
  return text.size() == kChecksumDigits && std::from_chars(text.data(), end, *out, 16).ptr == end;
}

constexpr auto kNameOf = [](const StoredTensor& tensor) { return tensor.name; };
constexpr auto kKeyOf = [](const StoredText& text) { return text.key; };

}  // namespace

char* Header::make_room(std::size_t bytes) {
  size_ = bytes;
  text_.assign(bytes + kEndBytes, '\0');
  return text_.data();
}

Status Header::parse(uint64_t data_bytes) {
  if (size_ == 0 || text_[0] != '{') {
    return fail(DIST_DATA_LOSS, "is not a safetensors file: its header does not begin with {");
  }
  DIST_TRY(check_checksum());
  DIST_TRY(parse_text());
  DIST_TRY(index_names());
  DIST_TRY(take_checksums());
  return check_places(data_bytes);
}

// By its text: a quotation mark inside a name would be escaped, so what is found is the key.
Status Header::check_checksum() const {
  const std::string_view text(text_.data(), size_);
  std::pmr::string key("\"", memory_);
  key.append(kHeaderChecksumKey).append("\":\"");
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return kOk;
  const std::size_t digits = found + key.size();
  uint32_t wanted = 0;
  if (const std::string_view given = text.substr(digits, kChecksumDigits); !read_digits(given, &wanted)) {
    const std::pmr::string shown(given, memory_);
    return fail(
        DIST_DATA_LOSS,
        "the header is not what libdist wrote: its checksum is \"%s\", no number of %zu hexadecimal digits",
        Shown(shown.c_str()).c_str(), kChecksumDigits);
  }
  const std::string_view rest = text.substr(digits + kChecksumDigits);
  uint32_t is = crc32(0, text.data(), digits);
  is = crc32(is, "00000000", kChecksumDigits);
  is = crc32(is, rest.data(), rest.size());
  if (is == wanted) return kOk;
  return fail(DIST_DATA_LOSS,
              "the header is not what libdist wrote: its checksum is %08" PRIx32 ", not %08" PRIx32
              ". A program that writes the file anew should leave out the metadata that begin with \"%s\"",
              is, wanted, kOwnPrefix);
}

Status Header::parse_text() {
  constexpr unsigned kHow = rapidjson::kParseInsituFlag | rapidjson::kParseValidateEncodingFlag;
  rapidjson::InsituStringStream stream(text_.data());
  rapidjson::Reader reader;
  Parser parser(*this);
  const rapidjson::ParseResult result = reader.Parse<kHow>(stream, parser);
  if (!parser.status().ok()) return parser.status();
  if (result.IsError()) {
    return fail(DIST_DATA_LOSS, "the header is not JSON: %s (byte %zu)",
                rapidjson::GetParseError_En(result.Code()), result.Offset());
  }
  if (stream.Tell() != size_) return fail(DIST_DATA_LOSS, "the header has a NUL inside");
  return kOk;
}

Status Header::index_names() {
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  sort_index(tensors_, by_name_, kNameOf);
  sort_index(texts_, by_key_, kKeyOf);
  if (const char* const name = twice(tensors_, by_name_, kNameOf))
    return fail(DIST_DATA_LOSS, "the header has the tensor \"%s\" twice", Shown(name).c_str());
  if (const char* const key = twice(texts_, by_key_, kKeyOf))
    return fail(DIST_DATA_LOSS, "\"%s\" has the key \"%s\" twice", kMetadataName, Shown(key).c_str());
  return kOk;
}

Status Header::take_checksums() {
  constexpr std::size_t kPrefix = sizeof kTensorChecksumPrefix - 1;
  for (const StoredText& text : texts_) {
    if (std::strncmp(text.key, kTensorChecksumPrefix, kPrefix) != 0) continue;
    const StoredTensor* const found = find(text.key + kPrefix);
    if (found == nullptr) continue;  // of a tensor that another program has taken out
    StoredTensor& tensor = tensors_[static_cast<std::size_t>(found - tensors_.data())];
    tensor.has_checksum = true;
    if (!read_digits(text.text, &tensor.checksum)) {
      return fail(DIST_DATA_LOSS, "tensor \"%s\": \"%s\" is no checksum", Shown(tensor.name).c_str(),
                  Shown(text.text).c_str());
    }
  }
  return kOk;
}

Status Header::check_places(uint64_t data_bytes) {
  const StoredTensor* last = nullptr;
  uint64_t end = 0;
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.end > data_bytes) {
      return fail(DIST_DATA_LOSS,
                  "tensor \"%s\" ends at byte %" PRIu64 " of the data, but the file has %" PRIu64
                  ": it was cut short",
                  Shown(tensor.name).c_str(), tensor.end, data_bytes);
    }
    if (tensor.begin != end) {
      return fail(DIST_DATA_LOSS,
                  "tensor \"%s\" begins at byte %" PRIu64 " of the data, %s \"%s\" ends at %" PRIu64,
                  Shown(tensor.name).c_str(), tensor.begin,
                  tensor.begin < end ? "which it shares:" : "leaving a gap:",
                  last == nullptr ? "the header" : Shown(last->name).c_str(), end);
    }
    end = tensor.end;
    last = &tensor;
  }
  if (end == data_bytes) return kOk;
  return fail(DIST_DATA_LOSS, "%" PRIu64 " bytes follow the last tensor%s%s%s, and belong to none",
              data_bytes - end, last == nullptr ? "" : " (\"",
              last == nullptr ? "" : Shown(last->name).c_str(), last == nullptr ? "" : "\")");
}

const StoredTensor* Header::find(const char* name) const noexcept {
  return find_in(tensors_, by_name_, name, kNameOf);
}

const char* Header::text(const char* key) const noexcept {
  const StoredText* const found = find_in(texts_, by_key_, key, kKeyOf);
  return found == nullptr ? nullptr : found->text;
}

dist_tensor Header::spec(const StoredTensor& tensor) const noexcept {
  return {nullptr, tensor.dtype->dtype, tensor.ndim,
          tensor.ndim == 0 ? nullptr : sizes_.data() + tensor.first_size, nullptr};
}

}  // namespace dist
