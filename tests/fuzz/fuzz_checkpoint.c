/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a checkpoint file. If the first byte is odd, the rest is the complete file. If it is even, the
 * rest is a header; the target prepends its length and appends as many bytes as the second byte specifies. An
 * opened file must be consistent with itself and with its bytes. A rejected file must have a printable
 * reason. An index may be opened although its files do not exist.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/abi/fold.h"
#include "tests/fuzz/bytes.h"

static void check_reason(dist_status status) {
  if (status != DIST_DATA_LOSS && status != DIST_UNIMPLEMENTED && status != DIST_NOT_FOUND)
    fail_msg("%s: %s", dist_status_name(status), dist_last_error());
  const char* reason = dist_last_error();
  assert_true(reason[0] != '\0');
  for (; *reason != '\0'; reason++) assert_true((unsigned char)*reason >= ' ' && *reason != 0x7f);
}

/* Compares the next tensor in the order of the list with the bytes of the file from `at` on. Returns its
 * number of bytes, or more than `left` if it cannot be read. */
static size_t check_tensor(const dist_checkpoint* checkpoint, const char* name, const uint8_t* at,
                           size_t left) {
  dist_tensor spec, tensor;
  assert_int_equal(dist_checkpoint_spec(checkpoint, name, &spec), DIST_OK);
  assert_true(spec.ndim >= 0 && spec.ndim <= DIST_MAX_NDIM && spec.data == NULL);
  dist_value* value = NULL;
  const dist_status status = dist_checkpoint_read(checkpoint, name, &value);
  if (status != DIST_OK) {
    check_reason(status);
    assert_null(value);
    return left + 1; /* the position of the next tensor is unknown */
  }
  assert_int_equal(dist_value_tensor(value, &tensor), DIST_OK);
  /* An element type that libdist lacks is read as bytes, which have a shape of their own. */
  const int as_bytes = spec.dtype == 0;
  assert_true(tensor.dtype == (as_bytes ? DIST_U8 : spec.dtype) && (as_bytes || tensor.ndim == spec.ndim));
  size_t bytes = size_of(tensor.dtype);
  for (int32_t i = 0; i < tensor.ndim; i++) {
    assert_true(tensor.shape[i] >= 0 && (as_bytes || tensor.shape[i] == spec.shape[i]));
    if (tensor.shape[i] == 0) bytes = 0;
  }
  for (int32_t i = 0; bytes != 0 && i < tensor.ndim; i++) bytes *= (size_t)tensor.shape[i];
  if (left > 0 || bytes == 0) {
    assert_true(bytes <= left);
    if (bytes > 0) assert_memory_equal(tensor.data, at, bytes);
  }
  dist_value_release(value);
  return bytes;
}

static void check_opened(const dist_checkpoint* checkpoint, const uint8_t* file, size_t size) {
  uint64_t header = 0;
  assert_true(size >= sizeof header);
  memcpy(&header, file, sizeof header);
  if (header > size) { /* an index without tensors, because the files that it names do not exist */
    assert_int_equal(dist_checkpoint_size(checkpoint), 0);
    return;
  }
  assert_true(header <= size - sizeof header);
  size_t at = sizeof header + (size_t)header;
  int known = 1; /* whether the position of the next tensor is known */
  for (size_t i = 0; i < dist_checkpoint_size(checkpoint); i++) {
    const char* name = dist_checkpoint_name(checkpoint, i);
    if (known) {
      const size_t bytes = check_tensor(checkpoint, name, file + at, size - at);
      known = bytes <= size - at;
      at += known ? bytes : 0;
    } else {
      check_tensor(checkpoint, name, NULL, 0);
    }
  }
  if (known) assert_int_equal(at, size);
  for (size_t i = 0; i < dist_checkpoint_num_metadata(checkpoint); i++)
    assert_non_null(dist_checkpoint_metadata(checkpoint, dist_checkpoint_metadata_key(checkpoint, i)));
}

/* Only the file of the current input is in this folder, so that an index cannot name another existing
 * file. */
static char folder[] = "/tmp/dist-fuzz-XXXXXX";
static char path[64];

static void remove_folder(void) {
  unlink(path);
  rmdir(folder);
}

static void make_folder(void) {
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/file", folder);
  assert_int_equal(atexit(remove_folder), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static dist_strategy* strategy; /* shared by all inputs */
  if (strategy == NULL) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_ONE_DEVICE;
    make_folder();
    assert_int_equal(dist_strategy_create(&options, &strategy), DIST_OK);
  }
  bytes in = {data, size};
  const int whole = take(&in) & 1;
  const size_t rest = whole ? 0 : take(&in);
  const uint64_t length = in.left;
  const size_t start = whole ? 0 : sizeof length;
  uint8_t* file = malloc(start + in.left + rest + 1);
  assert_non_null(file);
  memcpy(file, &length, start);
  if (in.left > 0) memcpy(file + start, in.at, in.left);
  for (size_t i = 0; i < rest; i++) file[start + in.left + i] = (uint8_t)i;
  const size_t file_size = start + in.left + rest;

  const int descriptor = memfd_create("checkpoint", 0);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, file, file_size), file_size);
  char memory[64];
  snprintf(memory, sizeof memory, "/proc/self/fd/%d", descriptor);
  assert_int_equal(symlink(memory, path), 0);
  dist_checkpoint* checkpoint = NULL;
  const dist_status status = dist_checkpoint_open(strategy, path, &checkpoint);
  if (status == DIST_OK) {
    check_opened(checkpoint, file, file_size);
  } else {
    check_reason(status);
    assert_null(checkpoint);
  }
  dist_checkpoint_destroy(checkpoint);
  unlink(path);
  close(descriptor);
  free(file);
  return 0;
}
