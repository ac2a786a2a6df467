/* SPDX-License-Identifier: Apache-2.0
 *
 * Strangers without the job's secret flood the port of a worker, of an RPC server and of a parameter server,
 * with and without TLS. The process must not grow by 64 MiB, its job must continue, and a peer that knows the
 * secret must get in while the strangers hold their connections. A process that had no descriptors left for a
 * moment must accept connections again.
 */
#include "../certificates_support.h"
#include "../coordinator/server_processes.h"
#include "strangers_support.h"

#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include <errno.h>
#include <sys/resource.h>

enum { MOST_BYTES = 2 << 20, IDLE = 2000, SLOW = 100, FILES = 512 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MOST_GROWTH_KIB = 1 << 20 }; /* the sanitizer keeps memory that has been freed */
#else
enum { MOST_GROWTH_KIB = 64 << 10 };
#endif

static const char secret[] = "DIST_JOB_SECRET=open sesame";

/* ---- Data from strangers ---- */

static unsigned char flood[MOST_BYTES + 1024];

static const unsigned char opens[] = {
    0x83, 0x86, 0x44, 18,   '/', 'd',  'i',  's', 't', '.', 'W', 'o', 'r', 'k', 'e', 'r', 's', '/', 'L',
    'i',  'n',  'k',  0x41, 1,   'a',  0x5f, 16,  'a', 'p', 'p', 'l', 'i', 'c', 'a', 't', 'i', 'o', 'n',
    '/',  'g',  'r',  'p',  'c', 0x40, 2,    't', 'e', 8,   't', 'r', 'a', 'i', 'l', 'e', 'r', 's'};
/* The same fields from HPACK's table. */
static const unsigned char opens_again[] = {0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe};

static size_t begin_flood(void) {
  memcpy(flood, preface, sizeof preface - 1);
  return sizeof preface - 1 + put_frame(flood + sizeof preface - 1, 4, 0, 0, NULL, 0);
}

static size_t repeat(int type, int flags, int stream, const void *payload, size_t bytes) {
  size_t used = begin_flood();
  while (used < MOST_BYTES) used += put_frame(flood + used, type, flags, stream, payload, bytes);
  return used;
}

static size_t rapid_reset(void) {
  static const unsigned char cancel[] = {0, 0, 0, 8};
  size_t used = begin_flood();
  for (int stream = 1; stream < 60000; stream += 2) {
    used += stream == 1 ? put_frame(flood + used, 1, 4, stream, opens, sizeof opens)
                        : put_frame(flood + used, 1, 4, stream, opens_again, sizeof opens_again);
    used += put_frame(flood + used, 3, 0, stream, cancel, sizeof cancel);
  }
  return used;
}

static size_t continuation(void) {
  static unsigned char fields[4096];
  size_t used = 0;
  while (used < sizeof fields - 300) {
    char text[201] = "";
    memset(text, 'x', 200);
    used += put_field(fields + used, "some-header", text);
  }
  size_t size = begin_flood();
  size += put_frame(flood + size, 1, 0, 1, opens, sizeof opens);
  while (size + used < MOST_BYTES) size += put_frame(flood + size, 9, 0, 1, fields, used);
  return size;
}

static size_t window_update(void) { return repeat(8, 0, 0, "\0\0\0\1", 4); }
static size_t ping(void) { return repeat(6, 0, 0, "12345678", 8); }
static size_t settings(void) { return repeat(4, 0, 0, "\0\4\0\1\0\0", 6); }
static size_t priority(void) { return repeat(2, 0, 1, "\0\0\0\0\1", 5); }
static size_t half_a_header(void) {
  const size_t used = begin_flood();
  return used + put_frame(flood + used, 1, 0, 1, opens, sizeof opens) - 7;
}
static size_t nothing(void) { return 0; }

static const struct attack {
  const char *name;
  size_t (*make)(void);
  int connections;
} attacks[] = {
    {"rapid reset", rapid_reset, 2},
    {"CONTINUATION", continuation, 2},
    {"WINDOW_UPDATE", window_update, 2},
    {"PING", ping, 2},
    {"SETTINGS", settings, 2},
    {"PRIORITY", priority, 2},
    {"slow headers", half_a_header, SLOW},
    {"idle connections", nothing, IDLE},
};
enum { ATTACKS = sizeof attacks / sizeof *attacks };

/* How a stranger begins: at once, with the token of another secret, or with the first bytes of a TLS
 * handshake. */
