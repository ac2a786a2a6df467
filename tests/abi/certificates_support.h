/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificate authorities, and certificates for the addresses of a test, in a folder that is removed at the
 * end. openssl(1) creates them.
 */
#ifndef TESTS_ABI_CERTIFICATES_SUPPORT_H
#define TESTS_ABI_CERTIFICATES_SUPPORT_H

#include "common.h"

#include <stdarg.h>
#include <unistd.h>

static char folder[64];

static inline int shell(const char *format, ...) {
  char text[2048];
  const int at = snprintf(text, sizeof text, "cd '%s' && (", folder);
  va_list values;
  va_start(values, format);
  const int used = vsnprintf(text + at, sizeof text - (size_t)at - 20, format, values);
  va_end(values);
  snprintf(text + at + used, 20, ") > log 2>&1");
  return system(text);
}

/* Makes an authority and a certificate that it issues for `address`. */
static inline void make_certificates(const char *authority, const char *address) {
  char host[32];
  snprintf(host, sizeof host, "%.*s", (int)(strchr(address, ':') - address), address);
  const int made = shell(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.ca.key -out %s.ca "
      "-subj /CN=%s "
      "-days 1 && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.key -out %s.csr "
      "-subj /CN=%s && printf 'subjectAltName=IP:%s' > ext && openssl x509 -req -in %s.csr -CA %s.ca -CAkey "
      "%s.ca.key "
      "-CAcreateserial -days 1 -extfile ext -out %s.crt",
      authority, authority, authority, authority, authority, host, host, authority, authority, authority,
      authority);
  if (made != 0) {
    (void)shell("cat log >&2");
    fail_msg("openssl made no certificates");
  }
}

static inline void set_tls(const char *authority, char texts[3][128]) {
  snprintf(texts[0], sizeof texts[0], "DIST_TLS_CA=%s/%s.ca", folder, authority);
  snprintf(texts[1], sizeof texts[1], "DIST_TLS_CERTIFICATE=%s/%s.crt", folder, authority);
  snprintf(texts[2], sizeof texts[2], "DIST_TLS_KEY=%s/%s.key", folder, authority);
}

static inline void make_certificate_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/dist-certificates-XXXXXX");
  assert_non_null(mkdtemp(folder));
}

static inline void remove_certificate_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  assert_int_equal(system(command), 0);
}

#endif
