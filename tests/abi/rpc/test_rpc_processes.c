/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of a server in another process: it is killed, suspended and restarted, and it uses TLS.
 */
#include <dist/experimental/rpc.h>
#include "../certificates_support.h"
#include "../processes_support.h"

/* ---- The server's process, which prints its address and ends on request ---- */

static dist_status echo(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                        void *user_data) {
  (void)context, (void)user_data;
  *out_result = dist_value_retain(arguments);
  return DIST_OK;
}

static dist_status wait_for_ever(const dist_rpc_context *context, dist_value *arguments,
                                 dist_value **out_result, void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  printf("inside\n");
  fflush(stdout);
  while (!dist_cancel_signalled(context->cancel)) poll(NULL, 0, 1);
  printf("nobody waits\n");
  fflush(stdout);
  return DIST_CANCELLED;
}

static int serve(void) {
  dist_rpc_server *server = NULL;
  dist_status status = dist_rpc_server_create("grpc", getenv("ADDRESS"), NULL, &server);
  if (status == DIST_OK) status = dist_rpc_server_register(server, "echo", echo, NULL, NULL);
  if (status == DIST_OK) status = dist_rpc_server_register(server, "wait", wait_for_ever, NULL, NULL);
  if (status == DIST_OK) status = dist_rpc_server_start(server);
  if (status != DIST_OK) return say_how_it_went(status);
  printf("serves\n");
  fflush(stdout);
  char word;
  if (read(STDIN_FILENO, &word, 1) < 0) return 2;
  return dist_rpc_server_destroy(server) == DIST_OK ? 0 : 3;
}

/* ---- The client's ---- */

static void begin_server(job *all, const char *const *more) {
  static char address[64];
  snprintf(address, sizeof address, "ADDRESS=%s", all->addresses[0]);
  const char *environment[8] = {address, "DIST_LEASE_SECONDS=1"};
  for (int i = 0; more != NULL && more[i] != NULL; ++i) environment[2 + i] = more[i];
  start_as(all, 0, 0, "serve", environment);
  if (!has_said(&all->processes[0], "serves\n")) fail_msg("%s", all->processes[0].text);
}

static dist_rpc_client *client_of(const job *all) {
  dist_rpc_client *client = NULL;
  dist_rpc_client_options options = DIST_RPC_CLIENT_OPTIONS_INIT;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  assert_ok(dist_rpc_client_create("grpc", all->addresses[0], &options, &client));
  return client;
}

static void assert_echo(dist_rpc_client *client) {
  dist_value *out = NULL;
  assert_ok(dist_rpc_call(client, "echo", NULL, NULL, &out));
  dist_value_release(out);
}

static void who_is_killed_or_stopped_is_known(void **state) {
  (void)state;
  job all = job_of(1);
  begin_server(&all, NULL);
  process *server = &all.processes[0];
  dist_rpc_client *client = client_of(&all);
  static const int kSignals[] = {SIGKILL, SIGSTOP};
  static const char *const kWords[] = {"has ended or its connection broke", "sent no heartbeat for 1 s"};
  for (int i = 0; i < 2; ++i) {
    assert_echo(client);
    dist_remote_value *remote = NULL;
    dist_value *out = NULL;
    assert_ok(dist_rpc_begin(client, "wait", NULL, NULL, &remote));
    if (!has_said(server, "inside\n")) fail_msg("%s", server->text);
    kill(server->pid, kSignals[i]);
    assert_fails(dist_remote_value_get(remote, -1, &out), DIST_UNAVAILABLE, kWords[i]);
    dist_remote_value_release(remote);
    kill(server->pid, SIGKILL);
    assert_int_equal(end_of(server), 128 + SIGKILL);
    /* The client reaches the restarted server. */
    begin_server(&all, NULL);
  }
  assert_echo(client);
  dist_rpc_client_destroy(client);
  tell(server);
  ends_well(server);
}

