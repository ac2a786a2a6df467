/* SPDX-License-Identifier: Apache-2.0 */
/* How a cmocka test skips itself: skip_because("openssl is not installed"). Include it after <cmocka.h>. */
#ifndef DIST_TESTS_SKIP_H
#define DIST_TESTS_SKIP_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char* skip_reason; /* skip.c */

#ifdef __cplusplus
}
#endif

#define skip_because(reason) \
  do {                       \
    skip_reason = (reason);  \
    skip();                  \
  } while (0)

#endif
