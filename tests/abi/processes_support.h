/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers as processes: the test's own program, started once per worker with TF_CONFIG. A worker prints its
 * result.
 */
#ifndef TESTS_ABI_PROCESSES_SUPPORT_H
#define TESTS_ABI_PROCESSES_SUPPORT_H

#include "common.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 8, GUARD_S = 100 };

typedef struct process {
  pid_t pid;
  int out; /* its output */
  int in;  /* its input, see tell() */
  char text[16384];
  size_t used;
  int status; /* as from waitpid() */
} process;

typedef struct job {
  int n;
  char addresses[MOST_PROCESSES][32];
  process processes[MOST_PROCESSES];
} job;

/* Ports that were free a moment ago; all are found before one is released. They belong to a loopback address
   that neither outgoing connections nor concurrent tests use. */
static inline job job_of(int n) {
  job all = {.n = n};
  int sockets[MOST_PROCESSES];
  const uint32_t host = 0x7F800000U | ((uint32_t)getpid() & 0x7FFFFFU);
  for (int w = 0; w < n; ++w) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    socklen_t size = sizeof address;
    sockets[w] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(sockets[w] >= 0);
    assert_int_equal(bind(sockets[w], (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(sockets[w], (struct sockaddr *)&address, &size), 0);
    snprintf(all.addresses[w], sizeof all.addresses[w], "%s:%d", inet_ntoa(address.sin_addr),
             ntohs(address.sin_port));
  }
  for (int w = 0; w < n; ++w) close(sockets[w]);
  return all;
}

/* Connects to a worker's address. Returns -1 if no program listens there. */
static inline int connect_to(const char *address) {
  char host[32];
  snprintf(host, sizeof host, "%.*s", (int)(strchr(address, ':') - address), address);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(host)};
  to.sin_port = htons((uint16_t)strtol(strchr(address, ':') + 1, NULL, 10));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

static inline void set_tf_config(const job *all, int worker) {
  char text[1024];
  size_t used = (size_t)snprintf(text, sizeof text, "{\"cluster\": {\"worker\": [");
  for (int w = 0; w < all->n; ++w) {
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\"", w == 0 ? "" : ", ", all->addresses[w]);
  }
  snprintf(text + used, sizeof text - used, "]}, \"task\": {\"type\": \"worker\", \"index\": %d}}", worker);
  setenv("TF_CONFIG", text, 1);
}

/* Starts worker `worker` as `place` of the job. The two numbers differ only if a worker is started twice.
   `environment` has "NAME=value" texts and ends with NULL. */
static inline void start_as(job *all, int place, int worker, const char *part,
                            const char *const *environment) {
  process *p = &all->processes[place];
  int out[2];
  int in[2];
  assert_int_equal(pipe(out), 0);
  assert_int_equal(pipe(in), 0);
  memset(p, 0, sizeof *p);
  fflush(NULL);
  p->pid = fork();
  assert_true(p->pid >= 0);
  if (p->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test must not leave processes behind */
    set_tf_config(all, worker);
    for (; environment != NULL && *environment != NULL; ++environment) putenv((char *)*environment);
    dup2(out[1], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    dup2(in[0], STDIN_FILENO);
    for (int fd = 3; fd < 256; ++fd) close(fd);
    char number[16];
    snprintf(number, sizeof number, "%d", worker);
    execl("/proc/self/exe", "test", part, number, (char *)NULL);
    _exit(127);
  }
  close(out[1]);
  close(in[0]);
  p->out = out[0];
  p->in = in[1];
}

static inline void start(job *all, const char *part, const char *const *environment) {
  for (int w = all->n - 1; w >= 0; --w) start_as(all, w, w, part, environment);
}

/* Reads until the worker has printed `words`, or has ended. */
static inline int has_said(process *p, const char *words) {
  const time_t end = time(NULL) + GUARD_S;
  while (words == NULL || strstr(p->text, words) == NULL) {
    struct pollfd ready = {p->out, POLLIN, 0};
    if (time(NULL) > end || poll(&ready, 1, 1000) < 0) break;
    if (ready.revents == 0) continue;
    const ssize_t got = read(p->out, p->text + p->used, sizeof p->text - 1 - p->used);
    if (got <= 0) return words != NULL && strstr(p->text, words) != NULL;
    p->used += (size_t)got;
  }
  return words != NULL && strstr(p->text, words) != NULL;
}

static inline void tell(process *p) { assert_int_equal(write(p->in, "\n", 1), 1); }

/* Returns the worker's exit code, or 128 plus the number of the signal. */
static inline int end_of(process *p) {
  (void)has_said(p, NULL);
  kill(p->pid, SIGCONT);
  pid_t ended = 0;
  for (const time_t end = time(NULL) + GUARD_S; ended == 0 && time(NULL) < end;) {
    ended = waitpid(p->pid, &p->status, WNOHANG);
    if (ended == 0) poll(NULL, 0, 10);
  }
  if (ended == 0) {
    printf("# a worker did not end; it had said: %s\n", p->text);
    kill(p->pid, SIGKILL);
    waitpid(p->pid, &p->status, 0);
  }
  close(p->out);
  close(p->in);
  return WIFSIGNALED(p->status) ? 128 + WTERMSIG(p->status) : WEXITSTATUS(p->status);
}

static inline void ends_well(process *p) {
  const int code = end_of(p);
  if (code != 0) fail_msg("a worker ended with %d: %s", code, p->text);
}

/* Prints a worker's last line: its status, the culprit of the report, and the message. */
static inline int say_how_it_went(dist_status status) {
  dist_error_info info = {.struct_size = sizeof info};
  if (status == DIST_OK) {
    printf("went well\n");
  } else {
    if (dist_last_error_info(&info) != DIST_OK) return 2;
    printf("%s by worker %d: %s\n", dist_status_name(status), info.worker, dist_last_error());
  }
  fflush(stdout);
  return status == DIST_OK ? 0 : 1;
}

#endif