static const char other_token[] =
    "CONNECT libdist HTTP/1.1\r\nHost: libdist\r\nDist-Token: 1 0 0123456789abcdef0123456789abcdef "
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n\r\n";
static const char client_hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

typedef struct strangers {
  int fds[IDLE];
  int n;
} strangers;

/* Until the process has answered a PING behind the flood, or has closed the connection. */
static void await_processed(int fd) {
  static const char payload[] = "flooded!";
  unsigned char frame[32];
  char text[4096];
  say(fd, frame, put_frame(frame, 6, 0, 0, payload, 8));
  ssize_t came;
  while ((came = recv(fd, text, sizeof text, 0)) > 0) {
    if (memmem(text, (size_t)came, payload, 8) != NULL) return;
  }
}

static void attack_by_sockets(const struct attack *how, const char *address, int tls, strangers *held) {
  const size_t bytes = how->make();
  for (int i = 0; i < how->connections; ++i) {
    const int fd = connect_to(address);
    if (fd < 0) break;
    const struct timeval limit = {.tv_sec = 5};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    if (i % 2 == 1) say(fd, other_token, sizeof other_token - 1);
    if (bytes > 0 && tls) say(fd, client_hello, sizeof client_hello - 1);
    say(fd, flood, bytes);
    if (how->connections == 2) await_processed(fd);
    if (held->n == IDLE) {
      close(fd);
    } else {
      held->fds[held->n++] = fd;
    }
  }
}

/* The same bytes inside a TLS connection that presents no certificate. */
static void attack_by_tls(const struct attack *how, const char *address) {
  char command[256];
  snprintf(command, sizeof command, "timeout 10 openssl s_client -quiet -connect %s > /dev/null 2>&1",
           address);
  const size_t bytes = how->make();
  FILE *client = popen(command, "w");
  assert_non_null(client);
  (void)!fwrite(flood, 1, bytes, client);
  (void)pclose(client);
}

static long kib_of(pid_t pid, const char *what) {
  char path[64];
  char line[256];
  long kib = -1;
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, what, strlen(what)) == 0) kib = strtol(line + strlen(what), NULL, 10);
  }
  fclose(file);
  assert_true(kib > 0);
  return kib;
}

static void attack_all(const char *address, pid_t pid, int tls, strangers *held) {
  for (int i = 0; i < ATTACKS; ++i) {
    const long before = kib_of(pid, "VmRSS:");
    attack_by_sockets(&attacks[i], address, tls, held);
    if (tls && attacks[i].connections == 2) attack_by_tls(&attacks[i], address);
    const long grown = kib_of(pid, "VmHWM:") - before;
    if (grown >= MOST_GROWTH_KIB) fail_msg("%s: the process has grown by %ld KiB", attacks[i].name, grown);
  }
}

/* Checks the memory again, because the process may handle what it has buffered later. */
static void they_leave(pid_t pid, long before, strangers *held) {
  const long grown = kib_of(pid, "VmHWM:") - before;
  if (grown >= MOST_GROWTH_KIB) fail_msg("the process has grown by %ld KiB", grown);
  for (int i = 0; i < held->n; ++i) close(held->fds[i]);
  held->n = 0;
}

/* ---- The processes ---- */

static dist_status echo(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                        void *user_data) {
  (void)context, (void)user_data;
  *out_result = dist_value_retain(arguments);
  return DIST_OK;
}

static void no_closures(dist_server *server) { (void)server; }

static char a_byte(void) {
  char byte = '\0';
  return read(STDIN_FILENO, &byte, 1) == 1 ? byte : '\0';
}

/* A server that ends at the first word; or one that uses up all descriptors at the first word, closes them at
   the second, and ends at the third. */
