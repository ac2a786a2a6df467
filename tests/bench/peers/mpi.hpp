// SPDX-License-Identifier: Apache-2.0
// One rank of any MPI, whether its ranks are processes or threads.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the bindings for C++ that MPI dropped
#include <mpi.h>

#include "tests/bench/peers/team.hpp"

namespace bench::peers {

class Mpi final : public Library {
 public:
  explicit Mpi(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
  }
  // As the header knows it: what MPI_Get_library_version() gives is of a form for each.
  static std::string name() {
#if defined(OPEN_MPI)
    return "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) + "." + std::to_string(OMPI_MINOR_VERSION) + "." +
           std::to_string(OMPI_RELEASE_VERSION);
#elif defined(I_MPI_VERSION)
    return std::string("Intel MPI ") + I_MPI_VERSION;
#elif defined(MPICH_VERSION)
    return std::string("MPICH ") + MPICH_VERSION;
#else
    return "MPI";
#endif
  }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  void meet() override { MPI_Barrier(comm_); }

  std::function<void()> operation(const Request& request, Data* data) override {
    const MPI_Comm comm = comm_;
    if (request.operation == Operation::kBarrier) return [=] { MPI_Barrier(comm); };
    if (request.operation != Operation::kAllReduce || request.dtype != DIST_F32) return {};
    if (request.layout == Layout::kOneOutput) return {};
    void* const in = request.layout == Layout::kInPlace ? MPI_IN_PLACE : data->in(rank_);
    void* const out = data->out(rank_);
    const int count = static_cast<int>(data->count());
    return [=] { MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm); };
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace bench::peers
