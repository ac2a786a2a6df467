// SPDX-License-Identifier: Apache-2.0
// Intel's oneCCL on CPUs, with one process per rank, over its bundled Intel MPI.
#include <mpi.h>

#include <oneapi/ccl.hpp>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "tests/bench/peers/team.hpp"

namespace {

using namespace bench;

ccl::communicator make_communicator(int rank, int ranks) {
  ccl::init();
  std::shared_ptr<ccl::kvs> store;
  ccl::kvs::address_type address;
  if (rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank != 0) store = ccl::create_kvs(address);
  return ccl::create_communicator(ranks, rank, store);
}

class OneCcl final : public peers::Library {
 public:
  OneCcl(int rank, int ranks) : rank_(rank), comm_(make_communicator(rank, ranks)) {}
  void meet() override { ccl::barrier(comm_).wait(); }

  std::function<void()> operation(const peers::Request& request, Data* data) override {
    if (request.operation == Operation::kBarrier) return [this] { meet(); };
    if (request.operation != Operation::kAllReduce || request.layout == Layout::kOneOutput) return {};
    const ccl::datatype dtype = request.dtype == DIST_F32   ? ccl::datatype::float32
                                : request.dtype == DIST_F16 ? ccl::datatype::float16
                                                            : ccl::datatype::bfloat16;
    void* const in = data->in(rank_);
    void* const out = data->out(rank_);
    const size_t count = data->count();
    return [=, this] { ccl::allreduce(in, out, count, dtype, ccl::reduction::sum, comm_).wait(); };
  }

  void exchange(const peers::Exchange& mine) override {
    const ccl::datatype dtype = mine.integers ? ccl::datatype::int32 : ccl::datatype::float32;
    const ccl::reduction op = mine.maximum ? ccl::reduction::max : ccl::reduction::sum;
    switch (mine.collective) {
      case peers::Collective::kAllReduce:
        return ccl::allreduce(mine.in, mine.out, mine.count, dtype, op, comm_).wait();
      case peers::Collective::kReduce:
        return ccl::reduce(mine.in, mine.out, mine.count, dtype, op, mine.root, comm_).wait();
      case peers::Collective::kAllGather:
        return ccl::allgather(mine.in, mine.out, mine.count, dtype, comm_).wait();
      case peers::Collective::kBarrier: return meet();
      case peers::Collective::kBroadcast: break;
    }
    std::memcpy(mine.out, mine.in, mine.count * sizeof(float));
    ccl::broadcast(mine.out, mine.count, dtype, mine.root, comm_).wait();
  }

 private:
  int rank_;
  ccl::communicator comm_;
};

std::string name() {
  const auto version = ccl::get_library_version();
  return "oneCCL " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.update);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    OneCcl library(rank, ranks);
    peers::Seat seat =
        peers::take_seat(rank, ranks, [](int& number) { MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD); });
    peers::serve(seat, library, peers::with_setting(name()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oneccl: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
