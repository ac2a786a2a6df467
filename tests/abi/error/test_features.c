/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_has_feature(): returns 1 only if the feature works. The arguments describe this build: grpc=1 gloo=0
 * ...
 */
#include "tests/abi/common.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int num_expected;
static char **expected;

static int expected_of(const char *name) {
  const size_t length = strlen(name);
  for (int i = 0; i < num_expected; i++) {
    if (strncmp(expected[i], name, length) == 0 && expected[i][length] == '=')
      return expected[i][length + 1] == '1';
  }
  fail_msg("the argument %s= is missing", name);
  return 0;
}

static void answers_are_those_of_the_build(void **state) {
  (void)state;
  static const char *const names[] = {"numa", "isal", "grpc", "gloo"};
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < COUNT_OF(names); i++)
      assert_int_equal(dist_has_feature(names[i]), expected_of(names[i]));
  }
}

static const char *const modules[] = {"grpc", "gloo"};

static void modules_that_are_not_there(void **state) {
  (void)state;
  setenv("DIST_MODULE_FOLDER", "/nonexistent", 1);
  for (size_t i = 0; i < COUNT_OF(modules); i++) {
    char words[64];
    snprintf(words, sizeof words, "was not found at /nonexistent/libdist-%s.so", modules[i]);
    assert_int_equal(dist_has_feature(modules[i]), 0);
    assert_has(dist_last_error(), words);
  }
  unsetenv("DIST_MODULE_FOLDER");
}

static void modules_that_cannot_be_loaded(void **state) {
  (void)state;
  char folder[] = "/tmp/dist-features-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("DIST_MODULE_FOLDER", folder, 1);
  for (size_t i = 0; i < COUNT_OF(modules); i++) {
    char path[96];
    snprintf(path, sizeof path, "%s/libdist-%s.so", folder, modules[i]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no library\n", file);
    fclose(file);
    assert_int_equal(dist_has_feature(modules[i]), 0);
    assert_has(dist_last_error(), "cannot be loaded");
    unlink(path);
  }
  unsetenv("DIST_MODULE_FOLDER");
  rmdir(folder);
}

/* Querying a feature does not use it, so a child can use gRPC without its parent's threads. */
static void a_forked_child_gets_the_same_answer(void **state) {
  (void)state;
  const int has = dist_has_feature("grpc");
  const pid_t child = fork();
  if (child == 0) _exit(dist_has_feature("grpc") == has ? 0 : 1);
  int status = -1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_int_equal(status, 0);
}

/* The program was started with a relative path to libdist, and then changes the working directory. */
static int moved(int grpc) { return chdir("/") == 0 && dist_has_feature("grpc") == grpc ? 0 : 1; }

static void modules_are_found_beside_a_relative_path(void **state) {
  (void)state;
  Dl_info info;
  assert_true(dladdr((void *)(intptr_t)dist_version, &info) != 0);
  char folder[4096];
  assert_non_null(realpath(info.dli_fname, folder));
  *strrchr(folder, '/') = '\0';
  const pid_t child = fork();
  if (child == 0) {
    char *const name = strrchr(folder, '/');
    *name = '\0';
    if (chdir(folder) != 0) _exit(126);
    setenv("LD_LIBRARY_PATH", name + 1, 1);
    execl("/proc/self/exe", "test", "moved", expected_of("grpc") ? "1" : "0", (char *)NULL);
    _exit(127);
  }
  int status = -1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_int_equal(status, 0);
}

/* Creates a strategy as a worker of two that cannot load the module from this folder. The error says what to
 * install. */
static void cannot_load_from(const char *module_folder, int worker, const char *found) {
  char cluster[128];
  snprintf(cluster, sizeof cluster,
           "{\"cluster\": {\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}, \"task\": {\"type\": \"worker\", "
           "\"index\": %d}}",
           worker);
  setenv("DIST_MODULE_FOLDER", module_folder, 1);
  setenv("TF_CONFIG", cluster, 1);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  dist_strategy *strategy = NULL;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_UNAVAILABLE);
  assert_null(strategy);
  assert_has(dist_last_error(), "DIST_MODULE_FOLDER is \"/nonexistent");
  assert_has(dist_last_error(), found);
  assert_has(dist_last_error(), "libdist-grpc.so. Build libdist with");
  assert_has(dist_last_error(), "PREFIX/lib/dist of an installed libdist");
  unsetenv("TF_CONFIG");
  unsetenv("DIST_MODULE_FOLDER");
}

static void messages_about_modules_are_whole(void **state) {
  (void)state;
  char deep[3000] = "/nonexistent";
  for (size_t end = strlen(deep); end < sizeof deep - 20; end = strlen(deep))
    snprintf(deep + end, sizeof deep - end, "/folder");
  for (int worker = 0; worker < 2; worker++) {
    cannot_load_from("/nonexistent", worker, "was not found at /nonexistent/libdist-grpc.so");
    cannot_load_from(deep, worker, "was not found at ...");
  }
}

/* The reason comes after the path, which may be long. */
static void a_long_path_leaves_room_for_the_reason(void **state) {
  (void)state;
  char path[3000] = "/tmp/dist-features-XXXXXX";
  assert_non_null(mkdtemp(path));
  const size_t top = strlen(path);
  while (strlen(path) < 2000) {
    char *const part = path + strlen(path);
    part[0] = '/';
    memset(part + 1, 'f', 200);
    part[201] = '\0';
    assert_int_equal(mkdir(path, 0700), 0);
  }
  setenv("DIST_MODULE_FOLDER", path, 1);
  char *const end = path + strlen(path);
  for (size_t i = 0; i < COUNT_OF(modules); i++) {
    snprintf(end, (size_t)(path + sizeof path - end), "/libdist-%s.so", modules[i]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no library\n", file);
    fclose(file);
    assert_int_equal(dist_has_feature(modules[i]), 0);
    assert_has(dist_last_error(), ".so cannot be loaded: file too short");
    unlink(path);
  }
  unsetenv("DIST_MODULE_FOLDER");
  for (*end = '\0'; strlen(path) >= top; *strrchr(path, '/') = '\0') {
    assert_int_equal(rmdir(path), 0);
  }
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "moved") == 0) return moved(argv[2][0] == '1');
  num_expected = argc - 1;
  expected = argv + 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_those_of_the_build),
      cmocka_unit_test(modules_that_are_not_there),
      cmocka_unit_test(modules_that_cannot_be_loaded),
      cmocka_unit_test(a_forked_child_gets_the_same_answer),
      cmocka_unit_test(messages_about_modules_are_whole),
      cmocka_unit_test(modules_are_found_beside_a_relative_path),
      cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
