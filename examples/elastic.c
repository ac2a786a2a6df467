/* SPDX-License-Identifier: Apache-2.0
 *
 * Training that survives killed workers and takes them back when they restart. Each step sums the gradients
 * of 12 micro-batches in exact arithmetic, so the weights do not depend on which worker computes which
 * micro-batch: they are the same to the last bit, whichever workers fail.
 *
 *     dist-launch -n 3 --replicas 2 --restarts 5 -- build/examples/elastic /tmp/elastic.ckpt
 *     kill -9 ...        in another terminal, at any time: any process except worker 0
 */
#include <dist/dist.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MICRO_BATCHES = 12, ROWS = 64, WEIGHTS = 8, VARIABLES = 2 };

typedef struct training {
  dist_strategy *strategy;
  dist_variable *variables[VARIABLES]; /* the weights, and the number of completed steps */
  double weights[WEIGHTS];             /* before the current step */
  double step;
} training;

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

/* The gradient of micro-batch m: that of the squared error over its rows. */
static void add_gradient(const training *t, int m, double *out) {
  for (int w = 0; w < WEIGHTS; ++w) out[w] = 0;
  for (int row = 0; row < ROWS; ++row) {
    double x[WEIGHTS], error = 0;
    for (int w = 0; w < WEIGHTS; ++w) {
      x[w] = (double)((row * 31 + m * 17 + w * (int)(t->step + 3)) % 23) / 23 - 0.5;
      error += x[w] * (t->weights[w] - (w + 1));
    }
    for (int w = 0; w < WEIGHTS; ++w) out[w] += error * x[w] / (ROWS * MICRO_BATCHES);
  }
}

static dist_status step(dist_replica *replica, void *user_data) {
  const training *t = user_data;
  const int32_t me = dist_replica_id(replica), replicas = dist_replica_num_replicas(replica);
  const int64_t shape[] = {WEIGHTS};
  double gradients[MICRO_BATCHES][WEIGHTS], next[WEIGHTS], steps = t->step + 1;
  dist_tensor mine[MICRO_BATCHES], sum = {next, DIST_F64, 1, shape, NULL},
                                   made = {&steps, DIST_F64, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  for (int m = MICRO_BATCHES * me / replicas; m < MICRO_BATCHES * (me + 1) / replicas; ++m) {
    double *gradient = gradients[options.contributions];
    add_gradient(t, m, gradient);
    mine[options.contributions++] = (dist_tensor){gradient, DIST_F64, 1, shape, NULL};
  }
  options.numerics = DIST_NUMERICS_REPRODUCIBLE;
  options.tag = "gradients";
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, mine, &sum, 1, &options, NULL));
  for (int w = 0; w < WEIGHTS; ++w) next[w] = t->weights[w] - next[w];
  TRY(dist_replica_assign(replica, t->variables[0], DIST_ASSIGN, &sum, NULL));
  return dist_replica_assign(replica, t->variables[1], DIST_ASSIGN, &made, NULL);
}

static dist_status read_variable(training *t, int which, double *out) {
  dist_value *value = NULL;
  dist_tensor tensor;
  TRY(dist_variable_read(t->strategy, t->variables[which], &value));
  const dist_status status = dist_value_tensor(value, &tensor);
  for (int i = 0; status == DIST_OK && i < (which == 0 ? WEIGHTS : 1); ++i)
    out[i] = ((double *)tensor.data)[i];
  dist_value_release(value);
  return status;
}

/* Trains with the current workers, starting from the last checkpoint. Returns ABORTED if the workers must
   re-form. */
static dist_status train(training *t, const char *path, int steps) {
  const int64_t shape[] = {WEIGHTS};
  const dist_tensor initial[VARIABLES] = {{t->weights, DIST_F64, 1, shape, NULL},
                                          {&t->step, DIST_F64, 0, NULL, NULL}};
  for (int v = 0; v < VARIABLES; ++v) {
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.name = v == 0 ? "weights" : "step";
    options.aggregation = DIST_AGGREGATION_ONLY_FIRST_REPLICA;
    TRY(dist_variable_create(t->strategy, &initial[v], &options, &t->variables[v]));
  }
  if (access(path, R_OK) == 0) TRY(dist_checkpoint_load(t->strategy, path, t->variables, VARIABLES, NULL));
  for (;;) {
    int32_t due = 0;
    TRY(read_variable(t, 0, t->weights));
    TRY(read_variable(t, 1, &t->step));
    if (t->step >= steps) return DIST_OK;
    TRY(dist_run(t->strategy, step, t, NULL));
    TRY(dist_checkpoint_save(t->strategy, path, t->variables, VARIABLES, NULL));
    TRY(dist_strategy_reform_due(t->strategy, &due));
    if (due) return DIST_ABORTED;
  }
}

static void end_variables(training *t) {
  for (int v = 0; v < VARIABLES; ++v) dist_variable_destroy(t->variables[v]), t->variables[v] = NULL;
}

int main(int argc, char **argv) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns =
      60000000000; /* how long a call waits for peers, for example on a worker that restarts after they have finished */
  training t = {.strategy = NULL};
  if (argc < 2) return fprintf(stderr, "usage: elastic CHECKPOINT [STEPS]\n"), 2;
  dist_status status = dist_strategy_create(&options, &t.strategy);
  while (status == DIST_OK) {
    dist_strategy_properties is = DIST_STRATEGY_PROPERTIES_INIT;
    status = dist_strategy_query(t.strategy, &is);
    printf("generation %d: %d workers, process %d\n", is.generation, is.num_workers, getpid());
    fflush(stdout);
    if (status == DIST_OK) status = train(&t, argv[1], argc < 3 ? 1000 : atoi(argv[2]));
    end_variables(&t);
    if (status == DIST_OK) break;
    if (status == DIST_UNAVAILABLE || status == DIST_ABORTED) status = dist_strategy_reform(t.strategy, NULL);
  }
  if (status != DIST_OK) return fprintf(stderr, "elastic: %s\n", dist_last_error()), 1;
  printf("after %.0f steps:", t.step);
  for (int w = 0; w < WEIGHTS; ++w) printf(" %a", t.weights[w]);
  printf("\n");
  return dist_strategy_destroy(t.strategy);
}
