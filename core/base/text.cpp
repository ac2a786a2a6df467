// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace dist {
namespace {

// The length of a sequence with this first byte; 0 if it is invalid.
std::size_t length_by_lead(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

// The length of the character at `text`, which is NUL-terminated; 0 if it is invalid. Only the shortest form
// is valid, without surrogates and values above U+10FFFF.
std::size_t character(const char* at) noexcept {
  const auto* const text = reinterpret_cast<const unsigned char*>(at);
  const unsigned lead = text[0];
  const std::size_t length = length_by_lead(text[0]);
  if (length <= 1) return length;
  // The range of the first continuation byte depends on the first byte.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (text[1] < low || text[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((text[i] & 0xC0u) != 0x80u) return 0;
  }
  return length;
}

// Whether a character is of C0 or C1, or is DEL. C1 takes two bytes in UTF-8.
bool is_control(const char* text, std::size_t length) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (length == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
}

bool shown_as_it_is(const char* text, Keep keep, std::size_t* out_length) noexcept {
  *out_length = character(text);
  if (*out_length == 0) return false;
  if (!is_control(text, *out_length)) return true;
  const auto kept = [keep](Keep what) {
    return (static_cast<unsigned>(keep) & static_cast<unsigned>(what)) != 0;
  };
  if (*text == '\n' || *text == '\t') return kept(Keep::kBreaks);
  return kept(Keep::kMarks) && (*text == kNameBegin || *text == kNameEnd);
}

bool all_shown(const char* text, Keep keep) noexcept {
  std::size_t length = 0;
  for (; *text != '\0'; text += length) {
    if (!shown_as_it_is(text, keep, &length)) return false;
  }
  return true;
}

}  // namespace

std::size_t show_character(const char* text, Keep keep, char (&out)[kShownRoom]) noexcept {
  std::size_t length = 0;
  if (shown_as_it_is(text, keep, &length)) {
    std::memcpy(out, text, length);
    out[length] = '\0';
    return length;
  }
  if (length == 0) {
    std::memcpy(out, "\xEF\xBF\xBD", 4);
    return 1;
  }
  if (*text == '\n' || *text == '\t') {
    std::memcpy(out, *text == '\n' ? "\\n" : "\\t", 3);
  } else {
    const auto number = static_cast<unsigned char>(text[length - 1]);  // works for C1, too
    std::snprintf(out, sizeof out, "\\x%02x", number);
  }
  return length;
}

bool is_line(const char* text) noexcept { return all_shown(text, Keep::kNothing); }

void copy_shown(char* to, std::size_t size, const char* text, Keep keep) noexcept {
  if (text == nullptr) text = "";
  std::size_t used = 0;
  while (*text != '\0') {
    char shown[kShownRoom];
    const std::size_t taken = show_character(text, keep, shown);
    const std::size_t length = std::strlen(shown);
    if (used + length >= size) break;
    std::memcpy(to + used, shown, length);
    used += length;
    text += taken;
  }
  to[used] = '\0';
}

void show_in_place(char* text, std::size_t size, Keep keep) noexcept {
  constexpr std::size_t kMost = 1024;  // the longest text in a record
  const std::size_t length = strnlen(text, size - 1);
  text[length] = '\0';
  if (all_shown(text, keep)) return;
  char given[kMost];
  const std::size_t kept = std::min(length, kMost - 1);
  std::memcpy(given, text, kept);
  given[kept] = '\0';
  // Go back from the end to the beginning of the last character.
  std::size_t last = kept;
  for (int back = 0; last > 0 && back < 4; ++back) {
    const auto byte = static_cast<unsigned char>(given[--last]);
    if ((byte & 0xC0u) == 0x80u) continue;
    if (last + length_by_lead(byte) > kept) given[last] = '\0';
    break;
  }
  copy_shown(text, size, given, keep);
}

Shown::Shown(const char* text) noexcept {
  constexpr char kCut[] = "…";
  if (text == nullptr) text = "";
  std::size_t used = 0;
  std::size_t last = 0;  // where the cut can be marked
  while (*text != '\0') {
    char shown[kShownRoom];
    const std::size_t taken = show_character(text, Keep::kNothing, shown);
    const std::size_t length = std::strlen(shown);
    if (used + length >= sizeof text_) {
      std::memcpy(text_ + last, kCut, sizeof kCut);
      return;
    }
    std::memcpy(text_ + used, shown, length);
    used += length;
    if (used + sizeof kCut <= sizeof text_) last = used;
    text += taken;
  }
  text_[used] = '\0';
}

Shown::Shown(std::string_view text) noexcept : text_() {
  // The copy may be longer than what fits; then the other constructor marks the cut.
  char copy[2 * sizeof text_];
  copy[text.copy(copy, sizeof copy - 1)] = '\0';
  *this = Shown(copy);
}

CountText::CountText(int64_t number, const char* noun) noexcept {
  std::snprintf(text, sizeof text, "%lld %s%s", static_cast<long long>(number), noun, number == 1 ? "" : "s");
}

Status check_name(const char* name, const char* what) noexcept {
  if (is_line(name)) return kOk;
  return invalid_argument("%s is \"%s\", but must be one line of UTF-8 without control characters", what,
                          Shown(name).c_str());
}

DurationText::DurationText(int64_t ns) noexcept {
  const auto value = static_cast<double>(ns);
  const double size = value < 0 ? -value : value;
  if (size < 1e3) {
    std::snprintf(text, sizeof text, "%lld ns", static_cast<long long>(ns));
  } else if (size < 1e6) {
    std::snprintf(text, sizeof text, "%.4g us", value * 1e-3);
  } else if (size < 1e9) {
    std::snprintf(text, sizeof text, "%.4g ms", value * 1e-6);
  } else if (size < 1e12) {
    std::snprintf(text, sizeof text, "%.4g s", value * 1e-9);
  } else {
    std::snprintf(text, sizeof text, "%.0f s", value * 1e-9);
  }
}

}  // namespace dist
