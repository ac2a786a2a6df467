/* SPDX-License-Identifier: Apache-2.0
 *
 * The mean and the standard deviation of some numbers. With POSIX threads.
 *
 *     cc deviation_pthreads.c -pthread -lm -o deviation_pthreads && ./deviation_pthreads
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum { N = 1000, THREADS = 4 };

static double numbers[N], sums[THREADS], squares[THREADS];
static pthread_barrier_t barrier;

static double total(const double *parts) {
  double result = 0;
  for (int t = 0; t < THREADS; t++) result += parts[t];
  return result;
}

static void *work(void *argument) {
  const int me = *(const int *)argument;
  for (int i = N * me / THREADS; i < N * (me + 1) / THREADS; i++) sums[me] += numbers[i];
  pthread_barrier_wait(&barrier);
  const double mean = total(sums) / N;
  for (int i = N * me / THREADS; i < N * (me + 1) / THREADS; i++)
    squares[me] += (numbers[i] - mean) * (numbers[i] - mean);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int ids[THREADS];
  for (int i = 0; i < N; i++) numbers[i] = i % 10;
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (int t = 0; t < THREADS; t++) {
    ids[t] = t;
    if (pthread_create(&threads[t], NULL, work, &ids[t]) != 0) return 1; /* the others wait for it forever */
  }
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  pthread_barrier_destroy(&barrier);
  printf("mean %.4f, deviation %.4f\n", total(sums) / N, sqrt(total(squares) / N));
  return 0;
}
