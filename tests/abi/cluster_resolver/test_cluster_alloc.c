/* SPDX-License-Identifier: Apache-2.0
 *
 * Rejects every memory request of cluster specs and resolvers once. Each time, the call returns an error
 * status and leaks nothing.
 */
#include <dist/experimental/rendezvous.h>
#include "../alloc_support.h"

/* Creates a resolver of each kind and calls its functions. */
static dist_status make_spec(const dist_cluster_spec_options *options, dist_cluster_spec **out_spec) {
  const char *const addresses[] = {"a-host-with-a-name-of-some-length:1", "another-host-with-such-a-name:2"};
  const dist_cluster_job job = {"worker", addresses, NULL, 2};
  dist_cluster_spec *made = NULL, *read = NULL;
  dist_status status = dist_cluster_spec_create(&job, 1, options, &made);
  if (!status)
    status = dist_cluster_spec_from_json("{\"ps\": {\"3\": \"c:3\", \"1\": \"d:4\"}}", options, &read);
  const dist_cluster_spec *const both[] = {made, read};
  if (!status) status = dist_cluster_spec_union(both, 2, options, out_spec);
  dist_cluster_spec_destroy(made), dist_cluster_spec_destroy(read);
  return status;
}

static dist_status make_member(int kind, dist_cluster_spec *spec,
                               const dist_cluster_resolver_options *options,
                               dist_cluster_resolver **out_resolver) {
  dist_slurm_options slurm = DIST_SLURM_OPTIONS_INIT;
  slurm.has_rank = 1;
  slurm.num_tasks = 4;
  slurm.host_list = "a-host-with-a-name-of-some-length[1-2]";
  slurm.tasks_per_node = "2(x2)";
  dist_kubernetes_options pods = DIST_KUBERNETES_OPTIONS_INIT;
  pods.host_name = "a-host-with-a-name-of-some-length-1";
  pods.num_workers = 3;
  dist_rendezvous_options workers = DIST_RENDEZVOUS_OPTIONS_INIT;
  workers.has_rank = 1;
  workers.size = 1;
  workers.job_name = "a job with a name of some length, which needs memory";
  workers.address = "a-host-with-a-name-of-some-length.example:1";
  switch (kind) {
    case 0: return dist_cluster_resolver_create_simple(spec, options, out_resolver);
    case 1: return dist_cluster_resolver_create_tf_config(options, out_resolver);
    case 2: return dist_cluster_resolver_create_slurm(&slurm, options, out_resolver);
    case 3: return dist_cluster_resolver_create_kubernetes(&pods, options, out_resolver);
    default: return dist_cluster_resolver_create_rendezvous(&workers, options, out_resolver);
  }
}

static void ignore(const char *text, size_t size, void *user_data) {
  (void)text, (void)size, (void)user_data;
}

static dist_status ask(const dist_cluster_resolver *resolver) {
  char text[DIST_MAX_ADDRESS_BYTES];
  int32_t is_set = 0;
  dist_cluster_spec *spec = NULL;
  dist_status status = dist_cluster_resolver_spec(resolver, &spec);
  dist_cluster_spec_destroy(spec);
  if (!status) status = dist_cluster_resolver_task_type(resolver, text, sizeof text, &is_set);
  if (!status) status = dist_cluster_resolver_master(resolver, "worker", 0, NULL, text, sizeof text);
  if (!status) status = dist_cluster_explain(resolver, ignore, NULL);
  return status;
}

static dist_status live(const dist_allocator *allocator) {
  dist_cluster_spec_options spec_options = DIST_CLUSTER_SPEC_OPTIONS_INIT;
  spec_options.allocator = *allocator;
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.allocator = *allocator;
  options.task_type = "worker";
  options.tf_config = "{\"cluster\": {\"worker\": [\"another-host-with-such-a-name:2\", \"b:2\"]}}";
  dist_cluster_spec *spec = NULL;
  dist_cluster_resolver *members[5] = {NULL}, *all = NULL;
  dist_status status = make_spec(&spec_options, &spec);
  for (int i = 0; i < 5 && !status; i++) {
    status = make_member(i, spec, &options, &members[i]);
    if (!status) status = ask(members[i]);
  }
  if (!status) status = dist_cluster_resolver_create_union(members, 1, &options, &all);
  if (!status) status = ask(all);
  for (int i = 0; i < 5; i++) dist_cluster_resolver_destroy(members[i]);
  dist_cluster_resolver_destroy(all);
  dist_cluster_spec_destroy(spec);
  return status;
}

static void every_request_is_refused_once(void **state) {
  (void)state;
  static refusals a;
  const dist_allocator allocator = refusing(&a);
  long refused = 0, ended = 0;
  for (long k = 0, asked = 1; asked; k++) {
    atomic_store(&a.requests, 0);
    atomic_store(&a.refuse_at, k);
    const dist_status status = live(&allocator);
    asked = atomic_load(&a.requests) > k;
    refused += asked;
    ended += status != DIST_OK;
    if (status != DIST_OK && !(asked && status == DIST_RESOURCE_EXHAUSTED)) {
      fail_msg("request %ld: %s: %s", k, dist_status_name(status), dist_last_error());
    }
    assert_int_equal(atomic_load(&a.live_bytes), 0);
  }
  assert_true(refused > 50);
  assert_true(ended > 40); /* an explanation reports what it could not determine */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_request_is_refused_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