static int serve_calls(void) {
  static int files[FILES];
  int n = 0;
  dist_rpc_server *server = NULL;
  dist_status status = dist_rpc_server_create("grpc", getenv("ADDRESS"), NULL, &server);
  if (status == DIST_OK) status = dist_rpc_server_register(server, "echo", echo, NULL, NULL);
  if (status == DIST_OK) status = dist_rpc_server_start(server);
  if (status != DIST_OK) return say_how_it_went(status);
  printf("serves\n");
  fflush(stdout);
  if (getenv("TEST_EXHAUST") != NULL) {
    (void)a_byte();
    while (n < FILES && (files[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) ++n;
    printf("none left\n");
    fflush(stdout);
    (void)a_byte();
    while (n > 0) close(files[--n]);
    printf("some left\n");
    fflush(stdout);
  }
  (void)a_byte();
  return dist_rpc_server_destroy(server) == DIST_OK ? 0 : 3;
}

static void limit_files(rlim_t files) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = files < limit.rlim_max ? files : limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- The targets of the attacks ---- */

static char tls_texts[3][128];

static const char *const *environment_of(int tls, const char *more) {
  static const char *list[12];
  int n = 0;
  list[n++] = secret;
  list[n++] = "DIST_REPLICAS=2";
  list[n++] = "DIST_LEASE_SECONDS=10";
  if (more != NULL) list[n++] = more;
  for (int i = 0; tls && i < 3; ++i) list[n++] = tls_texts[i];
  list[n] = NULL;
  return list;
}

static void await_listening(process *p, const char *address) {
  const time_t end = time(NULL) + GUARD_S;
  int fd;
  while ((fd = connect_to(address)) < 0) {
    if (time(NULL) > end) fail_msg("it does not listen: %s", p->text);
    poll(NULL, 0, 5);
  }
  close(fd);
}

static void attack_a_worker(int tls) {
  static strangers held;
  job all = job_of(2);
  if (tls) make_certificates("one", all.addresses[0]), set_tls("one", tls_texts);
  start_as(&all, 0, 0, "compute", environment_of(tls, NULL));
  await_listening(&all.processes[0], all.addresses[0]);
  const pid_t pid = all.processes[0].pid;
  const long before = kib_of(pid, "VmRSS:");
  attack_all(all.addresses[0], pid, tls, &held);
  start_as(&all, 1, 1, "compute", environment_of(tls, NULL));
  for (int w = 0; w < 2; ++w) {
    if (!has_said(&all.processes[w], "begun")) fail_msg("worker %d: %s", w, all.processes[w].text);
  }
  they_leave(pid, before, &held);
  attack_all(all.addresses[0], pid, tls, &held);
  attack_all(all.addresses[1], all.processes[1].pid, tls, &held);
  tell(&all.processes[0]);
  for (int w = 0; w < 2; ++w) {
    if (!has_said(&all.processes[w], "still right")) fail_msg("worker %d: %s", w, all.processes[w].text);
  }
  they_leave(pid, before, &held);
  tell(&all.processes[0]);
  for (int w = 0; w < 2; ++w) ends_well(&all.processes[w]);
}

static void assert_echo(dist_rpc_client *client) {
  dist_value *out = NULL;
  assert_ok(dist_rpc_call(client, "echo", NULL, NULL, &out));
  dist_value_release(out);
}

static dist_rpc_client *client_of(const char *address) {
  dist_rpc_client *client = NULL;
  dist_rpc_client_options options = DIST_RPC_CLIENT_OPTIONS_INIT;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  assert_ok(dist_rpc_client_create("grpc", address, &options, &client));
  return client;
}

static void set_own(int tls) {
  setenv("DIST_JOB_SECRET", "open sesame", 1);
  setenv("DIST_LEASE_SECONDS", "10", 1);
  static const char *const names[] = {"DIST_TLS_CA", "DIST_TLS_CERTIFICATE", "DIST_TLS_KEY"};
  for (int i = 0; i < 3; ++i) tls ? setenv(names[i], strchr(tls_texts[i], '=') + 1, 1) : unsetenv(names[i]);
}

static process *start_server(job *all, int tls, const char *more) {
  static char address[64];
  *all = job_of(1);
  if (tls) make_certificates("one", all->addresses[0]), set_tls("one", tls_texts);
  snprintf(address, sizeof address, "ADDRESS=%s", all->addresses[0]);
  const char *environment[12];
  int n = 0;
  for (const char *const *each = environment_of(tls, more); *each != NULL; ++each) environment[n++] = *each;
  environment[n++] = address;
  environment[n] = NULL;
  start_as(all, 0, 0, "calls", environment);
  if (!has_said(&all->processes[0], "serves\n")) fail_msg("%s", all->processes[0].text);
  set_own(tls);
  return &all->processes[0];
}

static void attack_a_server(int tls) {
  static strangers held;
  job all;
  process *server = start_server(&all, tls, NULL);
  const long before = kib_of(server->pid, "VmRSS:");
  dist_rpc_client *client = client_of(all.addresses[0]);
  assert_echo(client);
  attack_all(all.addresses[0], server->pid, tls, &held);
  assert_echo(client);
  dist_rpc_client *late = client_of(all.addresses[0]);
  assert_echo(late);
  they_leave(server->pid, before, &held);
  dist_rpc_client_destroy(late);
  dist_rpc_client_destroy(client);
  tell(server);
  ends_well(server);
}

static void attack_a_parameter_server(int tls) {
  static strangers held;
  static char lease[] = "DIST_LEASE_SECONDS=2";
  servers s = {.all = job_of(2), .num_ps = 1, .num_workers = 1};
  if (tls) make_certificates("one", s.all.addresses[0]), set_tls("one", tls_texts);
  for (int i = 0; i < 2; ++i) {
    static char configs[2][1024];
    config_of(&s, i == 0 ? "ps" : "worker", 0, configs[i], sizeof configs[i]);
    const char *environment[12] = {configs[i], lease};
    int n = 2;
    for (const char *const *each = environment_of(tls, NULL); *each != NULL; ++each) {
      if (strncmp(*each, "DIST_LEASE", 10) != 0) environment[n++] = *each;
    }
    start_as(&s.all, i, i, "tasks", environment);
  }
  for (int i = 0; i < 2; ++i) await_server(&s, i);
  set_own(tls);
  const pid_t pid = s.all.processes[0].pid;
  const long before = kib_of(pid, "VmRSS:");
  attack_all(s.all.addresses[0], pid, tls, &held);
  chief c = chief_of(&s);
  create_count(&c, "a");
  they_leave(pid, before, &held);
  attack_all(s.all.addresses[0], pid, tls, &held);
  for (int i = 0; i < 20; ++i) assert_int_equal(count_of(&c, "a"), 0);
  they_leave(pid, before, &held);
  end_chief(&c);
  end_servers(&s);
}

static void skip_without_openssl(void) {
  if (system("openssl version > /dev/null 2>&1") != 0) skip_because("openssl is not installed");
  make_certificate_folder();
}

static void with_tls(void (*attack)(int tls)) {
  skip_without_openssl();
  attack(1);
  set_own(0);
  remove_certificate_folder();
}

static void floods_do_not_harm_a_worker(void **state) { (void)state, attack_a_worker(0); }
static void floods_do_not_harm_a_worker_with_tls(void **state) { (void)state, with_tls(attack_a_worker); }
static void floods_do_not_harm_a_server(void **state) { (void)state, attack_a_server(0); }
static void floods_do_not_harm_a_server_with_tls(void **state) { (void)state, with_tls(attack_a_server); }
static void floods_do_not_harm_a_parameter_server(void **state) { (void)state, attack_a_parameter_server(0); }
static void floods_do_not_harm_a_parameter_server_with_tls(void **state) {
  (void)state, with_tls(attack_a_parameter_server);
}

/* ---- Descriptors ---- */

static void a_server_without_descriptors_listens_again(void **state) {
  (void)state;
  for (int waits = 0; waits < 2; ++waits) {
    job all;
    process *server = start_server(&all, 0, "TEST_EXHAUST=1");
    dist_rpc_client *client = client_of(all.addresses[0]);
    assert_echo(client);
    tell(server);
    if (!has_said(server, "none left\n")) fail_msg("%s", server->text);
    const int fd = connected_to(all.addresses[0]);
    if (waits) {
      /* It is accepted and closed, and is not left waiting. */
      struct pollfd closed = {fd, POLLIN, 0};
      assert_int_equal(poll(&closed, 1, GUARD_S * 1000), 1);
    }
    assert_echo(client);
    tell(server);
    if (!has_said(server, "some left\n")) fail_msg("%s", server->text);
    close(fd);
    dist_rpc_client *late = client_of(all.addresses[0]);
    assert_echo(late);
    dist_rpc_client_destroy(late);
    dist_rpc_client_destroy(client);
    tell(server);
    ends_well(server);
  }
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 3) {
    limit_files(FILES / 2);
    if (strcmp(argv[1], "calls") == 0) return serve_calls();
    return strcmp(argv[1], "tasks") == 0 ? serve_until_the_end(no_closures) : play();
  }
  limit_files(2 * IDLE);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_server_without_descriptors_listens_again),
      cmocka_unit_test(floods_do_not_harm_a_worker),
      cmocka_unit_test(floods_do_not_harm_a_worker_with_tls),
      cmocka_unit_test(floods_do_not_harm_a_server),
      cmocka_unit_test(floods_do_not_harm_a_server_with_tls),
      cmocka_unit_test(floods_do_not_harm_a_parameter_server),
      cmocka_unit_test(floods_do_not_harm_a_parameter_server_with_tls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
