// SPDX-License-Identifier: Apache-2.0
//
// The functions appear in the order in which a session calls them.
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"

static char said_by[48] = "train_digits";

int session_say(const char *what) {
  fprintf(stderr, "%s: %s: %s\n", said_by, what, dist_last_error());
  return EXIT_FAILURE;
}

// Checks that the replica of --fault exists among `all`.
static int check_fault(const session *s, int32_t all) {
  if (s->chosen.fault_step == 0 || s->chosen.fault_replica < all) return 0;
  fprintf(stderr, "train_digits: --fault names replica %d, but there are %d: 0 to %d\n",
          (int)s->chosen.fault_replica, (int)all, (int)all - 1);
  return EXIT_USAGE;
}

// Returns whether libdist takes the number of replicas from DIST_REPLICAS because no option sets it.
static int replicas_are_libdists(const session *s) {
  return s->place.is_there && !s->chosen.replicas_given && getenv("DIST_REPLICAS");
}

// Checks that the options agree with the job.
static int check_job(const session *s) {
  if (s->place.is_there && s->chosen.workers > 1) {
    fprintf(stderr,
            "train_digits: --workers plays workers in one process, but TF_CONFIG makes this one "
            "worker %d of %d: leave one of them out\n",
            (int)s->place.worker, (int)s->place.num_workers);
    return EXIT_USAGE;
  }
  if (s->place.num_workers > 1 && s->chosen.num_runs > 1) {
    fprintf(stderr, "train_digits: %d workers need one number of replicas, not a list\n",
            (int)s->place.num_workers);
    return EXIT_USAGE;
  }
  int status = 0;
  for (int32_t i = 0; i < s->chosen.num_runs && !status && !replicas_are_libdists(s); i++)
    status = check_fault(s, s->num_workers * s->chosen.replicas[i]);
  return status;
}

int session_find_job(session *s) {
  if (job_find(&s->place)) {
    session_say("TF_CONFIG");
    return EXIT_USAGE;
  }
  s->num_workers = s->place.is_there ? s->place.num_workers : s->chosen.workers;
  s->worker = s->place.worker;
  if (s->place.num_workers > 1) snprintf(said_by, sizeof said_by, "train_digits: worker %d", (int)s->worker);
  return check_job(s);
}

int session_is_stopping(const session *s) { return s->stopped || (s->num_workers == 1 && interrupt_came()); }

int session_load(session *s) {
  char error[CSV_MAX_ERROR_BYTES];
  if (csv_read(s->chosen.data, s->chosen.label, &s->table, error)) {
    fprintf(stderr, "%s\n", error);
    return EXIT_USAGE;
  }
  if (s->table.rows < DATA_MIN_ROWS) {
    fprintf(stderr, "%s: %d rows; at least %d were expected\n", s->chosen.data, (int)s->table.rows,
            DATA_MIN_ROWS);
    return EXIT_USAGE;
  }
  if (data_split(&s->table, s->chosen.seed, &s->train, &s->test)) {
    fprintf(stderr, "%s: no memory for %lld rows\n", s->chosen.data, (long long)s->table.rows);
    return EXIT_FAILURE;
  }
  const int64_t epoch_steps = (s->train.rows + DATA_BATCH_ROWS - 1) / DATA_BATCH_ROWS;
  const int64_t steps = s->chosen.epochs * epoch_steps;
  if (s->chosen.fault_step > steps) {
    fprintf(stderr, "train_digits: --fault names step %lld, but there are %lld\n",
            (long long)s->chosen.fault_step, (long long)steps);
    return EXIT_USAGE;
  }
  return 0;
}

