/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that hold for any resolver, whatever text it was created from.
 */
#ifndef TESTS_FUZZ_RESOLVER_H
#define TESTS_FUZZ_RESOLVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/fuzz/bytes.h"

/* Every text must be a single line without control characters. */
static void check_line(const char* text, size_t size) {
  for (size_t i = 0; i < size; i++) assert_true((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

static void check_lines(const char* text, size_t size, void* user_data) {
  (void)user_data;
  assert_true(size > 0 && text[size - 1] == '\n');
  for (size_t i = 0; i < size; i++) assert_true(text[i] == '\n' || (unsigned char)text[i] >= ' ');
}

static void check_answer(dist_status status, const char* text) {
  assert_true(status == DIST_OK || status == DIST_INVALID_ARGUMENT);
  if (status == DIST_OK) check_line(text, strlen(text));
  if (status != DIST_OK) assert_true(*dist_last_error() != '\0');
}

static void check_resolver(const dist_cluster_resolver* resolver) {
  char text[DIST_MAX_ADDRESS_BYTES] = "";
  int32_t is_set = -1, number = 0;
  dist_cluster_spec* spec = NULL;
  check_answer(dist_cluster_resolver_spec(resolver, &spec), "");
  dist_cluster_spec_destroy(spec);
  check_answer(dist_cluster_resolver_task_type(resolver, text, sizeof text, &is_set), text);
  check_answer(dist_cluster_resolver_task_id(resolver, &number), "");
  check_answer(dist_cluster_resolver_rpc_layer(resolver, text, sizeof text, &is_set), text);
  check_answer(dist_cluster_resolver_environment(resolver, text, sizeof text, &is_set), text);
  check_answer(dist_cluster_resolver_master(resolver, NULL, DIST_TASK_UNSET, NULL, text, sizeof text), text);
  check_answer(dist_cluster_resolver_master(resolver, "worker", 0, "grpc", text, sizeof text), text);
  check_answer(dist_cluster_resolver_num_accelerators(resolver, NULL, DIST_TASK_UNSET, &number), "");
  check_answer(dist_cluster_resolver_gpu_ids(resolver, text, sizeof text), text);
  const dist_status status = dist_cluster_explain(resolver, check_lines, NULL);
  if (status != DIST_OK) fail_msg("%s", dist_last_error());
}

/* Checks the result of creating a resolver. If it failed, there must be a reason. */
static void check_made(dist_status status, dist_cluster_resolver* resolver) {
  if (status == DIST_OK) {
    check_resolver(resolver);
    dist_cluster_resolver_destroy(resolver);
    return;
  }
  assert_true(status == DIST_INVALID_ARGUMENT || status == DIST_FAILED_PRECONDITION);
  assert_true(*dist_last_error() != '\0' && resolver == NULL);
}

/* Takes the bytes up to the next NUL, or all that are left, and appends a NUL. The caller must free the
 * text. */
static inline char* take_text(bytes* in) {
  const uint8_t* const end = in->left == 0 ? NULL : memchr(in->at, '\0', in->left);
  const size_t length = end == NULL ? in->left : (size_t)(end - in->at);
  char* const text = malloc(length + 1);
  if (length > 0) memcpy(text, in->at, length);
  text[length] = '\0';
  in->at += length, in->left -= length;
  if (end != NULL) in->at++, in->left--;
  return text;
}

#endif
