/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that consist of an index and shards: the files in the folder, and invalid indexes.
 */
#include "checkpoint_support.h"

#include <limits.h>
#include <sys/stat.h>

static const float before[2] = {8, 9};
static const float saved[2] = {1, 2};

typedef struct one {
  dist_strategy *strategy;
  dist_variable *variables[2]; /* "v" and "w", F32 [2] */
} one;

static void has(dist_checkpoint *file, const char *name, const float *values) {
  dist_value *value = NULL;
  dist_tensor tensor;
  assert_ok(dist_checkpoint_read(file, name, &value));
  assert_ok(dist_value_tensor(value, &tensor));
  assert_memory_equal(tensor.data, values, sizeof saved);
  dist_value_release(value);
}

static int make_one(void **state) {
  static one o;
  o.strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  o.variables[0] = vector_variable(o.strategy, "v", DIST_F32, saved, 2);
  o.variables[1] = vector_variable(o.strategy, "w", DIST_F32, saved, 2);
  *state = &o;
  return 0;
}

static int end_one(void **state) {
  one *o = *state;
  for (int i = 0; i < 2; i++) dist_variable_destroy(o->variables[i]);
  count_names("", 1);
  return dist_strategy_destroy(o->strategy);
}

static void set(const one *o, const float *values) {
  for (int k = 0; k < 4; k++) memcpy(copy_of(o->variables[k / 2], k % 2), values, sizeof before);
}

static dist_status save(const one *o, file_path path, int32_t sharded) {
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  dist_position position = DIST_POSITION_INIT;
  const char *const keys[] = {"format"};
  const char *const texts[] = {"pt"};
  position.elements = 17;
  options.sharded = sharded;
  options.position = &position;
  options.metadata_keys = keys;
  options.metadata_texts = texts;
  options.num_metadata = 1;
  return dist_checkpoint_save(o->strategy, path.text, (dist_variable **)o->variables, 2, &options);
}

static dist_status load(const one *o, file_path path) {
  return dist_checkpoint_load(o->strategy, path.text, (dist_variable **)o->variables, 2, NULL);
}

static void all_are(const one *o, const float *values) {
  for (int k = 0; k < 4; k++) assert_memory_equal(copy_of(o->variables[k / 2], k % 2), values, sizeof before);
}

static file_path only_shard(void) {
  file_path found = {""};
  DIR *entries = opendir(folder());
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strstr(entry->d_name, "-of-") == NULL) continue;
    assert_string_equal(found.text, "");
    found = path_of(entry->d_name);
  }
  closedir(entries);
  assert_string_not_equal(found.text, "");
  return found;
}

static void an_index_is_json_that_names_each_tensors_file(void **state) {
  const one *o = *state;
  const file_path path = path_of("model.safetensors.index.json");
  assert_ok(save(o, path, 1));
  assert_int_equal(count_names("", 0), 2);
  const file_path shard = only_shard();
  size_t size;
  char *text = (char *)read_file(path.text, &size);
  text[size] = '\0';
  char wanted[700];
  const char *name = strrchr(shard.text, '/') + 1;
  assert_int_equal(strlen(name),
                   strlen("model.safetensors.index.json.0123456789abcdef-00001-of-00001.safetensors"));
  assert_has(name, "-00001-of-00001.safetensors");
  snprintf(wanted, sizeof wanted, "\"weight_map\":{\"v\":\"%s\",\"w\":\"%s\"}}", name, name);
  assert_has(text, wanted);
  assert_has(text, "{\"metadata\":{\"total_size\":16,\"format\":\"pt\",");
  free(text);
  /* Both the index and a single shard can be loaded. */
  const file_path paths[] = {path, shard};
  for (int i = 0; i < 2; i++) {
    set(o, before);
    assert_ok(load(o, paths[i]));
    all_are(o, saved);
    dist_checkpoint *file = NULL;
    assert_ok(dist_checkpoint_open(o->strategy, paths[i].text, &file));
    assert_int_equal(dist_checkpoint_size(file), 2);
    assert_string_equal(dist_checkpoint_name(file, 0), "v");
    assert_string_equal(dist_checkpoint_name(file, 1), "w");
    assert_string_equal(dist_checkpoint_metadata(file, "format"), "pt");
    assert_string_equal(dist_checkpoint_metadata(file, "libdist.position.elements"), "17");
    has(file, "w", saved);
    dist_value *value = NULL;
    assert_fails(dist_checkpoint_read(file, "x", &value), DIST_NOT_FOUND,
                 "the file has no tensor \"x\". It has 2: \"v\", \"w\"");
    dist_checkpoint_destroy(file);
  }
}

