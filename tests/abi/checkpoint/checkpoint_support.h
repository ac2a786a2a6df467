/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the tests of checkpoint.h: a temporary folder, files with arbitrary bytes, and variables.
 */
#ifndef TESTS_ABI_CHECKPOINT_SUPPORT_H
#define TESTS_ABI_CHECKPOINT_SUPPORT_H

#include "tests/abi/alloc_support.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The test's folder: the first call creates it, and leave_folder() removes it with its contents. ---- */

static char own_folder[256];

static inline const char *folder(void) {
  if (own_folder[0] == '\0') {
    const char *top = getenv("TMPDIR");
    snprintf(own_folder, sizeof own_folder, "%s/dist-checkpoint-XXXXXX", top != NULL ? top : "/tmp");
    if (mkdtemp(own_folder) == NULL) abort();
  }
  return own_folder;
}

typedef struct file_path {
  char text[600];
} file_path;

static inline file_path path_of(const char *name) {
  file_path path;
  snprintf(path.text, sizeof path.text, "%s/%s", folder(), name);
  return path;
}

/* Counts the names in the folder that begin with this prefix, and removes these files if `gone` is set. */
static inline int count_names(const char *prefix, int gone) {
  int count = 0;
  DIR *entries = opendir(folder());
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    count++;
    if (gone) remove(path_of(entry->d_name).text);
  }
  closedir(entries);
  return count;
}

static inline int leave_folder(void **state) {
  (void)state;
  if (own_folder[0] == '\0') return 0;
  count_names("", 1);
  return rmdir(own_folder);
}

/* ---- Files ---- */

/* Repeats a text ten times. */
#define TEN(x) x x x x x x x x x x

static inline void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

/* The caller frees the result. */
static inline unsigned char *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  *out_size = (size_t)ftell(file);
  rewind(file);
  unsigned char *data = malloc(*out_size + 1);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, *out_size, file), *out_size);
  fclose(file);
  return data;
}

/* Writes a file with this header, followed by `data_bytes` bytes of 7. */
static inline void write_with_header(const char *path, const char *header, size_t data_bytes) {
  const size_t length = strlen(header);
  const uint64_t said = length;
  unsigned char *data = malloc(8 + length + data_bytes);
  assert_non_null(data);
  memcpy(data, &said, 8);
  memcpy(data + 8, header, length);
  memset(data + 8 + length, 7, data_bytes);
  write_file(path, data, 8 + length + data_bytes);
  free(data);
}

/* ---- Strategies and variables ---- */

static inline dist_strategy *strategy_of_kind(int32_t kind, int32_t num_replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.num_replicas = num_replicas;
  return strategy_with(options);
}

static inline dist_variable *variable_like(dist_strategy *strategy, const char *name, dist_tensor initial,
                                           int32_t synchronization, int32_t aggregation) {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = name;
  options.synchronization = synchronization;
  options.aggregation = aggregation;
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, &initial, &options, &variable));
  return variable;
}

static inline dist_variable *vector_variable(dist_strategy *strategy, const char *name, dist_dtype dtype,
                                             const void *data, int64_t length) {
  return variable_like(strategy, name, (dist_tensor){(void *)data, dtype, 1, &length, NULL}, 0, 0);
}

/* Returns replica r's copy of the variable. */
static inline void *copy_of(const dist_variable *variable, int32_t r) {
  dist_tensor tensor;
  assert_ok(dist_variable_component(variable, r, &tensor));
  return tensor.data;
}

#endif
