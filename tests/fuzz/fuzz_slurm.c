/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: the lists of a Slurm step. The first bytes are numbers. The rest is a list of hosts, a NUL,
 * a list of tasks, a NUL, and the distribution of the tasks.
 */
#include "tests/fuzz/resolver.h"

static void take_host(const char* text, size_t size, void* user_data) {
  assert_true(size < DIST_MAX_ADDRESS_BYTES);
  check_line(text, size);
  ++*(size_t*)user_data;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.has_rank = 1;
  slurm.rank = (int32_t)take_below(&in, 16) - 2;
  slurm.num_tasks = (int32_t)take_below(&in, 16) + 1;
  slurm.tasks_on_each_host = (int32_t)take_below(&in, 4);
  slurm.gpus_per_host = (int32_t)take_below(&in, 8);
  slurm.gpus_per_task = (int32_t)take_below(&in, 3);
  char *const hosts = take_text(&in), *const tasks = take_text(&in), *const distribution = take_text(&in);
  size_t num_hosts = 0, num_tasks = 0;
  int32_t first[4] = {-1, -1, -1, -1};
  const dist_status listed = dist_slurm_expand_host_list(hosts, take_host, &num_hosts);
  assert_true(listed == DIST_OK || (listed == DIST_INVALID_ARGUMENT && num_hosts == 0));
  assert_true(num_hosts <= DIST_MAX_CLUSTER_TASKS);
  if (dist_slurm_expand_tasks_per_node(tasks, first, 4, &num_tasks) == DIST_OK) {
    assert_true(num_tasks <= DIST_MAX_CLUSTER_TASKS);
    for (size_t i = 0; i < 4 && i < num_tasks; i++)
      assert_true(first[i] >= 0 && first[i] <= DIST_MAX_CLUSTER_TASKS);
  }
  slurm.host_list = hosts;
  slurm.tasks_per_node = tasks;
  setenv("SLURM_DISTRIBUTION", distribution, 1);
  dist_cluster_resolver* resolver = NULL;
  const dist_status status = dist_cluster_resolver_create_slurm(&slurm, NULL, &resolver);
  check_made(status, resolver);
  free(hosts), free(tasks), free(distribution);
  return 0;
}
