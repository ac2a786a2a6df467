/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a cluster spec as JSON. A valid spec must survive a round trip through JSON, and its functions
 * must agree with its arrays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/fuzz/bytes.h"

static void check_job(const dist_cluster_spec* spec, const char* job) {
  int32_t n = -1;
  size_t count = 0;
  assert_int_equal(dist_cluster_spec_num_tasks(spec, job, &n), DIST_OK);
  assert_true(n >= 0 && n <= DIST_MAX_CLUSTER_TASKS);
  int32_t* const indices = malloc(((size_t)n + 1) * sizeof *indices);
  assert_int_equal(dist_cluster_spec_task_indices(spec, job, indices, (size_t)n, &count), DIST_OK);
  assert_int_equal(count, n);
  for (int32_t k = 0; k < n; k++) {
    const char* address = NULL;
    assert_true(k == 0 || indices[k] > indices[k - 1]);
    assert_int_equal(dist_cluster_spec_task_address(spec, job, indices[k], &address), DIST_OK);
    assert_true(strlen(address) < DIST_MAX_ADDRESS_BYTES);
  }
  free(indices);
}

static void check_rules(const dist_cluster_spec* spec, const char* job) {
  int32_t answer = -1;
  char text[DIST_MAX_ADDRESS_BYTES];
  if (dist_cluster_validate(spec, job, 0) != DIST_OK) return;
  assert_int_equal(dist_cluster_is_chief(spec, job, 0, &answer), DIST_OK);
  assert_true(answer == 0 || answer == 1);
  if (dist_cluster_collective_leader(spec, job, 0, text, sizeof text) != DIST_OK)
    assert_true(*dist_last_error() != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char* const text = malloc(size + 1);
  memcpy(text, data, size);
  text[size] = '\0';
  dist_cluster_spec *spec = NULL, *again = NULL, *both = NULL;
  const dist_status status = dist_cluster_spec_from_json(text, NULL, &spec);
  free(text);
  if (status != DIST_OK) {
    assert_int_equal(status, DIST_INVALID_ARGUMENT);
    assert_true(*dist_last_error() != '\0' && spec == NULL);
    return 0;
  }
  for (size_t i = 0; i < dist_cluster_spec_num_jobs(spec); i++) {
    check_job(spec, dist_cluster_spec_job(spec, i));
    check_rules(spec, dist_cluster_spec_job(spec, i));
  }
  assert_int_equal(dist_cluster_spec_from_json(dist_cluster_spec_json(spec), NULL, &again), DIST_OK);
  assert_int_equal(dist_cluster_spec_is_equal(spec, again), 1);
  assert_string_equal(dist_cluster_spec_json(spec), dist_cluster_spec_json(again));
  const dist_cluster_spec* const specs[] = {spec, again};
  assert_int_equal(dist_cluster_spec_union(specs, 1, NULL, &both), DIST_OK);
  assert_int_equal(dist_cluster_spec_is_equal(spec, both), 1);
  dist_cluster_spec_destroy(both);
  both = NULL;
  if (dist_cluster_spec_union(specs, 2, NULL, &both) == DIST_OK) dist_cluster_spec_destroy(both);
  dist_cluster_spec_destroy(spec);
  dist_cluster_spec_destroy(again);
  return 0;
}
