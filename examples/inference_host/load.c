// SPDX-License-Identifier: Apache-2.0
//
// Sends requests to an inference host at a fixed rate, without waiting for answers. The latency of a request
// counts from the time at which it was due.
//
//     load PORT RATE SECONDS TOKENS [CONNECTIONS [FILE]]
//
// With RATE 0, each of CONNECTIONS sends its next request when it has received an answer, which measures the
// maximum throughput. CONNECTIONS must then not exceed the number of requests that the host accepts at a
// time, because a refused connection retries immediately. The program prints one line of `name value` pairs.
// If FILE is given, it receives one line per answer: the due time and the latency in ms, and the start of the
// body.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CONNECTIONS = 900, MOST_TOKENS = 256, ROOM = 32768, EVENTS = 64, BEGIN = 200 };
static const int64_t second = 1000000000, grace = 5000000000;  // how long to wait for the last answers

typedef struct {
  int fd;
  int64_t meant;  // when its request was due; 0 = no request is outstanding
  char answer[ROOM];
  size_t size;
} connection;

static connection connections[MOST_CONNECTIONS];
static int used, idle[MOST_CONNECTIONS], num_idle, most = MOST_CONNECTIONS, poll_fd;
static uint16_t port;
static char asked[8192];
static size_t asked_size;
static int64_t begin, *times, num_times, refused, failed;
static double rate;
static FILE *file;
static struct {
  int64_t meant;
  char begin[BEGIN];
} * answers;  // parallel to `times`; NULL = no FILE

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * second + time.tv_nsec;
}

static void make_request(int tokens) {
  char body[4096];
  size_t size = (size_t)snprintf(body, sizeof body, "{\"ids\": [101");
  for (int i = 1; i < tokens; i++)
    size += (size_t)snprintf(body + size, sizeof body - size, ", %d", 100 + i * 37 % 90);
  size += (size_t)snprintf(body + size, sizeof body - size, "]}");
  asked_size =
      (size_t)snprintf(asked, sizeof asked,
                       "POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       size, body);
}

static int open_connection(connection *c) {
  const struct sockaddr_in host = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&host, sizeof host)) return 0;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  return epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

// Sends a request on an idle or new connection. Returns 0 if all connections are busy.
static int ask(int64_t meant) {
  connection *c = NULL;
  if (num_idle > 0) {
    c = &connections[idle[--num_idle]];
  } else if (used < most) {
    c = &connections[used++];
    if (!open_connection(c)) {
      fprintf(stderr, "load: no connection to port %d: %s\n", (int)port, strerror(errno));
      exit(1);
    }
  }
  if (c == NULL) return 0;
  c->meant = meant;
  c->size = 0;
  if (send(c->fd, asked, asked_size, MSG_NOSIGNAL) != (ssize_t)asked_size) failed++;  // and stays busy
  return 1;
}

// Returns the status code if the answer is complete, otherwise 0.
static int answer_of(connection *c) {
  c->answer[c->size] = '\0';
  const char *body = strstr(c->answer, "\r\n\r\n"), *length = strcasestr(c->answer, "content-length:");
  if (body == NULL || length == NULL || length > body) return 0;
  if (c->answer + c->size < body + 4 + atol(length + 15)) return 0;
  return atoi(c->answer + 9);
}

static void keep(const connection *c, int64_t time) {
  if (answers != NULL) {
    answers[num_times].meant = c->meant;
    snprintf(answers[num_times].begin, BEGIN, "%s", strstr(c->answer, "\r\n\r\n") + 4);
  }
  times[num_times++] = time;
}

