/* SPDX-License-Identifier: Apache-2.0
 *
 * The mean and the standard deviation of some numbers. With OpenMP.
 *
 *     cc -fopenmp deviation_omp.c -lm -o deviation_omp && ./deviation_omp
 */
#include <math.h>
#include <stdio.h>

enum { N = 1000 };

int main(void) {
  double numbers[N], sum = 0, squares = 0;
  for (int i = 0; i < N; i++) numbers[i] = i % 10;
#pragma omp parallel num_threads(4)
  {
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += numbers[i];
    const double mean = sum / N; /* all threads have passed the barrier at the end of the loop */
#pragma omp for reduction(+ : squares)
    for (int i = 0; i < N; i++) squares += (numbers[i] - mean) * (numbers[i] - mean);
  }
  printf("mean %.4f, deviation %.4f\n", sum / N, sqrt(squares / N));
  return 0;
}
