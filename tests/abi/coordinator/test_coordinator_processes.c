/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameter servers and workers that are killed, suspended and restarted; strangers; and a coordinator that
 * is killed. The effects of closures are counted exactly, whatever happens.
 */
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "../certificates_support.h"
#include "server_processes.h"

/* ---- The servers' processes ---- */

static dist_status count(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  return count_everywhere(closure, 2);
}

/* The first closure of this process prints that it is inside and waits for a line. All of them count. */
static dist_status count_and_wait(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                                  void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  static atomic_int before;
  if (getenv("WAITS") != NULL && atomic_fetch_add(&before, 1) == 0) {
    printf("inside %lld\n", (long long)dist_closure_id(closure));
    fflush(stdout);
    char word;
    if (read(STDIN_FILENO, &word, 1) < 0) return DIST_UNKNOWN;
  }
  return count_everywhere(closure, 2);
}

static dist_status which(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)arguments, (void)user_data;
  int64_t worker = dist_closure_worker(closure);
  const dist_tensor tensor = {&worker, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(dist_get_strategy(), &tensor, out_result);
}

static dist_status kill_worker(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                               void *user_data) {
  (void)closure, (void)arguments, (void)out_result, (void)user_data;
  raise(SIGKILL);
  return DIST_OK;
}

static void add_functions(dist_server *server) {
  if (dist_server_register(server, "count", count, NULL, NULL) != DIST_OK ||
      dist_server_register(server, "count_and_wait", count_and_wait, NULL, NULL) != DIST_OK ||
      dist_server_register(server, "which", which, NULL, NULL) != DIST_OK ||
      dist_server_register(server, "kill_worker", kill_worker, NULL, NULL) != DIST_OK)
    exit(5);
}

static int64_t fetch_number(dist_remote_value *remote) {
  dist_value *value = NULL;
  dist_tensor tensor;
  assert_ok(dist_remote_value_get(remote, -1, &value));
  assert_ok(dist_value_tensor(value, &tensor));
  const int64_t number = *(const int64_t *)tensor.data;
  dist_value_release(value);
  dist_remote_value_release(remote);
  return number;
}

/* ---- Workers ---- */

/* `how` is the signal, SIGKILL or SIGSTOP, that the worker gets inside a closure. */
static void a_lost_worker_gives_its_closure_back(int how) {
  servers s = {.more = {"WAITS=1"}};
  start_servers(&s, 2, 1);
  chief c = chief_of(&s);
  create_count(&c, "a");
  create_count(&c, "b");
  schedule_closures(&c, "count_and_wait", 1);
  process *worker = worker_of(&s, 0);
  if (!has_said(worker, "inside 0\n")) fail_msg("%s", worker->text);
  /* Nothing has been committed so far. */
  assert_int_equal(count_of(&c, "a"), 0);
  kill(worker->pid, how);
  await_workers(&c, 0);
  if (how == SIGKILL) {
    assert_int_equal(end_of(worker), 128 + SIGKILL);
    /* Restarted without the setting that makes it wait for a line. */
    s.more[0] = NULL;
    start_server_process(&s, 2);
  } else {
    kill(worker->pid, SIGCONT);
    tell(worker);
  }
  schedule_closures(&c, "count", 50);
  assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
  assert_int_equal(count_of(&c, "a"), 51);
  assert_int_equal(count_of(&c, "b"), 51);
  assert_true(stats_of(&c).losses >= 1);
  end_chief(&c);
  end_servers(&s);
}
static void a_killed_worker_gives_its_closure_back(void **state) {
  (void)state;
  a_lost_worker_gives_its_closure_back(SIGKILL);
}
static void a_stopped_worker_goes_on(void **state) {
  (void)state;
  a_lost_worker_gives_its_closure_back(SIGSTOP);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void a_closure_goes_to_another_worker_first(void **state) {
  (void)state;
  servers s = {.more = {"WAITS=1"}};
  start_servers(&s, 2, 2);
  chief c = chief_of(&s);
  create_count(&c, "a");
  create_count(&c, "b");
  await_workers(&c, 2);
  schedule_closures(&c, "count_and_wait", 2);
  for (int i = 0; i < 2; ++i) {
    if (!has_said(worker_of(&s, i), "inside")) fail_msg("%s", worker_of(&s, i)->text);
  }
  /* Worker 0 is lost and restarted at once. Its closure goes to worker 1, which does not wait because it has
   * run one before. */
  const int64_t killed_ms = now_ms();
  kill_server(&s, 2);
  start_server_process(&s, 2);
  await_server(&s, 2);
  await_workers(&c, 2);
  for (int i = 0; i < 2; ++i) tell(worker_of(&s, i));
  assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
  /* After 0.8 s, any worker may run it. */
  if (now_ms() - killed_ms < 800) assert_null(strstr(worker_of(&s, 0)->text, "inside"));
  assert_int_equal(count_of(&c, "a"), 2);
  assert_int_equal(count_of(&c, "b"), 2);
  end_chief(&c);
  end_servers(&s);
}

static void a_closure_that_kills_all_workers_fails(void **state) {
  (void)state;
  servers s = {0};
  start_servers(&s, 1, 1);
  char config[1024];
  config_of(&s, "chief", 0, config, sizeof config);
  setenv("TF_CONFIG", config + sizeof "TF_CONFIG", 1);
  setenv("DIST_LEASE_SECONDS", "2", 1);
  chief c = {NULL, NULL};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  dist_coordinator_options how = DIST_COORDINATOR_OPTIONS_INIT;
  how.max_losses = 1;
  assert_ok(dist_strategy_create(&options, &c.strategy));
  assert_ok(dist_coordinator_create(c.strategy, &how, &c.coordinator));
  create_count(&c, "a");
  schedule_closures(&c, "kill_worker", 1);
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(end_of(worker_of(&s, 0)), 128 + SIGKILL);
    start_server_process(&s, 1);
    await_server(&s, 1);
  }
  assert_fails(dist_coordinator_join(c.coordinator, -1, NULL), DIST_ABORTED,
               "closure 0 (kill_worker) on worker 0");
  dist_remote_value *remote = NULL;
  assert_ok(dist_coordinator_schedule(c.coordinator, "which", NULL, NULL, &remote));
  assert_int_equal(fetch_number(remote), 0);
  end_chief(&c);
  end_servers(&s);
}

