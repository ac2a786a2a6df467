/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin that uses libdist. It is built twice: with the shared libdist, and with a static libdist inside.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "exercise.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *plugin_run(void);
EXPORT const char *plugin_libdist(void);

const char *plugin_run(void) { return exercise(); }

/* The file that contains the libdist that this plugin calls. */
const char *plugin_libdist(void) {
  dist_status (*const run)(dist_strategy *, dist_replica_fn, void *, const dist_run_options *) = dist_run;
  void *address = NULL;
  memcpy(&address, &run, sizeof address);
  Dl_info info;
  return dladdr(address, &info) == 0 ? "" : info.dli_fname;
}
