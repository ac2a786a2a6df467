// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/writer.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/json_out.hpp"
#include "core/base/tensor.hpp"
#include "core/checkpoint/crc32.hpp"
#include "core/checkpoint/header.hpp"

namespace dist {
namespace {

static_assert(std::endian::native == std::endian::little, "data are written as they lie in memory");

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // is still in a cache when it is written
constexpr std::size_t kAlign = 8;                          // of the data in the file
constexpr std::size_t kDepth = 8;
constexpr char kNoDigits[] = "00000000";
static_assert(sizeof kNoDigits - 1 == kChecksumDigits);

using Json = rapidjson::Writer<JsonOut, rapidjson::UTF8<>, rapidjson::UTF8<>, JsonPool,
                               rapidjson::kWriteValidateEncodingFlag>;

Status not_utf8(const char* what, const char* text) noexcept {
  return invalid_argument("%s \"%s\" is not UTF-8, as all text in a safetensors file", what,
                          Shown(text).c_str());
}

}  // namespace

Status CheckpointWriter::add_tensor(const char* name, const dist_tensor& spec) {
  const StoredDtype* const dtype = stored_dtype(spec.dtype);
  if (dtype == nullptr) {
    return fail(DIST_INTERNAL, "tensor \"%s\": there is no name for %s in safetensors files",
                Shown(name).c_str(), dtype_name(spec.dtype));
  }
  if (std::strcmp(name, kMetadataName) == 0)
    return invalid_argument(
        "a tensor cannot be called \"%s\": safetensors files keep their texts under that name", name);
  uint64_t bytes = dtype_size(spec.dtype);
  for (int32_t i = 0; i < spec.ndim; ++i) bytes *= static_cast<uint64_t>(spec.shape[i]);
  tensors_.push_back({name, dtype, spec, bytes, 0, 0, 0});
  return kOk;
}

Status CheckpointWriter::add_text(const char* key, const char* text, bool own) {
  if (!own && std::strncmp(key, kOwnPrefix, sizeof kOwnPrefix - 1) == 0) {
    return invalid_argument("metadata \"%s\": keys that begin with \"%s\" are libdist's own",
                            Shown(key).c_str(), kOwnPrefix);
  }
  texts_.push_back({std::pmr::string(key, memory_), std::pmr::string(text, memory_)});
  return kOk;
}

Status CheckpointWriter::check_names() {
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return std::strcmp(tensors_[a].name, tensors_[b].name) < 0;
  });
  for (std::size_t i = 1; i < order_.size(); ++i) {
    const char* const name = tensors_[order_[i]].name;
    if (std::strcmp(name, tensors_[order_[i - 1]].name) == 0) {
      return invalid_argument(
          "two variables are called \"%s\": give them different names, or save them under others "
          "(options->names)",
          Shown(name).c_str());
    }
  }
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (texts_[i].key == texts_[k].key)
        return invalid_argument("metadata \"%s\" is given twice", Shown(texts_[i].key.c_str()).c_str());
    }
  }
  return kOk;
}

// Wide elements first, so that all data are aligned, then by name: as the safetensors library does.
void CheckpointWriter::place() {
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    if (tensors_[a].dtype != tensors_[b].dtype) return tensors_[a].dtype > tensors_[b].dtype;
    return std::strcmp(tensors_[a].name, tensors_[b].name) < 0;
  });
  uint64_t end = 0;
  for (const std::size_t i : order_) {
    tensors_[i].begin = end;
    end += tensors_[i].bytes;
  }
}

// Texts with checksums that are still to come; their digits' places are remembered.
template <class Json>
Status CheckpointWriter::put_texts(Json& json) {
  json.Key(kMetadataName);
  json.StartObject();
  for (const Text& text : texts_) {
    if (!json.Key(text.key.c_str())) return not_utf8("the key", text.key.c_str());
    if (!json.String(text.text.c_str())) return not_utf8("the text", text.text.c_str());
  }
  const auto put_checksum = [&](const char* key) {
    if (!json.Key(key)) return std::size_t{0};
    json.String(kNoDigits);
    return header_.size() - 1 - kChecksumDigits;
  };
  std::pmr::string key(memory_);
  for (const std::size_t i : order_) {
    Tensor& tensor = tensors_[i];
    tensor.digits = put_checksum(key.assign(kTensorChecksumPrefix).append(tensor.name).c_str());
    if (tensor.digits == 0) return not_utf8("the name", tensor.name);
  }
  header_digits_ = put_checksum(kHeaderChecksumKey);
  json.EndObject();
  return kOk;
}

Status CheckpointWriter::make_header() {
  char buffer[1024];
  JsonPool pool(buffer, sizeof buffer);
  JsonOut out(header_);
  Json json(out, &pool, kDepth);
  json.StartObject();
  DIST_TRY(put_texts(json));
  for (const std::size_t i : order_) {
    const Tensor& tensor = tensors_[i];
    json.Key(tensor.name);
    json.StartObject();
    json.Key("dtype");
    json.String(tensor.dtype->name);
    json.Key("shape");
    json.StartArray();
    for (int32_t d = 0; d < tensor.spec.ndim; ++d) json.Int64(tensor.spec.shape[d]);
    json.EndArray();
    json.Key("data_offsets");
    json.StartArray();
    json.Uint64(tensor.begin);
    json.Uint64(tensor.begin + tensor.bytes);
    json.EndArray();
    json.EndObject();
  }
  json.EndObject();
  header_.append((kAlign - header_.size() % kAlign) % kAlign, ' ');
  if (header_.size() <= kMaxHeaderBytes) return kOk;
  return invalid_argument("the header would have %zu bytes, and safetensors files have up to %" PRIu64
                          ": save fewer variables in one file",
                          header_.size(), kMaxHeaderBytes);
}

Status CheckpointWriter::create(const char* path) {
  order_.resize(tensors_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  DIST_TRY(check_names());
  place();
  DIST_TRY(make_header());
  return file_.create(path);
}

Status CheckpointWriter::write(std::size_t tensor, const void* data) {
  Tensor& to = tensors_[tensor];
  const auto* from = static_cast<const std::byte*>(data);
  uint64_t at = kHeaderLengthBytes + header_.size() + to.begin;
  for (uint64_t left = to.bytes; left > 0;) {
    const std::size_t block = static_cast<std::size_t>(std::min<uint64_t>(left, kBlockBytes));
    to.checksum = crc32(to.checksum, from, block);
    if (const Status status = file_.write_at(static_cast<int64_t>(at), from, block); !status.ok())
      return fail(status.code(), "tensor \"%s\": %s", Shown(to.name).c_str(), last_error().message);
    from += block;
    at += block;
    left -= block;
  }
  return kOk;
}

void CheckpointWriter::put_digits(std::size_t place, uint32_t checksum) noexcept {
  char digits[kChecksumDigits + 1];
  std::snprintf(digits, sizeof digits, "%08" PRIx32, checksum);
  std::memcpy(header_.data() + place, digits, kChecksumDigits);
}

Status CheckpointWriter::commit() {
  for (const Tensor& tensor : tensors_) put_digits(tensor.digits, tensor.checksum);
  put_digits(header_digits_, crc32(0, header_.data(), header_.size()));
  const uint64_t length = header_.size();
  DIST_TRY(file_.write_at(0, &length, sizeof length));
  DIST_TRY(file_.write_at(sizeof length, header_.data(), header_.size()));
  return file_.commit();
}

}  // namespace dist
