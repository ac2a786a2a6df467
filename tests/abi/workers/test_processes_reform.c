/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker processes continue without workers that die and with workers that restart. Training that is killed
 * at random times ends with the same bits as uninterrupted training.
 */
#include "../processes_support.h"

enum { ELEMENTS = 48, MICRO_BATCHES = 12, STEPS_OF_ROUND = 4, ROUNDS = 20, WORKERS = 3 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

/* ---- A worker: fixed micro-batches, divided among the replicas that exist ---- */

typedef struct training {
  dist_strategy *strategy;
  dist_variable *weights;
  dist_variable *step;
  float now;          /* the next step */
  float at[ELEMENTS]; /* the weights before that step */
} training;

enum { WEIGHTS = 0, STEP = 1 };

static dist_status take_step(dist_replica *replica, void *user_data) {
  const training *t = user_data;
  const int32_t replicas = dist_replica_num_replicas(replica);
  const int32_t me = dist_replica_id(replica);
  float parts[MICRO_BATCHES][ELEMENTS];
  float next[ELEMENTS];
  const int64_t shape[] = {ELEMENTS};
  dist_tensor in[MICRO_BATCHES];
  size_t mine = 0;
  for (int m = MICRO_BATCHES * me / replicas; m < MICRO_BATCHES * (me + 1) / replicas; ++m) {
    for (int i = 0; i < ELEMENTS; ++i) {
      parts[mine][i] = (t->at[i] + (float)(m + 1)) / (float)(3 + i + 7 * m) / (1 + t->now);
    }
    in[mine] = (dist_tensor){parts[mine], DIST_F32, 1, shape, NULL};
    ++mine;
  }
  dist_tensor sum = {next, DIST_F32, 1, shape, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.contributions = mine;
  options.numerics = DIST_NUMERICS_REPRODUCIBLE;
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, in, &sum, 1, &options, NULL));
  for (int i = 0; i < ELEMENTS; ++i) next[i] = t->at[i] - 0.25F * next[i];
  TRY(dist_replica_assign(replica, t->weights, DIST_ASSIGN, &sum, NULL));
  float done = t->now + 1;
  const dist_tensor of_step = {&done, DIST_F32, 0, NULL, NULL};
  return dist_replica_assign(replica, t->step, DIST_ASSIGN, &of_step, NULL);
}

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_barrier(replica, NULL, NULL);
}

static dist_status make_variable(training *t, const char *name, const dist_tensor *initial,
                                 dist_variable **out) {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = name;
  options.aggregation = DIST_AGGREGATION_ONLY_FIRST_REPLICA;
  return dist_variable_create(t->strategy, initial, &options, out);
}

static dist_status read_into(const training *t, dist_variable *variable, void *out, size_t bytes) {
  dist_value *value = NULL;
  dist_tensor tensor;
  dist_status status = dist_variable_read(t->strategy, variable, &value);
  if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
  if (status == DIST_OK) memcpy(out, tensor.data, bytes);
  dist_value_release(value);
  return status;
}

static dist_status properties_of(const training *t, dist_strategy_properties *out) {
  *out = (dist_strategy_properties)DIST_STRATEGY_PROPERTIES_INIT;
  return dist_strategy_query(t->strategy, out);
}

/* Makes steps until `end`. Returns DIST_ABORTED if the workers should re-form first. With `all`, also
 * continues until all workers take part. */
static dist_status steps_until(training *t, float end, const char *checkpoint, int all) {
  dist_variable *variables[] = {t->weights, t->step};
  for (;;) {
    dist_strategy_properties is;
    TRY(properties_of(t, &is));
    TRY(read_into(t, t->weights, t->at, sizeof t->at));
    TRY(read_into(t, t->step, &t->now, sizeof t->now));
    const int waits = all && is.num_workers < WORKERS;
    if (t->now >= end && !waits) return DIST_OK;
    if (t->now < end) {
      TRY(dist_run(t->strategy, take_step, t, NULL));
      TRY(dist_checkpoint_save(t->strategy, checkpoint, variables, 2, NULL));
    } else {
      TRY(dist_run(t->strategy, nothing, NULL, NULL));
    }
    int32_t due = 0;
    TRY(dist_strategy_reform_due(t->strategy, &due));
    if (due) return dist_fail(DIST_ABORTED, "workers come or have gone");
  }
}

