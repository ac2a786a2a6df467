/* SPDX-License-Identifier: Apache-2.0
 *
 * Replica 1 hangs. On SIGUSR1, the program writes what its replicas are doing. SIGTERM ends it.
 *
 *     cc stuck.c $(pkg-config --cflags --libs dist) -pthread -o stuck && ./stuck
 *     pkill -USR1 stuck; pkill stuck         in another terminal
 */
#define _POSIX_C_SOURCE 200809L
#include <dist/dist.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static void write_text(const char *text, size_t size_bytes, void *file) { fwrite(text, 1, size_bytes, file); }

static dist_status step(dist_replica *replica, void *unused) {
  (void)unused;
  double number = 1;
  const dist_tensor tensor = {&number, DIST_F64, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "loss";
  if (dist_replica_id(replica) == 0) {
    printf("kill -USR1 shows what the replicas do\n");
    fflush(stdout);
  }
  while (dist_replica_id(replica) == 1 && dist_replica_check(replica) == DIST_OK) continue; /* the bug */
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, NULL);
}

static void signals_of_watch(sigset_t *signals) {
  sigemptyset(signals);
  sigaddset(signals, SIGUSR1);
  sigaddset(signals, SIGTERM);
}

/* Runs on a thread of its own, so it also works while all replicas hang. */
static void *watch(void *strategy) {
  sigset_t signals;
  int number = SIGTERM;
  signals_of_watch(&signals);
  while (sigwait(&signals, &number) == 0 && number == SIGUSR1) {
    if (dist_strategy_write_trace(strategy, write_text, stdout)) printf("%s", dist_last_error());
    fflush(stdout);
  }
  if (dist_strategy_cancel(strategy)) printf("%s\n", dist_last_error());
  return NULL;
}

int main(void) {
  sigset_t signals;
  signals_of_watch(&signals);
  pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before other threads start: they inherit the mask */
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  if (dist_strategy_create(&options, &strategy)) return 1;
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch, strategy) != 0) return 1;
  if (dist_run(strategy, step, NULL, NULL)) printf("%s\n", dist_last_error());
  pthread_join(watcher, NULL);
  return dist_strategy_destroy(strategy) != DIST_OK;
}