static void a_save_removes_the_shards_of_those_before_it(void **state) {
  const one *o = *state;
  const file_path path = path_of("again");
  assert_ok(save(o, path, 1));
  const file_path first = only_shard();
  /* Shards of a save that was killed, and names that only resemble such shards. */
  const char *const others[] = {"again.00000000000000aa-00002-of-00003.safetensors",
                                "again.aa-00002-of-00003.safetensors",
                                "again.00000000000000aa-00002-of-00003.safetensors.bak",
                                "again.00000000000000AA-00002-of-00003.safetensors",
                                "more.00000000000000aa-00002-of-00003.safetensors",
                                "again.safetensors"};
  for (size_t i = 0; i < COUNT_OF(others); i++) write_file(path_of(others[i]).text, "x", 1);
  dist_checkpoint *old = NULL;
  assert_ok(dist_checkpoint_open(o->strategy, path.text, &old));
  set(o, before);
  assert_ok(save(o, path, 1));
  assert_int_equal(access(first.text, F_OK), -1);
  assert_int_equal(access(path_of(others[0]).text, F_OK), -1);
  for (size_t i = 1; i < COUNT_OF(others); i++) {
    assert_int_equal(access(path_of(others[i]).text, F_OK), 0);
    remove(path_of(others[i]).text);
  }
  assert_int_equal(count_names("", 0), 2);
  assert_ok(load(o, path));
  all_are(o, before);
  /* An open checkpoint can still be read. */
  has(old, "v", saved);
  dist_checkpoint_destroy(old);
  /* Replace it by a single file. */
  set(o, saved);
  assert_ok(save(o, path, 0));
  assert_int_equal(count_names("", 0), 1);
  set(o, before);
  assert_ok(load(o, path));
  all_are(o, saved);
}

static void a_shard_of_another_save_is_found(void **state) {
  const one *o = *state;
  const file_path path = path_of("mixed"), other = path_of("other");
  assert_ok(save(o, path, 1));
  const file_path shard = only_shard();
  const file_path kept = path_of("kept aside");
  assert_int_equal(rename(shard.text, kept.text), 0);
  set(o, before);
  assert_ok(save(o, other, 1));
  const file_path of_other = only_shard();
  assert_int_equal(rename(of_other.text, shard.text), 0);
  assert_fails(load(o, path), DIST_DATA_LOSS, "and the index belong to different checkpoints");
  all_are(o, before);
  assert_int_equal(rename(kept.text, shard.text), 0);
  assert_ok(load(o, path));
  all_are(o, saved);
}

#define HEADER(name) "{\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define MAP(entries) "{\"weight_map\":{" entries "}}"