static void a_client_that_is_killed_is_given_up(void **state) {
  (void)state;
  job all = job_of(1);
  begin_server(&all, NULL);
  process *server = &all.processes[0];
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    dist_value *out = NULL;
    _exit(dist_rpc_call(client_of(&all), "wait", NULL, NULL, &out) == DIST_OK ? 0 : 1);
  }
  if (!has_said(server, "inside\n")) fail_msg("%s", server->text);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  if (!has_said(server, "nobody waits\n")) fail_msg("%s", server->text);
  tell(server);
  ends_well(server);
}

/* A child of a process that has used gRPC must not touch it. */
static void a_forked_child_is_refused(void **state) {
  (void)state;
  job all = job_of(1);
  begin_server(&all, NULL);
  dist_rpc_client *client = client_of(&all);
  assert_echo(client);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    dist_rpc_client *own = NULL;
    dist_rpc_server *server = NULL;
    dist_value *out = NULL;
    int right = dist_rpc_call(client, "echo", NULL, NULL, &out) == DIST_FAILED_PRECONDITION;
    right += dist_rpc_client_create("grpc", all.addresses[0], NULL, &own) == DIST_FAILED_PRECONDITION;
    right += strstr(dist_last_error(), "a forked child of a process that has used gRPC") != NULL;
    right += dist_rpc_server_create("grpc", "127.0.0.1:0", NULL, &server) == DIST_OK;
    right += dist_rpc_server_start(server) == DIST_FAILED_PRECONDITION;
    right += dist_rpc_server_destroy(server) == DIST_OK;
    dist_rpc_client_destroy(client);
    _exit(right == 6 ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  assert_echo(client);
  dist_rpc_client_destroy(client);
  tell(&all.processes[0]);
  ends_well(&all.processes[0]);
}

/* ---- TLS ---- */

static void with_tls_both_show_a_certificate_of_the_authority(void **state) {
  (void)state;
  if (system("openssl version > /dev/null 2>&1") != 0) skip_because("openssl is not installed");
  make_certificate_folder();
  job all = job_of(1);
  make_certificates("one", all.addresses[0]);
  make_certificates("other", all.addresses[0]);
  char texts[3][128];
  set_tls("one", texts);
  const char *const environment[] = {texts[0], texts[1], texts[2], NULL};
  begin_server(&all, environment);
  for (int i = 0; i < 3; ++i) putenv(texts[i]);
  dist_rpc_client *client = client_of(&all);
  assert_echo(client);
  dist_rpc_client_destroy(client);
  /* A client with a certificate of another authority, and one without a certificate. */
  dist_value *out = NULL;
  char others[3][128];
  set_tls("other", others);
  for (int i = 0; i < 3; ++i) putenv(others[i]);
  client = client_of(&all);
  dist_rpc_call_options soon = DIST_RPC_CALL_OPTIONS_INIT;
  soon.timeout_ns = 2000000000;
  assert_fails(dist_rpc_call(client, "echo", NULL, &soon, &out), DIST_DEADLINE_EXCEEDED, "cannot be reached");
  dist_rpc_client_destroy(client);
  unsetenv("DIST_TLS_CA");
  unsetenv("DIST_TLS_CERTIFICATE");
  unsetenv("DIST_TLS_KEY");
  client = client_of(&all);
  assert_fails(dist_rpc_call(client, "echo", NULL, &soon, &out), DIST_DEADLINE_EXCEEDED, "cannot be reached");
  dist_rpc_client_destroy(client);
  tell(&all.processes[0]);
  ends_well(&all.processes[0]);
  remove_certificate_folder();
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "serve") == 0) return serve();
  setenv("DIST_LEASE_SECONDS", "1", 1);
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_client_that_is_killed_is_given_up),
      cmocka_unit_test(who_is_killed_or_stopped_is_known),
      cmocka_unit_test(a_forked_child_is_refused),
      cmocka_unit_test(with_tls_both_show_a_certificate_of_the_authority),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
