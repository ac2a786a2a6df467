/* SPDX-License-Identifier: Apache-2.0
 *
 * A job of two workers for tests in which strangers connect to its ports, and the HTTP/2 that a stranger
 * sends.
 */
#ifndef TESTS_ABI_WORKERS_STRANGERS_SUPPORT_H
#define TESTS_ABI_WORKERS_STRANGERS_SUPPORT_H

#include "../processes_support.h"

#include <fcntl.h>

enum { NUMBERS = 5000, ROUNDS = 50 };

static const char *const knows[] = {"DIST_REPLICAS=2", "DIST_JOB_SECRET=open sesame", NULL};

/* ---- The job ---- */

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

typedef struct turn {
  int number;
  int32_t told; /* whether worker 0 has received a tell(), which all workers learn in this round */
  int32_t agreed;
} turn;

static inline dist_status add(dist_replica *replica, void *user_data) {
  turn *now = user_data;
  const int32_t n = dist_replica_num_replicas(replica);
  const int32_t me = dist_replica_id(replica);
  static _Thread_local int32_t numbers[NUMBERS];
  for (int i = 0; i < NUMBERS; ++i) numbers[i] = (me + 1) * (i + now->number);
  int64_t shape[] = {NUMBERS};
  int32_t flag = me == 0 ? now->told : 0;
  dist_tensor all = {numbers, DIST_I32, 1, shape, NULL};
  dist_tensor one = {&flag, DIST_I32, 0, NULL, NULL};
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &all, &all, 1, NULL, NULL));
  TRY(dist_all_reduce(replica, DIST_REDUCE_MAX, &one, &one, 1, NULL, NULL));
  for (int i = 0; i < NUMBERS; ++i) {
    if (numbers[i] != n * (n + 1) / 2 * (i + now->number)) return dist_fail(DIST_DATA_LOSS, "a wrong sum");
  }
  if (me % 2 == 0) now->agreed = flag;
  return DIST_OK;
}

static inline int32_t is_told(void) {
  char byte;
  return read(STDIN_FILENO, &byte, 1) == 1;
}

/* Prints "begun" after the first round. After tell() it computes for ROUNDS more and prints "still right";
   after the second tell() it ends. */
static inline dist_status compute(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  const char *const limit = getenv("TEST_TIMEOUT_S");
  options.timeout_ns = (limit != NULL ? strtol(limit, NULL, 10) : GUARD_S) * INT64_C(1000000000);
  dist_strategy *strategy = NULL;
  TRY(dist_strategy_create(&options, &strategy));
  turn now = {0};
  dist_status status = DIST_OK;
  for (int times = 0, until = -1; status == DIST_OK && times < 2; ++now.number) {
    now.told = is_told();
    status = dist_run(strategy, add, &now, NULL);
    if (status != DIST_OK) break;
    if (now.number == 0) printf("begun\n");
    if (now.agreed && ++times == 1) until = now.number + ROUNDS;
    if (now.number == until) printf("still right\n");
    fflush(stdout);
  }
  /* Unless this fails, the latest error of the thread is still that of the run. */
  const dist_status ended = dist_strategy_destroy(strategy);
  return ended == DIST_OK ? status : ended;
}

static inline int play(void) {
  if (fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0) return 2;
  return say_how_it_went(compute());
}

/* ---- Data from strangers ---- */

static inline int connected_to(const char *address) {
  const int fd = connect_to(address);
  assert_true(fd >= 0);
  return fd;
}

/* Sends as much as the peer accepts; the peer may close the connection earlier. */
static inline void say(int fd, const void *bytes, size_t size) {
  const char *at = bytes;
  while (size > 0) {
    const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += sent;
    size -= (size_t)sent;
  }
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static inline size_t put_frame(unsigned char *to, int type, int flags, int stream, const void *payload,
                               size_t bytes) {
  const unsigned char head[9] = {
      (unsigned char)(bytes >> 16),  (unsigned char)(bytes >> 8),  (unsigned char)bytes,
      (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
      (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
  memcpy(to, head, sizeof head);
  if (bytes > 0) memcpy(to + sizeof head, payload, bytes);
  return sizeof head + bytes;
}

/* Writes a header field in HPACK's literal form. */
static inline size_t put_field(unsigned char *to, const char *name, const char *text) {
  size_t used = 0;
  to[used++] = 0;
  to[used++] = (unsigned char)strlen(name);
  memcpy(to + used, name, strlen(name));
  used += strlen(name);
  to[used++] = (unsigned char)strlen(text);
  memcpy(to + used, text, strlen(text));
  return used + strlen(text);
}

#endif
