// SPDX-License-Identifier: Apache-2.0
// CRC-32 as zlib, gzip and Python's zlib.crc32() have it, so that any program can check a file of ours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dist {

// Goes on from the `crc` of what stands before; 0 to begin with.
uint32_t crc32(uint32_t crc, const void* data, std::size_t bytes) noexcept;

}  // namespace dist
