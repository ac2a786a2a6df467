// SPDX-License-Identifier: Apache-2.0
// A simple hand-written all_reduce between processes: each worker copies its tensor piece by piece into
// shared memory, sets a flag, waits for the other flags, and sums. It checks nothing and does not handle
// failures.
#pragma once

#include <cstddef>

#include "tests/bench/workers/hand_memory.hpp"
#include "tests/bench/workers/turns.hpp"

namespace bench {

class Tensors;

class ByHand final : public Turns {
 public:
  ByHand(HandMemory& memory, int me, int workers, Tensors& tensors)
      : memory_(memory), me_(me), workers_(workers), tensors_(tensors) {}
  double take(Page& page, const Size& size, int operations) override;

 private:
  void all_reduce(std::size_t elements);

  HandMemory& memory_;
  const int me_, workers_;
  Tensors& tensors_;
  unsigned long pieces_ = 0;
};

}  // namespace bench
