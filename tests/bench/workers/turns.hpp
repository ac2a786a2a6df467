// SPDX-License-Identifier: Apache-2.0
// One worker's part in the turns of one side.
#pragma once

#include "tests/bench/workers/page.hpp"

namespace bench {

class Turns {
 public:
  virtual ~Turns() = default;
  // All workers make this many operations. Returns the microseconds that one takes by this worker's clock.
  // Throws std::runtime_error if an operation fails or a sum is wrong.
  virtual double take(Page& page, const Size& size, int operations) = 0;
};

}  // namespace bench
