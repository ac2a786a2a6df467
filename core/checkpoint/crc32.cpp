// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "core/base/optional_libraries.hpp"  // generated

#if DIST_HAVE_ISAL
#include <isa-l/crc.h>
#endif

namespace dist {
namespace {

constexpr std::size_t kSlices = 16;  // bytes per step; a step takes about one cycle per byte

// kTables[k][b]: the checksum of byte b followed by k zero bytes.
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables make_tables() noexcept {
  constexpr uint32_t kPolynomial = 0xEDB88320;  // IEEE 802.3, bits reversed
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

static_assert(std::endian::native == std::endian::little, "words are taken apart from their low end");

}  // namespace

uint32_t crc32_by_tables(uint32_t crc, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; bytes >= kSlices; bytes -= kSlices, at += kSlices) {
    uint32_t words[kSlices / 4];
    std::memcpy(words, at, kSlices);
    words[0] ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < kSlices; ++i)
      crc ^= kTables[kSlices - 1 - i][words[i / 4] >> 8 * (i % 4) & 0xFF];
  }
  for (; bytes > 0; --bytes, ++at) crc = crc >> 8 ^ kTables[0][(crc ^ *at) & 0xFF];
  return ~crc;
}

#if DIST_HAVE_ISAL
uint32_t crc32(uint32_t crc, const void* data, std::size_t bytes) noexcept {
  return crc32_gzip_refl(crc, static_cast<const unsigned char*>(data), bytes);
}
#else
uint32_t crc32(uint32_t crc, const void* data, std::size_t bytes) noexcept {
  return crc32_by_tables(crc, data, bytes);
}
#endif

}  // namespace dist
