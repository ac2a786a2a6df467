// SPDX-License-Identifier: Apache-2.0
// A spinning barrier and fused slices, as a programmer would write them in twenty lines.
#include "tests/bench/decode/fused.hpp"

int main(int argc, char** argv) {
  using namespace bench::decode;
  return side_main(argc, argv, [](const Plan& plan, Page& page) {
    alignas(kLine) std::atomic<int> here{0};
    alignas(kLine) std::atomic<unsigned> turn{0};
    return run_fused(plan, page, [&] {
      const unsigned mine = turn.load(std::memory_order_relaxed);
      if (here.fetch_add(1, std::memory_order_acq_rel) + 1 == plan.members) {
        here.store(0, std::memory_order_relaxed);
        turn.store(mine + 1, std::memory_order_release);
        return;
      }
      while (turn.load(std::memory_order_acquire) == mine) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    });
  });
}
