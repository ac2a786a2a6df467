/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous training with parameter servers. Workers read the parameters, compute gradients on a batch of
 * handwritten digits and push updates, each at its own pace. You can kill, restart or suspend workers: each
 * update is applied exactly once. If a parameter server is lost, the coordinator exits; when you start it
 * again, it resumes from its checkpoint.
 *
 *     dist-launch --ps 2 --workers 3 --restarts 5 -- parameter_server examples/data/digits.csv /tmp/ps.ckpt
 *     2000 /tmp
 *
 * Each task that exits normally writes a trace to the folder given last: /tmp/chief-0.json, /tmp/ps-1.json
 * and so on.
 */
#include <dist/dist.h>
#include <dist/experimental/coordinator.h>
#include <dist/experimental/server.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEATURES = 64, CLASSES = 10, MOST_ROWS = 4096, BATCH = 32, SAVE_EVERY = 250, IN_FLIGHT = 256 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

/* ---- Data: every fifth row is held out ---- */

static float features[MOST_ROWS][FEATURES];
static int labels[MOST_ROWS], rows;

static int load(const char *path) {
  FILE *file = fopen(path, "r");
  char line[1024];
  if (file == NULL) return -1;
  while (rows < MOST_ROWS && fgets(line, sizeof line, file) != NULL) {
    char *at = line;
    for (int i = 0; i < FEATURES; ++i, at += *at == ',') features[rows][i] = strtof(at, &at) / 16;
    labels[rows] = (int)strtol(at, &at, 10);
    if (labels[rows] >= 0 && labels[rows] < CLASSES) ++rows;
  }
  fclose(file);
  return rows > 0 ? 0 : -1;
}

/* Computes the model's class probabilities for a row. */
static void predict(const float *weights, const float *biases, const float *row, float *out) {
  float most = -INFINITY, sum = 0;
  for (int c = 0; c < CLASSES; ++c) {
    out[c] = biases[c];
    for (int i = 0; i < FEATURES; ++i) out[c] += row[i] * weights[i * CLASSES + c];
    if (out[c] > most) most = out[c];
  }
  for (int c = 0; c < CLASSES; ++c) sum += out[c] = expf(out[c] - most);
  for (int c = 0; c < CLASSES; ++c) out[c] /= sum;
}

/* ---- Workers ---- */

static const char *const kNames[] = {"weights", "biases"};
static const int64_t kShapes[2][2] = {{FEATURES, CLASSES}, {CLASSES}};

static dist_status push(dist_closure *closure, int variable, float *change) {
  const dist_tensor tensor = {change, DIST_F32, variable == 0 ? 2 : 1, kShapes[variable], NULL};
  dist_value *value = NULL;
  TRY(dist_value_create_tensor(dist_get_strategy(), &tensor, &value));
  const dist_status status = dist_closure_assign(closure, kNames[variable], DIST_ASSIGN_SUB, value);
  dist_value_release(value);
  return status;
}

/* Computes and pushes the update for one batch. The batch depends only on the closure's number, so a retry on
   another worker does the same. */
static dist_status learn(dist_closure *closure, const float *weights, const float *biases) {
  const float rate = 0.5F / BATCH;
  float by_weights[FEATURES * CLASSES] = {0}, by_biases[CLASSES] = {0}, p[CLASSES];
  for (int k = 0; k < BATCH; ++k) {
    int row = (int)((dist_closure_id(closure) * BATCH + k) * 7919 % rows);
    if (row % 5 == 0) row = (row + 1) % rows;
    predict(weights, biases, features[row], p);
    p[labels[row]] -= 1;
    for (int c = 0; c < CLASSES; ++c) {
      by_biases[c] += rate * p[c];
      for (int i = 0; i < FEATURES; ++i) by_weights[i * CLASSES + c] += rate * p[c] * features[row][i];
    }
  }
  TRY(push(closure, 0, by_weights));
  TRY(push(closure, 1, by_biases));
  const int64_t one = 1;
  const dist_tensor tensor = {(void *)&one, DIST_I64, 0, NULL, NULL};
  dist_value *value = NULL;
  TRY(dist_value_create_tensor(dist_get_strategy(), &tensor, &value));
  const dist_status status = dist_closure_assign(closure, "updates", DIST_ASSIGN_ADD, value);
  dist_value_release(value);
  return status;
}

static const float *floats_of(dist_value *value) {
  dist_tensor tensor = {0};
  return dist_value_tensor(value, &tensor) == DIST_OK ? tensor.data : NULL;
}

static dist_status train(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  dist_value *now[2] = {NULL, NULL};
  TRY(dist_closure_read(closure, kNames, 2, now));
  const dist_status status = learn(closure, floats_of(now[0]), floats_of(now[1]));
  dist_value_release(now[0]);
  dist_value_release(now[1]);
  return status;
}

/* ---- Trace files ---- */

static FILE *trace_file(const char *folder, const char *job, int32_t index) {
  char path[4096];
  if (folder == NULL) return NULL;
  snprintf(path, sizeof path, "%s/%s-%d.json", folder, job, (int)index);
  FILE *file = fopen(path, "w");
  if (file == NULL) perror(path);
  return file;
}

static void write_text(const char *text, size_t bytes, void *file) { fwrite(text, 1, bytes, file); }

static void end_trace(FILE *file, dist_status status) {
  if (status != DIST_OK) fprintf(stderr, "no trace: %s\n", dist_last_error());
  fclose(file);
}

/* ---- A parameter server, or a worker ---- */