static uint64_t digest_of(const training *t) {
  uint64_t digest = 14695981039346656037U;
  const unsigned char *at = (const unsigned char *)t->at;
  for (size_t i = 0; i < sizeof t->at; ++i) digest = (digest ^ at[i]) * 1099511628211U;
  return digest;
}

/* Worker 0 advances from round to round on request. The others learn its progress by a collective. */
static int32_t rounds_allowed;
static int32_t rounds_done;

static dist_status find_round(dist_replica *replica, void *user_data) {
  int32_t round = rounds_allowed;
  dist_tensor tensor = {&round, DIST_I32, 0, NULL, NULL};
  TRY(dist_all_reduce(replica, DIST_REDUCE_MAX, &tensor, &tensor, 1, NULL, NULL));
  /* All replicas of a worker write the same value. */
  __atomic_store_n((int32_t *)user_data, round, __ATOMIC_RELAXED);
  return DIST_OK;
}

static void await_word(void) {
  char word;
  if (read(STDIN_FILENO, &word, 1) != 1) _exit(3);
  ++rounds_allowed;
}

static dist_status train(training *t, int worker, const char *checkpoint) {
  float zeros[ELEMENTS] = {0};
  float zero = 0;
  const int64_t shape[] = {ELEMENTS};
  const dist_tensor of_weights = {zeros, DIST_F32, 1, shape, NULL};
  const dist_tensor of_step = {&zero, DIST_F32, 0, NULL, NULL};
  TRY(make_variable(t, "weights", &of_weights, &t->weights));
  TRY(make_variable(t, "step", &of_step, &t->step));
  dist_variable *variables[] = {t->weights, t->step};
  if (access(checkpoint, R_OK) == 0) TRY(dist_checkpoint_load(t->strategy, checkpoint, variables, 2, NULL));
  for (;;) {
    int32_t round = 0;
    if (worker == 0 && rounds_done == rounds_allowed) await_word();
    TRY(dist_run(t->strategy, find_round, &round, NULL));
    TRY(steps_until(t, (float)(round * STEPS_OF_ROUND), checkpoint, 1));
    if (worker == 0) {
      rounds_done = round;
      printf("round %d done\n", round);
      fflush(stdout);
    }
    if (round > ROUNDS) {
      printf("weights %016llx\n", (unsigned long long)digest_of(t));
      return DIST_OK;
    }
  }
}

static int play_training(int worker) {
  training t = {.strategy = NULL};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_status status = dist_strategy_create(&options, &t.strategy);
  while (status == DIST_OK) {
    status = train(&t, worker, getenv("CHECKPOINT"));
    dist_variable_destroy(t.weights);
    dist_variable_destroy(t.step);
    t.weights = t.step = NULL;
    if (status == DIST_OK || (status != DIST_UNAVAILABLE && status != DIST_ABORTED)) break;
    status = dist_strategy_reform(t.strategy, NULL);
    dist_strategy_properties is;
    if (status == DIST_OK && properties_of(&t, &is) == DIST_OK && worker == 0) {
      printf("%d: %d-%d+%d\n", is.generation, is.num_workers, is.num_left, is.num_joined);
      fflush(stdout);
    }
  }
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(t.strategy) != DIST_OK ? 2 : code;
}

/* ---- The processes ---- */

static uint64_t seed;

static unsigned below(unsigned n) {
  seed = seed * 6364136223846793005U + 1442695040888963407U;
  return (unsigned)(seed >> 33) % n;
}

static void end_and_show(job *all) {
  for (int w = 0; w < all->n; ++w) {
    process *p = &all->processes[w];
    kill(p->pid, SIGKILL);
    (void)end_of(p);
    printf("# worker %d ended with %#x, and had said: %s\n", w, (unsigned)p->status, p->text);
  }
}

/* Trains, and kills a worker other than worker 0 `kills` times. Returns the digest of the weights that all
 * workers print. */
