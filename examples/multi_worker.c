/* SPDX-License-Identifier: Apache-2.0
 *
 * The multi-process example from the tf.distribute documentation, in C. TF_CONFIG describes the cluster and
 * this process's task in it. A MultiWorkerMirroredStrategy spans the replicas of all workers, and a variable
 * created in its scope has one copy per replica.
 *
 *     cc multi_worker.c $(pkg-config --cflags --libs dist) -o multi_worker
 *     dist-launch -n 2 --replicas 1 -- ./multi_worker
 *
 * dist-launch sets TF_CONFIG. You can also start each worker yourself. The program then sets TF_CONFIG from
 * its arguments, as the example in the documentation does:
 *
 *     ./multi_worker 0 localhost:12345 localhost:23456 &
 *     ./multi_worker 1 localhost:12345 localhost:23456
 *
 * `dist-launch --replicas` sets DIST_REPLICAS. If it is unset, a worker has one replica per CPU available to
 * it.
 */
#define _POSIX_C_SOURCE 200809L
#include <dist/dist.h>
#include <stdio.h>
#include <stdlib.h>

/* tf_config = {"cluster": {"worker": [...]}, "task": {"type": "worker", "index": 0}} */
static int set_tf_config(char **argv) {
  char text[512];
  const int length = snprintf(text, sizeof text,
                              "{\"cluster\": {\"worker\": [\"%s\", \"%s\"]},"
                              " \"task\": {\"type\": \"worker\", \"index\": %s}}",
                              argv[2], argv[3], argv[1]);
  return length < 0 || length >= (int)sizeof text || setenv("TF_CONFIG", text, 1);
}

/* strategy = tf.distribute.MultiWorkerMirroredStrategy() */
static dist_status make_strategy(dist_strategy **out) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  return dist_strategy_create(&options, out);
}

/* with strategy.scope(): v = tf.Variable(1.0, aggregation=SUM) */
static dist_status make_variable(dist_strategy *strategy, dist_variable **out) {
  float one = 1;
  const dist_tensor initial = {&one, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "v";
  options.aggregation = DIST_AGGREGATION_SUM;
  dist_status status = dist_scope_enter(strategy);
  if (status) return status;
  status = dist_variable_create(strategy, &initial, &options, out);
  const dist_status left = dist_scope_exit(strategy);
  return status ? status : left;
}

/* Each replica adds 1 to v, whose aggregation sums over the replicas of all workers. Then all replicas sum
   their numbers, 1, 2, and so on. */
static dist_status step(dist_replica *replica, void *user_data) {
  dist_variable *v = user_data;
  float one = 1;
  double number = dist_replica_id(replica) + 1;
  dist_tensor delta = {&one, DIST_F32, 0, NULL, NULL};
  dist_tensor sum = {&number, DIST_F64, 0, NULL, NULL};
  dist_status status = dist_replica_assign(replica, v, DIST_ASSIGN_ADD, &delta, NULL);
  if (!status) status = dist_all_reduce(replica, DIST_REDUCE_SUM, &sum, &sum, 1, NULL, NULL);
  if (!status) printf("replica %d: the sum is %g\n", (int)dist_replica_id(replica), number);
  return status;
}

/* Does strategy.run(step), then prints v from this worker's first copy. */
static dist_status train(dist_strategy *strategy, dist_variable *v) {
  dist_strategy_properties place = DIST_STRATEGY_PROPERTIES_INIT;
  dist_tensor copy;
  dist_status status = dist_strategy_query(strategy, &place);
  if (!status) status = dist_run(strategy, step, v, NULL);
  if (!status) status = dist_variable_component(v, place.first_replica, &copy);
  if (!status)
    printf("worker %d of %d: v is %g\n", (int)place.worker, (int)place.num_workers,
           (double)*(const float *)copy.data);
  return status;
}

int main(int argc, char **argv) {
  dist_strategy *strategy = NULL;
  dist_variable *v = NULL;
  if (argc != 1 && (argc != 4 || set_tf_config(argv))) {
    fputs("usage: multi_worker [INDEX ADDRESS ADDRESS]\n", stderr);
    return 2;
  }
  dist_status status = make_strategy(&strategy);
  if (!status) status = make_variable(strategy, &v);
  if (!status) status = train(strategy, v);
  if (status) fprintf(stderr, "multi_worker: %s: %s\n", dist_status_name(status), dist_last_error());
  dist_variable_destroy(v);
  const dist_status ended = dist_strategy_destroy(strategy);
  return status || ended;
}
