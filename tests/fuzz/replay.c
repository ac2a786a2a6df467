/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a target on the inputs of a corpus: `replay_NAME FILE_OR_FOLDER...`, each argument a test. It works
 * with any compiler. After a failure, the last line "# FILE" names the input.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/fuzz/bytes.h"

static int replayed;

static void replay_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
  size_t size = 0, room = 4096;
  uint8_t* data = malloc(room);
  for (size_t got = 1; got > 0; size += got) {
    if (size == room) data = realloc(data, room *= 2);
    if (data == NULL) abort();
    got = fread(data + size, 1, room - size, file);
  }
  fclose(file);
  /* A copy of exactly its size: a sanitizer sees what is read past the end. */
  uint8_t* exact = malloc(size > 0 ? size : 1);
  if (exact == NULL) abort();
  if (size > 0) memcpy(exact, data, size);
  free(data);
  fprintf(stderr, "# %s\n", path);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  replayed++;
}

static int not_hidden(const struct dirent* entry) { return entry->d_name[0] != '.'; }

static void replay(void** state) {
  const char* path = *state;
  struct stat status;
  if (stat(path, &status) != 0) fail_msg("%s: %s", path, strerror(errno));
  replayed = 0;
  if (S_ISDIR(status.st_mode)) {
    struct dirent** entries;
    const int n = scandir(path, &entries, not_hidden, alphasort);
    assert_true(n >= 0);
    for (int i = 0; i < n; i++) {
      char name[4096];
      snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
      free(entries[i]);
      replay_file(name);
    }
    free(entries);
  } else {
    replay_file(path);
  }
  if (replayed == 0) fail_msg("%s: no input", path);
}

int main(int argc, char** argv) {
  struct CMUnitTest tests[256];
  const int most = (int)(sizeof tests / sizeof tests[0]);
  int n = 0;
  for (; n + 1 < argc && n < most; n++)
    tests[n] = (struct CMUnitTest){.name = argv[n + 1], .test_func = replay, .initial_state = argv[n + 1]};
  if (n == 0 || n + 1 < argc) {
    fprintf(stderr, "usage: %s FILE_OR_FOLDER... (at most %d)\n", argv[0], most);
    return 2;
  }
  return _cmocka_run_group_tests("replay", tests, (size_t)n, NULL, NULL);
}