static dist_status serve(FILE *trace) {
  dist_server *server = NULL;
  TRY(dist_server_create(NULL, NULL, DIST_TASK_UNSET, NULL, &server)); /* the task from TF_CONFIG */
  dist_status status = dist_server_register(server, "train", train, NULL, NULL);
  if (status == DIST_OK) status = dist_server_start(server);
  if (status == DIST_OK) {
    printf("serves, process %d\n", (int)getpid());
    fflush(stdout);
    status = dist_server_join(server, -1, NULL);
  }
  if (trace != NULL) end_trace(trace, dist_server_write_trace(server, write_text, trace));
  const dist_status ended = dist_server_destroy(server);
  return status != DIST_OK ? status : ended;
}

/* ---- The coordinator ---- */

static dist_status create_variables(dist_coordinator *coordinator) {
  static float zeros[FEATURES * CLASSES];
  int64_t none = 0;
  for (int v = 0; v < 2; ++v) {
    const dist_tensor tensor = {zeros, DIST_F32, v == 0 ? 2 : 1, kShapes[v], NULL};
    TRY(dist_coordinator_create_variable(coordinator, kNames[v], &tensor, NULL));
  }
  const dist_tensor tensor = {&none, DIST_I64, 0, NULL, NULL};
  return dist_coordinator_create_variable(coordinator, "updates", &tensor, NULL);
}

static dist_status report(dist_coordinator *coordinator) {
  const char *names[] = {kNames[0], kNames[1], "updates"};
  dist_value *now[3] = {NULL, NULL, NULL};
  dist_tensor updates;
  TRY(dist_coordinator_read(coordinator, names, 3, now));
  TRY(dist_value_tensor(now[2], &updates));
  int right = 0, all = 0;
  float p[CLASSES];
  for (int row = 0; row < rows; row += 5, ++all) {
    int best = 0;
    predict(floats_of(now[0]), floats_of(now[1]), features[row], p);
    for (int c = 1; c < CLASSES; ++c) best = p[c] > p[best] ? c : best;
    right += best == labels[row];
  }
  dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
  TRY(dist_coordinator_query(coordinator, &stats));
  printf("%lld updates, accuracy %.3f; closures came back from workers %lld times\n",
         (long long)*(const int64_t *)updates.data, (double)right / all, (long long)stats.losses);
  fflush(stdout);
  for (int i = 0; i < 3; ++i) dist_value_release(now[i]);
  return DIST_OK;
}

static dist_status coordinate(dist_coordinator *coordinator, const char *checkpoint, int64_t steps) {
  int64_t step = 0;
  TRY(create_variables(coordinator));
  if (access(checkpoint, R_OK) == 0) {
    TRY(dist_coordinator_restore(coordinator, checkpoint, &step));
    printf("goes on from closure %lld of %s\n", (long long)step, checkpoint);
    fflush(stdout);
  }
  for (; step < steps; ++step) {
    /* Bound the number of queued closures, and save a checkpoint from time to time while closures run. */
    dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
    TRY(dist_coordinator_query(coordinator, &stats));
    if (stats.queued > IN_FLIGHT) TRY(dist_coordinator_join(coordinator, -1, NULL));
    if (step % SAVE_EVERY == SAVE_EVERY - 1) TRY(dist_coordinator_save(coordinator, checkpoint));
    TRY(dist_coordinator_schedule(coordinator, "train", NULL, NULL, NULL));
  }
  TRY(dist_coordinator_join(coordinator, -1, NULL));
  TRY(dist_coordinator_save(coordinator, checkpoint));
  return report(coordinator);
}

static dist_status be_chief(const char *checkpoint, int64_t steps, FILE *trace) {
  dist_strategy *strategy = NULL;
  dist_coordinator *coordinator = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  TRY(dist_strategy_create(&options, &strategy));
  dist_status status = dist_coordinator_create(strategy, NULL, &coordinator);
  if (status == DIST_OK) status = coordinate(coordinator, checkpoint, steps);
  if (status != DIST_OK) fprintf(stderr, "%s: %s\n", dist_status_name(status), dist_last_error());
  if (trace != NULL) end_trace(trace, dist_coordinator_write_trace(coordinator, write_text, trace));
  dist_coordinator_destroy(coordinator); /* also shuts the servers down */
  const dist_status ended = dist_strategy_destroy(strategy);
  return status != DIST_OK ? status : ended;
}

int main(int argc, char **argv) {
  if (argc < 3 || load(argv[1]) != 0) {
    fprintf(stderr, "usage: %s DIGITS.csv CHECKPOINT [STEPS [FOLDER]]\n", argv[0]);
    return 2;
  }
  const int64_t steps = argc > 3 ? strtoll(argv[3], NULL, 10) : 1000;
  dist_cluster_resolver *resolver = NULL;
  char job[DIST_MAX_ADDRESS_BYTES];
  int32_t index = 0, is_set = 0;
  dist_status status = dist_cluster_resolver_create_tf_config(NULL, &resolver);
  if (status == DIST_OK) status = dist_cluster_resolver_task_type(resolver, job, sizeof job, &is_set);
  if (status == DIST_OK) status = dist_cluster_resolver_task_id(resolver, &index);
  dist_cluster_resolver_destroy(resolver);
  FILE *trace = status == DIST_OK ? trace_file(argc > 4 ? argv[4] : NULL, job, index) : NULL;
  if (status == DIST_OK && strcmp(job, "chief") == 0)
    status = be_chief(argv[2], steps, trace);
  else if (status == DIST_OK)
    status = serve(trace);
  if (status != DIST_OK) fprintf(stderr, "%s: %s\n", dist_status_name(status), dist_last_error());
  return status == DIST_OK ? 0 : 1;
}
