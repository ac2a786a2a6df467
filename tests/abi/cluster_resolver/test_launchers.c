/* SPDX-License-Identifier: Apache-2.0
 *
 * The rank and the size of a rendezvous in the variables of launchers. The jobs have one worker, so nothing
 * connects.
 */
#include <dist/experimental/rendezvous.h>
#include "../resolver_support.h"

static const char *const of_launchers[] = {"DIST_RANK",
                                           "DIST_SIZE",
                                           "DIST_RENDEZVOUS",
                                           "DIST_JOB_NAME",
                                           "RANK",
                                           "MASTER_ADDR",
                                           "MASTER_PORT",
                                           "OMPI_COMM_WORLD_RANK",
                                           "OMPI_COMM_WORLD_SIZE",
                                           "PMI_RANK",
                                           "PMI_SIZE",
                                           "SLURM_NTASKS",
                                           "SLURM_JOB_ID",
                                           "SLURM_STEP_ID",
                                           "PMIX_NAMESPACE",
                                           "TORCHELASTIC_RUN_ID",
                                           "DIST_BIND_ADDRESS"};

static int clear_launchers(void **state) {
  for (size_t i = 0; i < COUNT_OF(of_launchers); ++i) unsetenv(of_launchers[i]);
  return clear_environment(state);
}

static void meets(const dist_rendezvous_options *options, const char *source) {
  dist_cluster_resolver *resolver = NULL;
  assert_ok(dist_cluster_resolver_create_rendezvous(options, NULL, &resolver));
  has_task(resolver, "worker", 0);
  explains(resolver, "resolver: rendezvous");
  explains(resolver, source);
  char text[DIST_MAX_ADDRESS_BYTES];
  assert_ok(dist_cluster_resolver_master(resolver, NULL, DIST_TASK_UNSET, NULL, text, sizeof text));
  assert_has(text, "grpc://127.0.0.1:");
  dist_cluster_resolver_destroy(resolver);
}

static void meets_none(const dist_rendezvous_options *options, dist_status status, const char *words) {
  dist_cluster_resolver *resolver = NULL;
  assert_fails(dist_cluster_resolver_create_rendezvous(options, NULL, &resolver), status, words);
  assert_null(resolver);
}

