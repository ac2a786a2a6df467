/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a coordinator and its servers, and the metrics of the strategy.
 */
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "cluster_of_servers.h"

#include <sys/wait.h>

/* ---- Output ---- */

typedef struct text {
  char *bytes;
  size_t size;
} text;

static void append(const char *bytes, size_t size, void *user_data) {
  text *out = user_data;
  out->bytes = realloc(out->bytes, out->size + size + 1);
  assert_non_null(out->bytes);
  memcpy(out->bytes + out->size, bytes, size);
  out->size += size;
  out->bytes[out->size] = '\0';
}

static int occurrences(const text *in, const char *what) {
  int n = 0;
  for (const char *at = strstr(in->bytes, what); at != NULL; at = strstr(at + 1, what)) ++n;
  return n;
}

/* ---- A job ---- */

enum { CLOSURES = 5 };

static dist_status read_and_add(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                                void *user_data) {
  (void)out_result, (void)user_data;
  const char *name = "v";
  dist_value *v = NULL;
  dist_status status = dist_closure_read(closure, &name, 1, &v);
  if (status == DIST_OK) status = dist_closure_assign(closure, name, DIST_ASSIGN_ADD, arguments);
  dist_value_release(v);
  return status;
}

static dist_status fails(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)closure, (void)arguments, (void)out_result, (void)user_data;
  return dist_fail(DIST_OUT_OF_RANGE, "as planned");
}

static void register_both(dist_server *server, void *user_data) {
  (void)user_data;
  assert_ok(dist_server_register(server, "read_and_add", read_and_add, NULL, NULL));
  assert_ok(dist_server_register(server, "fails", fails, NULL, NULL));
}

/* Runs closures with one worker and one parameter server. The last closure fails. */
static void run_job(cluster *c) {
  begin_cluster(c, 1, 1, register_both, NULL, NULL);
  create_number(c, "v", 0);
  for (int i = 0; i < CLOSURES; ++i) dist_remote_value_release(schedule(c, "read_and_add", number(1)));
  join(c);
  dist_remote_value_release(schedule(c, "fails", NULL));
  assert_int_equal(dist_coordinator_join(c->coordinator, -1, NULL), DIST_OUT_OF_RANGE);
}

