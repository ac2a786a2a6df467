// SPDX-License-Identifier: Apache-2.0
// llama.cpp's own barrier, compiled from its unmodified source without OpenMP. The linker drops everything
// else in that file.
#include "ggml-cpu/ggml-cpu.c"

struct ggml_threadpool* decode_threadpool(int threads) {
  struct ggml_threadpool* pool = aligned_alloc(
      GGML_CACHE_LINE, (sizeof *pool + GGML_CACHE_LINE - 1) / GGML_CACHE_LINE * GGML_CACHE_LINE);
  if (pool == NULL) return NULL;
  memset(pool, 0, sizeof *pool);
  pool->n_threads = threads;
  atomic_store(&pool->n_graph, threads);  // the number of threads is in its low bits
  return pool;
}