// Describes the workers of this process as a cluster. Its addresses are placeholders that nothing listens on.
static dist_status make_resolver(const session *s, dist_cluster_resolver **out) {
  const int32_t n = s->num_workers;
  const char **addresses = calloc((size_t)n, sizeof *addresses);
  if (!addresses) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the cluster");
  for (int32_t w = 0; w < n; w++) addresses[w] = "localhost:1";
  const dist_cluster_job job = {.name = "worker", .addresses = addresses, .num_tasks = (size_t)n};
  dist_cluster_resolver_options how = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  how.task_type = "worker";
  how.has_task_id = 1;
  how.task_id = s->worker;
  dist_cluster_spec *spec = NULL;
  dist_status status = dist_cluster_spec_create(&job, 1, NULL, &spec);
  if (!status) status = dist_cluster_resolver_create_simple(spec, &how, out);
  dist_cluster_spec_destroy(spec);
  free(addresses);
  return status;
}

static dist_status make_strategy(session *s) {
  dist_strategy_options how = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  how.worker = &worker;
  how.num_replicas = s->replicas;
  if (s->place.is_there) {
    if (replicas_are_libdists(s)) how.num_replicas = 0;
    how.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    return dist_strategy_create(&how, &s->strategy);
  }
  if (s->num_workers == 1) return dist_strategy_create(&how, &s->strategy);
  dist_cluster_resolver *resolver = NULL;
  dist_status status = make_resolver(s, &resolver);
  how.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  worker.cluster_resolver = resolver;
  worker.network = s->network;
  if (!status) status = dist_strategy_create(&how, &s->strategy);
  dist_cluster_resolver_destroy(resolver);
  return status;
}

// A checksum of the table's bits.
static int64_t checksum(const csv_table *table) {
  uint64_t sum = 14695981039346656037U;
  for (int64_t i = 0; i < table->rows; i++) {
    for (int64_t j = 0; j < table->features; j++) {
      uint32_t bits;
      memcpy(&bits, &table->values[i * table->features + j], sizeof bits);
      sum = (sum ^ bits) * 1099511628211U;
    }
    sum = (sum ^ (uint32_t)table->labels[i]) * 1099511628211U;
  }
  return (int64_t)(sum >> 1);
}

// Worker processes may have been started with different options or data.
static dist_status compare_workers(const session *s) {
  const gather_setting settings[] = {{"--epochs", s->chosen.epochs},
                                     {"--numerics", s->chosen.numerics},
                                     {"--seed", (int64_t)s->chosen.seed},
                                     {"the number of its replicas", s->replicas},
                                     {"the replica of --fault", s->chosen.fault_replica},
                                     {"the step of --fault", s->chosen.fault_step},
                                     {"the rows of the data", s->table.rows},
                                     {"the features of the data", s->table.features},
                                     {"the classes of the data", s->table.classes},
                                     {"the checksum of the data", checksum(&s->table)}};
  return gather_compare(s->strategy, s->num_workers, settings, sizeof settings / sizeof *settings);
}

