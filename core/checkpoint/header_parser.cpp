// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/header_parser.hpp"

#include <cinttypes>
#include <cstring>
#include <limits>

namespace dist {
namespace {

// Whether the text has an embedded NUL, which C strings cannot represent.
bool holds_nul(const char* text, rapidjson::SizeType length) noexcept { return std::strlen(text) != length; }

// Computes the size in bytes of the elements of a tensor. Returns false if it exceeds 2^63 - 1.
bool bytes_of(const StoredDtype& dtype, std::span<const int64_t> sizes, uint64_t* bits) noexcept {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t size : sizes) {
    if (size == 0) return *bits = 0, true;
  }
  uint64_t product = dtype.bits;
  for (const int64_t size : sizes) {
    if (static_cast<uint64_t>(size) > kMost / product) return false;
    product *= static_cast<uint64_t>(size);
  }
  *bits = product;
  return true;
}

}  // namespace

bool Header::Parser::misplaced(const char* what) noexcept {
  switch (at_) {
    case At::kBegin: return fail_with(fail(DIST_DATA_LOSS, "the header is %s, but must be an object", what));
    case At::kMetadata:
      return fail_with(
          fail(DIST_DATA_LOSS, "\"%s\" is %s, but must be an object of strings", kMetadataName, what));
    case At::kText:
      return fail_with(fail(DIST_DATA_LOSS, "\"%s\": \"%s\" is %s, but must be a string", kMetadataName,
                            Shown(key_).c_str(), what));
    case At::kName:
    case At::kKey: return fail_with(fail(DIST_DATA_LOSS, "the header has %s in the place of a name", what));
    default: break;
  }
  const char* const where = at_ == At::kTensor  ? "it"
                            : at_ == At::kField ? "a field name"
                            : at_ == At::kDtype ? "dtype"
                            : at_ <= At::kSize  ? "shape"
                                                : "data_offsets";
  return fail_with(
      fail(DIST_DATA_LOSS, "tensor \"%s\": %s cannot be %s", Shown(tensor_.name).c_str(), where, what));
}

bool Header::Parser::skips() noexcept {
  if (at_ != At::kSkipped) return false;
  if (skipped_.scalar()) at_ = At::kField;
  return true;
}

bool Header::Parser::skip_begin() noexcept {
  skipped_.begin();
  if (!skipped_.too_deep()) return true;
  return fail_with(fail(DIST_DATA_LOSS, "tensor \"%s\": an unknown field nests deeper than %d levels",
                        Shown(tensor_.name).c_str(), SkippedValue::kMostDepth));
}

bool Header::Parser::skip_end() noexcept {
  if (skipped_.end()) at_ = At::kField;
  return true;
}

bool Header::Parser::Null() {
  if (skips()) return true;
  if (at_ != At::kMetadata) return misplaced("null");
  at_ = At::kName;
  return true;
}

bool Header::Parser::StartObject() {
  switch (at_) {
    case At::kSkipped: return skip_begin();
    case At::kBegin: at_ = At::kName; return true;
    case At::kMetadata: at_ = At::kKey; return true;
    case At::kTensor: at_ = At::kField; return true;
    default: return misplaced("an object");
  }
}

bool Header::Parser::EndObject(rapidjson::SizeType) {
  if (at_ == At::kSkipped) return skip_end();
  if (at_ == At::kField) return end_tensor();
  at_ = At::kName;  // the end of the texts or of the header
  return true;
}

bool Header::Parser::StartArray() {
  switch (at_) {
    case At::kSkipped: return skip_begin();
    case At::kShape: at_ = At::kSize; return true;
    case At::kOffsets: at_ = At::kOffset; return true;
    default: return misplaced("a list");
  }
}

bool Header::Parser::EndArray(rapidjson::SizeType) {
  if (at_ == At::kSkipped) return skip_end();
  if (at_ == At::kOffset && num_offsets_ != 2) {
    return fail_with(fail(DIST_DATA_LOSS,
                          "tensor \"%s\": data_offsets has %u numbers, but must have two: begin and end",
                          Shown(tensor_.name).c_str(), num_offsets_));
  }
  at_ = At::kField;
  return true;
}

bool Header::Parser::Key(const char* text, rapidjson::SizeType length, bool) {
  if (at_ == At::kSkipped) return true;
  if (at_ == At::kField) return field({text, length});
  if (holds_nul(text, length)) {
    return fail_with(
        fail(DIST_DATA_LOSS, "the name that begins with \"%s\" contains a NUL byte", Shown(text).c_str()));
  }
  if (at_ == At::kName) return name(text);
  key_ = text;
  at_ = At::kText;
  return true;
}