static void train_and_kill(const char *folder, int kills, char *out_digest, size_t size) {
  char checkpoint[128];
  snprintf(checkpoint, sizeof checkpoint, "CHECKPOINT=%s/of-%d-kills", folder, kills);
  const char *const environment[] = {"DIST_REPLICAS=2", checkpoint, NULL};
  job all = job_of(WORKERS);
  start(&all, "train", environment);
  for (int round = 1; round <= ROUNDS + 1; ++round) {
    tell(&all.processes[0]);
    for (int k = 0; round <= kills && (k == 0 || below(4) == 0); ++k) {
      process *victim = &all.processes[1 + below(WORKERS - 1)];
      poll(NULL, 0, (int)below(30));
      kill(victim->pid, SIGKILL);
      assert_int_equal(end_of(victim), 128 + SIGKILL);
      start_as(&all, (int)(victim - all.processes), (int)(victim - all.processes), "train", environment);
    }
    char words[32];
    snprintf(words, sizeof words, "round %d done\n", round);
    if (has_said(&all.processes[0], words)) continue;
    end_and_show(&all);
    fail_msg("not %s", words);
  }
  for (int w = 0; w < WORKERS; ++w) ends_well(&all.processes[w]);
  const char *const digest = strstr(all.processes[0].text, "weights ");
  assert_non_null(digest);
  snprintf(out_digest, size, "%.24s", digest);
  for (int w = 1; w < WORKERS; ++w) {
    if (strstr(all.processes[w].text, out_digest) == NULL)
      fail_msg("%s has no %s", all.processes[w].text, out_digest);
  }
}

static void training_that_is_killed_has_the_bits_of_one_that_is_not(void **state) {
  (void)state;
  seed = (uint64_t)time(NULL);
  if (getenv("DIST_TEST_SEED") != NULL) seed = strtoull(getenv("DIST_TEST_SEED"), NULL, 10);
  printf("# DIST_TEST_SEED=%llu\n", (unsigned long long)seed);
  char folder[] = "/tmp/dist-reform-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char calm[32];
  char killed[32];
  train_and_kill(folder, 0, calm, sizeof calm);
  train_and_kill(folder, ROUNDS, killed, sizeof killed);
  assert_string_equal(killed, calm);
  char path[128];
  for (int kills = 0; kills <= ROUNDS; kills += ROUNDS) {
    snprintf(path, sizeof path, "%s/of-%d-kills", folder, kills);
    unlink(path);
  }
  rmdir(folder);
}

/* ---- Datasets ---- */

enum { ROWS = 24 };

