// SPDX-License-Identifier: Apache-2.0
// A checksum of a JSON text that the text itself contains: 8 hexadecimal digits of CRC-32 with the key
// "libdist.crc32". It is computed with zeros in place of these digits.
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

// Requires exactly kChecksumDigits digits.
bool read_checksum(std::string_view digits, uint32_t* out) noexcept;
void write_checksum(char* digits, uint32_t checksum) noexcept;

// Replaces the zeros at position `digits` by the checksum of the text.
void sign(std::pmr::string& text, std::size_t digits) noexcept;
// Fails with DATA_LOSS if the text contains a checksum that does not match. `what` names the text in
// messages, such as "the header".
Status check_text(Memory& memory, std::string_view text, const char* what);

}  // namespace dist
