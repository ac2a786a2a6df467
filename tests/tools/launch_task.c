/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that tests of dist-launch start as a task. Its arguments are commands, executed in order:
 *
 *     say TEXT, err TEXT, raw TEXT   writes TEXT to standard output, to standard error, or without a newline
 *     bytes N                        writes a line of N bytes
 *     lines N                        writes N lines of equal length in small pieces, alternately to output and error
 *     env NAME                       writes the environment variable
 *     zero                           writes a zero byte
 *     input                          reads standard input to its end, and writes the number of bytes
 *     signals                        writes which signals are blocked and which are ignored
 *     tell WORD                      writes "worker 1 WORD PID" to the pipe LAUNCH_TELL
 *     await                          reads a byte from the pipe LAUNCH_GATE
 *     trap SIGNAL exit|well|tell|last|ignore
 *                                    sets the action for a signal: exit with its number or with 0, write to LAUNCH_TELL,
 *                                    write there and exit with its number, or nothing
 *     child, daemon                  starts a process that waits forever, in the task's group or in a new session
 *     exit N, raise SIGNAL, wait     exits, raises a signal, or waits forever
 *     only TASK ... end              executes commands only in that task ("worker 1")
 *     first ... end                  executes commands only if the task has not been restarted
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char name[64];
static int tell_fd = -1;

static void put(int fd, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, text, size);
    if (n < 0) exit(98);
    text += n;
    size -= (size_t)n;
  }
}

static void put_line(int fd, const char* text) {
  char line[8192];
  put(fd, line, (size_t)snprintf(line, sizeof line, "%s\n", text));
}

static void tell(const char* word) {
  char line[256];
  put(tell_fd, line, (size_t)snprintf(line, sizeof line, "%s %s %d\n", name, word, (int)getpid()));
}

/* The program has one thread, and does not print meanwhile, so snprintf() is safe in these handlers. */
static void on_exit_signal(int signal) { _exit(signal); }
static void on_well_signal(int signal) {
  (void)signal;
  _exit(0);
}
static void on_told_signal(int signal) { tell(sigabbrev_np(signal)); }
static void on_last_signal(int signal) {
  tell(sigabbrev_np(signal));
  _exit(signal);
}

static int signal_of(const char* word) {
  for (int i = 1; i < 32; i++)
    if (strcmp(sigabbrev_np(i), word) == 0) return i;
  exit(97);
}

static void trap(int signal, const char* what) {
  struct sigaction action = {.sa_flags = SA_RESTART};
  switch (what[0]) {
    case 'e': action.sa_handler = on_exit_signal; break;
    case 'w': action.sa_handler = on_well_signal; break;
    case 't': action.sa_handler = on_told_signal; break;
    case 'l': action.sa_handler = on_last_signal; break;
    default: action.sa_handler = SIG_IGN; break;
  }
  sigaction(signal, &action, NULL);
}

static void wait_for_ever(void) {
  for (;;) pause();
}

static void find_name(void) {
  const char* config = getenv("TF_CONFIG");
  const char* type = config ? strstr(config, "\"type\":\"") : NULL;
  const char* index = config ? strstr(config, "\"index\":") : NULL;
  if (!type || !index) exit(96);
  snprintf(name, sizeof name, "%.*s %d", (int)strcspn(type + 8, "\""), type + 8, atoi(index + 8));
}

static int fd_of(const char* variable) {
  const char* text = getenv(variable);
  return text ? atoi(text) : -1;
}

static void put_env(const char* variable) {
  char line[8192];
  const char* value = getenv(variable);
  if (value)
    snprintf(line, sizeof line, "%s=%s", variable, value);
  else
    snprintf(line, sizeof line, "%s is not set", variable);
  put_line(STDOUT_FILENO, line);
}

static void put_lines(int n) {
  char piece[47]; /* not a power of two, so that lines do not end where writes do */
  memset(piece, name[strlen(name) - 1], sizeof piece);
  for (int i = 0; i < n; i++) {
    const int fd = i % 2 ? STDERR_FILENO : STDOUT_FILENO;
    for (int k = 0; k < 10; k++) put(fd, piece, sizeof piece);
    put(fd, "\n", 1);
  }
}

static void put_bytes(int n) {
  char* line = malloc((size_t)n + 1);
  if (!line) exit(95);
  memset(line, 'x', (size_t)n);
  line[n] = '\n';
  put(STDOUT_FILENO, line, (size_t)n + 1);
  free(line);
}

static void put_input(void) {
  char bytes[256];
  int all = 0;
  for (ssize_t n; (n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0;) all += (int)n;
  snprintf(bytes, sizeof bytes, "%d bytes of input", all);
  put_line(STDOUT_FILENO, bytes);
}

static void put_signals(void) {
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6)) put(STDOUT_FILENO, line, strlen(line));
  if (status) fclose(status);
}

static void start_child(int is_daemon) {
  const pid_t pid = fork();
  if (pid != 0) return;
  if (is_daemon) setsid();
  for (int i = 1; i < 32; i++) signal(i, SIG_IGN); /* except SIGKILL, which fails */
  tell(is_daemon ? "daemon" : "child");
  wait_for_ever();
}

static char** skip(char** action) {
  while (*action && strcmp(*action, "end") != 0) action++;
  return action;
}

/* Executes an action, and returns its last argument. */
static char** act(char** action) {
  const char *word = action[0], *next = action[1];
  if (!strcmp(word, "zero")) return put(STDOUT_FILENO, "", 1), action;
  if (!strcmp(word, "input")) return put_input(), action;
  if (!strcmp(word, "signals")) return put_signals(), action;
  if (!strcmp(word, "child") || !strcmp(word, "daemon")) return start_child(word[0] == 'd'), action;
  if (!strcmp(word, "end")) return action;
  if (!strcmp(word, "wait")) wait_for_ever();
  if (!strcmp(word, "first")) return getenv("DIST_RESTART") ? skip(action) : action;
  if (!strcmp(word, "await")) {
    char byte;
    if (read(fd_of("LAUNCH_GATE"), &byte, 1) != 1) exit(94);
    return action;
  }
  if (!next) exit(93);
  if (!strcmp(word, "say")) return put_line(STDOUT_FILENO, next), action + 1;
  if (!strcmp(word, "err")) return put_line(STDERR_FILENO, next), action + 1;
  if (!strcmp(word, "raw")) return put(STDOUT_FILENO, next, strlen(next)), action + 1;
  if (!strcmp(word, "bytes")) return put_bytes(atoi(next)), action + 1;
  if (!strcmp(word, "lines")) return put_lines(atoi(next)), action + 1;
  if (!strcmp(word, "env")) return put_env(next), action + 1;
  if (!strcmp(word, "tell")) return tell(next), action + 1;
  if (!strcmp(word, "trap") && action[2]) return trap(signal_of(next), action[2]), action + 2;
  if (!strcmp(word, "exit")) exit(atoi(next));
  if (!strcmp(word, "raise")) {
    signal(signal_of(next), SIG_DFL);  // sanitizers handle some signals
    return raise(signal_of(next)), action + 1;
  }
  if (!strcmp(word, "only")) return strcmp(next, name) ? skip(action) : action + 1;
  exit(92);
}

int main(int argc, char** argv) {
  (void)argc;
  find_name();
  tell_fd = fd_of("LAUNCH_TELL");
  for (char** action = argv + 1; *action; action++) {
    action = act(action);
    if (!*action) exit(91); /* an "end" is missing */
  }
  return 0;
}
