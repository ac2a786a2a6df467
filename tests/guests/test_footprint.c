/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits on the size of libdist.so, on the work that loading it takes, and on the threads and memory that it
 * uses. They are about a fifth above the values that examples/guide/platforms.md states. If a change needs
 * more, raise the limit and correct that page.
 */
#define _GNU_SOURCE /* dl_iterate_phdr() */
#include <elf.h>
#include <link.h>

#include "process_sizes.h"
#include "tests/abi/common.h"

/* ---- The file ---- */

/* ThreadSanitizer has a thread of its own. */
#if defined(__SANITIZE_THREAD__)
enum { COUNTS_THREADS = 0 };
#else
enum { COUNTS_THREADS = 1 };
#endif

typedef struct image {
  int found;
  size_t memory, tls, relocations, libraries, constructors;
  int static_tls;
} image;

static int measure(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  image *it = data;
  if (strstr(info->dlpi_name, "libdist.so") == NULL) return 0;
  it->found = 1;
  const ElfW(Dyn) *entry = NULL;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type == PT_LOAD) it->memory += header->p_memsz;
    if (header->p_type == PT_TLS) it->tls = header->p_memsz;
    if (header->p_type == PT_DYNAMIC) entry = (const void *)(info->dlpi_addr + header->p_vaddr);
  }
  size_t bytes = 0;
  for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_RELASZ || entry->d_tag == DT_PLTRELSZ) bytes += entry->d_un.d_val;
    if (entry->d_tag == DT_NEEDED) it->libraries++;
    if (entry->d_tag == DT_INIT_ARRAYSZ) it->constructors = entry->d_un.d_val / sizeof(void *);
    if (entry->d_tag == DT_FLAGS) it->static_tls = (entry->d_un.d_val & DF_STATIC_TLS) != 0;
  }
  it->relocations = bytes / sizeof(ElfW(Rela));
  return 1;
}

#define AT_MOST(what, limit)                                                           \
  do {                                                                                 \
    print_message("# %s: %ld\n", #what, (long)(what));                                 \
    if ((long)(what) > (limit))                                                        \
      fail_msg("%s is %ld, and the limit is %ld", #what, (long)(what), (long)(limit)); \
  } while (0)

static void the_library_is_small_and_needs_little_work_to_load(void **state) {
  (void)state;
  image libdist = {0};
  dl_iterate_phdr(measure, &libdist);
  if (!libdist.found) skip_because("libdist is linked statically");
  if (!MEASURABLE) skip_because("not a release build");
  AT_MOST(libdist.memory, 5300000);
  AT_MOST(libdist.relocations, 1900);
  AT_MOST(libdist.libraries, 8);
  AT_MOST(libdist.constructors, 1); /* the compiler's own: no code of libdist runs at load time */
  AT_MOST(libdist.tls, 2560);
  /* With static TLS, a late dlopen() can fail with "cannot allocate memory in static TLS block". */
  assert_false(libdist.static_tls);
}

/* ---- The process ---- */

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static void threads_and_memory_are_those_of_the_replicas(void **state) {
  (void)state;
  if (!COUNTS_THREADS) skip_because("ThreadSanitizer starts a thread of its own");
  enum { R = 8 };
  const process_sizes before = sizes_now();

  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  options.threads = DIST_THREADS_HOST;
  dist_strategy *strategy = strategy_with(options);
  assert_int_equal(sizes_now().threads, before.threads);
  assert_ok(dist_strategy_destroy(strategy));

  options.threads = DIST_THREADS_LIBRARY;
  strategy = strategy_with(options);
  assert_ok(dist_run(strategy, nothing, NULL, NULL));
  const process_sizes used = sizes_now();
  assert_int_equal(used.threads, before.threads + R);
  AT_MOST(used.descriptors - before.descriptors, 0);
  /* Three times as much as without MALLOC_PERTURB_, which Meson sets, and which writes to all memory. */
  if (MEASURABLE) AT_MOST(used.private_kib - before.private_kib, 2048);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(threads_down_to(before.threads), before.threads);
}

static void a_strategy_that_was_destroyed_leaves_nothing(void **state) {
  (void)state;
  enum { ROUNDS = 300, SETTLED = 50 };
  const process_sizes before = sizes_now();
  process_sizes settled = before;
  for (int k = 0; k < ROUNDS; k++) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    options.threads = DIST_THREADS_LIBRARY;
    dist_strategy *strategy = strategy_with(options);
    assert_ok(dist_run(strategy, nothing, NULL, NULL));
    assert_ok(dist_strategy_destroy(strategy));
    if (k == SETTLED) settled = sizes_now();
  }
  if (COUNTS_THREADS) assert_int_equal(threads_down_to(before.threads), before.threads);
  const process_sizes end = sizes_now();
  assert_int_equal(end.descriptors, settled.descriptors);
  AT_MOST(end.mappings - settled.mappings, 16);
  if (MEASURABLE) AT_MOST(end.private_kib - settled.private_kib, 1024);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_library_is_small_and_needs_little_work_to_load),
                                     cmocka_unit_test(threads_and_memory_are_those_of_the_replicas),
                                     cmocka_unit_test(a_strategy_that_was_destroyed_leaves_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
