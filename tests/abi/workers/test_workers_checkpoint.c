/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of several workers: all of them take part, worker 0 writes, and any layout of replicas can read
 * the file.
 */
#include "../workers_support.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct files {
  char path[64];
  float values[MOST_WORKERS];
} files;

static dist_status count(dist_replica *replica, void *user_data) {
  const float one = 1;
  const dist_tensor tensor = {(void *)&one, DIST_F32, 0, NULL, NULL};
  return dist_replica_assign(replica, user_data, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status save_or_load(dist_strategy *strategy, int worker, files *kept, int saves) {
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = DIST_AGGREGATION_SUM;
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  options.name = "steps";
  dist_variable *variable = NULL;
  dist_value *value = NULL;
  dist_tensor tensor;
  dist_status status = dist_variable_create(strategy, &initial, &options, &variable);
  if (status == DIST_OK && saves) status = dist_run(strategy, count, variable, NULL);
  if (status == DIST_OK) {
    status = saves ? dist_checkpoint_save(strategy, kept->path, &variable, 1, NULL)
                   : dist_checkpoint_load(strategy, kept->path, &variable, 1, NULL);
  }
  if (status == DIST_OK) status = dist_variable_read(strategy, variable, &value);
  if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
  if (status == DIST_OK) memcpy(&kept->values[worker], tensor.data, sizeof(float));
  dist_value_release(value);
  dist_variable_destroy(variable);
  return status;
}

static dist_status save(dist_strategy *strategy, int worker, void *user_data) {
  return save_or_load(strategy, worker, user_data, 1);
}
static dist_status load(dist_strategy *strategy, int worker, void *user_data) {
  return save_or_load(strategy, worker, user_data, 0);
}

static void a_checkpoint_is_written_once_and_read_by_any_layout(void **state) {
  (void)state;
  files kept = {.path = "/tmp/dist-workers-XXXXXX"};
  const int file = mkstemp(kept.path);
  assert_true(file >= 0);
  close(file);
  const char *const layouts[] = {"2+2", "1+1+1+1", "4", "1+3"};
  for (size_t from = 0; from < COUNT_OF(layouts); ++from) {
    workers all = workers_of(layouts[from], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    all_workers(&all, save, &kept);
    for (int w = 0; w < all.n; ++w) assert_true(kept.values[w] == 4.0f);
    end_workers(&all);
    for (size_t to = 0; to < COUNT_OF(layouts); ++to) {
      memset(kept.values, 0, sizeof kept.values);
      all = workers_of(layouts[to], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
      all_workers(&all, load, &kept);
      for (int w = 0; w < all.n; ++w) assert_true(kept.values[w] == 4.0f);
      end_workers(&all);
    }
  }
  /* A worker that cannot write reports this to the others. */
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  files nowhere = {.path = "/nowhere/at/all"};
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, save, &nowhere, threads);
  for (int w = 0; w < 2; ++w) assert_int_not_equal(threads[w].status, DIST_OK);
  assert_has(threads[1].error.message, "/nowhere/at/all");
  end_workers(&all);
  remove(kept.path);
}

/* ---- Shards ---- */

enum { VARIABLES = 5 };
static const int64_t lengths[VARIABLES] = {100, 300, 7, 0, 250};

typedef struct sharded {
  char folder[64];
  const char *name[MOST_WORKERS]; /* the name that each worker passes: "/index" */
  int32_t shards[MOST_WORKERS];   /* the option of each worker */
} sharded;

typedef struct model {
  dist_variable *variables[VARIABLES];
} model;

static dist_status make_model(dist_strategy *strategy, model *out) {
  static const char *const names[VARIABLES] = {"a", "b", "c", "d", "e"};
  for (int v = 0; v < VARIABLES; ++v) {
    const float zeros[300] = {0};
    const dist_tensor initial = {(void *)zeros, DIST_F32, 1, &lengths[v], NULL};
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.name = names[v];
    options.aggregation = v == 1 ? DIST_AGGREGATION_MEAN : DIST_AGGREGATION_SUM;
    options.synchronization = v < 2 ? DIST_SYNCHRONIZATION_ON_READ : DIST_SYNCHRONIZATION_ON_WRITE;
    const dist_status status = dist_variable_create(strategy, &initial, &options, &out->variables[v]);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

static void end_model(model *m) {
  for (int v = 0; v < VARIABLES; ++v) dist_variable_destroy(m->variables[v]);
}

/* Element i of variable v grows by v + i on each replica. */
static dist_status grow(dist_replica *replica, void *user_data) {
  const model *m = user_data;
  for (int v = 0; v < VARIABLES; ++v) {
    float by[300];
    for (int i = 0; i < lengths[v]; ++i) by[i] = (float)(v + i);
    const dist_tensor tensor = {by, DIST_F32, 1, &lengths[v], NULL};
    const dist_status status = dist_replica_assign(replica, m->variables[v], DIST_ASSIGN_ADD, &tensor, NULL);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

/* Checks the values after four replicas have grown once. */
static dist_status check_model(dist_strategy *strategy, const model *m) {
  for (int v = 0; v < VARIABLES; ++v) {
    dist_value *value = NULL;
    dist_tensor tensor;
    dist_status status = dist_variable_read(strategy, m->variables[v], &value);
    if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
    if (status != DIST_OK) return status;
    for (int i = 0; i < lengths[v]; ++i) {
      const float wanted = (float)((v == 1 ? 1 : 4) * (v + i));
      const float is = ((const float *)tensor.data)[i];
      if (is == wanted) continue;
      char words[80];
      snprintf(words, sizeof words, "variable %d, element %d: %g", v, i, (double)is);
      return dist_fail(DIST_INTERNAL, words);
    }
    dist_value_release(value);
  }
  return DIST_OK;
}

static dist_status save_shards(dist_strategy *strategy, int worker, void *user_data) {
  const sharded *s = user_data;
  model m = {{NULL}};
  char path[200];
  snprintf(path, sizeof path, "%s%s", s->folder, s->name[worker]);
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.sharded = s->shards[worker];
  dist_status status = make_model(strategy, &m);
  if (status == DIST_OK) status = dist_run(strategy, grow, &m, NULL);
  if (status == DIST_OK) status = dist_checkpoint_save(strategy, path, m.variables, VARIABLES, &options);
  if (status == DIST_OK) status = check_model(strategy, &m);
  end_model(&m);
  return status;
}

static dist_status load_shards(dist_strategy *strategy, int worker, void *user_data) {
  const sharded *s = user_data;
  model m = {{NULL}};
  char path[200];
  snprintf(path, sizeof path, "%s%s", s->folder, s->name[worker]);
  dist_status status = make_model(strategy, &m);
  if (status == DIST_OK) status = dist_checkpoint_load(strategy, path, m.variables, VARIABLES, NULL);
  if (status == DIST_OK) status = check_model(strategy, &m);
  end_model(&m);
  return status;
}

static sharded in_a_folder(void) {
  sharded s = {.folder = "/tmp/dist-shards-XXXXXX"};
  assert_non_null(mkdtemp(s.folder));
  for (int w = 0; w < MOST_WORKERS; ++w) {
    s.name[w] = "/index";
    s.shards[w] = 1;
  }
  return s;
}

/* Counts the files in a folder, and removes them if `gone` is set. */
static int files_in(const char *folder, int gone) {
  int count = 0;
  DIR *entries = opendir(folder);
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (entry->d_name[0] == '.' || access(path, F_OK) != 0) continue;
    count++;
    if (gone) assert_int_equal(remove(path), 0);
  }
  closedir(entries);
  return count;
}

static void every_worker_writes_a_shard_and_any_layout_reads_them(void **state) {
  (void)state;
  const char *const layouts[] = {"2+2", "1+1+1+1", "4", "1+3"};
  const int shards[] = {2, 4, 1, 2};
  sharded s = in_a_folder();
  for (size_t from = 0; from < COUNT_OF(layouts); ++from) {
    workers all = workers_of(layouts[from], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    all_workers(&all, save_shards, &s);
    end_workers(&all);
    assert_int_equal(files_in(s.folder, 0), shards[from] + 1);
    for (size_t to = 0; to < COUNT_OF(layouts); ++to) {
      all = workers_of(layouts[to], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
      all_workers(&all, load_shards, &s);
      end_workers(&all);
    }
  }
  files_in(s.folder, 1);
  assert_int_equal(rmdir(s.folder), 0);
}

static void check_all_fail(sharded *s, const char *words) {
  workers all = workers_of("1+1+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, save_shards, s, threads);
  for (int w = 0; w < all.n; ++w) {
    assert_int_not_equal(threads[w].status, DIST_OK);
    if (strstr(threads[w].error.message, words) == NULL)
      fail_msg("worker %d says: %s, and lacks: %s", w, threads[w].error.message, words);
  }
  end_workers(&all);
}

static void a_worker_that_cannot_write_its_shard_is_told_to_all(void **state) {
  (void)state;
  sharded s = in_a_folder();
  workers all = workers_of("4", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  all_workers(&all, save_shards, &s);
  end_workers(&all);
  s.name[2] = "/none/index";
  check_all_fail(&s, "/none/index\": its folder cannot be opened");
  /* A different folder, which worker 0 does not see. */
  char folder[200];
  snprintf(folder, sizeof folder, "%s/other", s.folder);
  assert_int_equal(mkdir(folder, 0777), 0);
  s.name[2] = "/other/index";
  check_all_fail(&s, "All workers must see the same folder");
  files_in(folder, 1);
  assert_int_equal(rmdir(folder), 0);
  /* One worker does not shard. */
  s.name[2] = "/index";
  s.shards[1] = 0;
  check_all_fail(&s, "checkpoint");
  s.shards[1] = 1;
  /* The old checkpoint still exists. Files of failed saves are removed by the next save. */
  all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  all_workers(&all, load_shards, &s);
  all_workers(&all, save_shards, &s);
  end_workers(&all);
  assert_int_equal(files_in(s.folder, 1), 3);
  assert_int_equal(rmdir(s.folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_checkpoint_is_written_once_and_read_by_any_layout),
      cmocka_unit_test(every_worker_writes_a_shard_and_any_layout_reads_them),
      cmocka_unit_test(a_worker_that_cannot_write_its_shard_is_told_to_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
