/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers whose processes have already loaded another gRPC and made it visible to all libraries, as importing
 * TensorFlow in Python does. The arguments are the paths of that library and of an allocator.
 */
#include "tests/abi/processes_support.h"

#include <dlfcn.h>

static dist_status sum(dist_replica *replica, void *user_data) {
  (void)user_data;
  double value[2] = {1, 1};
  const int64_t shape[] = {2};
  const dist_tensor t = {value, DIST_F64, 1, shape, NULL};
  dist_tensor out = t;
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &out, 1, NULL, NULL);
  return status == DIST_OK && value[1] != 4 ? DIST_INTERNAL : status;
}

static int play(void) {
  const char *const other = getenv("OTHER_GRPC");
  if (other != NULL && dlopen(other, RTLD_NOW | RTLD_GLOBAL) == NULL) {
    printf("%s\n", dlerror());
    return 3;
  }
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 2;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, sum, NULL, NULL);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) == DIST_OK ? code : 2;
}

static char other_grpc[4096], other_malloc[4096];

static void play_job(const char *const *environment, const char *words) {
  job all = job_of(2);
  start(&all, "play", environment);
  for (int w = 0; w < 2; ++w) {
    process *const p = &all.processes[w];
    const int code = end_of(p);
    if (code != (words == NULL ? 0 : 1)) fail_msg("a worker ended with %d: %s", code, p->text);
    if (words != NULL) assert_has(p->text, words);
  }
}

static void workers_do_not_call_another_gRPC(void **state) {
  (void)state;
  const char *const environment[] = {other_grpc, NULL};
  play_job(environment, NULL);
}

static void workers_run_with_another_malloc(void **state) {
  (void)state;
  const char *const environment[] = {other_malloc, NULL};
  play_job(environment, NULL);
}

static void another_gRPC_with_another_malloc_is_an_error(void **state) {
  (void)state;
  const char *const environment[] = {other_grpc, other_malloc, NULL};
  play_job(environment, "exports grpc_init() to all libraries of this process");
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  if (strcmp(argv[1], "play") == 0) return play();
  snprintf(other_grpc, sizeof other_grpc, "OTHER_GRPC=%s", argv[1]);
  snprintf(other_malloc, sizeof other_malloc, "LD_PRELOAD=%s", argv[2]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(workers_do_not_call_another_gRPC),
                                     cmocka_unit_test(workers_run_with_another_malloc),
                                     cmocka_unit_test(another_gRPC_with_another_malloc_is_an_error)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
