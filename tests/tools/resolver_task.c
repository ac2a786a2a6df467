/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that prints what libdist's resolver reads from its TF_CONFIG, and then executes the program given as
 * its arguments.
 */
#include <dist/dist.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  dist_cluster_resolver* resolver = NULL;
  dist_cluster_spec* spec = NULL;
  char type[DIST_MAX_ADDRESS_BYTES], address[DIST_MAX_ADDRESS_BYTES];
  int32_t is_set = 0, id = -1, is_chief = -1;
  if (dist_cluster_resolver_create_tf_config(NULL, &resolver) ||
      dist_cluster_resolver_spec(resolver, &spec) ||
      dist_cluster_resolver_task_type(resolver, type, sizeof type, &is_set) ||
      dist_cluster_resolver_task_id(resolver, &id) || dist_cluster_validate(spec, type, id) ||
      dist_cluster_is_chief(spec, type, id, &is_chief) ||
      dist_cluster_resolver_master(resolver, type, id, "", address, sizeof address)) {
    fprintf(stderr, "resolver_task: %s\n", dist_last_error());
    return 1;
  }
  printf("%s %d at %s%s of %s\n", type, (int)id, address, is_chief ? ", chief," : "",
         dist_cluster_spec_json(spec));
  dist_cluster_spec_destroy(spec);
  dist_cluster_resolver_destroy(resolver);
  fflush(stdout);
  execv(argv[1], argv + 1);
  return 3;
}