/* ---- Parameter servers ---- */

static void a_lost_parameter_server_ends_the_job(int how, const char *words) {
  servers s = {0};
  start_servers(&s, 2, 1);
  chief c = chief_of(&s);
  create_count(&c, "a");
  create_count(&c, "b");
  schedule_closures(&c, "count", 3);
  assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
  kill(ps_of(&s, 1)->pid, how);
  dist_status status = DIST_OK;
  for (int i = 0; status == DIST_OK; ++i) {
    status = dist_coordinator_schedule(c.coordinator, "count", NULL, NULL, NULL);
    if (status == DIST_OK) status = dist_coordinator_join(c.coordinator, -1, NULL);
  }
  assert_int_equal(status, DIST_ABORTED);
  assert_has(dist_last_error(), "parameter server 1 at");
  assert_has(dist_last_error(), "Restore from a checkpoint");
  assert_has(dist_last_error(), words);
  const char *name = "a";
  dist_value *value = NULL;
  assert_fails(dist_coordinator_read(c.coordinator, &name, 1, &value), DIST_ABORTED,
               "Restore from a checkpoint");
  assert_fails(dist_coordinator_join(c.coordinator, -1, NULL), DIST_ABORTED, "parameter server 1");
  kill(ps_of(&s, 1)->pid, SIGKILL);
  (void)end_of(ps_of(&s, 1));
  ps_of(&s, 1)->pid = 0;
  end_chief(&c);
  end_servers(&s);
}
static void a_killed_parameter_server_ends_the_job(void **state) {
  (void)state;
  a_lost_parameter_server_ends_the_job(SIGKILL, "has ended or its connection broke");
}
static void a_stopped_parameter_server_ends_the_job(void **state) {
  (void)state;
  a_lost_parameter_server_ends_the_job(SIGSTOP, "sent no heartbeat for 2 s");
}

