// SPDX-License-Identifier: Apache-2.0
// vLLM's all_reduce in shared memory, compiled from its unmodified source. Members are processes.
// ../peers/torch_shim/ replaces the parts of PyTorch that it uses.
#include "cpu/shm.cpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/bench/decode/token.hpp"

namespace {

using namespace bench::decode;

// All have made their memory before any joins, and all have joined before any adds up: two meetings on `page`'s terms.
void meet(std::atomic<int>& here, int members, int times) {
  here.fetch_add(1);
  while (here.load() < members * times) usleep(200);
}

void member(int id, const Plan& plan, Page& page, std::atomic<int>& here, const std::string& name) {
  const int members = plan.members;
  const int64_t handle = init_shm_manager(name, members, id, 1);
  meet(here, members, 1);
  join_shm_manager(handle, name);
  meet(here, members, 2);
  play(id, plan, page, [&](Tensor& tensor) {
    torch::Tensor view{tensor.elements, torch::ScalarType::BFloat16, static_cast<int64_t>(kElements)};
    shm_allreduce(handle, view);
    return true;
  });
  meet(here, members, 3);  // who ends takes its memory along
}

}  // namespace

int main(int argc, char** argv) {
  return side_main(argc, argv, [](const Plan& plan, Page& page) {
    void* const memory =
        mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    auto& here = *new (memory) std::atomic<int>(0);
    const std::string name = "/dist_bench_decode_" + std::to_string(getpid());
    for (int id = 1; id < plan.members; ++id) {
      const pid_t child = fork();
      if (child < 0) return false;
      if (child > 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      member(id, plan, page, here, name);
      std::exit(0);
    }
    member(0, plan, page, here, name);
    for (int id = 1; id < plan.members; ++id) {
      int status = 0;
      if (wait(&status) < 0 || status != 0) return false;
    }
    return true;
  });
}