static dist_status begin_pass(dist_strategy *strategy, dist_iterator **out) {
  int32_t numbers[ROWS] = {0};
  const int64_t shape[] = {ROWS};
  const dist_tensor rows = {numbers, DIST_I32, 1, shape, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = ROWS / 2;
  dist_dataset *dataset = NULL;
  dist_status status = dist_dataset_create_from_tensors(strategy, &rows, 1, &options, &dataset);
  if (status == DIST_OK) status = dist_iterator_create(dataset, out);
  dist_dataset_destroy(dataset); /* the iterator keeps it */
  return status;
}

/* Counts this worker's rows of a step. */
static dist_status take_batch(dist_iterator *iterator, int64_t *rows, int *over) {
  dist_value *batch = NULL;
  TRY(dist_iterator_next(iterator, &batch));
  *over = batch == NULL;
  dist_status status = DIST_OK;
  for (size_t r = 0; r < dist_value_size(batch) && status == DIST_OK; ++r) {
    dist_tensor part;
    status = dist_value_tensor(dist_value_item(batch, r), &part);
    if (status == DIST_OK) *rows += part.shape[0];
  }
  dist_value_release(batch);
  return status;
}

/* The current workers of the strategy divide a new dataset. */
static dist_status say_rows(dist_strategy *strategy) {
  int64_t rows = 0;
  dist_iterator *iterator = NULL;
  dist_status status = begin_pass(strategy, &iterator);
  for (int over = 0; status == DIST_OK && !over;) status = take_batch(iterator, &rows, &over);
  dist_iterator_destroy(iterator);
  if (status != DIST_OK) return status;
  printf("%d of %d rows\n", (int)rows, ROWS);
  return DIST_OK;
}

/* ---- Workers that continue, and workers that do not ---- */

/* Waits for a word, then runs until a run fails, re-forms once, and runs once more. */
static int play_one(const char *part) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &options_worker;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  if (strcmp(part, "by itself") == 0) options_worker.reform = DIST_REFORM_AT_NEXT_RUN;
  training t = {.strategy = NULL};
  dist_strategy_properties is;
  if (dist_strategy_create(&options, &t.strategy) != DIST_OK) return say_how_it_went(DIST_INTERNAL);
  dist_iterator *pass = NULL; /* begun before a worker dies */
  int64_t rows = 0;
  dist_status status = say_rows(t.strategy);
  if (status == DIST_OK) status = begin_pass(t.strategy, &pass);
  int over = 0;
  if (status == DIST_OK) status = take_batch(pass, &rows, &over);
  if (status == DIST_OK) status = dist_run(t.strategy, nothing, NULL, NULL);
  printf("first run %s\n", dist_status_name(status));
  fflush(stdout);
  const int by_itself = options_worker.reform == DIST_REFORM_AT_NEXT_RUN;
  for (is.generation = 0; status == DIST_OK || (by_itself && is.generation == 0);) {
    status = dist_run(t.strategy, nothing, NULL, NULL);
    if (properties_of(&t, &is) != DIST_OK) return 3;
    if (is.generation > 0 && status == DIST_OK) break;
  }
  if (!by_itself) {
    dist_reform_options how = DIST_REFORM_OPTIONS_INIT;
    how.min_workers = strcmp(part, "all or nobody") == 0 ? WORKERS : 0;
    how.timeout_ns = how.min_workers == 0 ? 0 : 500000000;
    status = dist_strategy_reform(t.strategy, &how);
    how.min_workers = WORKERS - 1;
    how.timeout_ns = 0;
    if (status == DIST_DEADLINE_EXCEEDED) {
      /* The remaining workers report why, and may try again. */
      if (dist_run(t.strategy, nothing, NULL, NULL) != DIST_UNAVAILABLE) return 3;
      printf("then %s\n", dist_last_error());
      int32_t due = 0;
      if (dist_strategy_reform_due(t.strategy, &due) != DIST_OK || due != 1) return 3;
      status = dist_strategy_reform(t.strategy, &how);
    }
    /* A peer whose deadline expired while the group formed has left it, and re-forms again. */
    while (status == DIST_OK && (status = dist_run(t.strategy, nothing, NULL, NULL)) == DIST_UNAVAILABLE)
      status = dist_strategy_reform(t.strategy, &how);
  } else {
    status = dist_run(t.strategy, nothing, NULL, NULL);
  }
  if (status == DIST_OK && properties_of(&t, &is) == DIST_OK) {
    printf("worker %d of %d, replicas %d to %d of %d, generation %d, %d joined, %d left\n", is.worker,
           is.num_workers, is.first_replica, is.first_replica + is.num_local_replicas - 1, is.num_replicas,
           is.generation, is.num_joined, is.num_left);
    if (take_batch(pass, &rows, &over) != DIST_FAILED_PRECONDITION) return 3;
    printf("of a pass begun before: %s\n", dist_last_error());
    status = say_rows(t.strategy);
    fflush(stdout);
  }
  dist_iterator_destroy(pass);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(t.strategy) != DIST_OK ? 2 : code;
}

/* Runs, and re-forms until all workers take part again. */
static int play_until_all(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  training t = {.strategy = NULL};
  dist_status status = dist_strategy_create(&options, &t.strategy);
  dist_strategy_properties is = DIST_STRATEGY_PROPERTIES_INIT;
  for (int said = 0; status == DIST_OK;) {
    status = dist_run(t.strategy, nothing, NULL, NULL);
    if (status == DIST_OK && said++ == 0) printf("first run OK\n"), fflush(stdout);
    int32_t due = status != DIST_OK;
    if (status == DIST_OK) status = dist_strategy_reform_due(t.strategy, &due);
    if (status == DIST_OK && properties_of(&t, &is) == DIST_OK && is.generation > 0 &&
        is.num_workers == WORKERS)
      break;
    if (!due) continue;
    status = dist_strategy_reform(t.strategy, NULL);
    if (status == DIST_OK && properties_of(&t, &is) == DIST_OK)
      printf("%d workers\n", is.num_workers), fflush(stdout);
  }
  if (status == DIST_OK) printf("all 3 again\n");
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(t.strategy) != DIST_OK ? 2 : code;
}