static void servers_tell_what_they_did(void **state) {
  (void)state;
  cluster c;
  run_job(&c);
  text worker = {NULL, 0}, ps = {NULL, 0};
  assert_ok(dist_server_write_trace(c.workers[0], append, &worker));
  assert_non_null(strstr(worker.bytes, "\"libdist worker 0\""));
  assert_non_null(strstr(worker.bytes, "\"closures 0\""));
  assert_int_equal(occurrences(&worker, "\"name\":\"read_and_add\""), CLOSURES);
  assert_int_equal(occurrences(&worker, "\"name\":\"read\""), CLOSURES);
  assert_true(occurrences(&worker, "\"name\":\"commit\"") >= CLOSURES);
  assert_int_equal(occurrences(&worker, "\"status\":\"OUT_OF_RANGE\""), 1);
  assert_ok(dist_server_write_trace(c.ps[0], append, &ps));
  assert_non_null(strstr(ps.bytes, "\"libdist ps 0\""));
  assert_int_equal(occurrences(&ps, "\"name\":\"create\""), 1);
  assert_int_equal(occurrences(&ps, "\"name\":\"read\""), CLOSURES);
  assert_int_equal(occurrences(&ps, "\"name\":\"commit\""), CLOSURES);
  /* The number of the last closure that was committed must be in the traces of both sides. */
  char id[32];
  snprintf(id, sizeof id, "\"id\":%d,", CLOSURES - 1);
  assert_int_equal(occurrences(&ps, id), 1);
  assert_int_equal(occurrences(&worker, id), 3);
  free(worker.bytes);
  free(ps.bytes);

  dist_server *idle = NULL;
  text nothing = {NULL, 0};
  assert_ok(dist_server_create_local(NULL, &idle));
  assert_ok(dist_server_write_trace(idle, append, &nothing));
  assert_int_equal(occurrences(&nothing, "\"ph\":\"X\""), 0);
  free(nothing.bytes);
  assert_fails(dist_server_write_trace(NULL, append, NULL), DIST_INVALID_ARGUMENT, "server is NULL");
  assert_fails(dist_server_write_trace(idle, NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_ok(dist_server_destroy(idle));
  end_cluster(&c);
}

static void the_strategy_tells_of_its_coordinator(void **state) {
  (void)state;
  cluster c;
  run_job(&c);
  text own = {NULL, 0}, trace = {NULL, 0}, page = {NULL, 0};
  assert_ok(dist_coordinator_write_trace(c.coordinator, append, &own));
  assert_int_equal(occurrences(&own, "\"name\":\"read_and_add\""), CLOSURES);
  assert_int_equal(occurrences(&own, "\"name\":\"fails\""), 1);
  assert_ok(dist_strategy_write_trace(c.strategy, append, &trace));
  assert_non_null(strstr(trace.bytes, "\"replica 0\""));
  assert_non_null(strstr(trace.bytes, "\"libdist coordinator\""));
  assert_int_equal(occurrences(&trace, "\"name\":\"read_and_add\""), CLOSURES);

  assert_ok(dist_strategy_write_metrics(c.strategy, "job", append, &page));
  static const char *const lines[] = {
      "\ndist_workers_up{strategy=\"job\"} 1\n",
      "\ndist_closures_queued{strategy=\"job\"} 0\n",
      "\ndist_closures_in_flight{strategy=\"job\"} 0\n",
      "\ndist_closures_scheduled_total{strategy=\"job\"} 6\n",
      "\ndist_closures_total{strategy=\"job\",end=\"completed\"} 5\n",
      "\ndist_closures_total{strategy=\"job\",end=\"failed\"} 1\n",
      "\ndist_closures_total{strategy=\"job\",end=\"cancelled\"} 0\n",
      "\ndist_closure_losses_total{strategy=\"job\"} 0\n",
      "\n# TYPE dist_coordinator_sent_bytes_total counter\n",
      "\n# TYPE dist_coordinator_received_bytes_total counter\n",
  };
  for (size_t i = 0; i < COUNT_OF(lines); ++i)
    if (strstr(page.bytes, lines[i]) == NULL) fail_msg("no line %s in\n%s", lines[i], page.bytes);
  assert_null(strstr(page.bytes, "dist_coordinator_sent_bytes_total{strategy=\"job\"} 0\n"));
  free(own.bytes);
  free(trace.bytes);
  free(page.bytes);

  /* After the coordinator has ended, the metrics show none. */
  dist_coordinator_destroy(c.coordinator);
  c.coordinator = NULL;
  page = (text){NULL, 0};
  assert_ok(dist_strategy_write_metrics(c.strategy, NULL, append, &page));
  assert_null(strstr(page.bytes, "dist_closures"));
  free(page.bytes);
  end_cluster(&c);
}

static void discard(const char *bytes, size_t size, void *user_data) {
  (void)bytes, (void)size, (void)user_data;
}

static void a_forked_child_is_refused(void **state) {
  (void)state;
  cluster c;
  run_job(&c);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
    const int refused =
        dist_coordinator_query(c.coordinator, &stats) == DIST_FAILED_PRECONDITION &&
        dist_coordinator_write_trace(c.coordinator, discard, NULL) == DIST_FAILED_PRECONDITION &&
        dist_server_write_trace(c.ps[0], discard, NULL) == DIST_FAILED_PRECONDITION &&
        dist_strategy_write_metrics(c.strategy, NULL, discard, NULL) == DIST_FAILED_PRECONDITION;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  end_cluster(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(servers_tell_what_they_did),
      cmocka_unit_test(the_strategy_tells_of_its_coordinator),
      cmocka_unit_test(a_forked_child_is_refused),
  };
  return cmocka_run_group_tests_name("coordinator_telling", tests, NULL, NULL);
}
