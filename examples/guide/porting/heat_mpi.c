/* SPDX-License-Identifier: Apache-2.0
 *
 * Heat spreads along a rod that is divided among the processes. With MPI.
 *
 *     mpicc heat_mpi.c -o heat_mpi && mpirun -n 4 ./heat_mpi
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { CELLS = 8, STEPS = 200 };

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  double rod[CELLS + 2] = {0}, next[CELLS + 2] = {0}, change = 0; /* a cell of each neighbour at the ends */
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  for (int step = 0; step < STEPS; step++) {
    if (rank == 0) rod[0] = 1; /* the left end of the rod is hot */
    MPI_Sendrecv(&rod[CELLS], 1, MPI_DOUBLE, right, 0, &rod[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&rod[1], 1, MPI_DOUBLE, left, 0, &rod[CELLS + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    double largest = 0;
    for (int i = 1; i <= CELLS; i++) {
      next[i] = (rod[i - 1] + rod[i + 1]) / 2;
      largest = fmax(largest, fabs(next[i] - rod[i]));
    }
    for (int i = 1; i <= CELLS; i++) rod[i] = next[i];
    MPI_Allreduce(&largest, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }

  double sum = 0, sums[64];
  for (int i = 1; i <= CELLS; i++) sum += rod[i];
  MPI_Gather(&sum, 1, MPI_DOUBLE, sums, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("largest change %.6f\n", change);
    for (int r = 0; r < size; r++) printf("part %d: %.4f\n", r, sums[r]);
  }
  MPI_Finalize();
  return 0;
}
