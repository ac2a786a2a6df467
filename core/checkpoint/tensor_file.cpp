// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/tensor_file.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/tensor.hpp"
#include "core/checkpoint/crc32.hpp"

namespace dist {

static_assert(std::endian::native == std::endian::little, "data are read as they shall lie in memory");

Status TensorFile::open(InputFile file) {
  file_ = std::move(file);
  const auto size = static_cast<uint64_t>(file_.size());
  if (size < kHeaderLengthBytes) {
    return fail(DIST_DATA_LOSS, "is not a safetensors file, or was truncated: it has only %" PRIu64 " bytes",
                size);
  }
  uint64_t length = 0;
  DIST_TRY(file_.read_at(0, &length, sizeof length));
  if (length > kMaxHeaderBytes) {
    return fail(DIST_DATA_LOSS,
                "is not a safetensors file: its header claims %" PRIu64 " bytes, but at most %" PRIu64
                " are allowed",
                length, kMaxHeaderBytes);
  }
  if (length > size - kHeaderLengthBytes) {
    return fail(DIST_DATA_LOSS,
                "was truncated: the header claims %" PRIu64 " bytes, but the file has %" PRIu64, length,
                size);
  }
  data_at_ = static_cast<int64_t>(kHeaderLengthBytes + length);
  DIST_TRY(file_.read_at(kHeaderLengthBytes, header_.make_room(static_cast<std::size_t>(length)),
                         static_cast<std::size_t>(length)));
  return header_.parse(size - static_cast<uint64_t>(data_at_));
}

// Reads each block to `place(offset)`, then calls `use(offset, block, bytes)` while the block is in the
// cache.
template <class Place, class Use>
Status TensorFile::read_blocks(const StoredTensor& tensor, Place&& place, Use&& use) const {
  uint32_t checksum = 0;
  for (uint64_t at = tensor.begin; at < tensor.end;) {
    const auto offset = static_cast<std::size_t>(at - tensor.begin);
    const std::size_t bytes = static_cast<std::size_t>(std::min<uint64_t>(tensor.end - at, kRoomBytes));
    std::byte* const block = place(offset);
    if (const Status status = file_.read_at(data_at_ + static_cast<int64_t>(at), block, bytes); !status.ok())
      return fail(status.code(), "tensor \"%s\": the file %s", Shown(tensor.name).c_str(),
                  last_error().message);
    if (tensor.has_checksum) checksum = crc32(checksum, block, bytes);
    use(offset, block, bytes);
    at += bytes;
  }
  return compare(tensor, checksum);
}

Status TensorFile::compare(const StoredTensor& tensor, uint32_t checksum) noexcept {
  if (!tensor.has_checksum || checksum == tensor.checksum) return kOk;
  return fail(DIST_DATA_LOSS,
              "tensor \"%s\": the data is corrupt: its checksum is %08" PRIx32 ", but should be %08" PRIx32,
              Shown(tensor.name).c_str(), checksum, tensor.checksum);
}

Status TensorFile::verify(const StoredTensor& tensor, std::byte* room) const {
  if (!tensor.has_checksum) return kOk;
  return read_blocks(
      tensor, [=](std::size_t) { return room; }, [](std::size_t, const std::byte*, std::size_t) {});
}

Status TensorFile::verify_at(const StoredTensor& tensor, const std::byte* data) const noexcept {
  if (!tensor.has_checksum) return kOk;
  return compare(tensor, crc32(0, data, static_cast<std::size_t>(tensor.end - tensor.begin)));
}

Status TensorFile::read(const StoredTensor& tensor, std::span<std::byte* const> copies) const {
  return read_blocks(
      tensor, [=](std::size_t offset) { return copies[0] + offset; },
      [=](std::size_t offset, const std::byte* block, std::size_t bytes) {
        for (std::byte* const copy : copies.subspan(1)) std::memcpy(copy + offset, block, bytes);
      });
}

}  // namespace dist
