/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: TF_CONFIG. A resolver must be created for any text, and each query must return an answer or a
 * reason.
 */
#include "tests/fuzz/resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  char* const text = take_text(&in);
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.tf_config = text;
  dist_cluster_resolver* resolver = NULL;
  const dist_status status = dist_cluster_resolver_create_tf_config(&options, &resolver);
  assert_int_equal(status, DIST_OK);
  check_made(status, resolver);
  free(text);
  return 0;
}
