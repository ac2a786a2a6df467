// SPDX-License-Identifier: Apache-2.0
// One rank of any MPI implementation. Ranks may be processes or threads.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C++ bindings, which MPI has removed
#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<openmpi/mpiext/mpiext_ftmpi_c.h>)
#include <mpi-ext.h>
#define DIST_PEER_SURVIVES 1  // Open MPI's fault tolerance, if its mpirun is told to enable it
#else
#define DIST_PEER_SURVIVES 0
#endif

#include <algorithm>
#include <stdexcept>

#include "tests/bench/peers/team.hpp"

namespace bench::peers {

class Mpi : public Library {
 public:
  explicit Mpi(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
  }
  // From the header, because MPI_Get_library_version() has a different format in each implementation.
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

  void exchange(const Exchange& mine) override {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    const MPI_Datatype type = mine.integers ? MPI_INT : MPI_FLOAT;
    const MPI_Op op = mine.maximum ? MPI_MAX : MPI_SUM;
    const int count = static_cast<int>(mine.count);
    switch (mine.collective) {
      case Collective::kAllReduce: return check(MPI_Allreduce(mine.in, mine.out, count, type, op, comm_));
      case Collective::kReduce:
        return check(MPI_Reduce(mine.in, mine.out, count, type, op, mine.root, comm_));
      case Collective::kAllGather:
        return check(MPI_Allgather(mine.in, count, type, mine.out, count, type, comm_));
      case Collective::kBarrier: return check(MPI_Barrier(comm_));
      case Collective::kBroadcast: break;
    }
    const auto* const in = static_cast<const char*>(mine.in);
    if (rank_ == mine.root) std::copy(in, in + mine.count * sizeof(float), static_cast<char*>(mine.out));
    check(MPI_Bcast(mine.out, count, type, mine.root, comm_));
  }
#if DIST_PEER_SURVIVES
  bool say_failed() override { return MPIX_Comm_revoke(comm_) == MPI_SUCCESS; }
  bool mend(bool after_error) override {
    if (!after_error) return false;
    check(MPIX_Comm_shrink(comm_, &comm_));
    return true;
  }
#else
  bool say_failed() override {
    MPI_Abort(comm_, 1);
    return false;
  }
#endif

 private:
  // Throws MPI's error message, with the ranks that it knows to have failed.
  void check(int code) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int size = 0;
    MPI_Error_string(code, text, &size);
    throw std::runtime_error(text + failed_ranks());
  }

#if DIST_PEER_SURVIVES
  std::string failed_ranks() const {
    MPI_Group all, failed;
    MPI_Comm_group(comm_, &all);
    if (MPIX_Comm_get_failed(comm_, &failed) != MPI_SUCCESS) return "";
    int count = 0;
    MPI_Group_size(failed, &count);
    std::string text;
    for (int i = 0; i < count; ++i) {
      int rank = 0;
      MPI_Group_translate_ranks(failed, 1, &i, all, &rank);
      text += "; MPIX_Comm_get_failed: rank " + std::to_string(rank);
    }
    return text;
  }
#else
  static std::string failed_ranks() { return ""; }
#endif

  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace bench::peers