static void receive(connection *c) {
  const ssize_t n = recv(c->fd, c->answer + c->size, ROOM - 1 - c->size, 0);
  if (n <= 0) {
    if (n < 0 && errno == EAGAIN) return;
    failed += c->meant != 0;
    epoll_ctl(poll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    return;
  }
  c->size += (size_t)n;
  const int code = answer_of(c);
  if (code == 0) return;
  if (code == 200)
    keep(c, now() - c->meant);
  else if (code == 503)
    refused++;
  else
    failed++;
  c->meant = 0;
  idle[num_idle++] = (int)(c - connections);
}

static int by_size(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static double ms_at(double part) {
  if (num_times == 0) return 0.0;
  const int64_t at = (int64_t)(part * (double)num_times);
  return (double)times[at < num_times ? at : num_times - 1] * 1e-6;
}

// Must be called before `times` is sorted. Returns 0 if the file cannot be written.
static int write_answers(void) {
  for (int64_t i = 0; i < num_times && file != NULL; i++) {
    const char *body = answers[i].begin;
    fprintf(file, "%.3f %.3f %.*s\n", (double)(answers[i].meant - begin) * 1e-6, (double)times[i] * 1e-6,
            (int)strcspn(body, "\r\n"), body);
  }
  return file == NULL || fclose(file) == 0;
}

// The due time of the n-th request at a fixed rate.
static int64_t due_at(int64_t number) { return begin + (int64_t)((double)number * 1e9 / rate); }

static int busy(void) { return used - num_idle; }

int main(int argc, char **argv) {
  if (argc < 5) return fprintf(stderr, "usage: load PORT RATE SECONDS TOKENS [CONNECTIONS [FILE]]\n"), 2;
  port = (uint16_t)atoi(argv[1]);
  rate = atof(argv[2]);
  const double seconds = atof(argv[3]);
  const int tokens = atoi(argv[4]);
  if (argc > 5 && atoi(argv[5]) < most) most = atoi(argv[5]);
  if (tokens < 1 || tokens > MOST_TOKENS || seconds <= 0.0 || rate < 0.0 || most < 1) return 2;
  make_request(tokens);
  const int64_t room = (int64_t)((rate > 0.0 ? rate : 100000.0) * seconds) + MOST_CONNECTIONS;
  times = malloc((size_t)room * sizeof *times);
  if (argc > 6) {
    answers = malloc((size_t)room * sizeof *answers);
    file = fopen(argv[6], "w");
    if (answers == NULL || file == NULL) return fprintf(stderr, "load: no file %s\n", argv[6]), 1;
  }
  poll_fd = epoll_create1(0);
  if (times == NULL || poll_fd < 0) return 1;
  begin = now();
  const int64_t end = begin + (int64_t)(seconds * 1e9);
  int64_t sent = 0, answered_in_time = 0, at = begin;
  for (;;) {
    for (;; sent++) {  // send all requests that are due, including late ones
      const int64_t due = rate > 0.0 ? due_at(sent) : at;
      if (due > at || due >= end || !ask(due)) break;
    }
    const int64_t before = num_times;
    struct epoll_event events[EVENTS];
    const int64_t next = rate > 0.0 ? due_at(sent) : at + second;
    const struct timespec wait = {0, next > at && next - at < 100000000 ? next - at
                                     : next > at                        ? 100000000
                                                                        : 100000};
    const int n = epoll_pwait2(poll_fd, events, EVENTS, &wait, NULL);
    for (int i = 0; i < n; i++) receive(events[i].data.ptr);
    at = now();
    if (at <= end) answered_in_time += num_times - before;
    const int all_sent = rate > 0.0 ? due_at(sent) >= end : at >= end;
    if (at > end + grace || (all_sent && at >= end && busy() == 0)) break;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  if (!write_answers()) return fprintf(stderr, "load: %s cannot be written\n", argv[6]), 1;
  qsort(times, (size_t)num_times, sizeof *times, by_size);
  printf(
      "asked %lld answered %lld refused %lld failed %lld rate %.1f p50_ms %.2f p99_ms %.2f p999_ms %.2f cpu "
      "%.3f\n",
      (long long)sent, (long long)num_times, (long long)refused, (long long)failed + busy(),
      (double)answered_in_time / seconds, ms_at(0.5), ms_at(0.99), ms_at(0.999),
      cpu / ((double)(now() - begin) * 1e-9));
  return 0;
}
