// SPDX-License-Identifier: Apache-2.0
// vLLM's all_reduce in shared memory, compiled from its unmodified source. Members are processes.
// ../peers/torch_shim/ replaces the parts of PyTorch that it uses.
#include "cpu/shm.cpp"

#include "tests/bench/decode/processes.hpp"

namespace {

using namespace bench::decode;

void member(int id, const Plan& plan, Page& page, std::atomic<int>& here, const std::string& run) {
  const std::string name = "/" + run;
  const int64_t handle = init_shm_manager(name, plan.members, id, 1);
  meet(here, plan.members, 1);
  join_shm_manager(handle, name);
  meet(here, plan.members, 2);
  play(id, plan, page, [&](Tensor& tensor) {
    torch::Tensor view{tensor.elements, torch::ScalarType::BFloat16, static_cast<int64_t>(kElements)};
    shm_allreduce(handle, view);
    return true;
  });
  meet(here, plan.members, 3);  // destroying the engine frees its memory
}

}  // namespace

int main(int argc, char** argv) { return processes_main(argc, argv, member); }
