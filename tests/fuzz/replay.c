/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a target on known inputs, with any compiler: `replay_NAME --corpus TEXT` on those of a corpus
 * (corpus.py), `replay_NAME FILE...` on files. After a failure, the last line names the input: "# TEXT:LINE"
 * or "# FILE".
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/fuzz/bytes.h"

typedef struct contents {
  uint8_t* data;
  size_t size;
} contents;

static contents read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
  contents all = {malloc(4096), 0};
  size_t room = 4096;
  for (size_t got = 1; got > 0; all.size += got) {
    if (all.size == room) all.data = realloc(all.data, room *= 2);
    if (all.data == NULL) abort();
    got = fread(all.data + all.size, 1, room - all.size, file);
  }
  fclose(file);
  return all;
}

/* Tries a copy of exactly the input's size, so that a sanitizer sees what is read past the end. */
static void try_input(const uint8_t* data, size_t size) {
  uint8_t* exact = malloc(size > 0 ? size : 1);
  if (exact == NULL) abort();
  if (size > 0) memcpy(exact, data, size);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
}

static void replay_file(void** state) {
  const char* path = *state;
  const contents all = read_file(path);
  fprintf(stderr, "# %s\n", path);
  try_input(all.data, all.size);
  free(all.data);
}

static int digit(int c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static void replay_corpus(void** state) {
  const char* path = *state;
  const contents all = read_file(path);
  int line = 0;
  for (size_t at = 0; at < all.size; at++) {
    const uint8_t* const end = memchr(all.data + at, '\n', all.size - at);
    if (end == NULL) fail_msg("%s: the last line is cut", path);
    uint8_t* const input = all.data + at; /* bytes replace their digits */
    size_t size = 0;
    for (; at + 1 < all.size && digit(all.data[at]) >= 0 && digit(all.data[at + 1]) >= 0; at += 2)
      input[size++] = (uint8_t)(16 * digit(all.data[at]) + digit(all.data[at + 1]));
    line++;
    if (all.data[at] != (size == 0 ? '-' : ' ') && all.data[at] != '\n')
      fail_msg("%s:%d: not hexadecimal", path, line);
    fprintf(stderr, "# %s:%d\n", path, line);
    try_input(input, size);
    at = (size_t)(end - all.data);
  }
  free(all.data);
  if (line == 0) fail_msg("%s: no input", path);
}

int main(int argc, char** argv) {
  const int is_corpus = argc == 3 && strcmp(argv[1], "--corpus") == 0;
  struct CMUnitTest tests[256];
  const int most = (int)(sizeof tests / sizeof tests[0]);
  int n = 0;
  for (int i = 1 + is_corpus; i < argc && n < most; i++, n++) {
    tests[n] = (struct CMUnitTest){
        .name = argv[i], .test_func = is_corpus ? replay_corpus : replay_file, .initial_state = argv[i]};
  }
  if (n == 0 || n + 1 + is_corpus < argc) {
    fprintf(stderr, "usage: %s --corpus TEXT | FILE... (at most %d)\n", argv[0], most);
    return 2;
  }
  return _cmocka_run_group_tests("replay", tests, (size_t)n, NULL, NULL);
}