static void an_index_is_found_through_a_link(void **state) {
  const one *o = *state;
  assert_int_equal(mkdir(path_of("step-100").text, 0777), 0);
  const file_path path = path_of("step-100/m"), latest = path_of("latest");
  assert_ok(save(o, path, 1));
  assert_int_equal(symlink("step-100/m", latest.text), 0);
  set(o, before);
  assert_ok(load(o, latest));
  all_are(o, saved);
  remove(latest.text);
  /* A folder of links, as in Hugging Face's cache: the shards are found next to the link, and not next to its
   * target. */
  const file_path blobs = path_of("blobs"), snapshot = path_of("snapshot"), index = path_of("snapshot/index");
  assert_int_equal(mkdir(blobs.text, 0777), 0);
  assert_int_equal(mkdir(snapshot.text, 0777), 0);
  write_with_header(path_of("blobs/1").text, HEADER("v"), 8);
  write_with_header(path_of("blobs/2").text, HEADER("w"), 8);
  static const char map[] = MAP("\"v\":\"v.st\",\"w\":\"w.st\"");
  write_file(path_of("blobs/3").text, map, sizeof map - 1);
  assert_int_equal(symlink("../blobs/1", path_of("snapshot/v.st").text), 0);
  assert_int_equal(symlink("../blobs/2", path_of("snapshot/w.st").text), 0);
  assert_int_equal(symlink("../blobs/3", index.text), 0);
  set(o, before);
  assert_ok(load(o, index));
  assert_int_equal(*(const unsigned char *)copy_of(o->variables[1], 1), 7);
  assert_int_equal(remove(path_of("snapshot/w.st").text), 0);
  assert_fails(load(o, index), DIST_NOT_FOUND, "\"w.st\": cannot be opened");
  char command[PATH_MAX + 16];
  static const char *const folders[] = {"step-100", "blobs", "snapshot"};
  for (size_t i = 0; i < COUNT_OF(folders); i++) {
    snprintf(command, sizeof command, "rm -r '%s'", path_of(folders[i]).text);
    assert_int_equal(system(command), 0);
  }
}

static void a_save_that_fails_leaves_the_old_checkpoint_and_nothing_else(void **state) {
  const one *o = *state;
  const file_path path = path_of("kept");
  assert_ok(save(o, path, 1));
  const float changed[2] = {5, 6};
  set(o, changed);
  const char *names[] = {"v", "\xff"};
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.sharded = 1;
  options.names = names;
  assert_fails(dist_checkpoint_save(o->strategy, path.text, (dist_variable **)o->variables, 2, &options),
               DIST_INVALID_ARGUMENT, "is not UTF-8");
  assert_int_equal(count_names("", 0), 2);
  assert_ok(load(o, path));
  all_are(o, saved);
  assert_int_equal(mkdir(path_of("folder").text, 0777), 0);
  assert_fails(save(o, path_of("folder"), 1), DIST_INVALID_ARGUMENT, "is a folder");
  assert_fails(save(o, path_of("folder/"), 1), DIST_INVALID_ARGUMENT, "ends with '/'");
  assert_fails(save(o, path_of("none/x"), 1), DIST_NOT_FOUND, "its folder cannot be opened");
  char long_name[300];
  memset(long_name, 'x', 250);
  long_name[250] = '\0';
  assert_fails(save(o, path_of(long_name), 1), DIST_INVALID_ARGUMENT, "File name too long");
  assert_int_equal(rmdir(path_of("folder").text), 0);
  assert_int_equal(count_names("", 0), 2);
}

static void a_checkpoint_without_variables_has_an_index_alone(void **state) {
  const one *o = *state;
  const file_path path = path_of("empty");
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.sharded = 1;
  assert_ok(dist_checkpoint_save(o->strategy, path.text, NULL, 0, &options));
  assert_int_equal(count_names("", 0), 1);
  assert_ok(dist_checkpoint_load(o->strategy, path.text, NULL, 0, NULL));
  dist_checkpoint *file = NULL;
  assert_ok(dist_checkpoint_open(o->strategy, path.text, &file));
  assert_int_equal(dist_checkpoint_size(file), 0);
  dist_checkpoint_destroy(file);
}

/* ---- Indexes written by other programs ---- */

