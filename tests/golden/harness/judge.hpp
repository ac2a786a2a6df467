// SPDX-License-Identifier: Apache-2.0
// Compares the recorded outcome of a case with libdist's.
#pragma once

#include <vector>

#include "compare.hpp"
#include "runner.hpp"

namespace golden {

struct Judgement {
  // One for each part of `expected` that is not the same; "outcome" is another outcome altogether,
  // "afterwards" another state in which the case leaves its process. A recorded hang or crash is no right
  // answer: whatever libdist does, it is a difference in "outcome".
  std::vector<Difference> differences;
  // What no list excuses: libdist died, hung or was left unusable, or the replay does not know what the case
  // asks for.
  std::vector<Difference> faults;
  bool malformed = false;  // the case, which is the only fault

  bool same() const noexcept { return differences.empty() && faults.empty(); }
};

Judgement judge(const Case& one, const Answer& answer);

}  // namespace golden
