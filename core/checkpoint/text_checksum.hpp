// SPDX-License-Identifier: Apache-2.0
// The checksum that a JSON text has of itself: its CRC-32, 8 hexadecimal digits under "libdist.crc32", where 0 stands for
// these digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

inline constexpr char kTextChecksumKey[] = "libdist.crc32";
inline constexpr std::size_t kChecksumDigits = 8;
inline constexpr char kNoChecksum[] = "00000000";

// Exactly as many digits as a checksum has.
bool read_checksum(std::string_view digits, uint32_t* out) noexcept;
void write_checksum(char* digits, uint32_t checksum) noexcept;

// Puts the text's checksum to where its digits, zeros, are.
void sign(std::pmr::string& text, std::size_t digits) noexcept;
// DATA_LOSS: it has a checksum, and another one. `what`: "the header".
Status check_text(Memory& memory, std::string_view text, const char* what);

}  // namespace dist
