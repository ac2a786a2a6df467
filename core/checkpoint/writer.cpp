// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/writer.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/checkpoint/crc32.hpp"
#include "core/checkpoint/header.hpp"
#include "core/checkpoint/text_checksum.hpp"

namespace dist {
namespace {

static_assert(std::endian::native == std::endian::little, "data are written as they lie in memory");

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // still in a cache when it is written
constexpr std::size_t kAlign = 8;                          // alignment of the data in the file

}  // namespace

Status CheckpointWriter::add_tensor(const char* name, const dist_tensor& spec) {
  const StoredDtype* const dtype = stored_dtype(spec.dtype);
  if (dtype == nullptr) {
    return fail(DIST_INTERNAL, "tensor \"%s\": safetensors files cannot store %s", Shown(name).c_str(),
                dtype_name(spec.dtype));
  }
  if (std::strcmp(name, kMetadataName) == 0)
    return invalid_argument(
        "a tensor cannot have the name \"%s\", because safetensors files store their metadata under that "
        "name",
        name);
  uint64_t bytes = dtype_size(spec.dtype);
  for (int32_t i = 0; i < spec.ndim; ++i) bytes *= static_cast<uint64_t>(spec.shape[i]);
  tensors_.push_back({name, dtype, spec, bytes, 0, 0, 0});
  return kOk;
}

Status CheckpointWriter::check_names() {
  constexpr auto kNameOf = [](const Tensor& tensor) { return tensor.name; };
  sort_by_name(tensors_, order_, kNameOf);
  const char* const name = twice(tensors_, order_, kNameOf);
  return name == nullptr ? texts_.check() : called_twice(name);
}

// Decides on the order of the data. Wide elements come first, so that all data are aligned, then names
// decide, like in the safetensors library. `order_` is already sorted by name, and most files have few
// dtypes.
void CheckpointWriter::place() {
  const NameIndex by_name = std::exchange(order_, NameIndex(memory_));
  order_.reserve(by_name.size());
  const StoredDtype* below = nullptr;  // the dtype that was placed last; NULL: none
  while (order_.size() < by_name.size()) {
    const StoredDtype* widest = nullptr;
    for (const Tensor& tensor : tensors_) {
      if (below == nullptr || tensor.dtype < below) widest = std::max(widest, tensor.dtype);
    }
    for (const std::size_t i : by_name) {
      if (tensors_[i].dtype == widest) order_.push_back(i);
    }
    below = widest;
  }
  uint64_t end = 0;
  for (const std::size_t i : order_) {
    tensors_[i].begin = end;
    end += tensors_[i].bytes;
  }
}

// Appends the texts with empty checksums, and records the positions of their digits.
Status CheckpointWriter::put_texts() {
  (void)put_string(header_, "", kMetadataName);
  header_.append(":{");
  DIST_TRY(texts_.put(header_));
  for (const std::size_t i : order_) {
    Tensor& tensor = tensors_[i];
    tensor.digits = put_no_checksum(header_, kTensorChecksumPrefix, tensor.name);
    if (tensor.digits == 0) return not_utf8("the name", tensor.name);
    header_.append(1, ',');
  }
  header_digits_ = put_no_checksum(header_, "", kTextChecksumKey);
  header_.append(1, '}');
  return kOk;
}

Status CheckpointWriter::make_header() {
  header_.assign(1, '{');
  DIST_TRY(put_texts());
  for (const std::size_t i : order_) {
    const Tensor& tensor = tensors_[i];
    header_.append(1, ',');
    (void)put_string(header_, "", tensor.name);  // put_texts() has accepted the name
    header_.append(":{\"dtype\":\"").append(tensor.dtype->name).append("\",\"shape\":[");
    for (int32_t d = 0; d < tensor.spec.ndim; ++d) {
      if (d != 0) header_.append(1, ',');
      put_number(header_, static_cast<uint64_t>(tensor.spec.shape[d]));
    }
    header_.append("],\"data_offsets\":[");
    put_number(header_, tensor.begin);
    header_.append(1, ',');
    put_number(header_, tensor.begin + tensor.bytes);
    header_.append("]}");
  }
  header_.append(1, '}');
  header_.append((kAlign - header_.size() % kAlign) % kAlign, ' ');
  if (header_.size() <= kMaxHeaderBytes) return kOk;
  return invalid_argument("the header would have %zu bytes, but a safetensors file can have at most %" PRIu64
                          ": save fewer variables in one file",
                          header_.size(), kMaxHeaderBytes);
}

Status CheckpointWriter::create(const char* path) {
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

Status CheckpointWriter::commit() {
  for (const Tensor& tensor : tensors_) write_checksum(header_.data() + tensor.digits, tensor.checksum);
  sign(header_, header_digits_);
  const uint64_t length = header_.size();
  DIST_TRY(file_.write_at(0, &length, sizeof length));
  DIST_TRY(file_.write_at(sizeof length, header_.data(), header_.size()));
  return file_.commit();
}

}  // namespace dist
