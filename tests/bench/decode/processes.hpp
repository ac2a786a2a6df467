// SPDX-License-Identifier: Apache-2.0
// Members that are forked processes, for engines whose all_reduces work in shared memory.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/bench/decode/token.hpp"

namespace bench::decode {

// Waits until all members have called it `times` times.
inline void meet(std::atomic<int>& here, int members, int times) {
  here.fetch_add(1);
  while (here.load() < members * times) usleep(200);
}

// Runs a side of processes. Each calls member(id, name, here), with a `name` that is unique to the run. It
// must call meet(here) three times in total: when its memory exists, when it has mapped that of the others,
// and before it ends.
template <class Member>
int processes_main(int argc, char** argv, Member member) {
  return side_main(argc, argv, [&](const Plan& plan, Page& page) {
    void* const memory =
        mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    auto& here = *new (memory) std::atomic<int>(0);
    const std::string name = "dist_bench_decode_" + std::to_string(getpid());
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

}  // namespace bench::decode
