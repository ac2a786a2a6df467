/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function with unreasonable arguments: numbers at the limits of their types, NULL for each pointer,
 * and array sizes that no memory can hold. Also every function with valid arguments after its strategy has
 * been shut down. Every call must return; none may crash, hang or throw, and a call that fails must set a
 * UTF-8 message and name its function. hostile.py generates the calls from the headers.
 *
 * The calls of one function run in a child process, so that a crash is detected and attributed.
 */
#include "hostile_support.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "hostile_calls.h"

enum { GUARD_S = 100 }; /* for hangs only */

/* Returns what is wrong with a call that failed without a message, or that did not fail although it should
 * have. */
static const char *fault_of(const struct fixture *f) {
  const struct function *function = f->function;
  if (!function->fallible) return NULL;
  const struct variant *variant = &function->variants[f->variant];
  if (f->status == DIST_OK) return variant->fails && !f->shut ? "succeeded" : NULL;
  const int about_errors = function->call == call_dist_fail || function->call == call_dist_last_error_info ||
                           function->call == call_dist_last_error_marked;
  if (f->variant == 0 && !about_errors && !variant->fails && !f->shut) return dist_last_error();
  if (about_errors) return NULL; /* the error is the host's own, or is unchanged */
  if (!f->shut && strstr(dist_last_error(), variant->words) == NULL) return dist_last_error();
  if (dist_last_error()[0] == '\0') return "failed without a message";
  dist_error_info info = DIST_ERROR_INFO_INIT;
  if (dist_last_error_info(&info) != DIST_OK || strcmp(info.function, function->name) != 0)
    return "failed without the function's name in dist_error_info";
  return is_utf8(dist_last_error()) ? NULL : "has a message that is no UTF-8";
}

static void call_here(struct fixture *f) {
  f->function->call(f);
  const char *fault = fault_of(f);
  if (fault != NULL) snprintf(f->shared->fault, sizeof f->shared->fault, "%s", fault);
}

static dist_status plan_and_call(dist_replica *replica, void *user_data) {
  struct fixture *f = user_data;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = 1;
  f->replica = replica;
  NEED(dist_all_reduce(replica, DIST_REDUCE_SUM, &f->tensors[0], &f->tensors[0], 1, &options, &f->work));
  call_here(f);
  return DIST_OK;
}

static dist_status call_in_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                                  dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  return plan_and_call(device, user_data);
}

static dist_status on_devices(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, call_in_device, user_data, NULL, NULL, NULL, NULL);
}

struct task {
  struct shared *shared;
  const char *path;
  const struct function *function;
  size_t variant;
  int shut;
};

/* Makes each call on a separate thread, because it never leaves what it has entered. The fixture is kept,
 * because datasets prefetch. */
static void *call_one(void *argument) {
  const struct task *task = argument;
  const struct function *function = task->function;
  struct fixture *f = calloc(1, sizeof *f);
  if (f == NULL) _exit(1);
  snprintf(task->shared->what, sizeof task->shared->what, "fixture");
  make_fixture(f, task->shared, task->path, function, task->variant);
  f->shut = task->shut;
  snprintf(task->shared->what, sizeof task->shared->what, "%s(%s%s)", function->name,
           function->variants[task->variant].what, f->shut ? ", after a shutdown" : "");
  if (f->shut) NEED(dist_strategy_shutdown(f->strategy, 0));
  /* The status of the run does not matter, because only the call is tested. */
  if (function->place == IN_REPLICA) {
    (void)!dist_run(f->strategy, plan_and_call, f, NULL);
  } else if (function->place == IN_DEVICE) {
    (void)!dist_run(f->strategy, on_devices, f, NULL);
  } else {
    call_here(f);
  }
  return NULL;
}

static void call_all(struct shared *shared, const char *path, const struct function *function) {
  /* cmocka's handlers would continue the test in the child. */
  const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < COUNT_OF(fatal); i++) signal(fatal[i], SIG_DFL);
  alarm(GUARD_S);
  const size_t shut = function->place == OUTSIDE ? 1 : 0;
  for (size_t i = 0; i < function->num_variants + shut; i++) {
    const int last = i == function->num_variants;
    const struct task task = {shared, path, function, last ? 0 : i, last};
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_one, (void *)&task) != 0) _exit(1);
    pthread_join(thread, NULL);
    if (shared->fault[0] != '\0') _exit(1);
  }
  _exit(0);
}

static void save(struct shared *shared, const char *path) {
  struct fixture f;
  make_fixture(&f, shared, "", NULL, 0);
  _exit(dist_checkpoint_save(f.strategy, path, f.variables, 1, NULL) == DIST_OK ? 0 : 1);
}

static int wait_for(pid_t child) {
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void every_function_returns(void **state) {
  (void)state;
  struct shared *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  char folder[] = "/tmp/dist-hostile-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/a.safetensors", folder);
  pid_t child = fork();
  if (child == 0) save(shared, path);
  const int saved = wait_for(child);
  int faults = saved != 0;
  for (size_t i = 0; i < COUNT_OF(functions) && saved == 0; i++) {
    memset(shared, 0, sizeof *shared);
    child = fork();
    if (child == 0) call_all(shared, path, &functions[i]);
    const int status = wait_for(child);
    if (status == 0) continue;
    faults++;
    if (WIFSIGNALED(status)) {
      print_error("%s: %s (signal %d)\n", shared->what,
                  WTERMSIG(status) == SIGALRM ? "does not return" : "died", WTERMSIG(status));
    } else {
      print_error("%s: %s\n", shared->what, shared->fault);
    }
  }
  unlink(path);
  snprintf(path, sizeof path, "%s/a.safetensors.ps", folder);
  unlink(path);
  rmdir(folder);
  munmap(shared, sizeof *shared);
  assert_int_equal(faults, 0);
}

/* A new function needs valid arguments in the tables of hostile.py. */
static void no_function_is_left_out(void **state) {
  (void)state;
  for (size_t i = 0; unknown[i] != NULL; i++) print_error("hostile.py does not know %s\n", unknown[i]);
  assert_null(unknown[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_function_is_left_out),
                                     cmocka_unit_test(every_function_returns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
