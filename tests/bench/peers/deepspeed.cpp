// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's all_reduce in shared memory, compiled from its unmodified source: the part of
// inference_all_reduce() below PyTorch.
#include <sys/statvfs.h>

#include "tests/bench/peers/shm.hpp"

#include "comm/shm.cpp"
#include "peer_version.h"

namespace {

using namespace bench;

class DeepSpeed final : public peers::ShmEngine {
 public:
  DeepSpeed(const peers::Seat& seat, std::string team) : ShmEngine(seat.rank()) {
    require_memory(static_cast<size_t>(seat.ranks()));
    peers::meet_by(seat);
    std::string nobody;  // the second part of the team's name
    shm_initialize(seat.ranks(), seat.rank(), team.data(), nobody.data());
    peers::meet_by(seat);
    const std::string name = std::string(SHM_BUFFER_NAME "_") + std::to_string(getuid()) + "_" + team + "__" +
                             std::to_string(seat.rank());
    if (shm_unlink(name.c_str()) != 0) throw std::runtime_error(name + " is no name that DeepSpeed made");
  }

 private:
  // DeepSpeed does not check this. With less memory, it would end by SIGBUS and leave its memory behind.
  static void require_memory(size_t ranks) {
    struct statvfs file_system;
    if (statvfs("/dev/shm", &file_system) != 0) return;
    if (file_system.f_bavail * file_system.f_frsize < ranks * sizeof(allreduce_workspace))
      throw std::runtime_error("DeepSpeed wants 66 MiB in /dev/shm for each rank");
  }
  // The condition under which DeepSpeed uses shared memory instead of the process group's all_reduce. The
  // copy is that of its inference_all_reduce, without the allocation.
  bool can(const peers::Request& request) const override {
    const bool vectors =
        request.dtype == DIST_F32 ? __builtin_cpu_supports("avx2") : __builtin_cpu_supports("avx512bw");
    return vectors && request.layout != Layout::kOneOutput;
  }
  void all_reduce(torch::Tensor& tensor) override {
    all_reduce_outer_loop(tensor, static_cast<size_t>(tensor.numel()), static_cast<int>(tensor.nbytes()));
  }
};

}  // namespace

int main(int argc, char** argv) { return peers::shm_main<DeepSpeed>(argc, argv, "DeepSpeed " PEER_VERSION); }
