/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator that replaces the C library's, like jemalloc. It is loaded with LD_PRELOAD.
 */
#include <stddef.h>

extern void *__libc_malloc(size_t size); /* NOLINT(bugprone-reserved-identifier): glibc's name */
extern void __libc_free(void *memory);   /* NOLINT(bugprone-reserved-identifier): likewise */

__attribute__((visibility("default"))) void *malloc(size_t size) { return __libc_malloc(size); }
__attribute__((visibility("default"))) void free(void *memory) { __libc_free(memory); }
