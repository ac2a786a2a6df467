/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks libdist what the replicas did: the late replica, metrics, a trace, and copies of a variable that differ.
 *
 *     cc observing.c $(pkg-config --cflags --libs dist) -o observing && ./observing trace.json
 */
#include <dist/dist.h>
#include <stdio.h>
#include <string.h>

/* Replica 0 begins the all-reduce before the barrier, replica 1 after it: so replica 1 is late. */
static dist_status step(dist_replica *replica, void *user_data) {
  (void)user_data;
  float gradient = 1;
  const dist_tensor tensor = {&gradient, DIST_F32, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "gradients"; /* the name in reports, traces and tables */
  dist_work *work = NULL;
  dist_status status = DIST_OK;
  for (int id = 0; id < 2 && !status; id++) {
    if (dist_replica_id(replica) == id) {
      status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work);
    }
    if (!status && id == 0) status = dist_barrier(replica, NULL, NULL);
  }
  if (!status) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

/* Receives what no call returns. It can be called from any thread. */
static void log_line(dist_log_level level, const char *message, void *user_data) {
  (void)user_data;
  fprintf(stderr, "%s: %s\n",
          level == DIST_LOG_ERROR     ? "error"
          : level == DIST_LOG_WARNING ? "warning"
                                      : "info",
          message);
}

static void write_text(const char *text, size_t size_bytes, void *file) { fwrite(text, 1, size_bytes, file); }

static dist_status write_trace(dist_strategy *strategy, const char *path) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return dist_fail(DIST_NOT_FOUND, "cannot write the trace");
  const dist_status status = dist_strategy_write_trace(strategy, write_text, file);
  return fclose(file) == 0 ? status : dist_fail(DIST_DATA_LOSS, "cannot write the trace");
}

static dist_status print_stragglers(dist_strategy *strategy) {
  dist_straggler rows[8];
  size_t n = 0;
  dist_status status = dist_strategy_stragglers(strategy, rows, sizeof rows[0], 8, &n);
  for (size_t i = 0; i < n && i < 8 && !status; i++) {
    if (strcmp(rows[i].tag, "gradients") != 0) continue; /* only this one is the same in every run */
    printf("replica %d was last in %d of %d rounds of \"%s\"\n", rows[i].replica, (int)rows[i].times_last,
           (int)rows[i].rounds, rows[i].tag);
  }
  return status;
}

static dist_status find_drift(dist_strategy *strategy) {
  double zeros[] = {0, 0, 0};
  const int64_t three = 3;
  const dist_tensor initial = {zeros, DIST_F64, 1, &three, NULL};
  dist_variable *w = NULL;
  dist_tensor copy;
  dist_error_info info = DIST_ERROR_INFO_INIT;
  dist_status status = dist_variable_create(strategy, &initial, NULL, &w);
  if (!status) status = dist_variable_component(w, 1, &copy);
  if (!status) ((double *)copy.data)[2] = 5; /* a mistake: only one copy changes */
  if (!status) status = dist_variable_check_drift(strategy, w, NULL);
  if (status == DIST_DATA_LOSS && (status = dist_last_error_info(&info)) == DIST_OK) {
    printf("replica %d has %s instead of %s\n", info.replica, info.received, info.expected);
  }
  dist_variable_destroy(w);
  return status;
}

int main(int argc, char **argv) {
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  host.log = log_line;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.host = &host;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  for (int i = 0; i < 3 && !status; i++) status = dist_run(strategy, step, NULL, NULL);
  if (!status) status = print_stragglers(strategy);
  if (!status) status = find_drift(strategy);
  if (!status) status = dist_strategy_explain(strategy, write_text, stderr);
  if (!status) status = dist_strategy_write_metrics(strategy, "train", write_text, stderr);
  if (!status && argc > 1) status = write_trace(strategy, argv[1]);
  if (status) fprintf(stderr, "observing: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
