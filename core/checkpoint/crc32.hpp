// SPDX-License-Identifier: Apache-2.0
// CRC-32 as computed by zlib, gzip and Python's zlib.crc32(), so that any program can check the files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dist {

// `crc` is the checksum of the preceding bytes, initially 0.
uint32_t crc32(uint32_t crc, const void* data, std::size_t bytes) noexcept;

// The same without ISA-L, which is optional.
uint32_t crc32_by_tables(uint32_t crc, const void* data, std::size_t bytes) noexcept;

}  // namespace dist
