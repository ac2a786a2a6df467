/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker processes, each with its own certificate. Between two generations, all of them get new certificates
 * from a different authority. openssl(1) creates them.
 */
#include "../processes_support.h"

enum { WORKERS = 3 };

#if defined(__SANITIZE_ADDRESS__)
/* When a worker exits, a thread of gRPC may be in the middle of a TLS handshake, whose memory then counts as
 * a leak. The tests of core/net/grpc check what libdist itself allocates there. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libcrypto.so\nleak:libgrpc.so"; }
#endif

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_barrier(replica, NULL, NULL);
}

static dist_status create(int64_t timeout_s, dist_strategy **out) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.timeout_ns = timeout_s * 1000000000;
  return dist_strategy_create(&options, out);
}

static int play_one_run(void) {
  dist_strategy *strategy = NULL;
  dist_status status = create(3, &strategy);
  if (status == DIST_OK) status = dist_run(strategy, nothing, NULL, NULL);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) != DIST_OK ? 2 : code;
}

/* Runs, and re-forms until all workers take part again. */
static int play_until_all(void) {
  dist_strategy *strategy = NULL;
  dist_status status = create(GUARD_S, &strategy);
  dist_strategy_properties is = DIST_STRATEGY_PROPERTIES_INIT;
  int said = 0;
  while (status == DIST_OK && (is.generation == 0 || is.num_workers < WORKERS)) {
    status = dist_run(strategy, nothing, NULL, NULL);
    if (status == DIST_OK && said++ == 0) printf("first run OK\n"), fflush(stdout);
    int32_t due = 1;
    if (status == DIST_OK) status = dist_strategy_reform_due(strategy, &due);
    /* Worker 0 may still be in a run with its previous certificate. */
    while (due && (status = dist_strategy_reform(strategy, NULL)) == DIST_UNAVAILABLE) {
    }
    if (status == DIST_OK) status = dist_strategy_query(strategy, &is);
    if (due && status == DIST_OK) printf("%d workers\n", is.num_workers), fflush(stdout);
  }
  if (status == DIST_OK) status = dist_run(strategy, nothing, NULL, NULL);
  const int code = say_how_it_went(status);
  return dist_strategy_destroy(strategy) != DIST_OK ? 2 : code;
}

/* ---- The test's side ---- */

static char folder[64] = "/tmp/dist-certificates-XXXXXX";

static int shell(const char *format, ...) {
  char text[2048];
  const int at = snprintf(text, sizeof text, "cd '%s' && (", folder);
  va_list values;
  va_start(values, format);
  const int used = vsnprintf(text + at, sizeof text - (size_t)at - 20, format, values);
  va_end(values);
  snprintf(text + at + used, 20, ") >out.txt 2>&1");
  return system(text);
}

/* Makes an authority, and a certificate for each worker. Returns 0 if this succeeds. */
static int issue(const job *all) {
  const char *const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  int failed = shell("openssl req -x509 %s -keyout ca.key -out ca.pem -days 2 -subj /CN=ca", key);
  const int host = (int)(strchr(all->addresses[0], ':') - all->addresses[0]);
  for (int w = 0; w < all->n && !failed; ++w) {
    failed = shell(
        "echo subjectAltName=IP:%.*s >ext && openssl req %s -keyout %d.key -out csr -subj /CN=%d && "
        "openssl x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out %d.pem "
        "-extfile ext",
        host, all->addresses[0], key, w, w, w);
  }
  return failed;
}

static void start_with(job *all, int place, int worker, const char *part, const char *files) {
  char texts[3][160];
  const char *const names[] = {"CA", "CERTIFICATE", "KEY"};
  const char *environment[] = {texts[0], texts[1], texts[2], "DIST_LEASE_SECONDS=2", NULL};
  snprintf(texts[0], sizeof texts[0], "DIST_TLS_%s=%s/%sca.pem", names[0], folder, files);
  snprintf(texts[1], sizeof texts[1], "DIST_TLS_%s=%s/%s%d.pem", names[1], folder, files, worker);
  snprintf(texts[2], sizeof texts[2], "DIST_TLS_%s=%s/%s%d.key", names[2], folder, files, worker);
  start_as(all, place, worker, part, environment);
}

static void says(process *p, const char *words) {
  if (!has_said(p, words)) fail_msg("a worker does not say '%s': %s", words, p->text);
}

static void a_generation_has_the_certificates_of_its_day(void **state) {
  (void)state;
  job all = job_of(WORKERS);
  assert_non_null(mkdtemp(folder));
  if (issue(&all) != 0) skip_because("openssl is not installed");
  for (int w = WORKERS - 1; w >= 0; --w) start_with(&all, w, w, "until all", "");
  for (int w = 0; w < WORKERS; ++w) says(&all.processes[w], "first run OK");
  assert_int_equal(shell("mkdir old && cp *.pem *.key old"), 0);
  assert_int_equal(issue(&all), 0);
  kill(all.processes[1].pid, SIGKILL);
  assert_int_equal(end_of(&all.processes[1]), 128 + SIGKILL);
  says(&all.processes[0], "2 workers");
  says(&all.processes[2], "2 workers");
  /* A worker with the old certificate is not admitted. It tries until its deadline. */
  start_with(&all, WORKERS, 1, "one run", "old/");
  says(&all.processes[WORKERS], "DEADLINE_EXCEEDED by worker 0");
  says(&all.processes[WORKERS], "was issued by an unknown authority");
  says(&all.processes[WORKERS], "but another key");
  assert_int_equal(end_of(&all.processes[WORKERS]), 1);
  start_with(&all, 1, 1, "until all", "");
  for (int w = 0; w < WORKERS; ++w) {
    says(&all.processes[w], "3 workers");
    ends_well(&all.processes[w]);
  }
  assert_int_equal(shell("rm -rf '%s'", folder), 0);
}

int main(int argc, char **argv) {
  if (argc == 3) return strcmp(argv[1], "one run") == 0 ? play_one_run() : play_until_all();
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_generation_has_the_certificates_of_its_day),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
