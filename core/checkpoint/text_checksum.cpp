// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/text_checksum.hpp"

#include <charconv>
#include <cinttypes>

#include "core/base/text.hpp"
#include "core/checkpoint/crc32.hpp"
#include "core/checkpoint/header.hpp"

namespace dist {

bool read_checksum(std::string_view digits, uint32_t* out) noexcept {
  const char* const end = digits.data() + digits.size();
  return digits.size() == kChecksumDigits && std::from_chars(digits.data(), end, *out, 16).ptr == end;
}

void write_checksum(char* digits, uint32_t checksum) noexcept {
  for (std::size_t i = kChecksumDigits; i-- > 0; checksum >>= 4)
    digits[i] = "0123456789abcdef"[checksum & 0xF];
}

void sign(std::pmr::string& text, std::size_t digits) noexcept {
  write_checksum(text.data() + digits, crc32(0, text.data(), text.size()));
}

// Searches the text for the key. A quotation mark inside a name would be escaped, so a match is always the
// key itself.
Status check_text(Memory& memory, std::string_view text, const char* what) {
  std::pmr::string key("\"", &memory);
  key.append(kTextChecksumKey).append("\":\"");
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return kOk;
  const std::size_t digits = found + key.size();
  uint32_t wanted = 0;
  if (const std::string_view given = text.substr(digits, kChecksumDigits); !read_checksum(given, &wanted)) {
    const std::pmr::string shown(given, &memory);
    return fail(
        DIST_DATA_LOSS,
        "%s was changed after libdist wrote it: its checksum is \"%s\", but must have %zu hexadecimal digits",
        what, Shown(shown.c_str()).c_str(), kChecksumDigits);
  }
  const std::string_view rest = text.substr(digits + kChecksumDigits);
  uint32_t is = crc32(0, text.data(), digits);
  is = crc32(is, kNoChecksum, kChecksumDigits);
  is = crc32(is, rest.data(), rest.size());
  if (is == wanted) return kOk;
  return fail(DIST_DATA_LOSS,
              "%s was changed after libdist wrote it: its checksum is %08" PRIx32 ", not %08" PRIx32
              ". A program that rewrites the file should leave out the metadata keys that begin with \"%s\".",
              what, is, wanted, kOwnPrefix);
}

}  // namespace dist
