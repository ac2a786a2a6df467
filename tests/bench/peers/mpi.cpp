// SPDX-License-Identifier: Apache-2.0
// Any MPI implementation, with one process per rank, started by its own launcher with default placement.
#include "tests/bench/peers/mpi.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace bench::peers;
  MPI_Init(&argc, &argv);
  try {
    MPI_Comm comm;  // not MPI_COMM_WORLD, which cannot be freed
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Mpi mpi(comm);
    Seat seat =
        take_seat(mpi.rank(), mpi.ranks(), [comm](int& number) { MPI_Bcast(&number, 1, MPI_INT, 0, comm); });
    serve(seat, mpi, with_setting(Mpi::name()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  MPI_Finalize();
  return 0;
}
