/* SPDX-License-Identifier: Apache-2.0
 *
 * Strangers connect to the ports of a job's workers and send arbitrary data while the job computes. It
 * continues with correct data.
 */
#include "strangers_support.h"

enum { CONNECTIONS = 200 };

static void begin(job *all) {
  *all = job_of(2);
  start(all, "compute", knows);
  for (int w = 0; w < 2; ++w) {
    if (!has_said(&all->processes[w], "begun")) fail_msg("worker %d: %s", w, all->processes[w].text);
  }
}

/* The job continues while the strangers' connections are open. */
static void it_goes_on(job *all) {
  tell(&all->processes[0]);
  for (int w = 0; w < 2; ++w) {
    if (!has_said(&all->processes[w], "still right")) fail_msg("worker %d: %s", w, all->processes[w].text);
  }
}

static void it_ends(job *all) {
  tell(&all->processes[0]);
  for (int w = 0; w < 2; ++w) {
    ends_well(&all->processes[w]);
    assert_non_null(strstr(all->processes[w].text, "went well"));
  }
}

/* ---- Strangers on sockets ---- */

/* Opens the stream of a link and sends the first half of a hello. */
static void say_half_a_hello(int fd) {
  unsigned char fields[512];
  unsigned char text[1024];
  unsigned char hello[5 + 60] = {0, 0, 0, 0, 180, 'd', 'i', 's', 't'};
  size_t used = put_field(fields, ":method", "POST");
  used += put_field(fields + used, ":scheme", "http");
  used += put_field(fields + used, ":path", "/dist.Workers/Link");
  used += put_field(fields + used, ":authority", "localhost");
  used += put_field(fields + used, "content-type", "application/grpc");
  used += put_field(fields + used, "te", "trailers");
  size_t bytes = sizeof preface - 1;
  memcpy(text, preface, bytes);
  bytes += put_frame(text + bytes, 4, 0, 0, NULL, 0);      /* SETTINGS */
  bytes += put_frame(text + bytes, 1, 4, 1, fields, used); /* HEADERS, complete */
  bytes += put_frame(text + bytes, 0, 0, 1, hello, sizeof hello);
  say(fd, text, bytes);
}

static void garbage_changes_nothing(void **state) {
  (void)state;
  job all;
  begin(&all);
  static unsigned char noise[100000];
  uint32_t random = 1;
  for (size_t i = 0; i < sizeof noise; ++i)
    noise[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
  int kept[12];
  size_t n = 0;
  for (int w = 0; w < 2; ++w) {
    for (int kind = 0; kind < 6; ++kind) {
      const int fd = kept[n++] = connected_to(all.addresses[w]);
      if (kind == 0) say(fd, noise, sizeof noise);
      if (kind == 1) say(fd, preface, sizeof preface - 1), say(fd, noise, sizeof noise);
      if (kind == 2) say(fd, "GET / HTTP/1.1\r\nHost: there\r\n\r\n", 31);
      if (kind == 3) say(fd, preface, 10);
      if (kind >= 4) say_half_a_hello(fd);
      if (kind == 5) shutdown(fd, SHUT_WR);
    }
  }
  it_goes_on(&all);
  for (size_t i = 0; i < n; ++i) close(kept[i]);
  it_ends(&all);
}

static void many_connections_that_say_nothing_change_nothing(void **state) {
  (void)state;
  job all;
  begin(&all);
  int kept[2][CONNECTIONS];
  for (int w = 0; w < 2; ++w) {
    for (int i = 0; i < CONNECTIONS; ++i) {
      kept[w][i] = connected_to(all.addresses[w]);
      /* Some of them have started a link. */
      if (i % 4 == 0) say_half_a_hello(kept[w][i]);
    }
  }
  it_goes_on(&all);
  for (int w = 0; w < 2; ++w) {
    for (int i = 0; i < CONNECTIONS; ++i) close(kept[w][i]);
  }
  it_ends(&all);
}

/* ---- Strangers that act as workers ---- */

/* Starts a process that claims to be worker `worker` of `its_job`, and checks that it gets the reason for its
 * rejection. */
static void intrude(job *its_job, int worker, const char *secret, const char *words) {
  const job spare = job_of(1);
  char bind_address[64];
  char known[64];
  snprintf(bind_address, sizeof bind_address, "DIST_BIND_ADDRESS=%s", spare.addresses[0]);
  snprintf(known, sizeof known, "DIST_JOB_SECRET=%s", secret);
  /* A process without the secret tries until its deadline. */
  const char *const environment[] = {"DIST_REPLICAS=2", known, bind_address,
                                     strcmp(words, "secret") == 0 ? "TEST_TIMEOUT_S=2" : NULL, NULL};
  job intruder = *its_job;
  start_as(&intruder, 0, worker, "compute", environment);
  process *p = &intruder.processes[0];
  assert_int_equal(end_of(p), 1);
  if (strstr(p->text, words) == NULL) fail_msg("an intruder is told: %s, and not: %s", p->text, words);
}

static void whoever_says_that_it_is_a_worker_changes_nothing(void **state) {
  (void)state;
  job all;
  begin(&all);
  /* On the worker's own port. */
  job twice = all;
  start_as(&twice, 0, 1, "compute", knows);
  assert_int_equal(end_of(&twice.processes[0]), 1);
  assert_non_null(strstr(twice.processes[0].text, "in use"));
  intrude(&all, 1, "open sesame", "a second process for it");
  intrude(&all, 1, "open barley", "secret");
  it_goes_on(&all);
  /* Clusters with one more worker, and with a different worker 1. */
  const job spare = job_of(1);
  job larger = all;
  larger.n = 3;
  snprintf(larger.addresses[2], sizeof larger.addresses[2], "%s", spare.addresses[0]);
  intrude(&larger, 2, "open sesame", "a cluster of 3 workers, but worker");
  job other = all;
  snprintf(other.addresses[1], sizeof other.addresses[1], "%s", spare.addresses[0]);
  intrude(&other, 1, "open sesame", "differs from the one at worker");
  it_ends(&all);
}

int main(int argc, char **argv) {
  (void)argv;
  if (argc == 3) return play();
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(garbage_changes_nothing),
      cmocka_unit_test(many_connections_that_say_nothing_change_nothing),
      cmocka_unit_test(whoever_says_that_it_is_a_worker_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