bool Header::Parser::name(const char* text) noexcept {
  if (std::strcmp(text, kMetadataName) == 0) {
    if (has_metadata_) return fail_with(fail(DIST_DATA_LOSS, "the header has \"%s\" twice", kMetadataName));
    has_metadata_ = true;
    at_ = At::kMetadata;
    return true;
  }
  tensor_ = StoredTensor{};
  tensor_.name = text;
  tensor_.first_size = header_.sizes_.size();
  fields_ = num_offsets_ = 0;
  at_ = At::kTensor;
  return true;
}

bool Header::Parser::field(std::string_view text) noexcept {
  const Field field = text == "dtype"          ? kHasDtype
                      : text == "shape"        ? kHasShape
                      : text == "data_offsets" ? kHasOffsets
                                               : kHasAll;
  if (field == kHasAll) {
    skipped_ = {};
    at_ = At::kSkipped;
    return true;
  }
  if ((fields_ & field) != 0) {
    return fail_with(
        fail(DIST_DATA_LOSS, "tensor \"%s\" has %s twice", Shown(tensor_.name).c_str(), text.data()));
  }
  fields_ |= field;
  at_ = field == kHasDtype ? At::kDtype : field == kHasShape ? At::kShape : At::kOffsets;
  return true;
}

bool Header::Parser::String(const char* text, rapidjson::SizeType length, bool) {
  if (skips()) return true;
  if (at_ == At::kText) {
    if (holds_nul(text, length)) {
      return fail_with(
          fail(DIST_DATA_LOSS, "\"%s\": \"%s\" contains a NUL byte", kMetadataName, Shown(key_).c_str()));
    }
    header_.texts_.push_back({key_, text});
    at_ = At::kKey;
    return true;
  }
  if (!wanted(At::kDtype, "a string")) return false;
  const std::string_view given(text, length);
  if (dtype_ == nullptr || given != dtype_->name) dtype_ = stored_dtype(given);
  tensor_.dtype = dtype_;
  if (dtype_ == nullptr) {
    return fail_with(fail(DIST_DATA_LOSS, "tensor \"%s\": \"%s\" is not a dtype of safetensors files",
                          Shown(tensor_.name).c_str(), Shown(text).c_str()));
  }
  at_ = At::kField;
  return true;
}

bool Header::Parser::Uint64(uint64_t number) {
  if (skips()) return true;
  if (at_ == At::kOffset) {
    if (num_offsets_ < 2) (num_offsets_ == 0 ? tensor_.begin : tensor_.end) = number;
    ++num_offsets_;
    return true;
  }
  if (!wanted(At::kSize, "a number")) return false;
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return fail_with(fail(DIST_DATA_LOSS,
                          "tensor \"%s\": a size is %" PRIu64 ", which is larger than any file",
                          Shown(tensor_.name).c_str(), number));
  }
  if (tensor_.ndim == DIST_MAX_NDIM) {
    return fail_with(fail(DIST_UNIMPLEMENTED,
                          "tensor \"%s\" has more than %d dimensions, the most that libdist supports",
                          Shown(tensor_.name).c_str(), DIST_MAX_NDIM));
  }
  header_.sizes_.push_back(static_cast<int64_t>(number));
  ++tensor_.ndim;
  return true;
}

bool Header::Parser::end_tensor() {
  if (fields_ != kHasAll) {
    return fail_with(fail(DIST_DATA_LOSS, "tensor \"%s\" has no %s", Shown(tensor_.name).c_str(),
                          (fields_ & kHasDtype) == 0   ? "dtype"
                          : (fields_ & kHasShape) == 0 ? "shape"
                                                       : "data_offsets"));
  }
  if (tensor_.begin > tensor_.end) {
    return fail_with(fail(DIST_DATA_LOSS,
                          "tensor \"%s\": data_offsets end (%" PRIu64 ") before they begin (%" PRIu64 ")",
                          Shown(tensor_.name).c_str(), tensor_.end, tensor_.begin));
  }
  uint64_t bits = 0;
  const std::span<const int64_t> sizes(header_.sizes_.data() + tensor_.first_size,
                                       static_cast<std::size_t>(tensor_.ndim));
  if (!bytes_of(*tensor_.dtype, sizes, &bits)) {
    return fail_with(fail(DIST_DATA_LOSS, "tensor \"%s\": the shape has more elements than any file",
                          Shown(tensor_.name).c_str()));
  }
  if (bits % 8 != 0 || bits / 8 != tensor_.end - tensor_.begin) {
    return fail_with(fail(
        DIST_DATA_LOSS,
        "tensor \"%s\": shape and dtype (%s) need %" PRIu64 " bits, but data_offsets have %" PRIu64 " bytes",
        Shown(tensor_.name).c_str(), tensor_.dtype->name, bits, tensor_.end - tensor_.begin));
  }
  header_.tensors_.push_back(tensor_);
  at_ = At::kName;
  return true;
}

}  // namespace dist