/* A new coordinator has new servers and restores the checkpoint of the old one. */
static void a_checkpoint_is_restored(void **state) {
  (void)state;
  char path[] = "/tmp/dist-ps-XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (int round = 0; round < 2; ++round) {
    servers s = {0};
    start_servers(&s, 2, 2);
    chief c = chief_of(&s);
    create_count(&c, "a");
    create_count(&c, "b");
    int64_t mark = 0;
    if (round == 1) {
      assert_ok(dist_coordinator_restore(c.coordinator, path, &mark));
      assert_true(mark >= 20 && mark <= 60);
    }
    /* The checkpoint is saved while closures run. No closure counts twice, and none is lost. */
    schedule_closures(&c, "count", (int)(60 - mark));
    if (round == 0) {
      while (stats_of(&c).mark < 20) poll(NULL, 0, 1);
      assert_ok(dist_coordinator_save(c.coordinator, path));
    }
    assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
    assert_int_equal(count_of(&c, "a"), 60);
    assert_int_equal(count_of(&c, "b"), 60);
    if (round == 0) kill_server(&s, 0);
    end_chief(&c);
    end_servers(&s);
  }
  unlink(path);
}

/* ---- The coordinator ---- */

static int be_chief(void) {
  chief c = {NULL, NULL};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  dist_status status = dist_strategy_create(&options, &c.strategy);
  if (status == DIST_OK) status = dist_coordinator_create(c.strategy, NULL, &c.coordinator);
  int64_t zero = 0;
  const dist_tensor tensor = {&zero, DIST_I64, 0, NULL, NULL};
  if (status == DIST_OK) status = dist_coordinator_create_variable(c.coordinator, "a", &tensor, NULL);
  if (status == DIST_OK) status = dist_coordinator_create_variable(c.coordinator, "b", &tensor, NULL);
  if (status == DIST_OK) status = dist_coordinator_schedule(c.coordinator, "count", NULL, NULL, NULL);
  if (status == DIST_OK) status = dist_coordinator_join(c.coordinator, -1, NULL);
  if (status != DIST_OK) {
    const int code = say_how_it_went(status);
    dist_coordinator_destroy(c.coordinator);
    return dist_strategy_destroy(c.strategy) != DIST_OK ? 2 : code;
  }
  printf("counted\n");
  fflush(stdout);
  for (;;) pause();
}

static void servers_of_a_killed_coordinator_end(void **state) {
  (void)state;
  servers s = {0};
  start_servers(&s, 1, 1);
  static char config[1024];
  config_of(&s, "chief", 0, config, sizeof config);
  const char *environment[] = {config, "DIST_LEASE_SECONDS=2", NULL};
  start_as(&s.all, 2, 2, "chief", environment);
  process *coordinator = &s.all.processes[2];
  if (!has_said(coordinator, "counted\n")) fail_msg("%s", coordinator->text);
  kill(coordinator->pid, SIGKILL);
  assert_int_equal(end_of(coordinator), 128 + SIGKILL);
  for (int i = 0; i < 2; ++i) {
    process *p = &s.all.processes[i];
    assert_int_equal(end_of(p), 4);
    assert_has(p->text, "is lost: no heartbeat for 2 s");
  }
}

/* ---- Strangers ---- */

static void strangers_are_nobody(void **state) {
  (void)state;
  servers s = {.more = {"DIST_JOB_SECRET=of the job"}};
  start_servers(&s, 1, 1);
  setenv("DIST_JOB_SECRET", "of the job", 1);
  chief c = chief_of(&s);
  create_count(&c, "a");
  create_count(&c, "b");
  /* Connections that send garbage to both servers, and one that stays silent. */
  int silent[2];
  for (int i = 0; i < 2; ++i) {
    const int fd = connect_to(s.all.addresses[i]);
    char noise[4096];
    for (size_t k = 0; k < sizeof noise; ++k) noise[k] = (char)(k * 37 + 11);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, noise, sizeof noise, MSG_NOSIGNAL), sizeof noise);
    close(fd);
    silent[i] = connect_to(s.all.addresses[i]);
  }
  /* A coordinator that does not know the secret. */
  static char config[1024];
  config_of(&s, "chief", 0, config, sizeof config);
  const char *environment[] = {config, "DIST_LEASE_SECONDS=2", "DIST_JOB_SECRET=of another", NULL};
  start_as(&s.all, 2, 2, "chief", environment);
  /* A coordinator that knows it, while there is another one. */
  const char *second[] = {config, "DIST_LEASE_SECONDS=2", "DIST_JOB_SECRET=of the job", NULL};
  start_as(&s.all, 3, 3, "chief", second);
  schedule_closures(&c, "count", 100);
  assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
  assert_int_equal(count_of(&c, "a"), 100);
  assert_int_equal(kill(s.all.processes[2].pid, SIGKILL), 0);
  assert_int_equal(end_of(&s.all.processes[2]), 128 + SIGKILL);
  /* The second one is rejected at once. */
  assert_int_not_equal(end_of(&s.all.processes[3]), 0);
  assert_has(s.all.processes[3].text, "this server already belongs to another coordinator");
  for (int i = 0; i < 2; ++i) {
    assert_null(strstr(s.all.processes[2 + i].text, "counted"));
    close(silent[i]);
  }
  assert_int_equal(count_of(&c, "b"), 100);
  end_chief(&c);
  end_servers(&s);
  unsetenv("DIST_JOB_SECRET");
}

