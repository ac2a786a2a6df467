/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of worker processes: only worker 0 writes, whatever paths the others pass, and its file can be
 * loaded in any layout of processes and replicas without affecting the results.
 */
#include "../processes_support.h"

enum { STEPS = 3, REPLICAS = 4 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

enum { WEIGHT = 0, STEP = 1, VARIABLES = 2 };

typedef struct training {
  dist_strategy *strategy;
  dist_variable *variables[VARIABLES];
  float step;
} training;

/* Adds to the weight a sum over all replicas that differs in each step, and counts the step. */
static dist_status take_step(dist_replica *replica, void *user_data) {
  const training *t = user_data;
  float part = t->step / (float)(3 + dist_replica_id(replica));
  float one = 1;
  const dist_tensor of_weight = {&part, DIST_F32, 0, NULL, NULL};
  const dist_tensor of_step = {&one, DIST_F32, 0, NULL, NULL};
  TRY(dist_replica_assign(replica, t->variables[WEIGHT], DIST_ASSIGN_ADD, &of_weight, NULL));
  return dist_replica_assign(replica, t->variables[STEP], DIST_ASSIGN_ADD, &of_step, NULL);
}

static dist_status value_of(const training *t, int which, float *out) {
  dist_value *value = NULL;
  dist_tensor tensor;
  dist_status status = dist_variable_read(t->strategy, t->variables[which], &value);
  if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
  if (status == DIST_OK) memcpy(out, tensor.data, sizeof *out);
  dist_value_release(value);
  return status;
}

static dist_status make_variables(training *t) {
  const char *const names[VARIABLES] = {"weight", "step"};
  const int32_t aggregations[VARIABLES] = {DIST_AGGREGATION_SUM, DIST_AGGREGATION_ONLY_FIRST_REPLICA};
  for (int v = 0; v < VARIABLES; ++v) {
    float zero = 0;
    const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.name = names[v];
    options.aggregation = aggregations[v];
    TRY(dist_variable_create(t->strategy, &initial, &options, &t->variables[v]));
  }
  return DIST_OK;
}

/* Loads from one path and saves to another, unless they are NULL. */
static dist_status train(training *t, const char *from, int steps, const char *to) {
  TRY(make_variables(t));
  if (from != NULL) TRY(dist_checkpoint_load(t->strategy, from, t->variables, VARIABLES, NULL));
  for (int i = 0; i < steps; ++i) {
    TRY(value_of(t, STEP, &t->step));
    t->step += 1;
    TRY(dist_run(t->strategy, take_step, t, NULL));
  }
  if (to != NULL) TRY(dist_checkpoint_save(t->strategy, to, t->variables, VARIABLES, NULL));
  float values[VARIABLES];
  for (int v = 0; v < VARIABLES; ++v) TRY(value_of(t, v, &values[v]));
  printf("weight %a after step %g\n", (double)values[WEIGHT], (double)values[STEP]);
  return DIST_OK;
}

static int run(const char *from, int steps, const char *to) {
  training t = {.step = 0};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_status status = dist_strategy_create(&options, &t.strategy);
  if (status == DIST_OK) status = train(&t, from, steps, to);
  const int code = say_how_it_went(status);
  for (int v = 0; v < VARIABLES; ++v) dist_variable_destroy(t.variables[v]);
  return dist_strategy_destroy(t.strategy) != DIST_OK ? 2 : code;
}

/* Saves until it fails. The last of three workers ends itself in the meantime. */
static int save_until_one_dies(const char *to, int worker) {
  training t = {.step = 0};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_status status = dist_strategy_create(&options, &t.strategy);
  if (status == DIST_OK) status = make_variables(&t);
  for (int i = 0; status == DIST_OK; ++i) {
    if (worker == 2 && i == 2) raise(SIGKILL);
    status = dist_checkpoint_save(t.strategy, to, t.variables, VARIABLES, NULL);
  }
  const int code = say_how_it_went(status);
  for (int v = 0; v < VARIABLES; ++v) dist_variable_destroy(t.variables[v]);
  return dist_strategy_destroy(t.strategy) != DIST_OK ? 2 : code;
}

/* ---- The processes ---- */

static int play(const char *part, int worker) {
  const char *const folder = getenv("CHECKPOINTS");
  char own[128];
  char first[128];
  snprintf(own, sizeof own, "%s/of-worker-%d", folder, worker);
  snprintf(first, sizeof first, "%s/of-worker-0", folder);
  if (strcmp(part, "dies") == 0) return save_until_one_dies(own, worker);
  const int resumes = strcmp(part, "resume") == 0;
  return run(resumes ? first : NULL, STEPS, resumes ? NULL : own);
}

/* Plays a part with this number of workers, and expects `words` from each. */
static void all_play(const char *part, int workers, const char *folder, const char *words) {
  char replicas[32];
  char checkpoints[96];
  snprintf(replicas, sizeof replicas, "DIST_REPLICAS=%d", REPLICAS / workers);
  snprintf(checkpoints, sizeof checkpoints, "CHECKPOINTS=%s", folder);
  const char *const environment[] = {replicas, checkpoints, NULL};
  job all = job_of(workers);
  start(&all, part, environment);
  for (int w = 0; w < workers; ++w) {
    ends_well(&all.processes[w]);
    if (strstr(all.processes[w].text, words) == NULL)
      fail_msg("worker %d of %d says: %s, and not: %s", w, workers, all.processes[w].text, words);
  }
}

/* The result of one process with all replicas: the sums are folded by replica. */
static void words_after(int steps, char *out, size_t size) {
  float weight = 0;
  for (int s = 1; s <= steps; ++s) {
    float sum = 0;
    for (int r = 0; r < REPLICAS; ++r) sum += (float)s / (float)(3 + r);
    weight += sum;
  }
  snprintf(out, size, "weight %a after step %d\n", (double)weight, steps);
}

static void worker_0_writes_and_any_layout_goes_on(void **state) {
  (void)state;
  char folder[] = "/tmp/dist-processes-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char half[64];
  char whole[64];
  words_after(STEPS, half, sizeof half);
  words_after(2 * STEPS, whole, sizeof whole);
  char paths[REPLICAS][64];
  for (int w = 0; w < REPLICAS; ++w) snprintf(paths[w], sizeof paths[w], "%s/of-worker-%d", folder, w);
  for (int workers = 2; workers <= REPLICAS; workers += 2) {
    all_play("train", workers, folder, half);
    assert_int_equal(access(paths[0], R_OK), 0);
    for (int w = 1; w < REPLICAS; ++w) assert_int_not_equal(access(paths[w], F_OK), 0);
    all_play("resume", 1, folder, whole);
    all_play("resume", 2, folder, whole);
    all_play("resume", 4, folder, whole);
    assert_int_equal(remove(paths[0]), 0);
  }
  assert_int_equal(remove(folder), 0); /* the folder is empty otherwise */
}

static void who_cannot_write_tells_the_others(void **state) {
  (void)state;
  const char *const environment[] = {"DIST_REPLICAS=1", "CHECKPOINTS=/nowhere/at/all", NULL};
  job all = job_of(2);
  start(&all, "train", environment);
  for (int w = 0; w < 2; ++w) {
    assert_int_equal(end_of(&all.processes[w]), 1);
    assert_has(all.processes[w].text, "by worker 0: ");
    assert_has(all.processes[w].text, "/nowhere/at/all/of-worker-0");
  }
}

static void a_save_names_the_worker_that_dies_in_it(void **state) {
  (void)state;
  char folder[] = "/tmp/dist-processes-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char checkpoints[96];
  snprintf(checkpoints, sizeof checkpoints, "CHECKPOINTS=%s", folder);
  const char *const environment[] = {"DIST_REPLICAS=1", checkpoints, NULL};
  job all = job_of(3);
  start(&all, "dies", environment);
  for (int w = 0; w < 2; ++w) {
    assert_int_equal(end_of(&all.processes[w]), 1);
    assert_has(all.processes[w].text, "by worker 2: ");
  }
  assert_int_equal(end_of(&all.processes[2]), 128 + SIGKILL);
  char path[64];
  snprintf(path, sizeof path, "%s/of-worker-0", folder);
  (void)remove(path);
  assert_int_equal(remove(folder), 0);
}

int main(int argc, char **argv) {
  if (argc == 3) return play(argv[1], (int)strtol(argv[2], NULL, 10));
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(worker_0_writes_and_any_layout_goes_on),
      cmocka_unit_test(who_cannot_write_tells_the_others),
      cmocka_unit_test(a_save_names_the_worker_that_dies_in_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
