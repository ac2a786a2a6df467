// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/header.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "core/checkpoint/header_parser.hpp"
#include "core/checkpoint/parse_json.hpp"
#include "core/checkpoint/text_checksum.hpp"

namespace dist {
namespace {

constexpr auto kNameOf = [](const StoredTensor& tensor) { return tensor.name; };
constexpr auto kKeyOf = [](const StoredText& text) { return text.key; };

}  // namespace

char* Header::make_room(std::size_t bytes) {
  size_ = bytes;
  text_.assign(bytes + kJsonEndBytes, '\0');
  return text_.data();
}

Status Header::parse(uint64_t data_bytes) {
  if (size_ == 0 || text_[0] != '{') {
    return fail(DIST_DATA_LOSS, "is not a safetensors file: its header does not start with {");
  }
  DIST_TRY(check_text(*memory_, {text_.data(), size_}, "the header"));
  DIST_TRY(parse_text());
  DIST_TRY(index_names());
  DIST_TRY(take_checksums());
  return check_places(data_bytes);
}

Status Header::parse_text() {
  Parser parser(*this);
  return parse_json(text_.data(), size_, parser, "the header is not JSON", "the header");
}

Status Header::index_names() {
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  sort_by_name(tensors_, by_name_, kNameOf);
  sort_by_name(texts_, by_key_, kKeyOf);
  if (const char* const name = twice(tensors_, by_name_, kNameOf))
    return fail(DIST_DATA_LOSS, "the header has the tensor \"%s\" twice", Shown(name).c_str());
  if (const char* const key = twice(texts_, by_key_, kKeyOf))
    return fail(DIST_DATA_LOSS, "\"%s\" has the key \"%s\" twice", kMetadataName, Shown(key).c_str());
  return kOk;
}

Status Header::take_checksums() {
  constexpr std::size_t kPrefix = sizeof kTensorChecksumPrefix - 1;
  std::size_t next = 0;  // libdist writes the checksums in the order of the tensors
  for (const StoredText& text : texts_) {
    if (std::strncmp(text.key, kTensorChecksumPrefix, kPrefix) != 0) continue;
    const char* const name = text.key + kPrefix;
    const bool in_order = next < tensors_.size() && std::strcmp(tensors_[next].name, name) == 0;
    const StoredTensor* const found = in_order ? &tensors_[next] : find(name);
    if (found == nullptr) continue;  // another program has removed this tensor
    const auto place = static_cast<std::size_t>(found - tensors_.data());
    next = place + 1;
    StoredTensor& tensor = tensors_[place];
    tensor.has_checksum = true;
    if (!read_checksum(text.text, &tensor.checksum)) {
      return fail(DIST_DATA_LOSS, "tensor \"%s\": \"%s\" is not a checksum", Shown(tensor.name).c_str(),
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
                  ": it was truncated",
                  Shown(tensor.name).c_str(), tensor.end, data_bytes);
    }
    if (tensor.begin != end) {
      return fail(DIST_DATA_LOSS,
                  "tensor \"%s\" begins at byte %" PRIu64 " of the data, %s \"%s\" ends at %" PRIu64,
                  Shown(tensor.name).c_str(), tensor.begin,
                  tensor.begin < end ? "which overlaps the previous data:" : "which leaves a gap:",
                  last == nullptr ? "the header" : Shown(last->name).c_str(), end);
    }
    end = tensor.end;
    last = &tensor;
  }
  if (end == data_bytes) return kOk;
  return fail(DIST_DATA_LOSS, "%" PRIu64 " bytes follow the last tensor%s%s%s and belong to no tensor",
              data_bytes - end, last == nullptr ? "" : " (\"",
              last == nullptr ? "" : Shown(last->name).c_str(), last == nullptr ? "" : "\")");
}

const StoredTensor* Header::find(const char* name) const noexcept {
  return find_by_name(tensors_, by_name_, name, kNameOf);
}

const char* Header::text(const char* key) const noexcept {
  const StoredText* const found = find_by_name(texts_, by_key_, key, kKeyOf);
  return found == nullptr ? nullptr : found->text;
}

dist_tensor Header::spec(const StoredTensor& tensor) const noexcept {
  return {nullptr, tensor.dtype->dtype, tensor.ndim,
          tensor.ndim == 0 ? nullptr : sizes_.data() + tensor.first_size, nullptr};
}

}  // namespace dist