static void with_tls_all_show_a_certificate_of_the_authority(void **state) {
  (void)state;
  if (system("openssl version > /dev/null 2>&1") != 0) skip_because("openssl is not installed");
  make_certificate_folder();
  /* All addresses of a job are on one host. */
  const job ports = job_of(1);
  make_certificates("one", ports.addresses[0]);
  make_certificates("other", ports.addresses[0]);
  char texts[3][128], others[3][128];
  set_tls("one", texts);
  set_tls("other", others);
  servers s = {.more = {texts[0], texts[1], texts[2]}};
  start_servers(&s, 1, 1);
  static char config[1024];
  config_of(&s, "chief", 0, config, sizeof config);
  const char *environment[] = {config, "DIST_LEASE_SECONDS=2", others[0], others[1], others[2], NULL};
  start_as(&s.all, 2, 2, "chief", environment);
  for (int i = 0; i < 3; ++i) putenv(texts[i]);
  chief c = chief_of(&s);
  create_count(&c, "a");
  create_count(&c, "b");
  schedule_closures(&c, "count", 20);
  assert_ok(dist_coordinator_join(c.coordinator, -1, NULL));
  assert_int_equal(count_of(&c, "a"), 20);
  kill(s.all.processes[2].pid, SIGKILL);
  assert_int_equal(end_of(&s.all.processes[2]), 128 + SIGKILL);
  assert_null(strstr(s.all.processes[2].text, "counted"));
  end_chief(&c);
  end_servers(&s);
  unsetenv("DIST_TLS_CA");
  unsetenv("DIST_TLS_CERTIFICATE");
  unsetenv("DIST_TLS_KEY");
  remove_certificate_folder();
}

/* A task that the coordinator mistakes for another one reports that. */
static void a_wrong_cluster_is_said(void **state) {
  (void)state;
  servers s = {0};
  start_servers(&s, 1, 1);
  servers turned = s;
  memcpy(turned.all.addresses[0], s.all.addresses[1], sizeof s.all.addresses[0]);
  memcpy(turned.all.addresses[1], s.all.addresses[0], sizeof s.all.addresses[0]);
  chief c = chief_of(&turned);
  int64_t zero = 0;
  const dist_tensor tensor = {&zero, DIST_I64, 0, NULL, NULL};
  assert_fails(dist_coordinator_create_variable(c.coordinator, "a", &tensor, NULL), DIST_FAILED_PRECONDITION,
               "but the coordinator's cluster has");
  end_chief(&c);
  chief right = chief_of(&s);
  create_count(&right, "a");
  end_chief(&right);
  end_servers(&s);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return serve_until_the_end(add_functions);
  if (argc == 3 && strcmp(argv[1], "chief") == 0) return be_chief();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_killed_worker_gives_its_closure_back),
      cmocka_unit_test(a_stopped_worker_goes_on),
      cmocka_unit_test(a_closure_goes_to_another_worker_first),
      cmocka_unit_test(a_closure_that_kills_all_workers_fails),
      cmocka_unit_test(a_killed_parameter_server_ends_the_job),
      cmocka_unit_test(a_stopped_parameter_server_ends_the_job),
      cmocka_unit_test(a_checkpoint_is_restored),
      cmocka_unit_test(servers_of_a_killed_coordinator_end),
      cmocka_unit_test(strangers_are_nobody),
      cmocka_unit_test(with_tls_all_show_a_certificate_of_the_authority),
      cmocka_unit_test(a_wrong_cluster_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
