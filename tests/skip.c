/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka 1.1.5 prints a skipped test as "not ok 1 # SKIP name", which Meson 1.0 counts as a failure. Every
   cmocka test is linked with this print_message(), which cmocka then calls instead of its own. It prints such
   a line as "ok 1 - name # SKIP reason" and leaves all other lines as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/skip.h"

const char* skip_reason = "no reason given";

static void print_line(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vprint_message(format, args);
  va_end(args);
}

void print_message(const char* const format, ...) {
  va_list args;
  va_start(args, format);
  if (strcmp(format, "not ok %u # SKIP %s\n") == 0) {
    const unsigned number = va_arg(args, unsigned);
    const char* const name = va_arg(args, const char*);
    print_line("ok %u - %s # SKIP %s\n", number, name, skip_reason);
    skip_reason = "no reason given";
  } else {
    vprint_message(format, args);
  }
  va_end(args);
}