static const struct {
  const char *text;
  dist_status status;
  const char *words;
} indexes[] = {
    {MAP("\"v\":\"v.st\",\"w\":\"w.st\""), DIST_OK, NULL},
    {" \n" MAP("\"v\":\"v.st\",\"w\":\"w.st\"") "\n", DIST_OK, NULL},
    {"{\"metadata\":{\"total_size\":16,\"ok\":true,\"n\":null,\"e\":1e3,\"t\":\"u\"},\"weight_map\":"
     "{\"w\":\"w.st\",\"v\":\"v.st\"},\"version\":2,\"by\":\"another program\"}",
     DIST_OK, NULL},
    {MAP("\"v\":\"v.st\""), DIST_NOT_FOUND, "the file has no tensor \"w\". It has 1: \"v\""},
    {MAP("\"v\":\"v.st\",\"w\":\"gone.st\""), DIST_NOT_FOUND, "\"gone.st\": cannot be opened"},
    {MAP("\"v\":\"v.st\",\"w\":\"v.st\""), DIST_DATA_LOSS,
     "tensor \"w\" is not in \"v.st\", although the index lists it there"},
    {MAP("\"v\":\"v.st\",\"w\":\"cut.st\""), DIST_DATA_LOSS, "\"cut.st\": tensor \"w\" ends at byte 8"},
    {MAP("\"v\":\"v.st\",\"w\":\"index\""), DIST_DATA_LOSS, "\"index\": is not a safetensors file"},
    {MAP("\"v\":\"../v.st\""), DIST_DATA_LOSS,
     "\"../v.st\" is not the name of a file in the folder of the index"},
    {MAP("\"v\":\"/etc/passwd\""), DIST_DATA_LOSS, "is not the name of a file in the folder of the index"},
    {MAP("\"v\":\"..\",\"w\":\"\""), DIST_DATA_LOSS, "\"..\" is not the name of a file"},
    {MAP("\"v\":\"\",\"w\":\"\""), DIST_DATA_LOSS, "\"\" is not the name of a file"},
    {MAP("\"v\":\"a\\u0000\""), DIST_DATA_LOSS, "the text of \"v\" contains a NUL byte"},
    {MAP("\"v\\u0000\":\"a\""), DIST_DATA_LOSS, "\"v\" contains a NUL byte"},
    {MAP("\"v\":\"v.st\",\"v\":\"w.st\""), DIST_DATA_LOSS, "the tensor \"v\" twice"},
    {MAP("\"v\":[\"v.st\"]"), DIST_DATA_LOSS, "tensor \"v\": its file is a list"},
    {MAP("\"v\":1"), DIST_DATA_LOSS, "tensor \"v\": its file is a number"},
    {MAP("\"v\":{\"a\":1}"), DIST_DATA_LOSS, "tensor \"v\": its file is an object"},
    {"{\"weight_map\":[]}      ", DIST_DATA_LOSS, "\"weight_map\" is a list"},
    {"{\"weight_map\":{},\"weight_map\":{}}", DIST_DATA_LOSS, "has \"weight_map\" twice"},
    {"{\"metadata\":{},\"metadata\":{}}", DIST_DATA_LOSS, "has \"metadata\" twice"},
    {"{\"metadata\":{\"a\":\"b\",\"a\":\"c\"},\"weight_map\":{}}", DIST_DATA_LOSS, "the key \"a\" twice"},
    {"{\"metadata\":{\"a\":{}}}", DIST_DATA_LOSS, "it has no \"weight_map\""},
    {"{\"metadata\":null,\"extra\":[[{\"weight_map\":[1,\"x\",null]},true]],\"weight_map\":"
     "{\"v\":\"v.st\",\"w\":\"w.st\"},\"more\":{\"a\":{\"b\":[]}}}",
     DIST_OK, NULL},
    {"{\"metadata\":{\"l\":[1,[\"x\"]],\"o\":{\"p\":{}},\"t\":\"u\"},\"weight_map\":{\"v\":\"v.st\",\"w\":"
     "\"w.st\"}}",
     DIST_OK, NULL},
    {"{\"metadata\":1,\"weight_map\":{}}", DIST_DATA_LOSS, "\"metadata\" is a number"},
    {"{\"other\":[[[[[[[[]]]]]]]]}", DIST_DATA_LOSS, "it has no \"weight_map\""},
    {"{\"other\":" TEN("[[[[[[[[[[") "[", DIST_DATA_LOSS, "the index nests deeper than 100 levels"},
    {"{\"weight_map\":null}     ", DIST_DATA_LOSS, "\"weight_map\" is null"},
    {"{\"metadata\":{}}", DIST_DATA_LOSS, "it has no \"weight_map\""},
    {"{        ", DIST_DATA_LOSS, "not JSON: Missing a name"},
    {MAP("") "{}", DIST_DATA_LOSS, "not JSON"},
    {"{\"metadata\":{\"libdist.crc32\":\"00000001\"},\"weight_map\":{}}", DIST_DATA_LOSS,
     "the index was changed after libdist wrote it: its checksum is"},
};