static const char *const two_replicas[] = {"DIST_REPLICAS=2", NULL};
static const char *const short_lease[] = {"DIST_REPLICAS=2", "DIST_LEASE_SECONDS=1", NULL};

static void start_and_kill(job *all, const char *part, const char *const *environment, int victim,
                           int signal_number) {
  *all = job_of(WORKERS);
  start(all, part, environment);
  for (int w = 0; w < WORKERS; ++w) {
    if (!has_said(&all->processes[w], "first run OK")) fail_msg("worker %d: %s", w, all->processes[w].text);
  }
  kill(all->processes[victim].pid, signal_number);
}

static void says(job *all, int worker, const char *words) {
  if (has_said(&all->processes[worker], words)) return;
  end_and_show(all);
  fail_msg("worker %d does not say: %s", worker, words);
}

static void survivors_are_numbered_anew(void **state) {
  (void)state;
  for (int itself = 0; itself < 2; ++itself) {
    job all;
    start_and_kill(&all, itself ? "by itself" : "explicit", two_replicas, 1, SIGKILL);
    says(&all, 0, "worker 0 of 2, replicas 0 to 1 of 4, generation 1, 0 joined, 1 left");
    says(&all, 2, "worker 2 of 2, replicas 2 to 3 of 4, generation 1, 0 joined, 1 left");
    for (int w = 0; w < WORKERS; w += 2) {
      says(&all, w, "8 of 24 rows");
      says(&all, w, "the strategy of the dataset has shut down or re-formed its workers");
      says(&all, w, "12 of 24 rows");
      says(&all, w, "went well");
    }
    assert_int_equal(end_of(&all.processes[1]), 128 + SIGKILL);
  }
}

static void a_lost_leader_ends_the_job(void **state) {
  (void)state;
  job all;
  start_and_kill(&all, "explicit", short_lease, 0, SIGKILL);
  says(&all, 1, "worker 0, which forms the group of workers, is lost (");
  says(&all, 2, "worker 0, which forms the group of workers, is lost (");
  assert_int_equal(end_of(&all.processes[0]), 128 + SIGKILL);
}

static void too_few_wait_for_more(void **state) {
  (void)state;
  job all;
  start_and_kill(&all, "all or nobody", short_lease, 2, SIGKILL);
  says(&all, 0, " of at least 3 workers have arrived");
  says(&all, 0, "worker 0 of 2");
  says(&all, 1, "worker 1 of 2, replicas 2 to 3 of 4, generation ");
  assert_int_equal(end_of(&all.processes[2]), 128 + SIGKILL);
}

/* It finds that the others have declared it lost, and joins them again. */
static void who_stood_still_joins_again(void **state) {
  (void)state;
  job all;
  start_and_kill(&all, "until all", short_lease, 1, SIGSTOP);
  if (!has_said(&all.processes[0], "2 workers")) fail_msg("%s", all.processes[0].text);
  kill(all.processes[1].pid, SIGCONT);
  for (int w = 0; w < WORKERS; ++w) says(&all, w, "all 3 again");
}

int main(int argc, char **argv) {
  if (argc == 3) {
    if (strcmp(argv[1], "until all") == 0) return play_until_all();
    if (strcmp(argv[1], "train") == 0) return play_training((int)strtol(argv[2], NULL, 10));
    return play_one(argv[1]);
  }
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(training_that_is_killed_has_the_bits_of_one_that_is_not),
      cmocka_unit_test(survivors_are_numbered_anew),
      cmocka_unit_test(a_lost_leader_ends_the_job),
      cmocka_unit_test(too_few_wait_for_more),
      cmocka_unit_test(who_stood_still_joins_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
