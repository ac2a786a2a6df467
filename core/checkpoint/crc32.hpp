// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zlib, gzip and Python's zlib.crc32() compute it, so that any program can check our files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dist {

// `crc` is that of the bytes before; 0 at the beginning.
uint32_t crc32(uint32_t crc, const void* data, std::size_t bytes) noexcept;

// The same without ISA-L, which libdist may be built without.
uint32_t crc32_by_tables(uint32_t crc, const void* data, std::size_t bytes) noexcept;

}  // namespace dist
