// SPDX-License-Identifier: Apache-2.0
// Any MPI, a process a rank: started by its own launcher, placed as that does by default.
#include "tests/bench/peers/mpi.hpp"

int main(int argc, char** argv) {
  using namespace bench::peers;
  MPI_Init(&argc, &argv);
  {
    Mpi mpi(MPI_COMM_WORLD);
    Seat seat = take_seat(mpi.rank(), mpi.ranks(),
                          [](int& number) { MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD); });
    serve(seat, mpi, Mpi::name());
  }
  MPI_Finalize();
  return 0;
}
