/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins that bring libdist into a process, which itself is not linked with it: loaded, used and unloaded
 * many times; with a libdist of their own, beside the host's; and beside another oneTBB. The arguments are
 * the paths of the two plugins, of a plugin that uses another oneTBB, and which of the tests to run.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "process_sizes.h"
#include "tests/skip.h"

static const char *shared_plugin, *static_plugin, *tbb_user;

typedef const char *(*text_fn)(void);

static void *load(const char *path, int mode) {
  void *const plugin = dlopen(path, RTLD_NOW | mode);
  if (plugin == NULL) fail_msg("%s", dlerror());
  return plugin;
}

static text_fn function(void *plugin, const char *name) {
  text_fn found = NULL;
  void *const symbol = dlsym(plugin, name);
  assert_non_null(symbol);
  memcpy(&found, &symbol, sizeof found);
  return found;
}

static void run(void *plugin) {
  const char *const why = function(plugin, "plugin_run")();
  if (why != NULL) fail_msg("%s", why);
}

/* ---- Unloading ---- */

enum { ROUNDS = 1000, SETTLED = 100 };

/* Some hosts load a plugin again whenever its file changes. libdist remains loaded, and nothing may be added
 * to the process from round to round. oneTBB threads come and go, and there are fewer of them than CPUs. */
static void load_run_unload(const char *path) {
  process_sizes settled = {0};
  for (int k = 0; k < ROUNDS; k++) {
    void *const plugin = load(path, RTLD_LOCAL);
    run(plugin);
    assert_int_equal(dlclose(plugin), 0);
    if (k == SETTLED) settled = sizes_now();
  }
  const process_sizes end = sizes_now();
  assert_true(threads_down_to(sysconf(_SC_NPROCESSORS_CONF)) <= sysconf(_SC_NPROCESSORS_CONF));
  assert_int_equal(end.descriptors, settled.descriptors);
  if (end.mappings > settled.mappings + 32)
    fail_msg("%ld mappings became %ld", settled.mappings, end.mappings);
  /* At 8 bytes a round, the heap would not have to grow. */
  if (end.private_kib > settled.private_kib + 4096)
    fail_msg("%ld KiB became %ld", settled.private_kib, end.private_kib);
}

static void a_plugin_is_loaded_and_unloaded_1000_times(void **state) {
  (void)state;
  load_run_unload(shared_plugin);
}

static void a_plugin_that_contains_libdist_is_loaded_and_unloaded_1000_times(void **state) {
  (void)state;
  load_run_unload(static_plugin);
}

/* ---- Two copies ---- */

static void *run_some(void *plugin) {
  const char *why = NULL;
  for (int k = 0; k < 20 && why == NULL; k++) why = function(plugin, "plugin_run")();
  return (void *)(uintptr_t)why;
}

static void two_copies_of_libdist_do_not_call_each_other(void **state) {
  (void)state;
  void *const host =
      load(shared_plugin, RTLD_GLOBAL); /* its libdist is visible to all, like that of a program */
  void *const plugin = load(static_plugin, RTLD_LOCAL);
  assert_string_equal(function(plugin, "plugin_libdist")(), static_plugin);
  assert_non_null(strstr(function(host, "plugin_libdist")(), "libdist.so"));
  pthread_t beside;
  void *why = NULL;
  assert_int_equal(pthread_create(&beside, NULL, run_some, host), 0);
  const char *const own = run_some(plugin);
  assert_int_equal(pthread_join(beside, &why), 0);
  if (why != NULL || own != NULL) fail_msg("%s", why != NULL ? (char *)why : own);
  /* The host's copy does not depend on the plugin. */
  assert_int_equal(dlclose(plugin), 0);
  run(host);
}

/* ---- Another oneTBB ---- */

/* In a process of its own, because the libraries remain loaded. */
static void in_a_child(void (*body)(void *state)) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    body(NULL);
    _exit(0);
  }
  int ended = -1;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended));
  assert_int_equal(WEXITSTATUS(ended), 0);
}

static int tbb_mode;

static void must(int condition, const char *what) {
  if (condition) return;
  printf("# %s\n", what);
  fflush(stdout);
  _exit(1);
}

static void exercise_beside(void *plugin, void *other) {
  for (int k = 0; k < 3; k++) {
    const char *const why = function(plugin, "plugin_run")();
    must(why == NULL, why);
    must(*function(other, "tbb_user_run")() == '\0', "the other oneTBB computed something else");
  }
  /* With RTLD_GLOBAL, the library that was loaded first provides oneTBB to both. */
  const char *const used = function(other, "tbb_user_version")();
  must(tbb_mode == RTLD_GLOBAL || strstr(used, "libtbb.so.99") != NULL, "it is not another oneTBB");
}

static void tbb_first(void *state) {
  (void)state;
  void *const other = dlopen(tbb_user, RTLD_NOW | tbb_mode);
  must(other != NULL, "the other oneTBB was not loaded");
  must(*function(other, "tbb_user_run")() == '\0', "the other oneTBB computed something else");
  void *const plugin = dlopen(shared_plugin, RTLD_NOW | tbb_mode);
  must(plugin != NULL, "libdist was not loaded");
  exercise_beside(plugin, other);
}

static void libdist_first(void *state) {
  (void)state;
  void *const plugin = dlopen(shared_plugin, RTLD_NOW | tbb_mode);
  must(plugin != NULL, "libdist was not loaded");
  const char *const why = function(plugin, "plugin_run")();
  must(why == NULL, why);
  void *const other = dlopen(tbb_user, RTLD_NOW | tbb_mode);
  must(other != NULL, "the other oneTBB was not loaded");
  exercise_beside(plugin, other);
}

static void another_oneTBB_is_loaded_before_or_after(void **state) {
  (void)state;
  if (*tbb_user == '\0') skip_because("libtbb.so.12 was not found");
  const int modes[] = {RTLD_LOCAL, RTLD_GLOBAL};
  for (size_t i = 0; i < 2; i++) {
    tbb_mode = modes[i];
    in_a_child(tbb_first);
    in_a_child(libdist_first);
  }
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  shared_plugin = argv[1];
  static_plugin = argv[2];
  tbb_user = argv[3];
  const struct CMUnitTest shared_tests[] = {cmocka_unit_test(a_plugin_is_loaded_and_unloaded_1000_times)};
  const struct CMUnitTest static_tests[] = {
      cmocka_unit_test(a_plugin_that_contains_libdist_is_loaded_and_unloaded_1000_times)};
  /* The other oneTBB comes first: after a fork, a child cannot use the oneTBB of its parent. */
  const struct CMUnitTest copies[] = {cmocka_unit_test(another_oneTBB_is_loaded_before_or_after),
                                      cmocka_unit_test(two_copies_of_libdist_do_not_call_each_other)};
  if (strcmp(argv[4], "shared") == 0) return cmocka_run_group_tests(shared_tests, NULL, NULL);
  if (strcmp(argv[4], "static") == 0) return cmocka_run_group_tests(static_tests, NULL, NULL);
  return cmocka_run_group_tests(copies, NULL, NULL);
}