int session_prepare(session *s, int32_t replicas) {
  s->replicas = replicas;
  dist_strategy_properties found = DIST_STRATEGY_PROPERTIES_INIT;
  if (make_strategy(s) || dist_strategy_query(s->strategy, &found)) return session_say("strategy");
  s->replicas = found.num_local_replicas;
  s->first_replica = found.first_replica;
  const int32_t all = found.num_replicas;
  const int refused = s->one_core ? 0 : check_fault(s, all);
  if (refused) return refused;
  if (s->place.is_there && s->num_workers > 1 && compare_workers(s)) return session_say("start");
  const uint64_t seed = s->chosen.seed;
  const dist_numerics numerics = s->chosen.numerics;
  const data_order train_order = {numerics == DIST_NUMERICS_REPRODUCIBLE, 1, s->one_core, seed};
  const data_order test_order = {0, 0, s->one_core, seed};
  if (data_to_dataset(s->strategy, &s->train, s->table.features, train_order, &s->train_set) ||
      data_to_dataset(s->strategy, &s->test, s->table.features, test_order, &s->test_set))
    return session_say("dataset");
  if (trainer_create(s->strategy, s->first_replica, s->replicas, s->table.features, s->table.classes, seed,
                     numerics, &s->t))
    return session_say("model");
  s->t.fault_replica = s->chosen.fault_replica;
  s->t.fault_step = s->one_core ? 0 : s->chosen.fault_step;
  s->t.replicas[s->first_replica].net.one_core = s->one_core;
  s->t.predictions = s->predictions = calloc((size_t)s->table.rows, sizeof *s->predictions);
  s->epochs = calloc((size_t)s->chosen.epochs, sizeof *s->epochs);
  s->machines = calloc((size_t)s->num_workers, sizeof *s->machines);
  if (s->place.is_there) s->clocks = calloc((size_t)s->num_workers, sizeof *s->clocks);
  if (!s->epochs || !s->predictions || !s->machines || (s->place.is_there && !s->clocks)) {
    fputs("train_digits: no memory for the results\n", stderr);
    return EXIT_FAILURE;
  }
  if (s->place.is_there) interrupt_catch(1); /* all workers have met */
  s->shown = progress_create(s->chosen.epochs, all, s->one_core, s->train.rows);
  if (s->worker > 0) return 0;
  char parameters[PROGRESS_NUMBER_BYTES];
  printf(
      "%lld rows: %lld to train on, %lld held out; %lld features, %lld classes, %s parameters, %d "
      "replica%s%s%s\n",
      (long long)s->table.rows, (long long)s->train.rows, (long long)s->test.rows,
      (long long)s->table.features, (long long)s->table.classes,
      progress_thousands(model_num_parameters(&s->t.parameters), parameters), (int)all, all == 1 ? "" : "s",
      s->one_core ? " on one core" : "", numerics == DIST_NUMERICS_REPRODUCIBLE ? ", reproducible" : "");
  if (s->num_workers > 1)
    printf("%d workers of %d replicas each, %s\n", (int)s->num_workers, (int)s->replicas,
           s->place.is_there ? "a process each" : "in this process");
  fflush(stdout);
  return 0;
}

// Keeps libdist's report on the failed step. All replicas that waited in its all_reduce received the same
// report. A single replica has no such peer; its own error is kept.
static void keep_failure(session *s, dist_status status, const dist_error_info *info) {
  s->failed_status = status;
  s->failed_replica = info->replica;
  s->failed_step = s->t.step;
  snprintf(s->failure, sizeof s->failure, "%s", info->message);
  for (int32_t r = 0; r < s->t.num_replicas; r++) {
    const trainer_replica *peer = &s->t.replicas[r];
    if (!peer->told) continue;
    s->failed_status = peer->told;
    snprintf(s->failure, sizeof s->failure, "%s", peer->report);
    return;
  }
}

// Takes one step. If the step fails because of --fault, prints libdist's report and repeats the step.
static dist_status take_step(session *s, dist_value *batch, network_score *score) {
  s->t.step++;
  const dist_status status = trainer_step(&s->t, batch, score);
  if (!status || s->t.step != s->t.fault_step) return status;
  dist_error_info info = DIST_ERROR_INFO_INIT;
  if (dist_last_error_info(&info)) return status;
  keep_failure(s, status, &info);
  s->t.fault_step = 0;
  if (s->worker > 0) return trainer_step(&s->t, batch, score);
  progress_clear(&s->shown);
  printf("step %lld: replica %d failed%s %s: %s\n", (long long)s->t.step, (int)info.replica,
         s->t.num_replicas > 1 ? "; all others were told" : " with", dist_status_name(s->failed_status),
         s->failure);
  printf("training goes on from step %lld\n", (long long)s->t.step);
  return trainer_step(&s->t, batch, score);
}

static double mean_loss(network_score score, int64_t rows) {
  return (double)score.loss_sum / NETWORK_LOSS_UNITS / (double)rows;
}

static double accuracy(network_score score, int64_t rows) { return (double)score.correct / (double)rows; }

static double seconds_since(int64_t start_ns) { return (double)(trainer_now_ns() - start_ns) * 1e-9; }

