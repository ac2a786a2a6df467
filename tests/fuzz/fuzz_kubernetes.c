/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: the names of pods. The first bytes are numbers. The rest contains the names of the host,
 * service, namespace and domain, each with a NUL.
 */
#include "tests/fuzz/resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  dist_kubernetes_options pods = DIST_KUBERNETES_OPTIONS_INIT;
  pods.has_index = (int32_t)take_below(&in, 2);
  pods.index = (int32_t)take_below(&in, 8) - 1;
  pods.num_workers = (int32_t)take_below(&in, 8) + 1;
  pods.first_index = (int32_t)take_below(&in, 4);
  pods.port = (int32_t)take_below(&in, 256) * 300;
  const int with_service = (int)take_below(&in, 2);
  char *const host = take_text(&in), *const service = take_text(&in);
  char *const space = take_text(&in), *const domain = take_text(&in);
  pods.host_name = host;
  if (with_service) pods.service = service;
  if (*space != '\0') pods.name_space = space;
  if (*domain != '\0') pods.domain = domain;
  dist_cluster_resolver* resolver = NULL;
  const dist_status status = dist_cluster_resolver_create_kubernetes(&pods, NULL, &resolver);
  check_made(status, resolver);
  free(host), free(service), free(space), free(domain);
  return 0;
}
