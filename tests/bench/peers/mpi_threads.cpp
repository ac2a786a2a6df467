// SPDX-License-Identifier: Apache-2.0
// MPICH 5's thread communicators: the ranks are threads of one process, like libdist's replicas.
#include <pthread.h>

#include <cstdio>
#include <thread>

#include "tests/bench/peers/mpi.hpp"

namespace {

class ThreadOfMpi final : public bench::peers::Mpi {
 public:
  using Mpi::Mpi;
  bool has_any_root() const override {
    return false;
  }  // MPICH 5.0 rejects others with "Invalid root",
     // because it counts processes
  [[noreturn]] void vanish() override { pthread_exit(nullptr); }
};

}  // namespace

int main(int argc, char** argv) {
  using namespace bench::peers;
  const int ranks = ranks_argument(argc, argv, 1);
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "%s: this MPICH was built without threads\n", argv[0]);
    return 1;
  }
  MPI_Comm comm;
  MPIX_Threadcomm_init(MPI_COMM_WORLD, ranks, &comm);
  std::vector<Seat> seats = make_seats(ranks);
  std::vector<std::thread> threads;
  for (int i = 0; i < ranks; ++i) {
    threads.emplace_back([&] {
      MPIX_Threadcomm_start(comm);  // MPICH assigns the thread's rank here
      ThreadOfMpi mpi(comm);
      serve(seats[static_cast<size_t>(mpi.rank())], mpi, Mpi::name() + " threads");
      MPIX_Threadcomm_finish(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  MPIX_Threadcomm_free(&comm);
  MPI_Finalize();
  return 0;
}