static dist_status train_epoch(session *s, int32_t epoch, progress_state *state, report_epoch *out) {
  dist_iterator *iterator;
  dist_status status = dist_iterator_create(s->train_set, &iterator);
  if (status) return status;
  const int64_t start = trainer_now_ns();
  network_score score = {0, 0};
  *state = (progress_state){.epoch = epoch};
  dist_value *batch;
  while (!session_is_stopping(s) && !(status = dist_iterator_next(iterator, &batch)) && batch) {
    s->stopped = interrupt_came();
    status = trainer_open_batch(&s->t, batch, &s->stopped);
    if (!status && !s->stopped) status = take_step(s, batch, &score);
    dist_value_release(batch);
    if (status || s->stopped) break;
    state->rows += s->t.batch_rows;
    state->loss = mean_loss(score, state->rows);
    state->examples_per_second = (double)state->rows / seconds_since(start);
    if (s->worker == 0) progress_step(&s->shown, state, trainer_now_ns());
  }
  dist_iterator_destroy(iterator);
  out->train_loss = state->loss;
  out->train_accuracy = state->rows > 0 ? accuracy(score, state->rows) : 0.0;
  out->seconds = seconds_since(start);
  return status;
}

static dist_status test_epoch(session *s, report_epoch *out) {
  network_score score = {0, 0};
  const dist_status status = trainer_evaluate(&s->t, s->test_set, &score);
  out->test_loss = mean_loss(score, s->test.rows);
  out->test_accuracy = accuracy(score, s->test.rows);
  if (!status) s->test_accuracy = out->test_accuracy;
  return status;
}

int session_train(session *s) {
  int64_t *machine = s->machines[s->worker].numbers;
  machine_read(machine);
  for (int32_t i = 0; i < s->chosen.epochs && !session_is_stopping(s); i++) {
    progress_state state;
    report_epoch epoch;
    if (train_epoch(s, i + 1, &state, &epoch)) return session_say("training");
    const int finished = !session_is_stopping(s);
    if (test_epoch(s, &epoch)) return session_say("test");
    if (!finished) break;
    s->epochs[s->num_epochs++] = epoch;
    if (s->worker == 0) progress_epoch(&s->shown, &state, epoch.test_accuracy);
  }
  machine_since(machine);
  if (s->num_epochs > 0 && s->worker == 0) {
    const report_speed speed = report_speed_of(s->epochs, s->num_epochs, s->train.rows);
    char training[PROGRESS_NUMBER_BYTES], median[PROGRESS_NUMBER_BYTES], best[PROGRESS_NUMBER_BYTES];
    progress_clear(&s->shown);
    printf("examples/s: %s in the whole training, %s in the median epoch, %s in the best\n",
           progress_thousands((int64_t)speed.training, training),
           progress_thousands((int64_t)speed.median_epoch, median),
           progress_thousands((int64_t)speed.best_epoch, best));
  }
  if (session_is_stopping(s) && s->worker == 0) {
    progress_clear(&s->shown);
    printf("interrupted after step %lld\n", (long long)s->t.step);
  }
  return gather_results(&s->t, s->table.rows, s->clocks, s->machines) ? session_say("results") : 0;
}

void session_end_run(session *s) {
  free(s->epochs);
  free(s->predictions);
  free(s->clocks);
  free(s->machines);
  trainer_destroy(&s->t);
  dist_dataset_destroy(s->train_set);
  dist_dataset_destroy(s->test_set);
  if (dist_strategy_destroy(s->strategy)) session_say("end");
  *s = (session){.chosen = s->chosen,
                 .place = s->place,
                 .num_workers = s->num_workers,
                 .worker = s->worker,
                 .table = s->table,
                 .train = s->train,
                 .test = s->test};
}

void session_end(session *s) {
  session_end_run(s);
  data_free(&s->train);
  data_free(&s->test);
  csv_free(&s->table);
}
