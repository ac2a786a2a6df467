// SPDX-License-Identifier: Apache-2.0
// vLLM's all_reduce in shared memory, compiled from its unmodified source.
#include "tests/bench/peers/shm.hpp"

#include "cpu/shm.cpp"
#include "peer_version.h"

namespace {

using namespace bench;

class Vllm final : public peers::ShmEngine {
 public:
  Vllm(const peers::Seat& seat, const std::string& team) : ShmEngine(seat.rank()) {
    const std::string name = "/" + team;
    if (const int ranks = seat.ranks(); ranks != 2 && ranks != 3 && ranks != 4 && ranks != 8)
      throw std::runtime_error("vLLM sums up among 2, 3, 4 or 8 ranks alone");
    handle_ = init_shm_manager(name, seat.ranks(), seat.rank(), 1);
    peers::meet_by(seat);
    join_shm_manager(handle_, name);
    peers::meet_by(seat);
    shm_unlink(SHMManager::get_shm_name(name, seat.rank()).c_str());
  }

 private:
#ifndef __AVX512BF16__
  bool truncates() const override { return true; }
#endif
  void all_reduce(torch::Tensor& tensor) override { shm_allreduce(handle_, tensor); }

  int64_t handle_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return peers::shm_main<Vllm>(argc, argv, "vLLM " PEER_VERSION); }
