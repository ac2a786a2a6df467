// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's all_reduce in shared memory, compiled from its unmodified source. Members are processes.
// ../peers/torch_shim/ replaces the parts of PyTorch that it uses.
#include <sys/mman.h>

#include "comm/shm.cpp"

#include "tests/bench/decode/processes.hpp"

namespace {

using namespace bench::decode;

void member(int id, const Plan& plan, Page& page, std::atomic<int>& here, const std::string& run) {
  std::string team = run, empty;  // the two parts of the names of its shared memory
  meet(here, plan.members, 1);
  shm_initialize(plan.members, id, team.data(), empty.data());
  meet(here, plan.members, 2);
  const std::string name =
      SHM_BUFFER_NAME "_" + std::to_string(getuid()) + "_" + team + "__" + std::to_string(id);
  shm_unlink(name.c_str());  // so that a killed process leaves nothing behind
  play(id, plan, page, [&](Tensor& tensor) {
    torch::Tensor view{tensor.elements, torch::ScalarType::BFloat16, static_cast<int64_t>(kElements)};
    all_reduce_outer_loop(view, kElements, static_cast<int>(sizeof tensor.elements));
    return true;
  });
  meet(here, plan.members, 3);
}

}  // namespace

int main(int argc, char** argv) { return processes_main(argc, argv, member); }
