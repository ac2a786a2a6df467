/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker processes whose host names cannot be resolved when they start, like those of pods that have not been
 * scheduled yet, and names that only a file knows, while the name server is silent. The tests run in
 * namespaces of their own, with a name server of their own.
 */
/* unshare() */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "../processes_support.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

enum { WORKERS = 2, UNKNOWN_FOR = 3 };

static dist_status meet(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_barrier(replica, NULL, NULL);
}

static int play(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = (int64_t)GUARD_S * 1000000000;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, meet, NULL, NULL);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) != DIST_OK ? 2 : code;
}

/* ---- The test's side ---- */

static int is_up(void) {
  struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int done = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
  close(fd);
  return done;
}

/* Replaces a file by one with this text. */
static int replaces(const char *path, const char *text) {
  char own[] = "/tmp/dist-names-XXXXXX";
  const int fd = mkstemp(own);
  if (fd < 0) return 0;
  const int done =
      write(fd, text, strlen(text)) == (ssize_t)strlen(text) && mount(own, path, NULL, MS_BIND, NULL) == 0;
  close(fd);
  unlink(own);
  return done;
}

/* Moves to a separate network whose name server is at 127.0.0.1. Processes started from here are in it,
 * too. */
static int has_own_names(void) {
  const int flags = CLONE_NEWNS | CLONE_NEWNET;
  if (unshare(flags) != 0 && unshare(flags | CLONE_NEWUSER) != 0) return 0;
  return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         replaces("/etc/resolv.conf", "nameserver 127.0.0.1\n") &&
         replaces("/etc/hosts", "127.0.0.1 localhost\n127.0.0.1 w0.file\n127.0.0.2 w1.file\n") && is_up();
}

static int own_names;
static const char kNoNames[] =
    "this process may not set up a network of its own with its own /etc/resolv.conf and /etc/hosts";

static int name_server(void) {
  struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
  return fd;
}

/* They listen on all interfaces, as nothing else is configured. */
static void run_all(job *all) {
  static const char *const kEnvironment[] = {"DIST_PLAINTEXT=1", "DIST_JOB_SECRET=of this job", NULL};
  start(all, "play", kEnvironment);
  for (int w = 0; w < all->n; ++w) ends_well(&all->processes[w]);
}

static atomic_int asked[WORKERS]; /* for IPv4 addresses */

/* Answers UNKNOWN_FOR times that the name "worker-N..." does not exist, and then with 127.0.0.(N + 1). */
static void *be_server(void *given) {
  const int fd = *(const int *)given;
  unsigned char message[600];
  for (;;) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(fd, message, 512, 0, (struct sockaddr *)&from, &size);
    if (got <= 0) return NULL;
    size_t end = 12; /* of the name */
    while (end < (size_t)got && message[end] != 0) end += message[end] + 1U;
    if (end + 5 > (size_t)got) continue;
    const int worker = message[12 + 8] - '0'; /* a length, "worker-", and the digit */
    const int of_4 = message[end + 2] == 1;
    const int known = worker >= 0 && worker < WORKERS && atomic_load(&asked[worker]) >= UNKNOWN_FOR;
    if (worker >= 0 && worker < WORKERS && of_4) atomic_fetch_add(&asked[worker], 1);
    size_t bytes = end + 5;
    message[2] = 0x81; /* an answer */
    message[3] = known ? 0x80 : 0x83;
    memset(message + 6, 0, 6);
    if (known && of_4) {
      const unsigned char address[] = {0xC0, 12, 0, 1, 0,   1, 0, 0,
                                       0,    1,  0, 4, 127, 0, 0, (unsigned char)(worker + 1)};
      message[7] = 1; /* with one address, valid for a second */
      memcpy(message + bytes, address, sizeof address);
      bytes += sizeof address;
    }
    if (sendto(fd, message, bytes, 0, (struct sockaddr *)&from, size) < 0) return NULL;
  }
}

static void who_starts_before_its_name_is_known_is_found(void **state) {
  (void)state;
  if (!own_names) skip_because(kNoNames);
  int fd = name_server();
  pthread_t server;
  assert_int_equal(pthread_create(&server, NULL, be_server, &fd), 0);
  job all = {.n = WORKERS};
  for (int w = 0; w < WORKERS; ++w)
    snprintf(all.addresses[w], sizeof all.addresses[w], "worker-%d.job:%d", w, 2222 + w);
  run_all(&all);
  for (int w = 0; w < WORKERS; ++w) assert_true(atomic_load(&asked[w]) > UNKNOWN_FOR);
  shutdown(fd, SHUT_RDWR);
  pthread_join(server, NULL);
  close(fd);
}

static void a_name_that_only_a_file_knows_needs_no_name_server(void **state) {
  (void)state;
  if (!own_names) skip_because(kNoNames);
  const int fd = name_server(); /* it never answers */
  job all = {.n = WORKERS};
  for (int w = 0; w < WORKERS; ++w)
    snprintf(all.addresses[w], sizeof all.addresses[w], "w%d.file:%d", w, 2222 + w);
  run_all(&all);
  close(fd);
}

int main(int argc, char **argv) {
  (void)argv;
  if (argc == 3) return play();
  signal(SIGPIPE, SIG_IGN);
  own_names = has_own_names();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_starts_before_its_name_is_known_is_found),
      cmocka_unit_test(a_name_that_only_a_file_knows_needs_no_name_server),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