static void an_index_is_not_trusted(void **state) {
  const one *o = *state;
  const file_path path = path_of("index");
  write_with_header(path_of("v.st").text, HEADER("v"), 8);
  write_with_header(path_of("w.st").text, HEADER("w"), 8);
  write_with_header(path_of("cut.st").text, HEADER("w"), 7);
  for (size_t i = 0; i < COUNT_OF(indexes); i++) {
    write_file(path.text, indexes[i].text, strlen(indexes[i].text));
    set(o, before);
    const dist_status status = load(o, path);
    if (status != indexes[i].status ||
        (indexes[i].words != NULL && strstr(dist_last_error(), indexes[i].words) == NULL)) {
      fail_msg("%s: %s: %s", indexes[i].text, dist_status_name(status), dist_last_error());
    }
    if (status != DIST_OK) {
      all_are(o, before);
      assert_has(dist_last_error(), "index\": ");
    } else {
      assert_int_equal(*(const unsigned char *)copy_of(o->variables[1], 1), 7);
    }
  }
}

static void an_index_that_was_cut_or_changed_is_found(void **state) {
  const one *o = *state;
  const file_path path = path_of("changed");
  assert_ok(save(o, path, 1));
  size_t size;
  unsigned char *text = read_file(path.text, &size);
  text[size] = '\0';
  set(o, before);
  for (size_t cut = 0; cut < size; cut++) {
    write_file(path.text, text, cut);
    assert_int_equal(load(o, path), DIST_DATA_LOSS);
  }
  const char *key = strstr((char *)text, "libdist.crc32");
  assert_non_null(key);
  const size_t at_key = (size_t)(key - (char *)text);
  for (size_t at = 0; at < size; at++) {
    if (at - at_key < strlen("libdist.crc32")) continue; /* another key, so no checksum */
    text[at] ^= 1;
    write_file(path.text, text, size);
    assert_int_equal(load(o, path), DIST_DATA_LOSS);
    text[at] ^= 1;
  }
  all_are(o, before);
  write_file(path.text, text, size);
  assert_ok(load(o, path));
  all_are(o, saved);
  free(text);
}

static void an_index_has_up_to_4096_files(void **state) {
  const one *o = *state;
  const file_path path = path_of("many");
  FILE *file = fopen(path.text, "wb");
  assert_non_null(file);
  fputs("{\"weight_map\":{", file);
  for (int i = 0; i < 4097; i++) fprintf(file, "%s\"t%d\":\"f%d\"", i == 0 ? "" : ",", i, i);
  fputs("}}", file);
  assert_int_equal(fclose(file), 0);
  assert_fails(load(o, path), DIST_UNIMPLEMENTED, "the index has 4097 files");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, make_one, end_one)
  const struct CMUnitTest tests[] = {
      T(an_index_is_json_that_names_each_tensors_file),
      T(a_save_removes_the_shards_of_those_before_it),
      T(a_shard_of_another_save_is_found),
      T(an_index_is_found_through_a_link),
      T(a_save_that_fails_leaves_the_old_checkpoint_and_nothing_else),
      T(a_checkpoint_without_variables_has_an_index_alone),
      T(an_index_is_not_trusted),
      T(an_index_that_was_cut_or_changed_is_found),
      T(an_index_has_up_to_4096_files),
  };
  return cmocka_run_group_tests(tests, NULL, leave_folder);
}
