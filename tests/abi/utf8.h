/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a text which leaves the library is UTF-8 and, if a line is promised, has no control characters.
 */
#ifndef TESTS_ABI_UTF8_H
#define TESTS_ABI_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Returns the length of the character at `at`, which is not empty, or 0 if it is invalid. */
static inline size_t utf8_length(const char *at) {
  const unsigned char *c = (const unsigned char *)at;
  if (c[0] < 0x80) return 1;
  const size_t length = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : 2;
  if (c[0] < 0xC2 || c[0] > 0xF4) return 0;
  uint32_t number = c[0] & (0x7Fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((c[i] & 0xC0) != 0x80) return 0;
    number = number << 6 | (c[i] & 0x3Fu);
  }
  const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const int surrogate = number >= 0xD800 && number <= 0xDFFF;
  return number >= least[length] && number <= 0x10FFFF && !surrogate ? length : 0;
}

static inline int is_utf8(const char *text) {
  for (size_t length = 0; *text != '\0'; text += length) {
    length = utf8_length(text);
    if (length == 0) return 0;
  }
  return 1;
}

static inline int is_line(const char *text) {
  if (!is_utf8(text)) return 0;
  for (; *text != '\0'; text++) {
    const unsigned char c = (unsigned char)*text, next = (unsigned char)text[1];
    if (c < 0x20 || c == 0x7F || (c == 0xC2 && next < 0xA0)) return 0;
  }
  return 1;
}

#endif
