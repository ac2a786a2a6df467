// SPDX-License-Identifier: Apache-2.0
// Adapts all_reduces of inference engines in shared memory: in place, with forked processes of one thread
// each as ranks. Their sources are compiled unmodified; torch_shim/ replaces the parts of PyTorch that they
// use.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <torch/all.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/bench/peers/team.hpp"

namespace bench::peers {

// One rank of such an engine, which has neither a barrier nor any fault handling.
class ShmEngine : public Library {
 public:
  explicit ShmEngine(int rank) : rank_(rank) {}

  // No rank has the sum before all have arrived.
  void meet() override {
    torch::Tensor line{line_, torch::ScalarType::Float, static_cast<int64_t>(std::size(line_))};
    all_reduce(line);
  }

  std::function<void()> operation(const Request& request, Data* data) override {
    if (request.operation != Operation::kAllReduce || !can(request)) return {};
    if (truncates() && request.dtype == DIST_BF16) data->allow_rounding(true);
    const torch::ScalarType type = request.dtype == DIST_F32   ? torch::ScalarType::Float
                                   : request.dtype == DIST_F16 ? torch::ScalarType::Half
                                                               : torch::ScalarType::BFloat16;
    const void* const in = data->in(rank_);
    torch::Tensor tensor{data->out(rank_), type, static_cast<int64_t>(data->count())};
    return [this, in, tensor]() mutable {
      if (in != tensor.data) std::memcpy(tensor.data, in, static_cast<size_t>(tensor.nbytes()));
      all_reduce(tensor);
    };
  }

  void exchange(const Exchange&) override { throw std::logic_error("for the bench alone"); }

 protected:
  // Whether the all_reduce supports the request. An engine that supports out of place copies the input first.
  virtual bool can(const Request& request) const { return request.layout == Layout::kInPlace; }
  virtual bool truncates() const { return false; }  // sums of bf16 are truncated instead of rounded
  virtual void all_reduce(torch::Tensor& tensor) = 0;

 private:
  int rank_;
  alignas(64) float line_[16] = {};
};

// Waits until all ranks have arrived.
inline void meet_by(const Seat& seat) {
  char byte = 0;
  if (!seat.leads()) {
    seat.send(0, &byte, 1);
    return seat.receive(0, &byte, 1);
  }
  for (int rank = 1; rank < seat.ranks(); ++rank) seat.receive(rank, &byte, 1);
  for (int rank = 1; rank < seat.ranks(); ++rank) seat.send(rank, &byte, 1);
}

// The main() of such a peer. Its Engine is constructed from a rank's seat and the name of the team. When all
// have been constructed, the name is removed from the file system of shared memory, so that a killed process
// leaves nothing behind.
template <class Engine>
int shm_main(int argc, char** argv, const std::string& name) {
  const int ranks = ranks_argument(argc, argv, 1);
  const std::string team = "dist_bench_" + std::to_string(getpid());
  try {
    run_forked(ranks, [&](Seat& seat) {
      if (!seat.leads()) prctl(PR_SET_PDEATHSIG, SIGKILL);  // without rank 0, it would wait forever
      Engine engine(seat, team);
      serve(seat, engine, name);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    std::_Exit(1);
  }
  return 0;
}

}  // namespace bench::peers