static void each_launcher_counts(void **state) {
  static const char *const names[][2] = {{"DIST_RANK", "DIST_SIZE"},
                                         {"RANK", "WORLD_SIZE"},
                                         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"},
                                         {"SLURM_PROCID", "SLURM_NTASKS"},
                                         {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (size_t k = 0; k < COUNT_OF(names); ++k) {
    clear_launchers(state);
    meets_none(NULL, DIST_FAILED_PRECONDITION, "the rank of this process is not known");
    setenv(names[k][0], "", 1); /* an empty variable counts as not set */
    meets_none(NULL, DIST_FAILED_PRECONDITION, "mpirun");
    setenv(names[k][0], "0", 1);
    meets_none(NULL, DIST_FAILED_PRECONDITION, "the number of workers is not known");
    assert_has(dist_last_error(), names[k][0]);
    setenv(names[k][1], "1", 1);
    meets(NULL, names[k][0]);
    setenv(names[k][0], "1", 1);
    meets_none(NULL, DIST_INVALID_ARGUMENT, names[k][0]);
    assert_has(dist_last_error(), names[k][1]);
    setenv(names[k][0], "one", 1);
    meets_none(NULL, DIST_INVALID_ARGUMENT, names[k][0]);
  }
}

static void launchers_that_do_not_agree_are_named(void **state) {
  (void)state;
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  meets(NULL, "RANK");
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  meets_none(NULL, DIST_FAILED_PRECONDITION, "rank 0 of 1 by RANK, but rank 2 of 4 by OMPI_COMM_WORLD_RANK");
  /* srun may have started the launcher, so its variables count after those of launchers. */
  unsetenv("OMPI_COMM_WORLD_RANK");
  setenv("SLURM_PROCID", "5", 1);
  setenv("SLURM_NTASKS", "8", 1);
  meets(NULL, "RANK");
  /* libdist's own variables take precedence over all others, and options over them. */
  setenv("PMI_RANK", "7", 1);
  setenv("PMI_SIZE", "9", 1);
  setenv("DIST_RANK", "0", 1);
  setenv("DIST_SIZE", "1", 1);
  meets(NULL, "DIST_RANK");
  setenv("DIST_RANK", "3", 1);
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  options.has_rank = 1;
  meets(&options, "given as an option");
  options.size = 1;
  setenv("DIST_SIZE", "nonsense", 1);
  meets(&options, "given as an option");
}

static void the_address_is_checked(void **state) {
  (void)state;
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  options.has_rank = 1;
  options.size = 2;
  meets_none(&options, DIST_FAILED_PRECONDITION, "Set DIST_RENDEZVOUS to \"host:port\"");
  setenv("DIST_RENDEZVOUS", "nonsense", 1);
  meets_none(&options, DIST_INVALID_ARGUMENT, "the rendezvous address (DIST_RENDEZVOUS) is \"nonsense\"");
  options.address = "127.0.0.1:0";
  meets_none(&options, DIST_INVALID_ARGUMENT, "(given as an option) is \"127.0.0.1:0\"");
  options.address = NULL;
  unsetenv("DIST_RENDEZVOUS");
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  meets_none(&options, DIST_FAILED_PRECONDITION, "Set DIST_RENDEZVOUS");
  setenv("MASTER_PORT", "65535", 1);
  meets_none(&options, DIST_INVALID_ARGUMENT, "MASTER_PORT is 65535");
}

static void options_are_checked(void **state) {
  (void)state;
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  options.has_rank = 1;
  options.size = 65537;
  meets_none(&options, DIST_INVALID_ARGUMENT, "the number of workers (given as an option) is 65537");
  options.size = -1;
  meets_none(&options, DIST_INVALID_ARGUMENT, "must be 1 to 65536");
  options.size = 1;
  options.rank = 1;
  meets_none(&options, DIST_INVALID_ARGUMENT, "the rank (given as an option) is 1, but must be 0 to 0");
  options.rank = -1;
  meets_none(&options, DIST_INVALID_ARGUMENT, "the rank (given as an option) is -1");
  options.rank = 0;
  options.has_rank = 2;
  meets_none(&options, DIST_INVALID_ARGUMENT, "has_rank");
  options.has_rank = 1;
  options.job_name = "two\nlines";
  meets_none(&options, DIST_INVALID_ARGUMENT, "job_name");
  options.job_name = NULL;
  setenv("DIST_BIND_ADDRESS", "nonsense", 1);
  meets_none(&options, DIST_INVALID_ARGUMENT, "DIST_BIND_ADDRESS is \"nonsense\"");
  setenv("DIST_BIND_ADDRESS", "192.0.2.1:0", 1);
  meets_none(&options, DIST_UNAVAILABLE, "192.0.2.1");
  setenv("DIST_BIND_ADDRESS", "localhost:0", 1);
  meets(&options, "resolver: rendezvous");
}

/* Two workers of this process listen on different ports. */
static void each_resolver_has_a_port_of_its_own(void **state) {
  (void)state;
  dist_rendezvous_options options = DIST_RENDEZVOUS_OPTIONS_INIT;
  options.has_rank = 1;
  options.size = 1;
  dist_cluster_resolver *resolvers[2] = {NULL};
  char texts[2][DIST_MAX_ADDRESS_BYTES];
  for (int k = 0; k < 2; ++k) {
    assert_ok(dist_cluster_resolver_create_rendezvous(&options, NULL, &resolvers[k]));
    assert_ok(
        dist_cluster_resolver_master(resolvers[k], NULL, DIST_TASK_UNSET, "", texts[k], sizeof texts[k]));
  }
  assert_string_not_equal(texts[0], texts[1]);
  for (int k = 0; k < 2; ++k) dist_cluster_resolver_destroy(resolvers[k]);
}

#define alone(test) cmocka_unit_test_setup(test, clear_launchers)

int main(void) {
  const struct CMUnitTest tests[] = {
      alone(each_launcher_counts),
      alone(launchers_that_do_not_agree_are_named),
      alone(the_address_is_checked),
      alone(options_are_checked),
      alone(each_resolver_has_a_port_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
