/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of other processes: rejected names, addresses and strangers.
 */
#include <dist/experimental/rpc.h>
#include "../common.h"

static int released;
static void count_release(void *user_data) {
  (void)user_data;
  ++released;
}

static dist_status echo(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                        void *user_data) {
  (void)context, (void)user_data;
  *out_result = dist_value_retain(arguments);
  return DIST_OK;
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  dist_rpc_server *server = NULL;
  dist_rpc_client *client = NULL;
  static const char *const kAddresses[] = {
      "", "host", ":1", "host:", "host:65536", "host:x", "a b:1", "[::1:1"};
  for (size_t i = 0; i < sizeof kAddresses / sizeof *kAddresses; ++i) {
    assert_int_equal(dist_rpc_server_create("grpc", kAddresses[i], NULL, &server), DIST_INVALID_ARGUMENT);
    assert_int_equal(dist_rpc_client_create("grpc", kAddresses[i], NULL, &client), DIST_INVALID_ARGUMENT);
  }
  assert_int_equal(dist_rpc_client_create("grpc", "localhost:0", NULL, &client), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_rpc_server_create("http", "localhost:0", NULL, &server), DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "rpc_layer is \"http\", but must be grpc");
  assert_int_equal(dist_rpc_client_create("GRPC", "localhost:1", NULL, &client), DIST_INVALID_ARGUMENT);
  /* Plain text is rejected for addresses other than loopback. */
  assert_int_equal(dist_rpc_client_create("grpc", "example.org:1", NULL, &client), DIST_FAILED_PRECONDITION);
  assert_has(dist_last_error(), "DIST_TLS_CA");
  assert_ok(dist_rpc_server_create("grpc", "0.0.0.0:0", NULL, &server));
  assert_int_equal(dist_rpc_server_start(server), DIST_FAILED_PRECONDITION);
  assert_ok(dist_rpc_server_destroy(server));
  assert_ok(dist_rpc_server_create("", "localhost:0", NULL, &server));
  assert_string_equal(dist_rpc_server_address(server), "localhost:0");
  static const char *const kNames[] = {"", "dist.methods", "dist.", "a\nb"};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    assert_int_equal(dist_rpc_server_register(server, kNames[i], echo, NULL, count_release),
                     DIST_INVALID_ARGUMENT);
  char longer[300];
  memset(longer, 'x', sizeof longer);
  longer[256] = '\0';
  assert_int_equal(dist_rpc_server_register(server, longer, echo, NULL, count_release),
                   DIST_INVALID_ARGUMENT);
  longer[255] = '\0';
  const int before = released;
  assert_ok(dist_rpc_server_register(server, longer, echo, NULL, count_release));
  assert_int_equal(dist_rpc_server_register(server, longer, echo, NULL, count_release), DIST_ALREADY_EXISTS);
  assert_int_equal(released, before);
  assert_ok(dist_rpc_server_start(server));
  assert_int_equal(dist_rpc_server_start(server), DIST_FAILED_PRECONDITION);
  assert_int_equal(dist_rpc_server_register(server, "late", echo, NULL, NULL), DIST_FAILED_PRECONDITION);
  /* A second server at the same address. */
  dist_rpc_server *second = NULL;
  assert_ok(dist_rpc_server_create("grpc", dist_rpc_server_address(server), NULL, &second));
  assert_int_equal(dist_rpc_server_start(second), DIST_UNAVAILABLE);
  assert_has(dist_last_error(), "cannot listen on");
  assert_ok(dist_rpc_server_destroy(second));
  assert_ok(dist_rpc_server_destroy(server));
  assert_int_equal(released, before + 1);
}

static void who_has_another_secret_is_refused(void **state) {
  (void)state;
  setenv("DIST_JOB_SECRET", "one", 1);
  dist_rpc_server *server = NULL;
  dist_rpc_client *client = NULL;
  assert_ok(dist_rpc_server_create("grpc", "127.0.0.1:0", NULL, &server));
  assert_ok(dist_rpc_server_register(server, "echo", echo, NULL, NULL));
  assert_ok(dist_rpc_server_start(server));
  assert_ok(dist_rpc_client_create("grpc", dist_rpc_server_address(server), NULL, &client));
  dist_value *out = NULL;
  assert_ok(dist_rpc_call(client, "echo", NULL, NULL, &out));
  dist_value_release(out);
  setenv("DIST_JOB_SECRET", "another", 1);
  dist_rpc_client *stranger = NULL;
  assert_ok(dist_rpc_client_create("grpc", dist_rpc_server_address(server), NULL, &stranger));
  unsetenv("DIST_JOB_SECRET");
  /* The peer has not proven anything, so the call waits for another server until its deadline. */
  dist_rpc_call_options soon = DIST_RPC_CALL_OPTIONS_INIT;
  soon.timeout_ns = 2000000000;
  assert_int_equal(dist_rpc_call(stranger, "echo", NULL, &soon, &out), DIST_DEADLINE_EXCEEDED);
  assert_has(dist_last_error(), "its DIST_JOB_SECRET differs");
  dist_rpc_client_destroy(stranger);
  dist_rpc_client_destroy(client);
  assert_ok(dist_rpc_server_destroy(server));
}

/* Clients use the name, which need not resolve here. */
static void a_server_with_a_name_listens_on_all_interfaces(void **state) {
  (void)state;
  setenv("DIST_PLAINTEXT", "1", 1);
  setenv("DIST_JOB_SECRET", "of this job", 1);
  dist_rpc_server *server = NULL;
  dist_rpc_client *client = NULL;
  dist_value *out = NULL;
  assert_ok(dist_rpc_server_create("grpc", "not..a.name:0", NULL, &server));
  assert_ok(dist_rpc_server_register(server, "echo", echo, NULL, NULL));
  assert_ok(dist_rpc_server_start(server));
  const char *const port = strrchr(dist_rpc_server_address(server), ':');
  assert_string_equal(port - strlen("not..a.name"), dist_rpc_server_address(server));
  for (int host = 1; host <= 2; ++host) {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.%d%s", host, port);
    assert_ok(dist_rpc_client_create("grpc", address, NULL, &client));
    assert_ok(dist_rpc_call(client, "echo", NULL, NULL, &out));
    dist_value_release(out);
    dist_rpc_client_destroy(client);
  }
  assert_ok(dist_rpc_server_destroy(server));
  /* With an IP address, it listens only on that address. */
  assert_ok(dist_rpc_server_create("grpc", "192.0.2.1:0", NULL, &server));
  assert_fails(dist_rpc_server_start(server), DIST_UNAVAILABLE,
               "the address belongs to no interface of this machine");
  assert_ok(dist_rpc_server_destroy(server));
  unsetenv("DIST_PLAINTEXT");
  unsetenv("DIST_JOB_SECRET");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_arguments_are_refused),
      cmocka_unit_test(who_has_another_secret_is_refused),
      cmocka_unit_test(a_server_with_a_name_listens_on_all_interfaces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
